"""Rows: complete, in order, the same whoever computes them and however often."""

import functools
import json
import os
import threading
import time
from dataclasses import dataclass, replace

import pytest
import torch
from small_benchmark import SCENES, digest

from primaldepth.compute.process_pool import run_jobs
from primaldepth.core.errors import InputError, PrimalDepthError
from primaldepth.evaluation import rows
from primaldepth.evaluation.cache import ResultCache
from primaldepth.evaluation.rows import Row, predict, reproducible
from primaldepth.evaluation.run import as_json, evaluate
from primaldepth.methods import create

CONTRACT = ["method", "scene", "scale", "rmse", "mae", "seconds"]


def without_seconds(document):
    return {**document, "rows": [{**row, "seconds": None} for row in document["rows"]]}


def test_every_method_scale_and_scene_gives_a_row(small):
    protocol, data = small
    methods = [create("nearest"), create("bilinear")]
    rows = list(evaluate(protocol, methods, data))
    keys = [(row.method, row.scale, row.scene) for row in rows]
    assert keys == [(m, s, c) for m in ("nearest", "bilinear") for s in (2, 4) for c in SCENES]
    assert [row.scale for row in evaluate(protocol, methods[:1], data, [4])] == [4, 4]


def test_json_is_the_documented_layout(small):
    protocol, data = small
    document = as_json(protocol, list(evaluate(protocol, [create("nearest")], data, [2])))
    assert list(document) == ["protocol", "version", "units", "rows"]
    assert list(document["rows"][0])[:6] == CONTRACT
    others = {"method", "scene", "scale", "seconds", "prediction"}
    assert set(document["units"]) == set(document["rows"][0]) - others
    assert json.loads(json.dumps(document, allow_nan=False)) == document
    assert [Row.of(row).as_json() for row in document["rows"]] == document["rows"]


def test_two_runs_give_the_same_bits(small):
    """That two processes do, too, is tested with the command line."""
    protocol, data = small
    methods = [create("nlh-l2", {"iterations": 8, "coarse_iterations": 4}), CountsThreads()]
    threads = torch.get_num_threads()
    documents = [as_json(protocol, list(evaluate(protocol, methods, data, [2]))) for _ in range(2)]
    assert without_seconds(documents[0]) == without_seconds(documents[1])
    assert torch.get_num_threads() == threads


@dataclass(frozen=True)
class CountsThreads:
    """Predicts the number of threads it may use: what splits long sums, and so decides their last bits."""

    name: str = "threads"

    def __call__(self, frame):
        prediction = create("nearest")(frame)
        return replace(prediction, depth=torch.full_like(prediction.depth, torch.get_num_threads()))


@pytest.mark.parametrize("threads", [1, 2])
def test_a_prediction_does_not_depend_on_the_number_of_threads(small, threads):
    protocol, data = small
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        found, _ = predict(CountsThreads(), protocol.load(data, "art", 2))
        assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)
    assert (found.depth == 1).all()


def test_one_thread_is_given_back_after_an_error():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    found = []

    def fail():
        with reproducible("cpu"):
            found.append(torch.get_num_threads())
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    found.append(torch.get_num_threads())
    torch.set_num_threads(before)
    assert found == [1, 2]


def counted(monkeypatch):
    """Names of the cases that are really computed."""
    calls = []
    real = rows.score
    monkeypatch.setattr(rows, "score", lambda m, case, d: (calls.append(case.scene), real(m, case, d))[1])
    return calls


def test_a_rerun_computes_nothing(small, monkeypatch, tmp_path):
    protocol, data = small
    calls, cache = counted(monkeypatch), ResultCache(tmp_path / "kept")
    first = list(evaluate(protocol, [create("bilinear")], data, cache=cache))
    assert len(calls) == 4
    assert list(evaluate(protocol, [create("bilinear")], data, cache=cache)) == first
    assert len(calls) == 4
    list(evaluate(protocol, [create("bilinear")], data, [2]))
    assert len(calls) == 6


def test_a_run_that_was_stopped_goes_on(small, monkeypatch, tmp_path):
    protocol, data = small
    calls, cache = counted(monkeypatch), ResultCache(tmp_path / "kept")
    rows = evaluate(protocol, [create("bilinear")], data, cache=cache)
    next(rows), next(rows)
    rows.close()
    assert len(list(evaluate(protocol, [create("bilinear")], data, cache=cache))) == 4
    assert len(calls) == 4


def test_another_parameter_scale_or_file_is_computed_anew(small, monkeypatch, tmp_path):
    protocol, data = small
    calls, cache = counted(monkeypatch), ResultCache(tmp_path / "kept")

    def run_with(protocol, **options):
        before = len(calls)
        list(evaluate(protocol, [create("atv-l2", {"iterations": 2} | options)], data, [2], cache=cache))
        return len(calls) - before

    assert [run_with(protocol), run_with(protocol), run_with(protocol, lam=9.0)] == [2, 0, 2]
    other = replace(protocol, scoring=protocol.scoring.model_copy(update={"bad": (2.0,)}))
    assert run_with(other) == 2
    path = data / protocol.folder / "art" / "color.png"
    path.write_bytes((data / protocol.folder / "books" / "color.png").read_bytes())
    with pytest.raises(InputError, match=r"color.png: differs"):
        run_with(protocol, lam=8.0)
    changed = {**protocol.files, "art": {**protocol.files["art"], "color.png": digest(path)}}
    assert run_with(replace(protocol, files=changed)) == 1


def test_a_method_whose_parameters_have_no_name_is_never_cached(small, tmp_path):
    protocol, data = small

    class Own:
        name = "own"

        def __call__(self, frame):
            return create("nearest")(frame)

    cache = ResultCache(tmp_path / "kept")
    list(evaluate(protocol, [Own()], data, [2], cache=cache))
    assert not (tmp_path / "kept").exists()


def test_seconds_on_the_cpu_are_those_of_computing_not_of_waiting(small):
    protocol, data = small
    nearest = create("nearest")

    class Waits:
        name = "waits"

        def __call__(self, frame):
            time.sleep(1.0)
            return nearest(frame)

    _, seconds = predict(Waits(), protocol.load(data, "art", 2))
    assert 0.0 <= seconds < 1.0


@dataclass(frozen=True)
class Slow:
    number: int
    seconds: float = 0.0

    def __call__(self):
        time.sleep(self.seconds)
        return self.number, os.getpid()


@dataclass(frozen=True)
class Dies:
    def __call__(self):
        os._exit(3)


def test_results_come_in_order_from_other_processes():
    calls = [Slow(0, 0.5), Slow(1), Slow(2), Slow(3)]
    found = list(run_jobs(calls, 2))
    assert [number for number, _ in found] == [0, 1, 2, 3]
    assert os.getpid() not in {pid for _, pid in found}
    assert {pid for _, pid in run_jobs(calls[1:], 1)} == {os.getpid()}


def test_work_that_cannot_be_sent_is_an_error_rather_than_a_wait():
    with pytest.raises(PrimalDepthError, match=r"cannot be sent to other processes .*lock.*try --jobs 1"):
        list(run_jobs([functools.partial(str, threading.Lock())] * 2, 2))


def test_a_process_that_dies_is_an_error():
    with pytest.raises(PrimalDepthError, match="a process died: for lack of memory"):
        list(run_jobs([Dies(), Dies()], 2))
