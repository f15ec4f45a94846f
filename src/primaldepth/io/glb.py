"""The container of binary glTF 2.0: a header, a chunk of JSON, a chunk of bytes."""

import json
import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

ARRAY_BUFFER, ELEMENT_ARRAY_BUFFER = 34962, 34963
FLOAT32, UINT8, UINT32 = 5126, 5121, 5125
POINTS, TRIANGLES = 0, 4


def pack_glb(gltf: dict[str, Any], blob: bytes) -> bytes:
    """Return a GLB file of a glTF document and the bytes of its only buffer."""
    text = json.dumps(gltf, separators=(",", ":")).encode("ascii")
    text += b" " * (-len(text) % 4)
    blob += b"\0" * (-len(blob) % 4)
    chunks = struct.pack("<I4s", len(text), b"JSON") + text + struct.pack("<I4s", len(blob), b"BIN\0") + blob
    return struct.pack("<4sII", b"glTF", 2, 12 + len(chunks)) + chunks


def vertices(points: NDArray[np.float32], colors: NDArray[np.uint8]) -> tuple[bytes, bytes, list[Any]]:
    """Return positions, colours and their accessors of points, with y up, -z forward, linear light."""
    positions = points * np.array([1, -1, -1], "<f4")
    rgba = np.full((len(positions), 4), 255, np.uint8)  # RGBA: every element starts on 4 bytes
    rgba[:, :3] = linear_from_srgb(colors)
    count = len(positions)
    position = {"bufferView": 0, "componentType": FLOAT32, "count": count, "type": "VEC3"}
    position |= {"min": positions.min(axis=0).tolist(), "max": positions.max(axis=0).tolist()}
    color = {"bufferView": 1, "componentType": UINT8, "normalized": True, "count": count, "type": "VEC4"}
    return positions.tobytes(), rgba.tobytes(), [position, color]


def document(primitive: dict[str, Any], accessors: list[Any], parts: list[bytes]) -> dict[str, Any]:
    """Return a glTF document of one mesh; each of `parts` is a buffer view, the third holds indices."""
    views, start = [], 0
    for target, part in zip((ARRAY_BUFFER, ARRAY_BUFFER, ELEMENT_ARRAY_BUFFER), parts, strict=False):
        views.append({"buffer": 0, "byteOffset": start, "byteLength": len(part), "target": target})
        start += len(part)
    return {
        "asset": {"version": "2.0", "generator": "primaldepth"},
        "scene": 0,
        "scenes": [{"nodes": [0]}],
        "nodes": [{"mesh": 0}],
        "meshes": [{"primitives": [{"attributes": {"POSITION": 0, "COLOR_0": 1}, **primitive}]}],
        "accessors": accessors,
        "bufferViews": views,
        "buffers": [{"byteLength": start}],
    }


def linear_from_srgb(colors: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return linear light: c / 12.92 up to 0.04045, else ((c + 0.055) / 1.055)^2.4, c in [0, 1]."""
    c = np.arange(256) / 255
    linear = np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)
    table: NDArray[np.uint8] = np.rint(linear * 255).astype(np.uint8)
    return np.take(table, colors)
