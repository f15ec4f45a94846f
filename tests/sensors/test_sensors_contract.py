"""What every sensor model promises, whatever it models."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from seeds import seeded

from primaldepth.core.errors import InputError
from primaldepth.sensors import Samples, sensor, sensor_class, sensor_names
from primaldepth.sensors.draws import normal, uniform

NAMES = (
    "middlebury-noisy-v1",
    "gaussian-v1",
    "metric-gaussian-v1",
    "tof-v1",
    "tof-beside-v1",
    "structured-light-v1",
    "lidar-v1",
    "point-gaussian-v1",
    "structured-light-v2",
    "stereo-v1",
    "lidar-v2",
)
METRIC = tuple(
    name for name in NAMES if name not in ("middlebury-noisy-v1", "gaussian-v1", "point-gaussian-v1")
)
IN_PLACE = tuple(name for name in NAMES if name != "tof-beside-v1")  # samples lie where the truth is read
LOSSLESS = {
    "middlebury-noisy-v1": {"noise": 0.0},
    "gaussian-v1": {"sigma": 0.0},
    "metric-gaussian-v1": {"sigma": 0.0},
    "tof-v1": {"read": 0.0, "shot": 0.0},
    "tof-beside-v1": {"read": 0.0, "shot": 0.0, "parallax": 0.0, "coarser": 0.0},
    "structured-light-v1": {"noise": 0.0, "step": 1e-3, "loss": 0.0, "edge_loss": 0.0},
    "lidar-v1": {"noise": 0.0, "loss": 0.0, "spacing": 2},
    "point-gaussian-v1": {"sigma": 0.0},
    "structured-light-v2": {"noise": 0.0, "relative": 0.0, "step": 1e-3, "loss": 0.0},
    "stereo-v1": {"noise": 0.0, "relative": 0.0, "step": 1e-3, "loss": 0.0},
    "lidar-v2": {"noise": 0.0, "loss": 0.0, "spacing": 2},
}


def scene(name, size=(48, 64), batch=2):
    """A slanted plane and a nearer rectangle, in the sensor's kind."""
    y, x = torch.meshgrid(torch.arange(size[0]), torch.arange(size[1]), indexing="ij")
    z = 2.0 + 0.4 * x / size[1] + 0.2 * y / size[0]
    z[size[0] // 4 : size[0] // 2, size[1] // 4 : size[1] // 2] = 1.2
    z = z * torch.linspace(1.0, 1.3, batch).view(-1, 1, 1, 1)
    return 200.0 / z if name not in METRIC else z


def plane(name, size=(48, 64)):
    y, x = torch.meshgrid(torch.arange(size[0]), torch.arange(size[1]), indexing="ij")
    q = 0.5 + 0.1 * (x + 0.5) / size[1] - 0.05 * (y + 0.5) / size[0]
    return (240.0 * q if name not in METRIC else 1.0 / q)[None, None]


def maps(samples: Samples):
    """The tensors of samples by name."""
    names = ("depth", "valid", "sigma", "confidence", "amplitude")
    return {name: getattr(samples, name) for name in names if getattr(samples, name) is not None}


def equal(one, other):
    return all(a.equal(b) for a, b in zip(maps(one).values(), maps(other).values(), strict=True))


def test_these_are_the_names():
    assert sensor_names() == NAMES
    assert [sensor(name).name for name in NAMES] == list(NAMES)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("scale", [1, 4])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_shapes_types_and_values(name, scale, dtype):
    samples = sensor(name, scale=scale)(scene(name).to(dtype), generator=seeded())
    for key, values in maps(samples).items():
        assert values.shape == (2, 1, 48 // scale, 64 // scale)
        assert values.dtype == (torch.bool if key == "valid" else dtype)
    assert samples.valid.float().mean() > 0.6
    assert torch.isfinite(samples.depth).all()
    assert (samples.depth[samples.valid] > 0).all()
    assert (samples.depth[~samples.valid] == 0).all()
    assert torch.isfinite(samples.sigma).all()
    assert (samples.sigma[samples.valid] > 0).all()


@pytest.mark.parametrize("name", NAMES)
def test_same_seed_same_samples(name):
    draws = [sensor(name, scale=2)(scene(name), generator=seeded(seed)) for seed in (1, 1, 2)]
    assert equal(draws[0], draws[1])
    assert not draws[0].depth.equal(draws[2].depth)


@pytest.mark.parametrize("name", NAMES)
def test_arguments_stay_as_they_are(name):
    depth, valid = scene(name), scene(name) > 0
    valid[..., 3:9, 5:20] = False
    gain = torch.tensor([0.5, 2.0]).view(2, 1, 1, 1)
    before = [each.clone() for each in (depth, valid, gain)]
    sensor(name, scale=2)(depth, valid, generator=seeded(), gain=gain)
    assert all(a.equal(b) for a, b in zip(before, (depth, valid, gain), strict=True))


@pytest.mark.parametrize("name", IN_PLACE)
@pytest.mark.parametrize("poison", [float("nan"), float("inf"), -3.0, 0.0])
def test_holes_stay_holes_and_their_values_are_never_read(name, poison):
    depth, valid = scene(name), scene(name) > 0
    valid[..., 8:24, 32:48] = False
    camera = sensor(name, scale=4)
    expected = camera(depth, valid, generator=seeded())
    assert not expected.valid[..., 2:6, 8:12].any()
    poisoned = torch.where(valid, depth, poison)
    assert equal(camera(poisoned, valid, generator=seeded()), expected)
    assert equal(camera(poisoned, generator=seeded()), expected)


@pytest.mark.parametrize("name", NAMES)
def test_an_image_without_truth_has_no_samples(name):
    samples = sensor(name, scale=2)(torch.zeros(1, 1, 16, 16), generator=seeded())
    assert not samples.valid.any()
    assert all(torch.isfinite(each).all() for each in maps(samples).values())


@pytest.mark.parametrize("name", IN_PLACE)
def test_a_plane_without_noise_comes_out_as_it_is(name):
    truth = plane(name)
    samples = sensor(name, scale=4, **LOSSLESS[name])(truth, generator=seeded())
    low = torch.nn.functional.avg_pool2d(truth, 4)
    # Rounding; blur at the border; half a pixel between the middle pixel of a block and its centre.
    tolerance = {
        "middlebury-noisy-v1": 0.6,
        "gaussian-v1": 0.1,
        "metric-gaussian-v1": 0.1,
        "lidar-v1": 0.05,
        "point-gaussian-v1": 0.5,
        "structured-light-v2": 5e-3,
        "stereo-v1": 5e-3,
        "lidar-v2": 0.1,
    }.get(name, 2e-3)
    assert samples.valid.all()
    assert (samples.depth - low).abs().max() < tolerance


@pytest.mark.parametrize("name", IN_PLACE)
def test_gain_scales_the_noise_of_each_image(name):
    truth = plane(name, (128, 128)).repeat(3, 1, 1, 1)
    without_steps = {"step": 1e-4, "loss": 0.0}
    options = {
        "structured-light-v1": without_steps,
        "structured-light-v2": without_steps,
        "stereo-v1": without_steps,
        "lidar-v1": {"loss": 0.0},
        "lidar-v2": {"loss": 0.0},
    }.get(name, {})
    camera = sensor(name, **options)
    gain = torch.tensor([0.0, 1.0, 3.0]).view(3, 1, 1, 1)
    centre = camera(truth, generator=seeded(), gain=0 * gain).depth[0]
    samples = camera(truth, generator=seeded(), gain=gain)
    deviation = [float((d - centre)[v].std()) for d, v in zip(samples.depth, samples.valid, strict=True)]
    assert deviation[0] == 0
    assert deviation[2] == pytest.approx(3 * deviation[1], rel=0.1)
    ratio = samples.sigma[2][samples.valid[2]].median() / samples.sigma[1][samples.valid[1]].median()
    assert float(ratio) == pytest.approx(3.0, rel=0.05)


@pytest.mark.parametrize("name", NAMES)
@given(seed=st.integers(0, 2**31))
def test_drawn_parameters_lie_in_their_ranges(name, seed):
    drawn = sensor_class(name).draw(seeded(seed), scale=4)
    assert drawn.scale == 4
    assert drawn == sensor_class(name).draw(seeded(seed), scale=4)
    for key, (low, high) in drawn.ranges.items():
        assert low * 0.999 <= getattr(drawn, key) <= high * 1.001


@pytest.mark.parametrize("name", NAMES)
def test_fixing_one_parameter_does_not_shift_another(name):
    free = sensor_class(name).draw(seeded(3))
    first = next(iter(free.ranges))
    fixed = sensor_class(name).draw(seeded(3), **{first: 0.01})
    assert getattr(fixed, first) == 0.01
    others = [key for key in free.ranges if key != first]
    assert all(getattr(free, key) == getattr(fixed, key) for key in others)
    assert free != sensor_class(name).draw(seeded(4))


@given(st.floats(0.2, 50.0), st.sampled_from(METRIC), st.integers(0, 10_000))
def test_whatever_the_depth_no_sample_is_out_of_place(level, name, seed):
    truth = torch.full((1, 1, 16, 24), level)
    samples = sensor_class(name).draw(seeded(seed), scale=2)(truth, generator=seeded(seed))
    assert torch.isfinite(samples.depth).all()
    assert (samples.depth[samples.valid] > 0).all()
    assert (samples.depth[~samples.valid] == 0).all()
    assert torch.isfinite(samples.sigma).all()


def test_unknown_names_and_options_are_named():
    known = r"unknown sensor 'kinect'; known: middlebury-noisy-v1, gaussian-v1, metric-gaussian-v1, tof-v1"
    with pytest.raises(InputError, match=known):
        sensor("kinect")
    with pytest.raises(InputError, match="sensor 'tof-v1': unknown key 'shott'; did you mean 'shot'"):
        sensor("tof-v1", shott=1.0)
    with pytest.raises(InputError, match="sensor 'lidar-v1': 'noise'"):
        sensor("lidar-v1", noise=-1.0)
    with pytest.raises(ValueError, match="frozen"):
        sensor("lidar-v1").noise = 2.0


@pytest.mark.parametrize("name", NAMES)
def test_wrong_inputs_are_named(name):
    camera = sensor(name, scale=4)
    with pytest.raises(InputError, match="depth: 48x62 is not a multiple of 4"):
        camera(torch.ones(1, 1, 48, 62), generator=seeded())
    with pytest.raises(InputError, match=r"expected floating point \(B, 1, H, W\)"):
        camera(torch.ones(48, 64), generator=seeded())
    with pytest.raises(InputError, match="valid: "):
        camera(torch.ones(1, 1, 8, 8), torch.ones(1, 1, 4, 4) > 0, generator=seeded())


def test_numbers_come_from_the_generator_alone():
    like = torch.zeros(2, 3, dtype=torch.float64)
    torch.manual_seed(1)
    one = normal(like, seeded(), torch.full((2, 1), 2.0)), uniform(like, seeded())
    torch.manual_seed(2)
    other = normal(like, seeded()), uniform(like, seeded())
    assert one[0].equal(2 * other[0])
    assert one[1].equal(other[1])
    assert one[0].dtype == torch.float64


@pytest.mark.gpu
@pytest.mark.parametrize("name", NAMES)
def test_a_cpu_generator_gives_the_same_samples_on_a_gpu(name):
    camera = sensor(name, scale=2)
    here = camera(scene(name), generator=seeded())
    there = camera(scene(name).cuda(), generator=seeded())
    assert (here.valid != there.valid.cpu()).float().mean() < 0.01
    both = here.valid & there.valid.cpu()
    assert float((here.depth - there.depth.cpu())[both].abs().quantile(0.99)) <= 1e-3


@pytest.mark.gpu
@pytest.mark.parametrize("name", NAMES)
def test_noise_is_drawn_on_the_gpu_without_waiting_for_it(name, no_waiting):
    truth = scene(name).cuda()
    camera = sensor(name, scale=2)
    draws = []
    for seed in (1, 1, 2):
        camera(truth, generator=torch.Generator("cuda").manual_seed(0))
        with no_waiting():
            draws.append(camera(truth, generator=torch.Generator("cuda").manual_seed(seed)))
    assert equal(draws[0], draws[1])
    assert not draws[0].depth.equal(draws[2].depth)
