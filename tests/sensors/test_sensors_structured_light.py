"""The structured-light model: disparity noise and steps, shadows by geometry, holes."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from seeds import seeded

from primaldepth.sensors import sensor
from primaldepth.sensors.noise import local_mean

NAME = "structured-light-v1"
BF = 43.5
QUIET = {"noise": 0.0, "loss": 0.0, "edge_loss": 0.0}


def everywhere(value, size=(80, 100)):
    return torch.full((1, 1, *size), value)


@pytest.mark.parametrize("z", [0.8, 2.0, 4.0])
def test_depth_noise_grows_with_the_square_of_the_depth(z):
    truth = z * (1 + 0.02 * torch.linspace(0, 1, 200).expand(1, 1, 200, 200))  # over several steps
    samples = sensor(NAME)(truth, generator=seeded())
    expected = truth**2 / BF * (0.05**2 + 0.125**2 / 12) ** 0.5
    whitened = ((samples.depth - truth) / expected)[samples.valid]
    assert float(whitened.std()) == pytest.approx(1.0, rel=0.05)
    assert abs(float(whitened.mean())) < 0.05
    mean = local_mean(samples.depth, samples.valid)
    assert torch.allclose(samples.sigma, mean**2 / BF * (0.05**2 + 0.125**2 / 12) ** 0.5, rtol=1e-4)


def test_disparities_are_eighths_of_a_pixel():
    truth = torch.linspace(0.6, 6.0, 100).expand(1, 1, 80, 100)
    samples = sensor(NAME)(truth, generator=seeded())
    steps = 8 * BF / samples.depth[samples.valid].double()
    assert float((steps - steps.round()).abs().max()) < 1e-3
    assert len(steps.round().unique()) > 100


def lit(width, left, near=1.0, far=2.0):
    """Valid pixels of a row: a nearer bar of `width` columns from `left` on, before a wall."""
    truth = everywhere(far, (3, 120))
    truth[..., left : left + width] = near
    samples = sensor(NAME, **QUIET)(truth, generator=seeded())
    assert samples.valid[..., 0, :].equal(samples.valid[..., 1, :])
    return samples.valid[0, 0, 1]


def test_a_wide_bar_throws_its_shadow_to_the_left_up_to_its_edge():
    valid = lit(width=40, left=60)
    dark = (~valid).nonzero().flatten().tolist()
    shift = BF / 1.0 - BF / 2.0  # 21.75 px between bar and wall
    assert dark[-1] == 59
    assert dark[0] == pytest.approx(60 - shift, abs=1.5)
    assert dark == list(range(dark[0], 60))


def test_the_shadow_of_a_thin_bar_lies_apart_from_it():
    valid = lit(width=6, left=60)
    dark = (~valid).nonzero().flatten().tolist()
    assert len(dark) == pytest.approx(6, abs=1)
    assert dark[0] == pytest.approx(60 - 21.75, abs=1.5)
    assert valid[60:66].all()


@given(tilt=st.floats(-0.3, 0.3), level=st.floats(0.8, 4.0))
def test_a_plane_throws_no_shadow_on_itself(tilt, level):
    x = torch.linspace(-0.5, 0.5, 90).expand(1, 1, 20, 90)
    truth = level / (1 + tilt * x)
    assert sensor(NAME, **QUIET)(truth, generator=seeded()).valid.all()


def test_edges_lose_samples_and_surfaces_hardly_any():
    truth = everywhere(2.0, (100, 100))
    truth[..., :50, :] = 1.2
    samples = sensor(NAME)(truth, generator=seeded())
    lost = (~samples.valid)[0, 0].float().mean(dim=1)
    assert float(lost[49:51].mean()) == pytest.approx(0.5, abs=0.12)
    assert float(torch.cat([lost[:48], lost[52:]]).mean()) == pytest.approx(0.005, abs=0.003)


def test_only_its_range_is_measured():
    truth = torch.tensor([0.2, 0.5, 2.0, 7.5, 9.0, 30.0]).view(6, 1, 1, 1).expand(6, 1, 8, 8)
    samples = sensor(NAME, **QUIET)(truth, generator=seeded())
    assert samples.valid.flatten(1).all(dim=1).tolist() == [False, True, True, True, False, False]
    assert samples.valid.flatten(1).any(dim=1).tolist() == [False, True, True, True, False, False]


def test_coarser_samples_do_not_mix_surfaces():
    truth = everywhere(3.0, (16, 32))
    truth[..., :18] = 1.0
    camera = sensor(NAME, scale=4, step=1e-3, **QUIET)
    depth = camera(truth, generator=seeded()).depth
    values = depth[depth > 0]
    assert (((values - 1.0).abs() < 1e-2) | ((values - 3.0).abs() < 1e-2)).all()
