"""Registration between two cameras whose lenses distort, against a wall and a box by formula."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from two_cameras import GUIDE, RIG, TOF, radial, seen_by_tof, tensor, tof_pixels, view

from primaldepth.core.errors import InputError
from primaldepth.geometry.distortion import Distortion
from primaldepth.geometry.intrinsics import Intrinsics
from primaldepth.geometry.registration import project_samples, project_surface, register
from primaldepth.geometry.rig import Rig, axes, magnification

MM = 1e-3
BARREL = Distortion("plumb_bob", (-0.28, 0.09, 0.0011, -0.0007, -0.012))
RATIONAL = Distortion("rational", (0.584, -2.494, 0.00065, -0.00018, 1.36, 0.465, -2.336, 1.301))
FISHEYE = Distortion("fisheye", (-0.021, 0.0075, -0.0061, 0.0012))
LENSES = [(BARREL, RATIONAL), (FISHEYE, BARREL), (BARREL, None), (None, BARREL)]
NAMES = ["barrel-rational", "fisheye-barrel", "barrel-pinhole", "pinhole-barrel"]


def rig_with(source, target):
    return replace(RIG, source=replace(TOF, distortion=source), target=replace(GUIDE, distortion=target))


def measured_by(rig, kind, box=True):
    z = view(rig.source, rig, box)[0].distance
    depth = tensor(z if kind == "z" else radial(rig.source, z))
    return depth, torch.ones_like(depth, dtype=torch.bool)


def inside(points, rig, pixels):
    x, y = tof_pixels(points, rig)
    with np.errstate(invalid="ignore"):
        near = (x > pixels) & (x < rig.source.width - pixels)
        return near & (y > pixels) & (y < rig.source.height - pixels)


@pytest.mark.parametrize("lenses", LENSES, ids=NAMES)
@pytest.mark.parametrize("kind", ["z", "radial"])
def test_depth_is_right_at_every_visible_pixel_and_unmeasured_where_hidden(lenses, kind):
    rig = rig_with(*lenses)
    depth, valid = measured_by(rig, kind)
    truth, points = view(rig.target)
    found = project_surface(depth, valid, rig, kind)
    measured = found.valid[0, 0].numpy()
    error = np.abs(found.depth[0, 0].numpy() - truth.distance)
    seen = seen_by_tof(points, rig=rig)
    hidden = ~seen & inside(points, rig, 0.01)
    assert error[measured].max() < 1 * MM
    assert hidden.sum() > 1000
    assert measured[hidden].mean() < 5e-4  # a corner of the box between samples, which none of them hit
    clearly = seen_by_tof(points, rig=rig, shrink=3 * MM)  # half a pixel of the ToF camera
    assert not measured[~clearly & ~near_the_border(points, rig)].any()
    edge = torch.nn.functional.max_pool2d
    box = tensor(truth.box).float()
    flat = (edge(box, 13, 1, 6) == -edge(-box, 13, 1, 6))[0, 0].numpy()
    assert measured[seen & flat & away_from_jumps(points, rig)].all()
    assert (seen & ~measured).mean() < 0.03


def near_the_border(points, rig):
    return inside(points, rig, -0.05) & ~inside(points, rig, 0.05)


def away_from_jumps(points, rig):
    """True where the ToF pixel and its neighbours lie on one surface, well inside the image."""
    on_box = tensor(view(rig.source, rig)[0].box).float()
    window = torch.nn.functional.max_pool2d
    calm = (window(on_box, 5, 1, 2) == -window(-on_box, 5, 1, 2))[0, 0].numpy()
    x, y = (np.nan_to_num(np.floor(each), nan=-1).astype(int) for each in tof_pixels(points, rig))
    i, j = np.clip(y, 0, rig.source.height - 1), np.clip(x, 0, rig.source.width - 1)
    return calm[i, j] & inside(points, rig, 0.05)


@pytest.mark.parametrize("lenses", LENSES, ids=NAMES)
def test_a_wall_has_no_gap_between_bent_triangles(lenses):
    rig = rig_with(*lenses)
    depth, valid = measured_by(rig, "z", box=False)
    truth, points = view(rig.target, box=False)
    found = project_surface(depth, valid, rig, "z")
    measured = found.valid[0, 0].numpy()
    assert measured[inside(points, rig, 0.05)].all()
    assert np.abs(found.depth[0, 0].numpy() - truth.distance)[measured].max() < 0.1 * MM


def test_leaving_the_lenses_out_would_be_wrong_by_centimetres():
    rig = rig_with(BARREL, RATIONAL)
    depth, valid = measured_by(rig, "z")
    truth = view(rig.target)[0].distance
    plain = Rig(
        *(replace(c, distortion=None) for c in (rig.source, rig.target)), rig.rotation, rig.translation
    )
    found = project_surface(depth, valid, plain, "z")
    error = np.abs(found.depth[0, 0].numpy() - truth)[found.valid[0, 0].numpy()]
    assert np.quantile(error, 0.9) > 10 * MM


def test_samples_fall_where_the_lens_puts_them():
    rig = rig_with(BARREL, RATIONAL)
    depth, valid = measured_by(rig, "radial")
    sparse = project_samples(depth, valid, rig, "radial")
    error = np.abs(sparse.depth[0, 0].numpy() - view(rig.target)[0].distance)[sparse.valid[0, 0].numpy()]
    assert sparse.valid.sum() > 0.75 * TOF.width * TOF.height  # the barrel sees more than the guide
    assert np.quantile(error, 0.98) < 4 * MM  # up to half a pixel away from the pixel's centre
    _, points = view(rig.target)
    clearly = seen_by_tof(points, rig=rig, shrink=3 * MM)
    hidden = ~clearly & inside(points, rig, 1)
    assert hidden.sum() > 1000
    assert not sparse.valid[0, 0].numpy()[hidden].any()


def test_cells_hold_the_mean_of_the_nearest_samples_and_of_other_maps():
    source = Intrinsics(4.0, 4.0, 2.0, 2.0, 4, 4)
    rig = Rig(source, source.scaled_to(8, 8))
    z = torch.full((1, 1, 4, 4), 2.0)
    z[..., 0, 0] = 50.0
    trust = torch.arange(16.0).view(1, 1, 4, 4)
    found = register(z, z > 0, rig, maps=[trust], cell=4, max_slope=1.0)
    assert found.depth.shape == (1, 1, 2, 2)
    assert found.cell == (4, 4)
    assert found.depth.flatten().tolist() == [2.0] * 4  # 50 lies behind the others of its cell
    assert found.maps[0].flatten().tolist() == pytest.approx([(1 + 4 + 5) / 3, 4.5, 10.5, 12.5])
    flat = torch.full_like(z, 2.0)
    assert register(flat, flat > 0, rig, cell=1).valid.sum() == 16


def test_cells_are_as_fine_as_the_samples_and_right():
    rig = rig_with(BARREL, RATIONAL)
    depth, valid = measured_by(rig, "radial")
    found = register(depth, valid, rig, "radial")
    rows, columns = found.depth.shape[2:]
    assert 0.5 < rows / TOF.height < 2
    assert 0.5 < columns / TOF.width < 2
    cells = rig.target.scaled_to(columns, rows)
    truth = view(cells)[0].distance
    error = np.abs(found.depth[0, 0].numpy() - truth)[found.valid[0, 0].numpy()]
    assert np.quantile(error, 0.9) < 10 * MM  # a sample lies up to half a cell beside the cell's centre
    assert np.median(error) < 3 * MM
    assert found.valid.float().mean() > 0.6


def test_what_the_lens_folds_back_into_the_image_is_not_drawn():
    wide = Intrinsics.guess(40, 30, 130.0)
    narrow = replace(Intrinsics.guess(64, 48, 50.0), distortion=Distortion("plumb_bob", (-0.3, 0, 0, 0, 0)))
    z = torch.full((1, 1, 30, 40), 2.0)
    x, y = axes(wide, z)
    far = torch.hypot(*torch.broadcast_tensors(x, y)) > narrow.distortion.limit
    assert far.any()
    alone = far[None, None]
    for project in (project_samples, project_surface):
        assert not project(z, alone, Rig(wide, narrow), "z").valid.any()


def test_pixels_without_a_ray_are_not_measured_and_not_drawn():
    lens = Distortion("plumb_bob", (-0.3, 0.0, 0.0, 0.0, 0.0))
    broken = replace(Intrinsics.guess(64, 48, 110.0), distortion=lens)
    rays = broken.rays()
    assert np.isnan(rays[0, 0]).any()
    assert np.isfinite(rays[24, 32]).all()
    z = torch.full((1, 1, 48, 64), 2.0)
    good = replace(broken, distortion=None)
    there = project_surface(z, z > 0, Rig(broken, good), "z")
    back = project_surface(z, z > 0, Rig(good, broken), "z", stretch=4.0)
    assert not back.valid[0, 0].numpy()[np.isnan(rays).any(-1)].any()
    for found in (there, back):
        assert found.valid.any()
        assert torch.allclose(found.depth[found.valid], torch.tensor(2.0), atol=1e-5)


def test_magnification_is_that_of_the_focal_lengths_without_a_lens():
    plain = magnification(RIG)
    assert plain.typical == plain.largest == (GUIDE.fx / TOF.fx, GUIDE.fy / TOF.fy)
    bent = magnification(rig_with(BARREL, RATIONAL))
    for k in (0, 1):
        assert 5 < bent.typical[k] < 6 < bent.largest[k] < 8
    away = replace(rig_with(BARREL, None), rotation=((-1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, -1.0)))
    assert magnification(away) == plain  # nothing to be seen: the focal lengths alone


def test_wrong_cells_are_named():
    z = torch.ones(1, 1, TOF.height, TOF.width)
    for cell in (0, 5000):
        with pytest.raises(InputError, match=f"cell: {cell} pixels"):
            register(z, z > 0, RIG, cell=cell)
