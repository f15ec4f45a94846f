"""Errors a user can meet. Each message says which input, what was found, what to do."""

import difflib
from collections.abc import Iterable


class PrimalDepthError(Exception):
    """Base of every error this package raises on purpose."""


class InputError(PrimalDepthError, ValueError):
    """What was handed in cannot be used: a wrong size, unit, name or option."""


class FileFormatError(InputError):
    """A file cannot be read or written as the format it claims to be."""


class MissingFileError(FileFormatError):
    """A file that was named does not exist."""


class TooLargeError(FileFormatError):
    """A file claims more pixels than may be decoded."""


class StepSizeError(PrimalDepthError, ValueError):
    """Step sizes for which the primal-dual iteration need not converge."""


class MissingDependencyError(PrimalDepthError, ImportError):
    """An optional package is needed for what was asked."""


SHOWN = 60


def shortened(value: object) -> str:
    """Write a found value for a message: as Python does, control characters escaped, in 60 characters."""
    text = repr(value)
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 3]}..."


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A question that names the known one that is written most like it; empty where none is."""
    near = difflib.get_close_matches(name[:SHOWN], list(known), n=1)
    return f"did you mean '{near[0]}'?" if near else ""


def is_out_of_memory(error: BaseException) -> bool:
    """Whether the machine or its GPU has too little memory for what was asked.

    torch says so in three ways; the class is told by its name, so that no one who needs an error loads torch.
    """
    named = any(each.__name__ == "OutOfMemoryError" for each in type(error).__mro__)
    return named or isinstance(error, MemoryError) or "allocate memory" in str(error)
