import torch

from primaldepth.core.frame import Frame
from primaldepth.methods.holes import fill_holes, grow_into_holes, measured_mask


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


def test_samples_of_no_confidence_are_not_measured():
    depth, valid = smooth(2, 2), torch.ones(1, 1, 2, 2, dtype=torch.bool)
    confidence = torch.tensor([[0.0, 0.5], [1.0, 0.0]])[None, None]
    frame = Frame(depth, valid, torch.rand(1, 1, 4, 4), confidence)
    expected = torch.tensor([[False, True], [True, False]]).repeat_interleave(2, 0).repeat_interleave(2, 1)
    assert measured_mask(frame)[0, 0].equal(expected)
    untold = Frame(depth, valid, torch.rand(1, 1, 4, 4), 0 * confidence)
    assert bool(measured_mask(untold).all())


def test_lone_samples_of_no_confidence_leave_gaps():
    valid = torch.zeros(1, 1, 64, 64, dtype=torch.bool)
    valid[..., 2::8, 2::8] = True
    confidence = valid.float()
    confidence[..., :32, :32] = 0.0
    frame = Frame(torch.ones(1, 1, 64, 64), valid, torch.rand(1, 1, 64, 64), confidence)
    measured = measured_mask(frame)
    assert not bool(measured[..., :20, :20].any())
    assert bool(measured[..., 40:, 40:].all())


def test_what_was_measured_grows_into_holes_ring_by_ring():
    values = torch.tensor([[1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 5.0]])[None, None].repeat(1, 1, 3, 1)
    valid = values > 0
    filled, ring = grow_into_holes(values, valid, 2)
    assert filled[0, 0, 1].tolist() == [1.0, 1.0, 1.0, 1.0, 5.0, 5.0, 5.0]
    assert ring[0, 0, 1].tolist() == [0.0, 0.0, 1.0, 2.0, 2.0, 1.0, 0.0]


def test_deeper_than_its_rings_the_fill_is_smooth():
    values = torch.full((1, 2, 16, 16), 3.0)
    valid = torch.zeros(1, 1, 16, 16, dtype=torch.bool)
    valid[..., :2, :] = True
    filled, ring = grow_into_holes(torch.where(valid, values, float(9)), valid, 3)
    torch.testing.assert_close(filled, values)
    assert ring.max() == 4
    assert (ring == 4).sum() == 11 * 16


def test_every_map_and_image_grows_by_itself():
    random = torch.Generator().manual_seed(3)
    values = torch.rand((2, 2, 9, 11), generator=random)
    valid = torch.rand((2, 1, 9, 11), generator=random) > 0.6
    both, ring = grow_into_holes(values, valid, 2)
    for b in range(2):
        for c in range(2):
            one, its_ring = grow_into_holes(values[b : b + 1, c : c + 1], valid[b : b + 1], 2)
            torch.testing.assert_close(both[b : b + 1, c : c + 1], one)
            assert its_ring.equal(ring[b : b + 1])
