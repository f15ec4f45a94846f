"""A worker whose device is lost as soon as it computes depth beyond 100 m; the device is a stand-in."""

from primaldepth.app import worker


def work(connection, settings):
    create = worker.create
    worker.create = lambda name: _failing(create(name))
    worker._is_lost = lambda device: True
    worker.work(connection, settings)


def _failing(method):
    def compute(frame):
        if frame.depth.max() > 100.0:
            raise RuntimeError("CUDA error: an illegal memory access was encountered")
        return method(frame)

    return compute


def farthest(computed):
    return float(computed.prediction.depth.max())
