"""Contents of a report: sections of paragraphs, tables and pictures, without layout."""

import base64
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Literal

Mark = Literal["", "best", "second"]
CellKind = Literal["number", "published", "difference", "beyond", "absent", "name", "text"]


@dataclass(frozen=True, slots=True)
class Cell:
    """Text of a table.

    Args:
        mark: best and second best of the column.
        kind: what it says; "beyond" is a number outside its tolerance.
        span: columns it takes.
    """

    text: str
    kind: CellKind = "number"
    mark: Mark = ""
    span: int = 1


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column and the group it stands in."""

    title: str
    group: str = ""


@dataclass(frozen=True, slots=True)
class TableRow:
    """Cells from left to right; `rule` separates it from the row above."""

    cells: tuple[Cell, ...]
    rule: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """Columns and rows below a title."""

    columns: tuple[TableColumn, ...]
    rows: tuple[TableRow, ...]
    title: str = ""

    @property
    def groups(self) -> list[tuple[str, int]]:
        """Each group and how many columns it has; none where no column stands in one."""
        found = [(group, len(list(same))) for group, same in groupby(each.group for each in self.columns)]
        return found if any(group for group, _ in found) else []

    @property
    def starts(self) -> list[bool]:
        """Whether a column begins a group."""
        return [False, *(a.group != b.group for a, b in pairwise(self.columns))]

    @property
    def texts(self) -> set[int]:
        """Numbers of the columns that hold text."""
        return {index for row in self.rows for index, each in enumerate(row.cells) if each.kind == "text"}


@dataclass(frozen=True, slots=True)
class SideBySide:
    """Tables that may stand beside each other where there is room."""

    tables: tuple[Table, ...]


@dataclass(frozen=True, slots=True)
class Picture:
    """An image as the bytes of its file.

    Args:
        name: of the file, without the extension; unique in the report.
        suffix: of the file.
        alt: what it shows, for those who cannot see it.
        label: a few words below it.
    """

    name: str
    suffix: Literal["svg", "png", "jpg"]
    data: bytes
    alt: str
    label: str = ""

    @property
    def data_url(self) -> str:
        """The picture as a data URL."""
        media = {"svg": "image/svg+xml", "png": "image/png", "jpg": "image/jpeg"}[self.suffix]
        return f"data:{media};base64,{base64.b64encode(self.data).decode()}"


@dataclass(frozen=True, slots=True)
class Gallery:
    """Pictures that belong together, `columns` side by side where there is room; a sentence below them."""

    pictures: tuple[Picture, ...]
    columns: int
    title: str = ""
    caption: str = ""


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Plain text. `backticks` mark code, [[best]] and [[second]] show the marks, Δ_a has an index.

    A `notice` says what is missing.
    """

    text: str
    notice: bool = False


Block = Paragraph | Table | SideBySide | Gallery


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the report; links refer to it by its anchor."""

    title: str
    anchor: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Document:
    """The whole report."""

    title: str
    lead: str
    sections: tuple[Section, ...]
    footer: str

    def pictures(self) -> list[Picture]:
        """Return every picture, in order."""
        galleries = [b for s in self.sections for b in s.blocks if isinstance(b, Gallery)]
        return [picture for gallery in galleries for picture in gallery.pictures]
