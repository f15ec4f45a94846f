"""Data of the interactive figure of support weights: a cutout of the shipped sample as a script for browsers.

python scripts/make_support_data.py > docs/_static/support-data.js
"""

import base64
import json

import numpy as np
from PIL import Image

from primaldepth.io import read_depth
from primaldepth.samples import sample_files

TOP, LEFT, ROWS, COLUMNS = 150, 150, 96, 128  # the box, the bars before the wall and the sphere
METRES = 4.0  # that 255 stands for


def packed(values: np.ndarray) -> str:
    """Row by row, one byte each."""
    return base64.b64encode(np.rint(np.clip(values, 0, 255)).astype(np.uint8).tobytes()).decode()


def main() -> None:
    """Print the script."""
    files = sample_files()
    cut = (slice(TOP, TOP + ROWS), slice(LEFT, LEFT + COLUMNS))
    image = np.asarray(Image.open(files.guide).convert("RGB"))[cut]
    depth = read_depth(files.truth).values[cut]
    data = {
        "rows": ROWS,
        "columns": COLUMNS,
        "metres": METRES,
        "image": packed(image),
        "depth": packed(255.0 * depth / METRES),
    }
    print(f"window.supportData = {json.dumps(data)};")


if __name__ == "__main__":
    main()
