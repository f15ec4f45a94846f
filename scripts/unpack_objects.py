"""Write the scanned objects of a pack as OBJ files with their pictures, for `primaldepth render --meshes`.

    python scripts/unpack_objects.py objects.npz OUT [--count N]

The pack's README names its arrays; z is up in it, and y in the files. ATTRIBUTION.txt in OUT has the text
that weights trained with the objects have to carry.
"""

import argparse
from pathlib import Path

import numpy as np


def obj_text(vertices: np.ndarray, uv: np.ndarray, faces: np.ndarray) -> str:
    """The lines of one object: (V, 3) metres with z up, (V, 2) with v down, (F, 3) from 0."""
    x, y, z = vertices.T
    lines = [f"v {a:.5f} {b:.5f} {c:.5f}" for a, b, c in zip(x, z, -y, strict=True)]
    lines += [f"vt {u:.5f} {1.0 - v:.5f}" for u, v in uv]
    lines += ["f " + " ".join(f"{corner + 1}/{corner + 1}" for corner in face) for face in faces]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Unpack all objects, or every k-th so that `--count` remain."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pack", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--count", type=int)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    with np.load(arguments.pack, allow_pickle=False) as packed:
        arrays = {name: packed[name] for name in packed.files}
    total = len(arrays["names"])
    for index in np.linspace(0, total - 1, min(arguments.count or total, total)).astype(int):
        own = {
            part: slice(*arrays[f"{part}_start"][index : index + 2]) for part in ("vertex", "face", "jpeg")
        }
        low, high = arrays["bbox"][index]
        vertices = low + arrays["vertices"][own["vertex"]] / 65535.0 * (high - low)
        text = obj_text(vertices, arrays["uv"][own["vertex"]] / 65535.0, arrays["faces"][own["face"]])
        name = arguments.out / arrays["names"][index].decode()
        name.with_suffix(".obj").write_text(text)
        name.with_suffix(".jpg").write_bytes(arrays["jpeg_bytes"][own["jpeg"]].tobytes())
    (arguments.out / "ATTRIBUTION.txt").write_bytes(arrays["attribution"].item())


if __name__ == "__main__":
    main()
