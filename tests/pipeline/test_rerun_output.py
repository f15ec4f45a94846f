"""Recordings for the viewer of rerun, read back by rerun itself."""

import subprocess
import sys

import numpy as np
import pytest

import primaldepth
import recording_files
from primaldepth.core.errors import MissingDependencyError
from primaldepth.geometry.cameras import Intrinsics
from primaldepth.methods import create
from primaldepth.pipeline.load import load
from primaldepth.pipeline.outcome import compute
from primaldepth.pipeline.outputs import OUTPUTS
from primaldepth.pipeline.pairing import NamedFiles, list_items
from primaldepth.pipeline.request import Request


@pytest.fixture
def entities():
    """Read {path of an entity: {name of a column: its first value}} of a file."""
    chunk = pytest.importorskip("rerun.chunk", reason="the extra 'rerun' writes and reads .rrd files")

    def read(path):
        found = {}
        for each in chunk.RrdReader(path).stream():
            rows = each.to_record_batch().to_pydict()
            found.setdefault(each.entity_path, {}).update({name: rows[name][0] for name in rows})
        return found

    return read


def test_a_frame_has_image_samples_result_sigma_and_cloud(tmp_path, entities):
    depth, guide = np.full((6, 8), 2.0), np.full((24, 32, 3), 0.5)
    out, camera = tmp_path / "frame_12.rrd", Intrinsics(30.0, 30.0, 16.0, 12.0, 32, 24)
    result = primaldepth.upsample(
        depth, guide, method="pdn-any-small", noise=0.01, cameras=camera, outputs={"rerun": out}
    )
    found = entities(out)
    values = np.frombuffer(bytes(found["/result"]["DepthImage:buffer"][0]), np.float32)
    assert np.allclose(values.reshape(24, 32), np.asarray(result.depth))
    assert len(bytes(found["/samples"]["DepthImage:buffer"][0])) == 4 * depth.size
    assert len(bytes(found["/sigma"]["DepthImage:buffer"][0])) == 4 * result.depth.numel()
    points = np.array(found["/world/camera/cloud"]["Points3D:positions"])
    assert points.shape == (24 * 32, 3)
    assert np.allclose(points[:, 2], np.asarray(result.depth).ravel())
    assert found["/world/camera/image"]["Pinhole:resolution"] == [[32.0, 24.0]]
    assert found["/world/camera/cloud"]["frame"] == 12
    assert "/world/camera" not in found  # nobody knows where it stood


def test_the_frames_of_a_recording_are_one_sequence_with_poses(tmp_path, entities):
    recording_files.write_seven_scenes(tmp_path / "scan")
    out = {"out": tmp_path / "fine", "rerun": tmp_path / "rerun"}
    items, _ = list_items(NamedFiles(str(tmp_path / "scan"), None, out, note=lambda text: None))
    request = Request("bilinear", unit="mm", invalid=65535)
    for item in items:
        OUTPUTS["rerun"].write(
            item.outputs["rerun"], compute(load(item, request), request, create("bilinear"))
        )
    files = sorted((tmp_path / "rerun").iterdir())
    found = [entities(file) for file in files]
    assert [each["/result"]["frame"] for each in found] == [0, 1, 2]
    assert all(each["/world/camera"]["Transform3D:translation"] == [[0.0, 0.0, 0.0]] for each in found)
    program = [sys.executable, "-m", "rerun_cli", "rrd"]
    subprocess.run([*program, "verify", *files], check=True, capture_output=True)
    merged = tmp_path / "all.rrd"
    subprocess.run([*program, "merge", *files, "-o", merged], check=True, capture_output=True)
    text = subprocess.run([*program, "print", merged], check=True, capture_output=True, text=True).stdout
    assert text.count("/world/camera/cloud -") == len(files)  # as one recording


def test_without_the_package_it_is_told_before_the_work(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "rerun", None)
    with pytest.raises(MissingDependencyError, match=r"'rerun'; run: pip install 'primaldepth\[rerun\]'"):
        primaldepth.upsample(np.ones((2, 2)), np.zeros((4, 4)), outputs={"rerun": tmp_path / "a.rrd"})
    assert not OUTPUTS["rerun"].installed
