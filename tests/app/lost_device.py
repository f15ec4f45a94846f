"""Workers whose device is lost as soon as they compute depth beyond 100 m."""

import torch

from primaldepth.app import worker


def work_with_stand_in(connection, settings):
    """What CUDA says is imitated, on a CPU."""

    def refuse(frame):
        raise RuntimeError("CUDA error: an illegal memory access was encountered")

    worker._is_lost = lambda device: True
    _work(connection, settings, refuse)


def work_on_gpu(connection, settings):
    """A kernel that fails an assertion: nothing in this process can use the GPU from then on."""

    def refuse(frame):
        beyond = torch.full((1,), frame.depth.numel(), device=frame.depth.device)
        frame.depth.flatten()[beyond]

    _work(connection, settings, refuse)


def _work(connection, settings, refuse):
    create = worker.create
    worker.create = lambda name: _failing(create(name), refuse)
    worker.work(connection, settings)


def _failing(method, refuse):
    def compute(frame):
        if frame.depth.max() > 100.0:
            refuse(frame)
        return method(frame)

    return compute
