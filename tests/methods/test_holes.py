import torch

from primaldepth.methods.holes import fill_holes


def smooth(height=9, width=13):
    y, x = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
    return (1.0 + 0.1 * y + 0.2 * x)[None, None]


def random_mask(shape, share, seed=0):
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed)) < share


def test_nothing_missing_nothing_changed():
    values = smooth()
    assert fill_holes(values, torch.ones_like(values, dtype=torch.bool)).equal(values)


def test_valid_samples_stay():
    values, valid = smooth(), random_mask((1, 1, 9, 13), 0.4)
    assert fill_holes(values, valid)[valid].equal(values[valid])


def test_small_holes_are_close_to_what_was_there():
    values, valid = smooth(), random_mask((1, 1, 9, 13), 0.85)
    assert (fill_holes(values, valid) - values).abs().max() < 0.3


def test_one_sample_reaches_everywhere():
    for size in [(9, 13), (1, 7), (6, 1)]:
        values = torch.full((1, 1, *size), float("nan"))
        values[..., -1, -1] = 4.0
        assert (fill_holes(values, ~values.isnan()) - 4.0).abs().max() < 1e-5


def test_fills_stay_between_the_samples():
    values, valid = (
        torch.rand((1, 1, 16, 16), generator=torch.Generator().manual_seed(1)),
        random_mask((1, 1, 16, 16), 0.2),
    )
    filled, known = fill_holes(values, valid), values[valid]
    assert known.min() - 1e-5 <= filled.min()
    assert filled.max() <= known.max() + 1e-5


def test_channels_share_the_mask():
    values, valid = smooth(), random_mask((1, 1, 9, 13), 0.5)
    both = fill_holes(torch.cat([values, -3 * values], dim=1), valid)
    assert torch.allclose(both[:, 1:], -3 * both[:, :1], atol=1e-5)
