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
    seen = (x < 5) | (x > 15)  # between, the card hides the wall from the scanner, which stands to the right
    assert np.median(error) < 0.03
    assert (error[seen] < 0.3).mean() > 0.95


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
