"""A worker that takes SECONDS to load a request for METHOD, and as long again to compute it."""

import time

from primaldepth.app import worker

METHOD = "nearest"
SECONDS = 2.0


def work(connection, settings):
    create, load = worker.create, worker.load

    def create_slowly(name):
        time.sleep(SECONDS if name == METHOD else 0.0)
        return create(name)

    def load_slowly(item, request):
        time.sleep(SECONDS if request.method == METHOD else 0.0)
        return load(item, request)

    worker.create, worker.load = create_slowly, load_slowly
    worker._WorkerLoop._prepare = lambda self, method: None
    worker.work(connection, settings)
