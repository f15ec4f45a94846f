"""Triangle meshes as GLB (glTF 2.0, binary) and PLY (binary, little-endian).

Axes and colours are those of point clouds: PLY keeps the camera's frame, GLB stores (x, -y, -z) and linear
light. The material shows the colours as they are, from both sides.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from primaldepth.core.errors import FileFormatError, InputError
from primaldepth.geometry.clouds import Mesh
from primaldepth.io.atomic import write_bytes
from primaldepth.io.glb import TRIANGLES, UINT32, document, pack_glb, vertices
from primaldepth.io.pointcloud import ply_vertices


def write_mesh(path: str | Path, mesh: Mesh) -> None:
    """Write a mesh as `.glb` or `.ply`, by the extension.

    Args:
        path: of the file.
        mesh: the triangles.

    Raises:
        InputError: if the extension is another one, or there is no triangle, or a point is not finite.

    Example:
        >>> import numpy as np
        >>> from primaldepth.geometry.cameras import Intrinsics
        >>> from primaldepth.geometry.meshing import depth_mesh
        >>> from primaldepth.io.mesh import write_mesh
        >>> depth = np.full((3, 4), 2.0)
        >>> write_mesh("mesh.glb", depth_mesh(depth, depth > 0, Intrinsics.guess(4, 3)))
    """
    path = Path(path)
    encode = _ENCODERS.get(path.suffix.lower())
    if encode is None:
        raise FileFormatError(path, f"extension '{path.suffix}', but a mesh is written as .glb or .ply")
    if len(mesh.triangles) == 0:
        raise InputError(
            path,
            "no three neighbouring pixels are valid and close in depth, so there is no triangle",
            "allow a larger jump or write a point cloud",
        )
    if not np.isfinite(mesh.points.points).all():
        raise InputError(path, "the mesh has NaN or infinite vertices", "leave them out")
    write_bytes(path, encode(mesh))


def _encode_glb(mesh: Mesh) -> bytes:
    positions, colors, accessors = vertices(mesh.points.points, mesh.points.colors)
    indices = mesh.triangles.astype("<u4").tobytes()
    accessors.append(
        {"bufferView": 2, "componentType": UINT32, "count": mesh.triangles.size, "type": "SCALAR"}
    )
    primitive = {"mode": TRIANGLES, "indices": 2, "material": 0}
    gltf = document(primitive, accessors, [positions, colors, indices])
    matt = {"metallicFactor": 0.0, "roughnessFactor": 1.0}
    unlit = "KHR_materials_unlit"
    gltf["materials"] = [{"pbrMetallicRoughness": matt, "doubleSided": True, "extensions": {unlit: {}}}]
    gltf["extensionsUsed"] = [unlit]
    return pack_glb(gltf, positions + colors + indices)


def _encode_ply(mesh: Mesh) -> bytes:
    header, body = ply_vertices(mesh.points)
    faces = np.empty(len(mesh.triangles), np.dtype([("count", "u1"), ("corners", "<i4", (3,))]))
    faces["count"], faces["corners"] = 3, mesh.triangles
    lines = [*header, f"element face {len(faces)}", "property list uchar int vertex_indices", "end_header"]
    return ("\n".join(lines) + "\n").encode("ascii") + body + faces.tobytes()


_ENCODERS: dict[str, Callable[[Mesh], bytes]] = {".glb": _encode_glb, ".ply": _encode_ply}
