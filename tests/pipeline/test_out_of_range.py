"""Numbers that mean no depth, samples too far away, and values that the output cannot hold."""

import numpy as np
import pytest
from PIL import Image

import primaldepth
from primaldepth.cli.upsample import ADVICE
from primaldepth.core.errors import InputError
from primaldepth.methods import create
from primaldepth.pipeline.batches import Batch
from primaldepth.pipeline.request import Item, Request

GUIDE = np.full((32, 32, 3), 128, np.uint8)


def run(tmp_path, depth, **options):
    """The report and the written numbers of a frame in a 16-bit PNG of millimetres."""
    np.save(tmp_path / "d.npy", depth)
    Image.fromarray(GUIDE).save(tmp_path / "g.png")
    item = Item(tmp_path / "d.npy", tmp_path / "g.png", outputs={"out": tmp_path / "o.png"})
    request = Request(method="nearest", spikes="keep", **options)
    (ended,) = Batch([item], request, ADVICE).run(create("nearest"))
    return ended.report, np.asarray(Image.open(tmp_path / "o.png"))


def test_values_beyond_the_format_are_holes_and_counted(tmp_path):
    depth = np.full((8, 8), 2.0, np.float32)
    depth[:6] = 70.0  # more than half of it
    report, stored = run(tmp_path, depth)
    assert report.beyond == 24 * 32
    assert (stored[:24] == 0).all()
    assert (stored[24:] == 2000).all()
    assert any(
        type(each).__name__ == "RangeWarning" and "768 pixels" in str(each) for each in report.warnings
    )


def test_only_a_map_without_anything_that_fits_is_refused(tmp_path):
    with pytest.raises(InputError, match="does not fit PNG"):
        run(tmp_path, np.full((8, 8), 70.0, np.float32))


def test_max_depth(tmp_path):
    depth = np.full((8, 8), 2.0, np.float32)
    depth[0] = 70.0
    report, stored = run(tmp_path, depth, max_depth=10.0)
    assert (report.beyond, report.samples) == (0, 56)
    assert stored.max() == 2000
    with pytest.raises(
        InputError, match=r"--max-depth: no sample is nearer than 1 m, the nearest is 2 m away"
    ):
        run(tmp_path, depth, max_depth=1.0)
    with pytest.raises(InputError, match="--max-depth: -1 is no limit"):
        Request(max_depth=-1.0)


def test_invalid_in_files_and_arrays(tmp_path):
    stored = np.full((8, 8), 2000, np.uint16)
    stored[:2] = 65535
    Image.fromarray(stored).save(tmp_path / "d.png")
    found = primaldepth.upsample(stored, GUIDE, method="nearest", unit="mm", invalid=65535)
    assert not found.measured[:8].any()
    assert found.measured[8:].all()
    Image.fromarray(GUIDE).save(tmp_path / "g.png")
    again = primaldepth.upsample(tmp_path / "d.png", tmp_path / "g.png", method="nearest", invalid=65535)
    assert (again.measured == found.measured).all()
