"""Errors: their parts, and what counts as too little memory."""

import pickle

import pytest
import torch

from primaldepth.core.errors import FileFormatError, InputError, Worded, is_out_of_memory


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("noise: 'x' is no number; give one; or auto", ("noise", "'x' is no number", "give one; or auto")),
        ("a.png: guide: too small", ("a.png", "guide: too small", "")),
        ("unit 'cm' is not known; use this: mm", ("", "unit 'cm' is not known", "use this: mm")),
        ("no form at all", ("", "no form at all", "")),
    ],
)
def test_a_message_is_taken_apart_and_put_together_again(text, parts):
    error = InputError(text)
    assert (error.subject, error.found, error.hint) == parts
    assert str(error) == text
    assert str(pickle.loads(pickle.dumps(error))) == text  # noqa: S301 - our own


def test_parts_are_one_line_and_what_is_quoted_can_be_left_out():
    error = FileFormatError("a.npz", "holds {} but no 'depth'", "save it", ["'x; y: z'"])
    assert str(error) == "a.npz: holds 'x; y: z' but no 'depth'; save it"
    assert error.message("depth", ["..."]) == "depth: holds ... but no 'depth'"


def test_one_more_hint_keeps_the_words_of_both_front_ends():
    error = InputError("a", "b", Worded("give --c", "give 'c'")).advised("or d")
    assert (str(error), error.hint.in_form) == ("a: b; give --c; or d", "give 'c'; or d")
    assert str(InputError("a", "b").advised("or d")) == "a: b; or d"


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (MemoryError(), True),
        (torch.OutOfMemoryError("CUDA out of memory"), True),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes"), True),
        (RuntimeError("shapes do not match"), False),
        (ValueError("OutOfMemoryError"), False),
    ],
)
def test_too_little_memory_is_told_from_other_failures(error, expected):
    assert is_out_of_memory(error) is expected
