"""HDF5: files with features that reach beyond the file or ask for much, and damage of their metadata."""

import io
import random
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.attack.cases import Files, Mutant, Seed, Span
from benchmarks.attack.plain import damaged, flipped

NAME = "depth.h5"
OUTSIDE = "outside.h5"  # beside the file; nothing of it may ever be read
ELSEWHERE = "/etc/passwd"  # nor of this
VALUES = np.arange(1, 36, dtype=np.float64).reshape(7, 5)
_FIGURES = (np.uint8, np.int16, np.float16, np.float32, ">f8", np.int64, np.complex64, np.bool_)


def written(make: Callable[[Any], None], **options: Any) -> bytes:
    """The bytes of a file that `make` fills."""
    import h5py

    stream = io.BytesIO()
    with h5py.File(stream, "w", **options) as file:
        make(file)
    return stream.getvalue()


def chunk_spans(data: bytes) -> tuple[Span, ...]:
    """Where the chunks of `depth` lie, which have a checksum each."""
    import h5py

    with h5py.File(io.BytesIO(data)) as file:
        found = file["depth"].id
        chunks = [found.get_chunk_info(index) for index in range(found.get_num_chunks())]
    return tuple((each.byte_offset, each.byte_offset + each.size) for each in chunks)


def beside(make: Callable[[Any], None]) -> Files:
    """The file and the one outside of it that it refers to."""
    return {NAME: written(make), OUTSIDE: written(lambda file: file.create_dataset("depth", data=VALUES))}


def external(file: Any) -> None:
    file.create_dataset("depth", (5, 7), "u1", external=[(ELSEWHERE, 0, 35)])


def soft_link(file: Any) -> None:
    import h5py

    file["inner/other"] = VALUES
    file["depth"] = h5py.SoftLink("/inner/other")


def external_link(file: Any) -> None:
    import h5py

    file["depth"] = h5py.ExternalLink(OUTSIDE, "/depth")


def virtual(file: Any) -> None:
    import h5py

    layout = h5py.VirtualLayout(shape=VALUES.shape, dtype="f8")
    layout[:] = h5py.VirtualSource(OUTSIDE, "depth", shape=VALUES.shape)
    file.create_virtual_dataset("depth", layout, fillvalue=7)


def _reference(file: Any) -> None:
    import h5py

    file["depth"] = np.array([[file.ref, file.ref]], dtype=h5py.ref_dtype)


OUTWARD = {"external": external, "soft link": soft_link, "external link": external_link, "virtual": virtual}


def _type(rng: random.Random) -> Callable[[Any], None]:
    kind = rng.choice(_FIGURES)
    return lambda file: file.create_dataset("depth", data=VALUES.astype(kind))


def _huge(rng: random.Random) -> Callable[[Any], None]:
    """A size that takes no room in the file: chunks that are not there are filled with a value."""
    side = rng.choice((1000, 16000, 2**20, 2**31, 2**40))
    return lambda file: file.create_dataset("depth", (side, side), "f8", chunks=(16, 16), fillvalue=1.0)


def _packed(rng: random.Random) -> Callable[[Any], None]:
    side = rng.choice((10, 1000, 2000))
    options = {"compression": "gzip", "shuffle": rng.random() < 0.5, "fletcher32": rng.random() < 0.5}
    return lambda file: file.create_dataset("depth", data=np.ones((side, side), "u1"), chunks=True, **options)


def _shape(rng: random.Random) -> Callable[[Any], None]:
    shape = rng.choice(((), (0,), (35,), (0, 5), (1, 1, 1), (5, 7, 3), (1,) * 32))
    return lambda file: file.create_dataset("depth", shape, "f4")


def _odd_attributes(rng: random.Random) -> Callable[[Any], None]:
    value = rng.choice((b"char", "double", 3, np.ones(1000), np.bytes_(b"\xff\xfe"), [b"a", b"b"]))

    def make(file: Any) -> None:
        file["depth"] = VALUES
        file["depth"].attrs[rng.choice(("MATLAB_class", "MATLAB_sparse", "x"))] = value

    return make


def _crowd(rng: random.Random) -> Callable[[Any], None]:
    count, deep = rng.choice((10, 3000)), rng.choice((1, 300))

    def make(file: Any) -> None:
        file["/".join(["g"] * deep) + "/depth"] = VALUES
        for index in range(count):
            file[f"v{index}"] = index
        file["depth"] = VALUES

    return make


def _record(rng: random.Random) -> Callable[[Any], None]:
    import h5py

    kinds = (
        np.dtype([("a", "f4"), ("b", "i8")]),
        h5py.string_dtype(),
        h5py.vlen_dtype(np.uint8),
        np.dtype("V9"),
    )
    kind = rng.choice(kinds)
    return lambda file: file.create_dataset("depth", (5, 7), kind)


_MAKERS = (_type, _huge, _packed, _shape, _odd_attributes, _crowd, _record)


def mutated(rng: random.Random, seeds: list[Seed]) -> Mutant:
    """A file that reaches outward, one of an odd feature, or a damaged one."""
    choice = rng.random()
    if choice < 0.15:
        name = rng.choice(list(OUTWARD))
        return Mutant(beside(OUTWARD[name]), name, "refused")
    if choice < 0.2:
        return Mutant({NAME: written(_reference)}, "reference", "refused")
    if choice < 0.5:
        maker = rng.choice(_MAKERS)
        options = rng.choice(({}, {"libver": "latest"}, {"userblock_size": 512}))
        return Mutant({NAME: written(maker(rng), **options)}, maker.__name__)
    origin = rng.randrange(len(seeds))
    seed = seeds[origin]
    if seed.sealed[NAME] and rng.random() < 0.5:
        return Mutant({NAME: flipped(rng, seed.files[NAME], seed.sealed[NAME])}, "bits", "same", origin)
    return Mutant({NAME: damaged(rng, seed.files[NAME])}, "bytes", origin=origin)
