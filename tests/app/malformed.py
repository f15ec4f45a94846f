"""Requests that no one should send: each must be refused with a reason, and none may hurt the service.

`requests(count, seed)` draws from every kind in turn. `Malformed.send(client)` works with any client that has
httpx' `request`.
"""

import io
import json
import random
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from primaldepth.io.depth_writing import encode_values
from primaldepth.io.formats import CODECS

NAMES = (
    "../../etc/passwd",
    "/etc/shadow",
    "..\\..\\win.ini",
    "a\0b.png",
    "CON",
    "x" * 3000,
    "",
    "file:///etc/hosts",
)


@dataclass(frozen=True)
class Malformed:
    """One request; `body` replaces the form."""

    kind: str
    files: dict[str, tuple[str, bytes]] = field(default_factory=dict)
    data: dict[str, str] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes | None = None

    def send(self, client: Any, url: str = "/v1/upsample") -> Any:
        if self.body is not None:
            return client.request("POST", url, content=self.body, headers=self.headers)
        return client.request("POST", url, files=self.files, data=self.data, headers=self.headers)


def depth_bytes(extension: str = ".png", shape: tuple[int, int] = (6, 8)) -> bytes:
    """A depth map between one and two metres."""
    values = np.random.default_rng(0).integers(1000, 2000, shape) / 1000.0
    unit = "mm" if extension == ".png" else "m"
    return encode_values(Path(f"a{extension}"), values, values > 0, unit)


def guide_bytes(form: str = "PNG", size: tuple[int, int] = (16, 12)) -> bytes:
    """A random image of (width, height)."""
    stream = io.BytesIO()
    pixels = np.random.default_rng(1).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
    Image.fromarray(pixels).save(stream, form)
    return stream.getvalue()


def good_files(**other: tuple[str, bytes]) -> dict[str, tuple[str, bytes]]:
    return {"depth": ("d.png", depth_bytes()), "guide": ("g.png", guide_bytes()), **other}


def png(width: int, height: int, body: bytes, bits: int = 16, colour: int = 0) -> bytes:
    """A PNG with this header and this deflated body, whether they fit or not."""
    chunks = [
        (b"IHDR", struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, 0)),
        (b"IDAT", body),
        (b"IEND", b""),
    ]
    packed = [struct.pack(">I", len(b)) + n + b + struct.pack(">I", zlib.crc32(n + b)) for n, b in chunks]
    return b"\x89PNG\r\n\x1a\n" + b"".join(packed)


def npy(shape: tuple[int, ...], body: bytes = b"", descr: str = "<f8") -> bytes:
    head = repr({"descr": descr, "fortran_order": False, "shape": shape}).encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + body


def _array(values: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.save(stream, values)
    return stream.getvalue()


def zip_of(members: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, body in members.items():
            archive.writestr(name, body)
    return stream.getvalue()


def tiff_bomb() -> bytes:
    """One strip of 8x8 uint16 pixels that inflates to 40 MB."""
    strip = zlib.compress(bytes(40_000_000), 9)
    longs = {256: 8, 257: 8, 273: 0, 278: 8, 279: len(strip)}
    shorts = {258: 16, 259: 8, 262: 1, 277: 1, 339: 1}
    fields = sorted((tag, 4 if tag in longs else 3, value) for tag, value in (longs | shorts).items())
    at = 8 + 2 + 12 * len(fields) + 4
    rows = [struct.pack("<HHII", tag, kind, 1, at if tag == 273 else value) for tag, kind, value in fields]
    return (
        b"II*\0" + struct.pack("<I", 8) + struct.pack("<H", len(fields)) + b"".join(rows) + bytes(4) + strip
    )


def exr_header(width: int, height: int, channels: int = 1) -> bytes:
    """An EXR of ZIP-compressed floats without a single chunk."""
    names = b"".join(b"c%d\0" % index + struct.pack("<iIii", 2, 0, 1, 1) for index in range(channels)) + b"\0"
    window = struct.pack("<4i", 0, 0, width - 1, height - 1)
    attributes = [("channels", "chlist", names), ("compression", "compression", b"\3")]
    attributes += [("dataWindow", "box2i", window), ("displayWindow", "box2i", window)]
    packed = [f"{n}\0{k}\0".encode() + struct.pack("<i", len(b)) + b for n, k, b in attributes]
    return b"\x76\x2f\x31\x01" + struct.pack("<I", 2) + b"".join(packed) + b"\0" + bytes(64)


def jpeg_header(width: int, height: int) -> bytes:
    good = bytearray(guide_bytes("JPEG"))
    at = good.index(b"\xff\xc0")
    good[at + 5 : at + 9] = struct.pack(">HH", height, width)
    return bytes(good)


def _truncated(random_: random.Random) -> Malformed:
    extension = random_.choice([each for codec in CODECS if codec.encode for each in codec.extensions])
    whole = depth_bytes(extension)
    part = random_.choice(("depth", "guide"))
    cut = whole[: random_.randrange(1, max(2, len(whole) - 16))]
    return Malformed(f"truncated {extension}", good_files(**{part: ("a", cut)}))


def _truncated_guide(random_: random.Random) -> Malformed:
    whole = guide_bytes(random_.choice(("PNG", "JPEG", "TIFF")))
    return Malformed(
        "truncated guide", good_files(guide=("g", whole[: random_.randrange(1, len(whole) // 2)]))
    )


_STRANGERS = (
    b"this is no picture\n",
    b"<html><body>no</body></html>",
    b"%PDF-1.7\n1 0 obj\n",
    b"GIF89a" + bytes(40),
    b"BM" + bytes(60),
    b"\x7fELF" + bytes(100),
    b"\x1f\x8b" + bytes(50),
    bytes(1000),
    b"",
)


def _wrong_type(random_: random.Random) -> Malformed:
    part = random_.choice(("depth", "guide", "confidence", "cameras"))
    body = random_.choice((*_STRANGERS, random_.randbytes(random_.randrange(1, 3000))))
    return Malformed("wrong type", good_files(**{part: ("a.png", body)}))


def _jpeg_depth(random_: random.Random) -> Malformed:
    return Malformed("jpeg as depth", good_files(depth=("d.jpg", guide_bytes("JPEG"))))


def _bomb(random_: random.Random) -> Malformed:
    side = random_.choice((20_000, 60_000, 2**31 - 1))
    zeros = zlib.compress(bytes(2_000_000), 9)
    bombs: dict[str, Callable[[], bytes]] = {
        "png header": lambda: png(side, side, zeros),
        "png body": lambda: png(64, 64, zeros),
        "png wide": lambda: png(20_000, 4, zlib.compress(bytes((1 + 40_000) * 4))),
        "npy header": lambda: npy((side, side)),
        "npz bomb": lambda: zip_of({"depth.npy": npy((9000, 9000), bytes(72_000_000))}),
        "npz too long": lambda: zip_of({"depth.npy": npy((90, 90), bytes(40_000_000))}),
        "npz header": lambda: zip_of({"depth.npy": npy((side, side), bytes(100_000))}),
        "npz crowd": lambda: zip_of({f"{index}.npy": b"" for index in range(1500)}),
        "npz channels": lambda: zip_of({"depth.npy": npy((4000, 4000, 10_000))}),
        "tiff strip": tiff_bomb,
        "exr header": lambda: exr_header(min(side, 2**20), min(side, 2**20)),
        "exr channels": lambda: exr_header(4000, 4000, 2000),
        "pfm header": lambda: f"Pf\n{side} {side}\n-1.0\n".encode() + bytes(64),
        "jpeg header": lambda: jpeg_header(65_000, 65_000),
    }
    name = random_.choice(list(bombs))
    part = "guide" if name == "jpeg header" else random_.choice(("depth", "guide"))
    return Malformed(f"bomb: {name}", good_files(**{part: ("a", bombs[name]())}))


def _values(random_: random.Random) -> Malformed:
    worthless = random_.choice((np.nan, np.inf, -1.0, 0.0))
    if random_.random() < 0.5:
        return Malformed("worthless depth", good_files(depth=("d.npy", _array(np.full((6, 8), worthless)))))
    guide = np.full((12, 16, 3), random_.choice((np.nan, np.inf, -1.0, 7.0)), np.float32)
    return Malformed("worthless guide", good_files(guide=("g.npy", _array(guide))))


def _sizes(random_: random.Random) -> Malformed:
    choice = random_.randrange(4)
    if choice == 0:
        return Malformed("1x1 guide", good_files(guide=("g.png", guide_bytes(size=(1, 1)))))
    if choice == 1:
        return Malformed("guide too small", good_files(guide=("g.png", guide_bytes(size=(4, 40)))))
    if choice == 2:
        return Malformed(
            "confidence of another size", good_files(confidence=("c.png", depth_bytes(shape=(5, 5))))
        )
    return Malformed("too many axes", good_files(depth=("d.npy", _array(np.ones((2, 2, 2, 2))))))


def _fields(random_: random.Random) -> Malformed:
    wrong = random_.choice(
        (
            {"method": random_.choice(("../../w.safetensors", "/etc/passwd", "nlh-l3", "x" * 5000, "\0"))},
            {"unit": random_.choice(("furlong", "MM", "mm\0"))} | {"kind": "radial"},
            {"kind": random_.choice(("radial", "w", "disparity"))} | {"unit": "m"},
            {
                "noise": random_.choice(
                    ("-1", "nan", "inf", "1e39", "1e400", "/etc/passwd", "middlebury", "0x10")
                )
            },
            {"holes": random_.choice(("none", "FILL"))},
            {"spikes": random_.choice(("none", "fill"))},
            {"sampling": random_.choice(("mean", "POINT"))},
            {random_.choice(("nosie", "Unit", "../depth", "x" * 5000)): "1"},
        )
    )
    return Malformed("wrong field", good_files(), wrong)


def _cameras(random_: random.Random) -> Malformed:
    texts = (
        "[" * 100_000,
        '{"guide": 1}',
        "[]",
        '{"guide": {"fx": NaN, "fy": 1, "cx": 1, "cy": 1, "width": 1, "height": 1}}',
        '{"guide": {"fx": 1, "fy": 1, "cx": 1, "cy": 1, "width": ' + "9" * 5000 + ', "height": 1}}',
        '{"guide": {"fx": -1, "fy": 1, "cx": 1, "cy": 1, "width": 16, "height": 12}}',
        '{"guide": {"fx": 9, "fy": 9, "cx": 8, "cy": 6, "width": 16, "height": 1' + "0" * 400 + "}}",
        '{"guide": {"fx": 1e308, "fy": 1e-308, "cx": 8, "cy": 6, "width": 16, "height": 12}}',
        json.dumps({"path": "/etc/passwd"}),
        json.dumps({"distortion_model": "plumb_bob", "width": int("9" * 400)}),
        "\xff\xfe",
        "a: " + "[" * 100_000,
        "a: " + "[" * 5000,
        "a: &a [" + "1," * 9000 + "]\nk: [" + "*a," * 9000 + "]\n",
        "a: &a {b: 1}\nk: {<<: [*a, *a]}\n",
        "width: !!python/object/apply:os.system [id]\n",
        "width: !!int ''\n",
        "width: !!bool x\n",
        "width: 0x" + "f" * 9000 + "\n",
        "width: 16\nheight: 12\nk: 1\nd: 2001-01-01\n",
        "x" * 70_000 + ": 1\n",
    )
    body = random_.choice(texts).encode("latin1")
    return Malformed("wrong cameras", good_files(cameras=("c.json", body)))


def _charset(name: str) -> dict[str, str]:
    return {"Content-Type": f"multipart/form-data; boundary=b; charset={name}"}


def _half_a_character() -> bytes:
    parts = [b'name="method"\r\n\r\n\\ud800']
    parts += [f'name="{name}"; filename="a.png"\r\n\r\n'.encode() + b"x" for name in ("depth", "guide")]
    return (
        b"".join(b"--b\r\nContent-Disposition: form-data; " + part + b"\r\n" for part in parts) + b"--b--\r\n"
    )


def _form(random_: random.Random) -> Malformed:
    head = {"Content-Type": "multipart/form-data; boundary=b"}
    start = b'--b\r\nContent-Disposition: form-data; name="depth"; filename="d"\r\n\r\n'
    choices = (
        Malformed("no parts", {}, {"method": "bilinear"}),
        Malformed("no guide", {"depth": ("d.png", depth_bytes())}),
        Malformed("text for a file", {"guide": ("g.png", guide_bytes())}, {"depth": "hello"}),
        Malformed("no multipart", body=b"hello", headers={"Content-Type": "text/plain"}),
        Malformed("json", body=b'{"depth": 1}', headers={"Content-Type": "application/json"}),
        Malformed("broken json", body=b'{"depth', headers={"Content-Type": "application/json"}),
        Malformed("no boundary", body=start, headers={"Content-Type": "multipart/form-data"}),
        Malformed("other boundary", body=start.replace(b"--b", b"--c"), headers=head),
        Malformed("open form", body=start + b"abc", headers=head),
        Malformed("no name", body=b"--b\r\n\r\nabc\r\n--b--\r\n", headers=head),
        Malformed("long field", good_files(), {"noise": "1" * 2_000_000}),
        Malformed("many fields", good_files(), {f"f{index}": "1" for index in range(1500)}),
        Malformed("not acceptable", good_files(), headers={"Accept": "text/html"}),
        Malformed("encoding", body=random_.randbytes(200), headers=head),
        Malformed("half a character", body=_half_a_character(), headers=_charset("unicode_escape")),
    )
    return random_.choice(choices)


def _names(random_: random.Random) -> Malformed:
    name = random_.choice(NAMES)
    return Malformed("traversal name", good_files(depth=(name, b"root:x:0:0\n"), guide=(name, guide_bytes())))


KINDS: tuple[Callable[[random.Random], Malformed], ...] = (
    _truncated,
    _truncated_guide,
    _wrong_type,
    _jpeg_depth,
    _bomb,
    _values,
    _sizes,
    _fields,
    _cameras,
    _form,
    _names,
)


def requests(count: int, seed: int = 0) -> Iterator[Malformed]:
    """So many requests, each kind in turn."""
    drawn = [requests_of(kind, seed + index) for index, kind in enumerate(KINDS)]
    for index in range(count):
        yield next(drawn[index % len(KINDS)])


def requests_of(kind: Callable[[random.Random], Malformed], seed: int = 0) -> Iterator[Malformed]:
    """Requests of one kind without end."""
    random_ = random.Random(seed)  # noqa: S311 - inputs of tests
    while True:
        yield kind(random_)


def odd_but_fine() -> Iterator[Malformed]:
    """Small and strange, but meant: these are answered."""
    yield Malformed(
        "1x1", good_files(depth=("d", depth_bytes(shape=(1, 1))), guide=("g", guide_bytes(size=(1, 1))))
    )
    yield Malformed(
        "one row", good_files(depth=("d", depth_bytes(shape=(1, 9))), guide=("g", guide_bytes(size=(90, 1))))
    )
    holes = np.full((6, 8), np.nan)
    holes[2, 2] = 1.0
    yield Malformed("one sample", good_files(depth=("d.npy", _array(holes))))
    yield Malformed("names", good_files(depth=(NAMES[0], depth_bytes()), guide=(NAMES[1], guide_bytes())))
