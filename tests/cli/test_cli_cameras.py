"""`upsample` with two cameras whose lenses distort: a wall by formula, from files to depth and mesh."""

import json
import struct
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from small_files import Cli, image

from primaldepth import upsample
from primaldepth.api import load_inputs
from primaldepth.core.errors import InputError
from primaldepth.geometry.cameras import Cameras, Intrinsics
from primaldepth.geometry.distortion import Distortion
from primaldepth.io.cameras import read_cameras, write_cameras

GUIDE = Intrinsics(80.0, 80.0, 48.0, 36.0, 96, 72, Distortion("plumb_bob", (-0.28, 0.09, 0.001, -0.001, 0.0)))
DEPTH = Intrinsics(30.0, 30.0, 24.0, 18.0, 48, 36, Distortion("fisheye", (-0.02, 0.007, -0.006, 0.001)))
CENTRED = Intrinsics(80.0, 80.0, 48.0, 36.0, 96, 72)
CAMERAS = Cameras(GUIDE, DEPTH, translation=(0.1, 0.0, 0.0))
NORMAL = np.array([0.1, -0.05, 1.0])  # n . X = 2 in the guide's frame
FAST = ("--method", "bilinear", "--unit", "m", "--cameras", "rig.json")


def wall(camera: Intrinsics, shift: tuple[float, float, float] = (0.0, 0.0, 0.0)) -> np.ndarray:
    return (2.0 - np.asarray(shift) @ NORMAL) / (camera.rays() @ NORMAL)


@pytest.fixture
def rig_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    z = wall(DEPTH, CAMERAS.translation)
    np.save("depth.npy", z)
    np.save("radial.npy", z * np.linalg.norm(DEPTH.rays(), axis=-1))
    Image.fromarray(image((72, 96, 3))).save("guide.png")
    write_cameras("rig.json", CAMERAS)
    return tmp_path


@pytest.mark.parametrize(("name", "kind"), [("depth.npy", "z"), ("radial.npy", "radial")])
def test_depth_of_another_camera_ends_in_the_guides_view(
    cli: Cli, rig_files: Path, name: str, kind: str
) -> None:
    outcome = cli("upsample", name, "guide.png", "-o", "o.npy", "--kind", kind, *FAST, "--json")
    assert outcome.code == 0
    assert outcome.json["kind"] == "z"
    assert outcome.json["input_size"] == [32, 24]
    error = np.abs(np.load("o.npy") - wall(GUIDE))
    assert np.median(error) < 0.002
    assert error.max() < 0.05
    said = outcome.lines[0]
    assert said.startswith(f"{name}: registered from the depth camera (48x36, fisheye)")
    assert "guide's view (96x72, plumb_bob): 32x24 cells of 3x3 pixels" in said
    assert f"assumed: {kind} in metres" in said
    assert "|t| = 0.1" in said


def test_cameras_that_are_ignored_would_be_noticed(cli: Cli, rig_files: Path) -> None:
    write_cameras("rig.json", Cameras(GUIDE))
    cli("upsample", "depth.npy", "guide.png", "-o", "o.npy", *FAST)
    assert np.median(np.abs(np.load("o.npy") - wall(GUIDE))) > 0.01


def test_maps_beside_the_depth_come_along(rig_files: Path) -> None:
    z, guide = np.load("depth.npy"), image((72, 96, 3))
    columns = np.broadcast_to(np.arange(48) / 47, z.shape)
    inputs = load_inputs(z, guide, cameras="rig.json", noise=0.01 + 0.01 * columns, confidence=columns)
    frame = inputs.frame
    valid = frame.valid[0, 0].numpy()
    trust, sigma = (each[0, 0].numpy() for each in (frame.confidence, frame.sigma))
    assert (np.diff(trust[12][valid[12]]) > 0).all()  # the cameras stand side by side, not turned
    np.testing.assert_allclose(sigma[valid], 0.01 + 0.01 * trust[valid], rtol=1e-4)


def test_spikes_are_found_in_the_view_of_the_depth_camera(rig_files: Path) -> None:
    z, guide = np.load("depth.npy"), image((72, 96, 3))
    z[10, 20:22] = 0.7
    dropped, kept = (load_inputs(z, guide, cameras="rig.json", spikes=spikes) for spikes in ("drop", "keep"))
    assert (dropped.spikes, kept.spikes) == (2, 0)
    nearest, wrong = (float(each.frame.depth[each.frame.valid].min()) for each in (dropped, kept))
    assert wrong < 1.0 < nearest


def test_arrays_may_be_in_millimetres(rig_files: Path) -> None:
    z, guide = np.load("depth.npy"), image((72, 96, 3))
    metres = upsample(z, guide, cameras="rig.json", method="bilinear")
    small = upsample(1000 * z, guide, cameras=CAMERAS, method="bilinear", unit="mm")
    assert metres.depth.shape == (72, 96)
    np.testing.assert_allclose(np.asarray(small.depth), 1000 * np.asarray(metres.depth), rtol=1e-4)


def test_mesh_is_metric_and_not_bent_by_the_lens(cli: Cli, rig_files: Path) -> None:
    assert cli("upsample", "depth.npy", "guide.png", "-o", "o.npy", "--mesh", "m.glb", *FAST).code == 0
    data = Path("m.glb").read_bytes()
    length = struct.unpack_from("<I", data, 12)[0]
    gltf = json.loads(data[20 : 20 + length])
    count = gltf["accessors"][0]["count"]
    points = np.frombuffer(data, "<f4", 3 * count, 28 + length).reshape(-1, 3) * [1, -1, -1]
    assert count == 96 * 72
    assert np.median(np.abs(points @ NORMAL - 2.0)) < 0.004
    assert gltf["accessors"][2]["count"] <= 3 * 2 * 95 * 71


def test_the_jump_decides_what_is_cut(cli: Cli, rig_files: Path) -> None:
    z = np.load("depth.npy")
    z[:, 24:] -= 0.5
    np.save("depth.npy", z)
    sizes = []
    for jump in ("0.02", "5"):
        options = ("--mesh", "m.ply", "--mesh-jump", jump, *FAST)
        assert cli("upsample", "depth.npy", "guide.png", "-o", "o.npy", *options).code == 0
        sizes.append(int(Path("m.ply").read_bytes().split(b"element face ")[1].split(b"\n")[0]))
    assert sizes[0] < sizes[1] == 2 * 95 * 71


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--mesh", "m.obj"), "use .glb or .ply"),
        (("--mesh-jump", "0"), "mesh jump: 0.0, expected a finite number > 0"),
        (("--kind", "disparity", "--unit", "disparity"), "needs metric depth, but this is disparity"),
    ],
)
def test_wrong_options_are_refused(cli: Cli, rig_files: Path, options: tuple[str, ...], message: str) -> None:
    outcome = cli("upsample", "depth.npy", "guide.png", "-o", "o.npy", *FAST, *options)
    assert outcome.code == 2
    assert message in outcome.err
    assert not Path("o.npy").exists()


def test_a_mesh_of_disparities_is_refused(cli: Cli, rig_files: Path) -> None:
    options = ("--method", "bilinear", "--unit", "disparity", "--mesh", "m.glb")
    outcome = cli("upsample", "depth.npy", "guide.png", "-o", "o.npy", *options)
    assert outcome.code == 2
    assert "--mesh m.glb: a mesh needs metric depth" in outcome.err


def test_images_of_another_shape_and_cameras_that_look_away_are_named(rig_files: Path) -> None:
    z, guide = np.load("depth.npy"), image((72, 96, 3))
    with pytest.raises(InputError, match="depth camera has 48x36 pixels, but the depth map has 40x36"):
        upsample(z[:, :40], guide, cameras=CAMERAS, method="bilinear")
    with pytest.raises(InputError, match="guide's camera has 96x72 pixels, but the guide has 96x60"):
        upsample(z, guide[:60], cameras=CAMERAS, method="bilinear")
    away = Cameras(GUIDE, DEPTH, translation=(100.0, 0.0, 0.0))
    with pytest.raises(InputError, match="no sample of the depth camera falls into the guide's view"):
        upsample(z, guide, cameras=away, method="bilinear")
    assert read_cameras("rig.json") == CAMERAS


def test_a_batch_writes_a_mesh_for_each(cli: Cli, rig_files: Path) -> None:
    Path("in").mkdir()
    for name in ("a", "b"):
        np.save(f"in/{name}.npy", np.load("depth.npy"))
    assert cli("upsample", "in", "guide.png", "-o", "out", "--mesh", "meshes", *FAST).code == 0
    assert sorted(path.name for path in Path("meshes").iterdir()) == ["a.glb", "b.glb"]


@pytest.mark.parametrize("batch", [False, True])
def test_a_bare_matrix_may_be_a_list_in_json(cli: Cli, rig_files: Path, batch: bool) -> None:
    z = wall(CENTRED)[2::4, 2::4]
    (rig_files / "many").mkdir()
    np.save("many/near.npy", z * np.linalg.norm(CENTRED.rays(), axis=-1)[2::4, 2::4])
    (rig_files / "list.json").write_text("\n [[80, 0, 47.5], [0, 80, 35.5], [0, 0, 1]]")
    (rig_files / "K.txt").write_text("80 0 47.5\n0 80 35.5\n0 0 1\n")
    depth = "many" if batch else "many/near.npy"
    results = []
    for name in ("list.json", "K.txt"):
        out = f"{name}-out" if batch else f"{name}.npy"
        given = ("--kind", "radial", "--unit", "m", "--method", "bilinear", "--cameras", name)
        outcome = cli("upsample", depth, "guide.png", "-o", out, *given)
        assert outcome.code == 0, outcome.err
        results.append(np.load(f"{out}/near.npy" if batch else out))
    np.testing.assert_array_equal(*results)


def test_a_list_in_json_that_is_no_matrix(cli: Cli, rig_files: Path) -> None:
    (rig_files / "K.json").write_text("[80, 80]")
    outcome = cli("upsample", "depth.npy", "guide.png", "-o", "o.npy", "--cameras", "K.json", "--unit", "m")
    assert outcome.code == 2
    assert "K.json: 2 numbers, expected the nine of a 3x3 camera matrix" in outcome.err


def test_a_bare_matrix_is_the_guides_camera(cli: Cli, rig_files: Path) -> None:
    one = Intrinsics(80.0, 80.0, 48.0, 36.0, 96, 72)
    np.save("near.npy", np.full((36, 48), 2.0))
    (rig_files / "K.txt").write_text("80 0 47.5\n0 80 35.5\n0 0 1\n")  # pixel centres at whole numbers
    write_cameras("K.json", one)
    clouds = []
    for name in ("K.txt", "K.json"):
        options = ("--method", "bilinear", "--unit", "m", "--cameras", name, "--cloud", "c.ply")
        outcome = cli("upsample", "near.npy", "guide.png", "-o", "o.npy", *options)
        assert outcome.code == 0, outcome.err
        assert "60 degree" not in outcome.err
        clouds.append((rig_files / "c.ply").read_bytes())
    assert clouds[0] == clouds[1]
    (rig_files / "K.txt").write_text("80 0 47.5")
    outcome = cli("upsample", "near.npy", "guide.png", "-o", "o.npy", "--cameras", "K.txt", "--unit", "m")
    assert outcome.code == 2
    assert "K.txt: 3 numbers, expected the nine of a 3x3 camera matrix" in outcome.err
