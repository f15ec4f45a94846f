"""ToF samples in the guide's view, against a wall and a box by formula."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from two_cameras import GUIDE, RIG, TOF, radial, seen_by_tof, tensor, tof_pixels, turned, view

from primaldepth.core.errors import InputError
from primaldepth.geometry.cameras import Intrinsics
from primaldepth.geometry.registration import project_samples, project_surface
from primaldepth.geometry.rig import Rig, axes, ray_lengths
from primaldepth.sensors import sensor

MM = 1e-3


def tof_distance(box, camera=TOF):
    return tensor(radial(camera, view(camera, replace(RIG, source=camera), box)[0].distance))


def everywhere(depth):
    return torch.ones_like(depth, dtype=torch.bool)


def errors(found, truth):
    """Absolute errors where measured, and the mask."""
    measured = found.valid[0, 0].numpy()
    assert (found.depth[0, 0].numpy()[~measured] == 0).all()
    return np.abs(found.depth[0, 0].numpy() - truth)[measured], measured


def margin(points, pixels):
    """True where a point is at least so many ToF pixels inside the ToF image."""
    x, y = tof_pixels(points)
    return (x > pixels) & (x < TOF.width - pixels) & (y > pixels) & (y < TOF.height - pixels)


def test_every_visible_pixel_of_a_wall_is_measured_exactly():
    distance = tof_distance(box=False)
    truth, points = view(GUIDE, box=False)
    error, measured = errors(project_surface(distance, everywhere(distance), RIG), truth.distance)
    seen = seen_by_tof(points, box=False)
    assert error.max() < 0.01 * MM
    assert measured[margin(points, 0.01)].all()
    assert not measured[~margin(points, -0.01)].any()
    assert 0.9 < seen.mean() < 0.95


@pytest.mark.parametrize(("scale", "spread"), [(1, 0.0), (1, 0.02), (4, 0.0), (4, 0.02)])
def test_degraded_without_noise_a_wall_is_off_by_less_than_a_millimetre(scale, spread):
    camera = sensor("tof-v1", scale=scale, spread=spread, read=0.0, shot=0.0)
    fine = TOF.scaled_to(scale * TOF.width, scale * TOF.height)
    samples = camera(tof_distance(False, fine), generator=torch.Generator().manual_seed(0))
    truth, points = view(GUIDE, box=False)
    error, measured = errors(project_surface(samples.depth, samples.valid, RIG), truth.distance)
    assert error.max() < 1 * MM
    assert measured[margin(points, 0.01)].all()


def box_scene():
    distance = tof_distance(box=True)
    truth, points = view(GUIDE)
    return distance, truth, points, seen_by_tof(points)


def test_behind_a_box_nothing_is_measured_and_all_that_is_measured_is_right():
    distance, truth, points, seen = box_scene()
    error, measured = errors(project_surface(distance, everywhere(distance), RIG), truth.distance)
    hidden = ~seen & margin(points, 0.01)
    assert hidden.sum() > 5000
    assert not measured[hidden].any()
    assert error.max() < 0.01 * MM


def test_what_both_cameras_see_is_measured_up_to_one_sample_from_the_edge():
    distance, truth, points, seen = box_scene()
    _, measured = errors(project_surface(distance, everywhere(distance), RIG), truth.distance)
    on_box = tensor(view(TOF, RIG)[0].box).float()
    window = torch.nn.functional.max_pool2d
    inner = (window(on_box, 3, 1, 1) == -window(-on_box, 3, 1, 1))[0, 0].numpy()
    x, y = (np.floor(each).astype(int) for each in tof_pixels(points))
    safe = margin(points, 0.01)
    safe &= inner[np.clip(y, 0, TOF.height - 1), np.clip(x, 0, TOF.width - 1)]
    ring = window(tensor(truth.box).float(), 13, 1, 6) == -window(-tensor(truth.box).float(), 13, 1, 6)
    safe &= seen & ring[0, 0].numpy()  # as far from the box's outline in the guide's view
    assert measured[safe].all()
    assert (seen & ~measured).mean() < 0.02


def test_mixed_pixels_at_the_box_do_not_let_the_wall_shine_through():
    fine = TOF.scaled_to(4 * TOF.width, 4 * TOF.height)
    camera = sensor("tof-v1", scale=4, spread=0.01, read=0.0, shot=0.0)
    samples = camera(tof_distance(True, fine), generator=torch.Generator().manual_seed(0))
    error, measured = errors(project_surface(samples.depth, samples.valid, RIG), view(GUIDE)[0].distance)
    assert error.max() < 50 * MM  # the wall is 400 mm behind the box
    assert np.quantile(error, 0.99) < 1 * MM
    assert measured.mean() > 0.85


def test_samples_fall_where_they_are_and_hidden_ones_are_left_out():
    distance, truth, _, seen = box_scene()
    sparse = project_samples(distance, everywhere(distance), RIG)
    error, measured = errors(sparse, truth.distance)
    assert error.max() < 2 * MM  # a sample is up to half a pixel away from the pixel's centre
    assert not measured[~seen].any()
    assert 0.85 * TOF.width * TOF.height < measured.sum() < TOF.width * TOF.height
    bleeding = project_samples(distance, everywhere(distance), RIG, occlusion=False)
    assert errors(bleeding, truth.distance)[0].max() > 100 * MM


def test_the_mean_of_the_samples_on_a_pixel_by_hand():
    fine = Intrinsics(4.0, 4.0, 2.0, 2.0, 4, 4)
    coarse = fine.scaled_to(2, 2)
    z = torch.arange(16.0).view(1, 1, 4, 4) + 100
    valid = everywhere(z)
    valid[..., :2, 2:] = False
    valid[..., 3, 3] = False
    found = project_samples(z, valid, Rig(fine, coarse), "z", max_slope=1e3)
    assert found.valid.flatten().tolist() == [True, False, True, True]
    assert found.depth.flatten().tolist() == pytest.approx([102.5, 0.0, 110.5, (110 + 111 + 114) / 3])


def test_the_guides_depth_is_seen_by_a_tof_camera_as_radial_distance():
    truth, _ = view(GUIDE, box=False)
    depth = tensor(truth.distance)
    found = project_samples(depth, everywhere(depth), RIG.inverse(), "z", result="radial")
    inner = (slice(None), slice(None), slice(8, -8), slice(8, -24))  # what both see
    assert found.valid[inner].all()
    assert (found.depth - tof_distance(False))[inner].abs().max() < 10 * MM
    assert (found.depth - tof_distance(False))[inner].mean().abs() < 0.5 * MM


def test_holes_stay_holes_and_their_values_are_never_read():
    distance = tof_distance(box=False)
    valid = everywhere(distance)
    valid[..., 40:60, 50:90] = False
    expected = project_surface(distance, valid, RIG)
    for poison in (float("nan"), 0.0):
        poisoned = torch.where(valid, distance, poison)
        before = poisoned.clone()
        for project in (project_surface, project_samples):
            found, clean = project(poisoned, valid, RIG), project(distance, valid, RIG)
            assert found.depth.equal(clean.depth)
            assert found.valid.equal(clean.valid)
        assert torch.equal(before.nan_to_num(7), poisoned.nan_to_num(7))
    x, y = tof_pixels(view(GUIDE, box=False)[1])
    hole = (x > 50) & (x < 90) & (y > 40) & (y < 60)
    assert not expected.valid[0, 0].numpy()[hole].any()


def test_images_of_a_batch_do_not_mix():
    both = [tof_distance(box) for box in (False, True)]
    batch = torch.cat(both)
    for project in (project_surface, project_samples):
        together = project(batch, everywhere(batch), RIG)
        for i, single in enumerate(both):
            alone = project(single, everywhere(single), RIG)
            assert together.depth[i].equal(alone.depth[0])
            assert together.valid[i].equal(alone.valid[0])


@settings(max_examples=25)
@given(
    angle=st.floats(-8, 8),
    shift=st.tuples(*[st.floats(-0.1, 0.1)] * 3),
    tilt=st.tuples(st.floats(-0.8, 0.8), st.floats(-0.8, 0.8)),
    size=st.sampled_from([(9, 13), (16, 16), (2, 3)]),
)
def test_any_plane_comes_out_exactly_for_any_rig(angle, shift, tilt, size):
    source = Intrinsics.guess(size[1], size[0], 50.0)
    target = Intrinsics.guess(37, 29, 45.0)
    rig = Rig(source, target, turned(angle), shift)
    normal = np.array([*tilt, 1.0])
    in_source = np.asarray(rig.rotation).T @ normal
    z = (2.0 - np.asarray(shift) @ normal) / (source.rays() @ in_source)
    found = project_surface(tensor(z), everywhere(tensor(z)), rig, "z", stretch=3.0)
    error, measured = errors(found, 2.0 / (target.rays() @ normal))
    assert measured.any()
    assert error.max() < 0.05 * MM


def test_there_and_back_is_where_it_was():
    back = RIG.inverse().inverse()
    np.testing.assert_allclose(back.rotation, RIG.rotation, atol=1e-12)
    np.testing.assert_allclose(back.translation, RIG.translation, atol=1e-12)
    matrix = np.eye(4)
    matrix[:3, :3], matrix[:3, 3] = RIG.rotation, RIG.translation
    assert Rig.from_matrix(TOF, GUIDE, matrix) == RIG


def test_ray_lengths_are_those_of_the_cameras_rays():
    expected = np.linalg.norm(TOF.rays(), axis=-1)
    np.testing.assert_allclose(ray_lengths(TOF, torch.zeros(1)).numpy(), expected, rtol=1e-6)
    x, y = axes(TOF, torch.zeros(1), ends=True)
    assert float(x[0]) == pytest.approx(-math.tan(math.radians(25)))
    assert float(x[-1]) == pytest.approx(math.tan(math.radians(25)))
    assert y.shape == (122, 1)


def test_wrong_rigs_and_sizes_are_named():
    with pytest.raises(InputError, match="not a rotation"):
        Rig(TOF, GUIDE, ((1, 0, 0), (0, 1, 0), (0, 0, -1)))
    with pytest.raises(InputError, match="translation"):
        Rig(TOF, GUIDE, translation=(0.0, 0.0, float("nan")))
    with pytest.raises(InputError, match=r"\(3, 4\) or \(4, 4\)"):
        Rig.from_matrix(TOF, GUIDE, np.eye(3))
    depth = torch.ones(1, 1, 60, 80)
    with pytest.raises(InputError, match=r"160x120 pixels; expected \(B, 1, 120, 160\)"):
        project_surface(depth, depth > 0, RIG)


@pytest.mark.gpu
def test_a_gpu_gives_the_same_view_each_time_without_waiting_for_it(no_waiting):
    distance = tof_distance(box=True)
    here, there = project_surface(distance, everywhere(distance), RIG), distance.cuda()
    with no_waiting():
        views = [project_surface(there, everywhere(there), RIG) for _ in range(2)]
        sparse = [project_samples(there, everywhere(there), RIG) for _ in range(2)]
    for one, other in (views, sparse):
        assert one.depth.equal(other.depth)
    both = here.valid & views[0].valid.cpu()
    assert (here.valid ^ views[0].valid.cpu()).float().mean() < 1e-3
    assert (here.depth - views[0].depth.cpu())[both].abs().max() < 0.1 * MM
