"""ToFMark from .mat files that are written here: what is read, where samples fall, what is refused."""

import numpy as np
import pytest
import torch
from scipy.io import savemat
from small_benchmark import digest
from tof_scene import RIG, tof_arrays
from torch.nn.functional import avg_pool2d

from primaldepth.core.errors import FileFormatError, InputError
from primaldepth.evaluation.metrics import rmse
from primaldepth.evaluation.protocols import get_protocol
from primaldepth.evaluation.rendered import camera_matrices
from primaldepth.evaluation.run import evaluate
from primaldepth.evaluation.tof_view import draw, lift, seen_by
from primaldepth.geometry.registration import project_samples
from primaldepth.methods import create

PROTOCOL = get_protocol("tofmark")


def variables(board=True, **names):
    """Variables of one scene in millimetres; `names` renames or, with None, removes them."""
    arrays = tof_arrays(board)
    K, P = camera_matrices(arrays)
    truth = 1000.0 * arrays["depth"].astype(np.float64)
    truth[:40, :50] = -1.0
    found = {
        "tof_depth": 1000.0 * arrays["tof_distance"].astype(np.float64),
        "tof_intensity": arrays["tof_amplitude"],
        "intensity": arrays["image"][..., 0],
        "depth_gt": truth,
        "P_TOF": P,
        "K": K,
    }
    return {names.get(name, name): value for name, value in found.items() if names.get(name, name)}


def write(folder, scene="books", **names):
    folder.mkdir(exist_ok=True)
    savemat(folder / f"{scene}.mat", variables(**names))
    return folder


def test_a_scene_is_what_lies_in_its_file(tmp_path):
    case = PROTOCOL.load(write(tmp_path), "books", 5)
    assert (case.frame.low_size, case.frame.high_size) == ((122, 162), (610, 810))
    assert int((~case.known).sum()) == 40 * 50
    assert case.truth[case.known].min() == pytest.approx(900.0, rel=1e-6)
    assert set(case.frame.guide.unique().tolist()) == {np.float32(90 / 255), np.float32(200 / 255)}
    assert 0.6 < float(case.frame.valid.float().mean()) < 0.9
    assert case.scoring.unit == "mm"
    assert float(case.frame.sigma[case.frame.valid].median()) == pytest.approx(12.0, abs=6.0)


def test_cells_hold_what_the_registration_puts_there(tmp_path):
    """The two share no code: one lifts with the inverse of P, the other with focal lengths and a pose."""
    frame = PROTOCOL.load(write(tmp_path), "books", 5).frame
    distance = torch.from_numpy(tof_arrays()["tof_distance"])[None, None]
    other = project_samples(distance, distance > 0, RIG, occlusion=False)
    held, total = (avg_pool2d(each.double(), 5) for each in (other.valid, 1000.0 * other.depth))
    assert float((frame.valid == (held > 0)).double().mean()) > 0.999
    off = (frame.depth - total / held)[frame.valid & (held > 0)].abs()
    assert float((off < 0.01).double().mean()) > 0.99  # the others share a pixel: nearest here, mean there


def test_samples_lie_on_the_surface(tmp_path):
    write(tmp_path, board=False)
    case = PROTOCOL.load(tmp_path, "books", 5)
    low = avg_pool2d(case.truth, 5)
    at = case.frame.valid & (avg_pool2d(case.known.float(), 5) == 1)
    assert float((case.frame.depth - low).abs()[at].max()) < 6.0  # within a cell of a tilted wall
    assert rmse(create("bilinear")(case.frame).depth, case.truth, case.known) < 10.0


def test_the_nearest_of_several_samples_on_a_pixel_is_drawn():
    points = np.array([[0.0, 0.0, 3.0], [0.0, 0.0, 1.0], [0.0, 0.0, 2.0], [9.0, 0.0, 1.0], [0.0, 0.0, -1.0]])
    K = np.array([[2.0, 0.0, 1.0], [0.0, 2.0, 1.0], [0.0, 0.0, 1.0]])
    pixels, chosen = draw(points, np.array([True, True, True, True, True]), K, (3, 4))
    assert (pixels.tolist(), chosen.tolist()) == ([5], [1])
    pixels, chosen = draw(points, np.array([True, False, True, True, True]), K, (3, 4))
    assert (pixels.tolist(), chosen.tolist()) == ([5], [2])


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_lifted_points_project_back_at_their_distance(sign):
    """A projection matrix is known up to its sign and size only."""
    _, P = camera_matrices(tof_arrays())
    distance = np.random.default_rng(0).uniform(500, 3000, (4, 5))
    points = lift(distance, sign * 0.3 * P)
    x, y, w = P @ np.vstack([points.T, np.ones(20)])
    assert np.allclose([y / w, x / w], np.indices((4, 5)).reshape(2, -1), atol=1e-9)
    assert np.allclose(np.linalg.norm(points - [60, -10, 20], axis=1), distance.ravel())
    assert (w > 0).all()


def test_the_field_of_view_of_the_other_camera():
    """What is outside falls on no pixel of the other camera, what is inside does."""
    arrays = tof_arrays(board=False)
    K, P = camera_matrices(arrays)
    seen = seen_by(1000.0 * arrays["depth"].astype(np.float64), K, P, (120, 160))
    assert 0.8 < seen.mean() < 1.0
    depth, mask = (torch.from_numpy(each)[None, None] for each in (arrays["depth"], seen))
    back = [project_samples(depth, valid, RIG.inverse(), "z", occlusion=False) for valid in (mask, ~mask)]
    assert not back[1].valid.any()
    assert back[0].valid.equal(project_samples(depth, depth > 0, RIG.inverse(), "z", occlusion=False).valid)


def test_calibration_may_lie_in_a_file_of_its_own(tmp_path):
    whole = PROTOCOL.load(write(tmp_path / "one"), "books", 5)
    parts, folder = variables(), tmp_path / "two"
    (folder / "Books").mkdir(parents=True)
    savemat(folder / "calibration.mat", {name: parts.pop(name) for name in ("P_TOF", "K")})
    savemat(folder / "Books" / "depth.mat", {"tof": parts.pop("tof_depth")})
    savemat(folder / "Books" / "rest.mat", {"img": parts["intensity"], "gt": parts["depth_gt"]})
    case = PROTOCOL.load(folder, "books", 5)
    assert case.frame.depth.equal(whole.frame.depth)
    assert case.truth.equal(whole.truth)
    assert list(PROTOCOL.inputs(folder, "books")) == ["Books/depth.mat", "Books/rest.mat", "calibration.mat"]


LAYOUTS = {
    "no ToF": ({"tof_depth": None, "tof_intensity": None}, r"the ToF distances \(120x160\)"),
    "no truth": ({"depth_gt": "one", "intensity": "two"}, r"the intensity image \(610x810\)"),
    "no projection": ({"P_TOF": None}, r"the projection of the ToF camera \(3x4\)"),
    "no matrix": ({"K": None}, r"the matrix of the intensity camera \(3x3\)"),
}


@pytest.mark.parametrize(("names", "text"), LAYOUTS.values(), ids=LAYOUTS)
def test_an_unknown_layout_lists_the_variables_found(tmp_path, names, text):
    write(tmp_path, **names)
    with pytest.raises(InputError, match=text) as error:
        PROTOCOL.load(tmp_path, "books", 5)
    assert "books.mat" in str(error.value)
    for name, value in variables(**names).items():
        assert f"{name} ({'x'.join(map(str, value.shape))})" in str(error.value)


def test_metres_are_refused(tmp_path):
    values = variables()
    values["tof_depth"] = values["tof_depth"] / 1000.0
    savemat(tmp_path / "books.mat", values)
    with pytest.raises(FileFormatError, match=r"'tof_depth' has a median of .* expected distances in milli"):
        PROTOCOL.load(tmp_path, "books", 5)


def test_a_file_that_is_no_mat_file_is_refused(tmp_path):
    (tmp_path / "books.mat").write_text("not found")
    with pytest.raises(FileFormatError, match=r"books.mat: not a MATLAB file"):
        PROTOCOL.load(tmp_path, "books", 5)


def test_checksums_beside_the_files_decide(tmp_path):
    write(tmp_path)
    write(tmp_path, "shark")
    sums = tmp_path / "SHA256SUMS"
    sums.write_text(f"{digest(tmp_path / 'books.mat')}  books.mat\n{'0' * 64} *shark.mat\n")
    PROTOCOL.load(tmp_path, "books", 5)
    with pytest.raises(InputError, match=r"shark.mat: differs from SHA256SUMS"):
        PROTOCOL.load(tmp_path, "shark", 5)
    write(tmp_path, "devil")
    assert PROTOCOL.problems(tmp_path, "devil") == [f"{tmp_path / 'devil.mat'}: is not in SHA256SUMS"]
    sums.write_text("what is this")
    with pytest.raises(FileFormatError, match="SHA256SUMS: cannot read 'what is this'"):
        PROTOCOL.load(tmp_path, "books", 5)


def test_missing_scenes_are_named(tmp_path):
    with pytest.raises(InputError, match="no folder 'tofmark' there"):
        PROTOCOL.load(tmp_path, "books", 5)
    write(tmp_path / "tofmark")
    assert PROTOCOL.problems(tmp_path / "tofmark", "shark") == [
        f"{tmp_path / 'tofmark'}: no file shark*.mat and no folder shark with .mat files"
    ]


def test_methods_are_scored_in_millimetres(tmp_path):
    for scene in PROTOCOL.scenes:
        write(tmp_path / "tofmark", scene)
    rows = list(evaluate(PROTOCOL, [create("nearest"), create("bilinear")], tmp_path))
    assert [(row.scene, row.scale) for row in rows] == [(scene, 5) for scene in PROTOCOL.scenes] * 2
    assert all(1.0 < row.rmse < 150.0 and row.more["delta1"] > 0.9 for row in rows)
