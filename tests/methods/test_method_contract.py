"""What every method promises, whatever its name."""

from dataclasses import fields, replace

import pytest
import torch

from primaldepth.core.frame import Frame, Method
from primaldepth.methods import create, list_methods

every_method = pytest.mark.parametrize("info", list_methods(), ids=lambda info: info.name)
SHORT = {"iterations": 20, "coarse_iterations": 10, "window": 5}
RATIOS = {
    "x1": ((12, 16), (12, 16)),
    "x2.7 by x3.1": ((9, 11), (24, 34)),
    "x8": ((3, 4), (24, 32)),
    "only x": ((12, 8), (12, 32)),
    "only y": ((3, 16), (24, 16)),
    "one sample": ((1, 1), (24, 32)),
    "one pixel": ((1, 1), (1, 1)),
    "one row": ((1, 5), (1, 20)),
    "one column": ((5, 1), (17, 1)),
}


def made(info):
    """Float32, since what bfloat16 rounds depends on how convolutions are blocked."""
    method = create(info.name, SHORT if info.family == "variational" else None)
    return method.comparable() if info.family == "network" else method


def scene(low=(6, 8), high=(24, 32), channels=3, batch=1, holes=True, seed=0):
    """A noisy step between 2 and 3 metres, the guide's edge at the same place, three samples missing."""
    random = torch.Generator().manual_seed(seed)
    noise = torch.randn((batch, 1, *low), generator=random)
    depth = 2.0 + (torch.arange(low[1]) >= low[1] / 2) + 0.05 * noise
    guide = 0.2 + 0.5 * (torch.arange(high[1]) >= high[1] / 2).float().expand(batch, channels, *high)
    guide = guide + 0.1 * torch.rand(guide.shape, generator=random)
    valid = torch.ones_like(depth, dtype=torch.bool)
    if holes:
        valid[..., 1, 2] = valid[..., 4, 5] = valid[..., 4, 6] = False
    sigma = (0.05 * torch.linspace(0.5, 2.0, low[1])).expand_as(depth).contiguous()
    return Frame(depth, valid, guide, sigma=sigma)


def span(frame):
    values = frame.depth[frame.valid]
    return float(values.max() - values.min())


def predict(info, frame):
    return made(info)(frame).depth


@every_method
@pytest.mark.parametrize(("low", "high"), RATIOS.values(), ids=RATIOS.keys())
def test_any_ratio(info, low, high):
    frame = scene(low, high, holes=False)
    prediction = made(info)(frame)
    assert prediction.depth.shape == prediction.valid.shape == prediction.measured.shape == (1, 1, *high)
    assert prediction.depth.dtype == torch.float32
    assert torch.isfinite(prediction.depth).all()
    assert prediction.valid.dtype == torch.bool
    assert prediction.valid.all()
    assert prediction.measured.all()
    middle = float(frame.depth.mean())
    noise = 6 * float(frame.sigma.max()) if info.family == "network" else 0.0  # its unit, if nothing varies
    assert (prediction.depth - middle).abs().max() < 3 * (span(frame) + noise) + 1e-4


@every_method
def test_grey_guides_will_do(info):
    frame = scene(channels=1)
    assert torch.isfinite(predict(info, frame)).all()
    colour = replace(frame, guide=frame.guide.expand(-1, 3, -1, -1).contiguous())
    assert (predict(info, colour) - predict(info, frame)).abs().max() < 0.5 * span(frame)


@every_method
def test_it_knows_its_name(info):
    assert isinstance(made(info), Method)
    assert made(info).name == info.name


@every_method
@pytest.mark.parametrize("garbage", [float("nan"), 1e30, -7.0])
def test_values_of_invalid_samples_are_never_read(info, garbage):
    frame = scene()
    other = torch.where(frame.valid, frame.depth, garbage)
    sigma = torch.where(frame.valid, frame.sigma, garbage)
    assert predict(info, replace(frame, depth=other, sigma=sigma)).equal(predict(info, frame))
    assert predict(info, replace(frame, depth=other, sigma=None)).equal(
        predict(info, replace(frame, sigma=None))
    )


@every_method
@pytest.mark.parametrize("high", [(24, 32), (17, 29)])
def test_measured_is_where_a_valid_sample_covers_the_pixel(info, high):
    frame = scene(high=high)
    measured = made(info)(frame).measured[0, 0]
    for y in range(high[0]):
        for x in range(high[1]):
            row, column = int((y + 0.5) * 6 / high[0]), int((x + 0.5) * 8 / high[1])
            assert measured[y, x] == frame.valid[0, 0, row, column]


@every_method
@pytest.mark.parametrize("value", [0.003, 1.7, 54321.0])
def test_a_constant_stays_constant(info, value):
    frame = scene()
    frame = replace(frame, depth=torch.full_like(frame.depth, value), sigma=None)
    assert (predict(info, frame) / value - 1).abs().max() < 1e-4


@every_method
def test_holes_are_filled_from_around_them(info):
    frame = scene()
    values = frame.depth[frame.valid]
    filled = predict(info, frame)
    assert float(filled.min()) > float(values.min()) - 0.5
    assert float(filled.max()) < float(values.max()) + 0.5


@every_method
def test_it_is_deterministic(info):
    assert predict(info, scene()).equal(predict(info, scene()))


@every_method
def test_the_frame_is_untouched(info):
    frame, expected = scene(), scene()
    made(info)(frame)
    assert tensors_of(frame).keys() == tensors_of(expected).keys()
    for name, value in tensors_of(frame).items():
        assert value.equal(getattr(expected, name))
    assert (frame.sampling, frame.registered) == (expected.sampling, expected.registered)


def tensors_of(frame):
    values = {field.name: getattr(frame, field.name) for field in fields(frame)}
    return {name: value for name, value in values.items() if isinstance(value, torch.Tensor)}


def together(frames):
    return Frame(
        **{name: torch.cat([getattr(frame, name) for frame in frames]) for name in tensors_of(frames[0])}
    )


@every_method
def test_a_batch_is_its_frames(info):
    """Frames of different depth, noise, holes and guides do not know of each other."""
    first, second = scene(seed=1), scene(seed=2, holes=False)
    loud = replace(second, depth=40 * second.depth, sigma=40 * second.sigma.flip(-1) ** 2)
    flat = replace(scene(seed=3), guide=torch.full_like(first.guide, 0.5))
    frames = [first, loud, flat]
    batch = predict(info, together(frames))
    for frame, found in zip(frames, batch, strict=True):
        assert (predict(info, frame)[0] - found).abs().max() < 1e-5 * span(frame)


@every_method
def test_units_do_not_matter(info):
    metres = scene()
    millimetres = replace(metres, depth=1000 * metres.depth, sigma=1000 * metres.sigma)
    difference = predict(info, millimetres) / 1000 - predict(info, metres)
    assert difference.abs().max() < 1e-3 * span(metres)


@every_method
def test_where_zero_lies_does_not_matter(info):
    here = scene()
    there = replace(here, depth=here.depth + 8.0)
    assert (predict(info, there) - 8.0 - predict(info, here)).abs().max() < 1e-3 * span(here)


@every_method
def test_confidence_is_accepted(info):
    frame = scene()
    frame = replace(frame, confidence=torch.linspace(0, 1, 48).view(1, 1, 6, 8))
    assert torch.isfinite(predict(info, frame)).all()


@every_method
def test_double_precision_is_kept(info):
    frame = scene()
    doubled = {name: value.double() for name, value in tensors_of(frame).items() if name != "valid"}
    exact = predict(info, replace(frame, **doubled))
    assert exact.dtype == torch.float64
    assert (exact - predict(info, frame)).abs().max() < 1e-3 * span(frame)
