"""`bench models`: rows of every stage, on small frames."""

import pytest

from primaldepth.bench import stages as stage_bench
from primaldepth.bench.timing import measure_both


@pytest.mark.parametrize("share", [0.0, 0.16])
def test_frames_have_the_holes_asked_for(share):
    frame = stage_bench.bench_frame("cpu", holes=share)
    missing = 1.0 - float(frame.valid.float().mean())
    assert missing == pytest.approx(share, abs=0.03)
    assert missing >= share
    assert (frame.low_size, frame.high_size) == (stage_bench.LOW, stage_bench.HIGH)


def test_every_stage_has_a_row(monkeypatch):
    monkeypatch.setattr(stage_bench, "LOW", (36, 48))
    monkeypatch.setattr(stage_bench, "HIGH", (72, 96))
    monkeypatch.setattr(stage_bench, "SHIPPED", {"pdn-any-small": stage_bench.SHIPPED["pdn-any-small"]})
    rows = stage_bench.bench_stages("cpu", repeats=1)
    stages = [row.name.removeprefix("pdn-any-small ").split(",")[0] for row in rows]
    assert stages == [
        "spikes",
        "noise estimate",
        "lone samples",
        "filled inputs",
        "coarser samples",
        "measured mask",
        "network",
        "whole frame",
        "whole frame",
        "whole frame",
    ]
    assert all(row.ms > 0 and row.speedup == row.reference_ms / row.ms for row in rows)


def test_two_functions_take_turns():
    calls = []
    measure_both(lambda: calls.append("a"), lambda: calls.append("b"), "cpu", repeats=3)
    assert "".join(calls) == "ab" * 4
