import pytest
import torch

from primaldepth.core.seeds import derive_seed, generator


def test_seeds_never_change():
    """`printf 'middlebury-2006\\x1f1\\x1faloe\\x1f2' | sha256sum` begins with 5987a42eccc5e3c1."""
    assert derive_seed("middlebury-2006", 1, "aloe", 2) == 0x5987A42ECCC5E3C1 >> 1 == 3225652756071248352


def test_drawn_numbers_never_change():
    drawn = torch.randn(3, generator=generator("middlebury-2006", 1, "aloe", 2), dtype=torch.float64)
    assert drawn.tolist() == pytest.approx(
        [-0.005231465389094, -0.878570447534462, -0.563093145766920], abs=1e-12
    )


def test_every_part_and_their_order_count():
    seeds = [derive_seed(*parts) for parts in (("a", 1), ("a", 2), (1, "a"), ("a1",), ("a", 1, ""), ("b", 1))]
    assert len(set(seeds)) == len(seeds)


def test_seeds_fit_a_generator():
    seeds = [derive_seed("x", i) for i in range(100)]
    assert all(0 <= seed < 2**63 for seed in seeds)
    assert len(set(seeds)) == 100
