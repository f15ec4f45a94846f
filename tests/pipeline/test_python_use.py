"""`primaldepth.upsample` warns, writes outputs, and takes what a request declares."""

import inspect
import warnings
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

import primaldepth
from drawn_room import cut, drawn_room, enlarged
from primaldepth.core.errors import InputError
from primaldepth.geometry.cameras import Intrinsics
from primaldepth.io import read_depth
from primaldepth.pipeline.request import Item, Request, declarations
from primaldepth.pipeline.warnings import AlignmentWarning, ScaleWarning, ShapeWarning, UnitWarning

CAMERA = Intrinsics(30.0, 30.0, 16.0, 12.0, 32, 24)
PLANE, GUIDE = np.full((6, 8), 2.0), np.zeros((24, 32, 3))


def test_nothing_odd_is_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        primaldepth.upsample(PLANE, GUIDE, method="bilinear")


def test_what_is_odd_is_a_warning_at_the_place_of_the_call():
    with pytest.warns(ShapeWarning, match="or give cameras=") as seen:
        primaldepth.upsample(PLANE, np.zeros((32, 24, 3)), method="bilinear")
    assert [each.filename for each in seen] == [__file__]
    with pytest.warns(UnitWarning, match="median depth is 2000 m.* unit="):
        primaldepth.upsample(PLANE * 1000.0, GUIDE, method="bilinear", unit="m")


def test_views_that_differ_are_warned_of_with_the_offset():
    depth, image = drawn_room(1, 240, 360)
    low = cut(depth, 0, 20, 240, 320)[2::4, 2::4]
    beside = cut(image, 0, 32, 240, 320)
    with pytest.warns(AlignmentWarning, match=r"lie \(\+1[123], .* px .* cameras="):
        primaldepth.upsample(low, beside, method="bilinear")
    with primaldepth.Session(method="bilinear", device="cpu") as session:
        with pytest.warns(AlignmentWarning):
            session.push(low, beside)
        assert session.push(low, beside).report.alignment is None  # compared once for a camera


def test_another_field_of_view_is_warned_of_in_degrees_where_the_camera_is_known():
    depth, image = drawn_room(2, 480, 640)
    narrow = enlarged(image, np.tan(np.radians(39.5)) / np.tan(np.radians(27.5)))
    camera = Intrinsics.guess(640, 480, 55.0)
    with pytest.warns(AlignmentWarning, match=r"1\.5\d times as wide .*\((78|79|80) against 55 degrees\)"):
        primaldepth.upsample(depth[2::4, 2::4], narrow, method="bilinear", cameras=camera, noise=0.05)


def test_numbers_of_no_unit_are_not_taken_for_metres():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        primaldepth.upsample(PLANE * 1000.0, GUIDE, method="bilinear")
        primaldepth.upsample(PLANE * 1000.0, GUIDE, method="bilinear", unit="mm")


def test_warnings_have_one_class_each_and_one_base():
    assert issubclass(ScaleWarning, primaldepth.DepthWarning)
    assert issubclass(primaldepth.DepthWarning, UserWarning)


def test_outputs_are_written_in_metres(tmp_path: Path):
    files = {name: tmp_path / f"{name}.{suffix}" for name, suffix in (("out", "npy"), ("normals", "npy"))}
    found = primaldepth.upsample(
        PLANE * 1000.0, GUIDE, method="bilinear", unit="mm", cameras=CAMERA, outputs=files
    )
    np.testing.assert_allclose(np.asarray(found.depth), 2000.0)
    np.testing.assert_allclose(read_depth(files["out"]).values, 2.0)
    np.testing.assert_allclose(np.load(files["normals"])[..., 2], -1.0, atol=1e-5)


@pytest.mark.parametrize(
    ("outputs", "text"),
    [
        ({"normal": "n.png"}, "did you mean 'normals'"),
        ({"normals": "n.jpg"}, "extension '.jpg' cannot be written"),
        ({"normals": "n.png"}, "needs the guide's camera"),
        ({"sigma": "s.npy"}, "does not say how far it may be off"),
    ],
)
def test_outputs_that_cannot_be_made(tmp_path: Path, outputs, text):
    with pytest.raises(InputError, match=text):
        primaldepth.upsample(
            PLANE,
            GUIDE,
            method="bilinear",
            outputs={name: tmp_path / file for name, file in outputs.items()},
        )
    assert not list(tmp_path.iterdir())


def test_python_takes_what_is_declared():
    """All but holes and mesh_jump, which are for files; with the same defaults."""
    given = inspect.signature(primaldepth.upsample).parameters
    declared = {*declarations(Item), *declarations(Request)} - {"holes", "mesh_jump"}
    assert declared <= set(given)
    for each in fields(Request):
        if each.name in declared:
            assert given[each.name].default == each.default
