"""A GPU that refuses a process for good, as CUDA does after some failures."""

import io

import lost_device
import numpy as np
import pytest
import torch

from primaldepth.app.engine import Engine
from primaldepth.app.problems import RefusedError
from primaldepth.app.service_settings import ServiceSettings
from primaldepth.app.tasks import OneFile, Task
from primaldepth.app.worker import _is_lost
from primaldepth.pipeline.request import Request

SECONDS = 120


def task(folder, metres):
    folder.mkdir()
    for name, array in (("depth", np.full((4, 4), metres)), ("guide", np.zeros((8, 8, 3)))):
        with (folder / name).open("wb") as file:
            np.save(file, array)
    return Task(folder, Request("bilinear", noise="0.01"), OneFile("application/x-npz"))


def farthest(answer):
    with np.load(io.BytesIO(answer.body)) as arrays:
        return arrays["depth"].max()


@pytest.mark.parametrize(
    ("device", "work"),
    [
        ("cpu", lost_device.work_with_stand_in),
        pytest.param("cuda", lost_device.work_on_gpu, marks=pytest.mark.gpu),
    ],
)
def test_a_worker_that_lost_its_device_is_replaced_and_one_request_fails(device, work, tmp_path, monkeypatch):
    """The second of a batch breaks the device: the batch is computed again, each alone, by new workers."""
    monkeypatch.setattr("primaldepth.app.worker_thread.work", work)
    engine = Engine(ServiceSettings(device=device, method="bilinear", batch=3))
    near, broken, far = (engine.submit(task(tmp_path / str(m), m)) for m in (1.0, 200.0, 2.0))
    engine.start()
    try:
        with pytest.raises(RefusedError, match="failed on this request"):
            broken.result(timeout=SECONDS)
        assert farthest(near.result(timeout=SECONDS)) == pytest.approx(1.0)
        assert farthest(far.result(timeout=SECONDS)) == pytest.approx(2.0)
        assert engine.restarts == 2
    finally:
        engine.stop()


def test_a_device_is_lost_if_it_cannot_be_waited_for(monkeypatch):
    def refuse():
        raise RuntimeError("CUDA error: device-side assert triggered")

    monkeypatch.setattr(torch.cuda, "synchronize", refuse)
    assert _is_lost(torch.device("cuda"))
    assert not _is_lost(torch.device("cpu"))
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    assert not _is_lost(torch.device("cuda"))
