"""Points of a scanner in a camera's view: where they fall, and which a nearer surface hides."""

import numpy as np
import pytest
import torch

import primaldepth
from primaldepth.core.errors import InputError
from primaldepth.geometry.cameras import Cameras, Intrinsics
from primaldepth.geometry.clouds import PointCloud
from primaldepth.geometry.scattered import scattered
from primaldepth.io.pointcloud import write_cloud
from primaldepth.pipeline.load import load
from primaldepth.pipeline.request import Item, Request

SIZE = (48, 64)
CAMERA = Intrinsics(60.0, 60.0, 32.0, 24.0, 64, 48)
BESIDE = Cameras(CAMERA, translation=(0.2, 0.0, 0.0))  # the scanner is 20 cm to the right

FAR_BESIDE = Cameras(CAMERA, translation=(1.2, 0.0, 0.0))


def scan():
    """(N, 3) a card of 0.6 m at 1 m and a wall at 3 m, as the scanner sees them."""
    x, y = np.meshgrid(np.linspace(-1.2, 1.2, 120), np.linspace(-0.9, 0.9, 60))
    rays = np.stack([x, y, np.ones_like(x)], axis=-1).reshape(-1, 3)
    on_card = (np.abs(rays[:, 0] + 0.2) < 0.3) & (np.abs(rays[:, 1]) < 0.3)
    return rays * np.where(on_card, 1.0, 3.0)[:, None]


def test_points_of_a_wall_fall_where_the_camera_sees_it():
    y, x = np.mgrid[2:46:4, 2:62:4]
    points = np.stack([(x + 0.5 - 32) / 60, (y + 0.5 - 24) / 60, np.ones_like(x)], -1).reshape(-1, 3) * 2.0
    found = scattered(torch.from_numpy(points), Cameras(CAMERA), SIZE)
    assert torch.equal(found.valid[0, 0].nonzero()[:, 0], torch.from_numpy(y.ravel()))
    assert torch.allclose(found.depth[found.valid], torch.tensor(2.0))
    assert found.hidden == 0


def test_what_the_card_hides_is_left_out():
    """The scanner sees past the card on one side, where the camera sees the card."""
    found = scattered(torch.from_numpy(scan()), BESIDE, SIZE)
    y, x = np.mgrid[:48, :64] + 0.5
    card = (np.abs((x - 32) / 60) < 0.28) & (np.abs((y - 24) / 60) < 0.28)
    card = torch.from_numpy(card)[None, None]
    assert found.hidden > 0
    assert (found.depth[found.valid & card] < 1.5).float().mean() > 0.98
    assert (found.valid & (found.depth > 2.5)).sum() > 300


def test_a_point_seen_through_a_small_hole_is_uncertain_and_kept():
    """Nearer points are all around it, but the ray to it goes through no surface."""
    y, x = np.mgrid[2:46:4, 2:62:4]
    z = np.where((y == 22) & (x == 30), 3.0, 1.0)
    points = np.stack([(x + 0.5 - 32) / 60, (y + 0.5 - 24) / 60, np.ones_like(z)], -1) * z[..., None]
    place = (0.001, 0.0, 0.0)
    found = scattered(
        torch.from_numpy(points.reshape(-1, 3) - place), Cameras(CAMERA, translation=place), SIZE
    )
    assert float(found.depth[0, 0, 22, 30]) == 3.0
    assert found.uncertain.sum() == 1


def test_points_behind_a_shadow_are_uncertain():
    """The ray to them runs behind the card, as the scanner sees it, and may be free or not."""
    found = scattered(torch.from_numpy(scan()), FAR_BESIDE, SIZE)
    assert bool(found.uncertain.any())
    assert not bool((found.uncertain & ~found.valid).any())
    assert float(found.depth[found.uncertain].min()) > 2.5


def test_the_background_goes_on_in_the_shadow():
    """To the left of the card the camera sees a part of the wall that the card hides from the scanner."""
    found = scattered(torch.from_numpy(scan()), BESIDE, SIZE)
    gaps = found.gaps()
    row, column = (gaps > 0)[0, 0].nonzero(as_tuple=True)
    assert len(row) >= 5
    assert float((gaps[gaps > 0] - 3.0).abs().max()) < 0.1
    assert bool(((column > 3) & (column < 18) & (row > 3) & (row < 44)).all())
    assert not bool((found.valid & (gaps > 0)).any())


def test_without_leaves_points_out_and_counts_them():
    found = scattered(torch.from_numpy(scan()), FAR_BESIDE, SIZE)
    less = found.without(found.uncertain)
    assert less.hidden == found.hidden + int(found.uncertain.sum())
    assert not bool((less.valid & found.uncertain).any() | less.uncertain.any())
    assert torch.equal(less.depth > 0, less.valid)


def test_points_in_the_axes_of_the_camera_have_no_known_scanner():
    """Then nothing is known of shadows, and what is all among nearer points is hidden."""
    moved = scan() + np.array(BESIDE.translation)
    found = scattered(torch.from_numpy(moved), Cameras(CAMERA), SIZE)
    assert found.hidden > 0
    assert not bool(found.uncertain.any() | (found.background > 0).any())


def test_points_beside_a_slanted_edge_are_kept():
    """Seen from the camera's own place, nothing is hidden; chance may take a few points at the edge."""
    x, y = np.meshgrid(np.linspace(-1.2, 1.2, 120), np.linspace(-0.9, 0.9, 60))
    rays = np.stack([x, y, np.ones_like(x)], axis=-1).reshape(-1, 3)
    points = rays * np.where(rays[:, 1] > 0.6 * rays[:, 0], 2.0, 3.0)[:, None]
    found = scattered(torch.from_numpy(points), Cameras(CAMERA), SIZE)
    assert found.hidden < 0.01 * int(found.valid.sum())


def test_points_behind_the_camera_are_an_error():
    with pytest.raises(InputError, match="no point of the cloud falls into the guide's view"):
        scattered(torch.from_numpy(-scan()), BESIDE, SIZE)


def test_a_ply_with_cameras_becomes_a_depth_map(tmp_path):
    points = scan().astype(np.float32)
    write_cloud(tmp_path / "scan.ply", PointCloud(points, np.zeros((len(points), 3), np.uint8)))
    y, x = np.mgrid[:48, :64] + 0.5
    card = (np.abs((x - 32) / 60) < 0.3) & (np.abs((y - 24) / 60) < 0.3)
    image = np.where(card, 200, 50).astype(np.uint8)
    found = primaldepth.upsample(
        tmp_path / "scan.ply", image, method="pdn-any-small", cameras=BESIDE, noise=0.01, device="cpu"
    )
    error = np.abs(np.asarray(found.depth) - np.where(card, 1.0, 3.0))
    assert np.median(error) < 0.03
    assert (error < 0.3).mean() > 0.97  # also where the card hides the wall from the scanner
    assert not np.asarray(found.measured)[:, 7:13].all(axis=1).any()  # though nothing was measured there


def test_holes_of_a_cloud_are_what_the_scanner_did_not_see(tmp_path):
    """Networks continue surfaces into holes of a camera's own map, but not into the shadows of another's."""
    np.save(tmp_path / "scan.npy", scan())
    item = Item(tmp_path / "scan.npy", torch.zeros(48, 64, dtype=torch.uint8), cameras=BESIDE)
    assert load(item, Request()).frame.registered


def test_a_cloud_without_cameras_is_refused(tmp_path):
    points = scan().astype(np.float32)
    write_cloud(tmp_path / "scan.ply", PointCloud(points, np.zeros((len(points), 3), np.uint8)))
    with pytest.raises(InputError, match="needs the guide's camera"):
        primaldepth.upsample(tmp_path / "scan.ply", np.zeros((48, 64), np.uint8), method="nearest")
