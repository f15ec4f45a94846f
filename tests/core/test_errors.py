"""Errors: what counts as too little memory."""

import pytest
import torch

from primaldepth.core.errors import is_out_of_memory


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
