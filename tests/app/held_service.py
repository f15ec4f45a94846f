"""Program: an engine whose worker is busy with one frame and will not be let go; FOLDER is the argument.

Prints the worker's process as soon as it computes. The test then kills this program.
"""

import os
import sys
import time
from pathlib import Path

import held_worker
import numpy as np

from primaldepth.app import worker_thread
from primaldepth.app.engine import Engine
from primaldepth.app.service_settings import ServiceSettings
from primaldepth.app.tasks import OneFile, Task
from primaldepth.app.workspace import Workspace
from primaldepth.pipeline.request import Request
from waiting import wait_until


def main(folder):
    os.environ["PRIMALDEPTH_HELD_WORKER"] = str(folder)
    worker_thread.work = held_worker.work
    workspace = Workspace()
    for name, array in (("depth", np.ones((4, 4))), ("guide", np.zeros((8, 8, 3)))):
        with (workspace.root / name).open("wb") as file:
            np.save(file, array)
    engine = Engine(ServiceSettings(device="cpu", method="bilinear"))
    engine.submit(Task(workspace.root, Request(held_worker.METHOD, noise="0.01"), OneFile("image/png")))
    engine.start()
    wait_until((folder / "held").exists)
    print(engine.workers[0].worker_pid, workspace.root, flush=True)
    time.sleep(600)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
