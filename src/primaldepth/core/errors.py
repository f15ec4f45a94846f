"""Errors a user can meet. Each one says which input, what was found, what to do."""

import difflib
from collections.abc import Iterable, Sequence

from typing_extensions import Self


class Worded(str):
    """A text that names command line options, with a second wording for fields of an HTTP form."""

    in_form: str

    def __new__(cls, text: str, in_form: str) -> Self:
        """Make the text, and keep the wording for forms beside it as `in_form`."""
        made = super().__new__(cls, text)
        made.in_form = in_form
        return made


class PrimalDepthError(Exception):
    """Base of every error this package raises on purpose.

    Front ends render its parts; nothing reads its text. A message given alone, or a `found` without a hint,
    has the form "subject: found; hint" and is taken apart here, once.

    Args:
        subject: which input: a file, a field or an option.
        found: what is wrong with it; each {} stands for one of `quoted`.
        hint: what to do.
        quoted: words of a file, which only the owner of the file may see.

    Example:
        >>> from primaldepth.core.errors import PrimalDepthError
        >>> error = PrimalDepthError("depth.png", "no valid pixel", "check the unit")
        >>> error.subject, error.found, error.hint
        ('depth.png', 'no valid pixel', 'check the unit')
        >>> print(error)
        depth.png: no valid pixel; check the unit
    """

    def __init__(self, subject: object, found: str = "", hint: str = "", quoted: Sequence[str] = ()) -> None:
        self.subject = subject if isinstance(subject, Worded) else str(subject)
        self.found, self.hint, self.quoted = found, hint, tuple(quoted)
        if not found:
            text, _, self.hint = self.subject.partition("; ")
            self.subject, colon, self.found = text.partition(": ")
            if not colon:
                self.subject, self.found = "", text
        elif not isinstance(self.subject, Worded):
            self.subject, colon, inner = self.subject.partition(": ")
            self.found = f"{inner}{colon}{found}"
        if found and not hint:
            self.found, _, self.hint = self.found.partition("; ")
        super().__init__("; ".join(filter(None, (self.message(self.subject, self.quoted), self.hint))))

    def message(self, subject: str, quoted: Sequence[str]) -> str:
        """Return "subject: found" with another subject, and with other words in place of those of a file.

        Args:
            subject: takes the place of the error's own.
            quoted: takes the place of the words of a file.
        """
        found = self.found.format(*quoted) if quoted else self.found
        return f"{subject}: {found}" if subject else found

    def advised(self, more: str) -> Self:
        """Return the same error with one more hint.

        Args:
            more: the hint.
        """
        form = getattr(self.hint, "in_form", self.hint)
        hint = Worded(f"{self.hint}; {more}", f"{form}; {more}") if self.hint else more
        return type(self)(self.subject, self.found, hint, self.quoted)


class InputError(PrimalDepthError, ValueError):
    """What was handed in cannot be used: a wrong size, unit, name or option.

    Example:
        >>> from primaldepth.geometry.cameras import Intrinsics
        >>> Intrinsics.guess(640, 480, fov_degrees=200)
        Traceback (most recent call last):
            ...
        primaldepth.core.errors.InputError: field of view: 200 degrees, expected between 0 and 180
    """


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
    """Return `repr(value)`, cut to 60 characters, for an error message.

    Args:
        value: from outside, of any length.
    """
    text = repr(value)
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 3]}..."


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return "did you mean 'x'?" with the known name most like `name`; empty if none is similar.

    Args:
        name: what was given.
        known: names that would have been right.
    """
    near = difflib.get_close_matches(name[:SHOWN], list(known), n=1)
    return f"did you mean '{near[0]}'?" if near else ""


def unknown_name(noun: str, name: str, known: Iterable[str]) -> InputError:
    """Return the error for a name that is not known, with the nearest one that is, and all of them.

    Args:
        noun: what the name stands for.
        name: what was given.
        known: names that would have been right.
    """
    names = list(known)
    hints = did_you_mean(name, names), f"known: {', '.join(names)}"
    return InputError("", f"unknown {noun} '{name}'", "; ".join(filter(None, hints)))


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether the error says that the machine or its GPU has too little memory.

    torch reports it in three ways; its class is recognised by name, without importing torch.

    Args:
        error: any.
    """
    named = any(each.__name__ == "OutOfMemoryError" for each in type(error).__mro__)
    return named or isinstance(error, MemoryError) or "allocate memory" in str(error)
