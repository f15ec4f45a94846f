"""Large maps are worked on a few rows at a time, so that what is made on the way stays small."""

from collections.abc import Iterator

PIXELS_AT_ONCE = 2**18


def row_blocks(height: int, width: int) -> Iterator[slice]:
    """Slices of whole rows that cover the map from top to bottom."""
    rows = max(1, PIXELS_AT_ONCE // width)
    for top in range(0, height, rows):
        yield slice(top, min(height, top + rows))
