"""Damage of an input as a whole: which file, which mutation, and whether its checksums are repaired."""

import random
from collections.abc import Callable
from pathlib import PurePath

from benchmarks.attack import arrays, bags, exr, film, jpeg, mat5, png, tensors, text, tiff
from benchmarks.attack.cases import Files, Mutant, Mutator, Seed, Span
from benchmarks.attack.plain import damaged, flipped, rearranged, spliced

Structure = Callable[[random.Random, bytes], bytes]
Repair = Callable[[random.Random, Files], Files]
STRUCTURES: dict[str, Structure] = {
    ".png": png.structured,
    ".jpg": jpeg.structured,
    ".tif": tiff.structured,
    ".exr": exr.structured,
    ".npy": arrays.structured_npy,
    ".npz": arrays.structured_npz,
    ".mat": mat5.structured,
    ".json": text.structured_json,
    **dict.fromkeys((".jsonl", ".yaml", ".toml", ".txt", ".csv", ".ply", ".pfm"), text.structured_words),
    ".safetensors": tensors.structured,
    ".mp4": film.structured_boxes,
    ".avi": film.structured_riff,
    ".bag": bags.structured_bag,
    ".mcap": bags.structured_mcap,
    ".db3": bags.structured_db3,
}


def mutator(repair: Repair | None = None) -> Mutator:
    """Damage one file of a seed: by its structure, by its bytes, or by another seed's.

    Args:
        repair: make checksums right that lie in another file.
    """

    def mutate(rng: random.Random, seeds: list[Seed]) -> Mutant:
        origin = rng.randrange(len(seeds))
        seed = seeds[origin]
        if len(seed.files) > 1 and rng.random() < 0.08:
            return Mutant(_other_files(rng, seed.files), "files", origin=origin)
        name = rng.choice(sorted(seed.files))
        spans = seed.sealed.get(name, ())
        if _is_partly_sealed(seed.files[name], spans) and rng.random() < 0.25:
            data = flipped(rng, seed.files[name], spans)
            return Mutant({**seed.files, name: data}, f"bits of {name}", "same", origin)
        how, data = _damage(rng, name, seed.files[name], seeds)
        files, mended = {**seed.files, name: data}, False
        if how == "bytes" and name.endswith(".png") and rng.random() < 0.5:
            files[name], mended = png.mend(data), True
        if repair is not None and rng.random() < 0.7:
            files, mended = repair(rng, files), True
        sealed = how == "bytes" and not mended and _is_covered(seed.files[name], data, spans)
        return Mutant(files, f"{how} of {name}", "same" if sealed else "any", origin)

    return mutate


def _damage(rng: random.Random, name: str, data: bytes, seeds: list[Seed]) -> tuple[str, bytes]:
    structure = STRUCTURES.get(PurePath(name).suffix)
    choice = rng.random()
    if choice < 0.55 and structure is not None and data:
        new = structure(rng, data)
        return ("structure and bytes", damaged(rng, new)) if rng.random() < 0.1 else ("structure", new)
    if choice > 0.95:
        other = rng.choice(seeds).files
        return "splice", spliced(rng, data, other.get(name) or rng.choice(list(other.values())))
    return "bytes", damaged(rng, data)


def _other_files(rng: random.Random, files: Files) -> Files:
    """A file that is missing, empty, or in the place of another."""
    names = sorted(files)
    here, there = rng.choice(names), rng.choice(names)
    choice = rng.randrange(4)
    if choice == 0:
        return {name: data for name, data in files.items() if name != here}
    if choice == 1:
        return {**files, here: b""}
    if choice == 2:
        return {**files, here: files[there], there: files[here]}
    kept = rearranged(rng, names)
    return {name: files[name] for name in kept}


def _is_partly_sealed(data: bytes, spans: tuple[Span, ...]) -> bool:
    return bool(spans) and spans != ((0, len(data)),)


def _is_covered(before: bytes, after: bytes, spans: tuple[Span, ...]) -> bool:
    """Whether a checksum covers every byte that differs."""
    if spans == ((0, len(before)),):
        return True
    if len(before) != len(after) or not spans:
        return False
    changed = [at for at in range(len(before)) if before[at] != after[at]]
    return all(any(low <= at < high for low, high in spans) for at in changed)
