"""Random seeds derived from names, so that a new user of random numbers never changes those of another."""

import hashlib

import torch


def derive_seed(*parts: str | int) -> int:
    """Return a 63-bit seed that depends on every part and on nothing else.

    Args:
        parts: such as names and numbers of scenes.
    """
    digest = hashlib.sha256("\x1f".join(str(part) for part in parts).encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


def generator(*parts: str | int) -> torch.Generator:
    """Return a CPU generator seeded by `parts`: the same numbers on every device and machine.

    Args:
        parts: as of `derive_seed`.
    """
    return torch.Generator().manual_seed(derive_seed(*parts))
