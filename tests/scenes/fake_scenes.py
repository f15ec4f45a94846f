"""A source of scenes without a renderer: random arrays, quick, and able to fail where a test wants it."""

import math
import os
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from primaldepth.data.manifest import Manifest
from primaldepth.data.shard_writer import ShardWriter
from primaldepth.data.single_scenes import write_part
from primaldepth.scenes.job import render_job
from primaldepth.scenes.scene_source import package_versions, render_scene, scene_seed

SHARD = 4


@dataclass(frozen=True)
class FakeScenes:
    """`log` gets "begin pid scene" and "end pid scene"; `crash_once` kills the process the first time.

    No scene ends before `meet` processes have begun one, and none begins beyond the limit beside `log`.
    """

    seed: int = 0
    size: int = 8
    delay: float = 0.0
    log: str | None = None
    fail: tuple[int, ...] = ()
    crash: tuple[int, ...] = ()
    crash_once: tuple[int, ...] = ()
    meet: int = 1
    cannot_open: str = ""

    def made_with(self):
        return {"preset": "fake", "size": self.size, "seed": self.seed}

    def open(self):
        if self.cannot_open:
            raise RuntimeError(self.cannot_open)
        return FakeRenderer(self)


class FakeRenderer:
    def __init__(self, source):
        self.source = source
        self.compiles = 0

    def render(self, seed):
        scene = next(number for number in range(10_000) if scene_seed(self.source.seed, number) == seed)
        self._wait_while(lambda log: len(begun_scenes(log)) >= limit_of(log))
        begun = self._note("begin", scene)
        self._wait_while(lambda log: len({pid for pid, _ in begun_scenes(log)}) < self.source.meet)
        time.sleep(self.source.delay)
        self.compiles += self.compiles < 2  # the first two scenes of a process compile something
        if scene in self.source.crash or (scene in self.source.crash_once and begun == 1):
            os.kill(os.getpid(), signal.SIGKILL)
        if scene in self.source.fail:
            raise ValueError(f"no light in\nscene {scene}")
        self._note("end", scene)
        return fake_arrays(seed, self.source.size)

    def _wait_while(self, condition):
        end = time.monotonic() + 120
        while self.source.log is not None and condition(self.source.log) and time.monotonic() < end:
            time.sleep(0.01)

    def _note(self, what, scene):
        """How often the scene was begun, this time included."""
        if self.source.log is None:
            return 1
        with open(self.source.log, "a") as file:
            file.write(f"{what} {os.getpid()} {scene}\n")
        return [number for _, number in begun_scenes(self.source.log)].count(scene)


def fake_arrays(seed, size=8):
    rng = np.random.default_rng(seed)
    return {
        "image": rng.integers(0, 256, (size, size, 3), np.uint8),
        "depth": rng.random((size, size), np.float32),
        "ids": rng.integers(0, 9, (size, size), np.uint16),
        "normals": rng.integers(-127, 128, (size, size, 3), np.int8),
        "valid": rng.random((size, size)) < 0.5,
    }


def begun_scenes(log):
    """[(pid, scene)] of a log, in order."""
    return [(pid, scene) for what, pid, scene in log_lines(log) if what == "begin"]


def limit_path(log):
    return Path(f"{log}.limit")


def limit_of(log):
    """How many scenes of a log may begin: the number in its file, where there is one."""
    path = limit_path(log)
    return int(path.read_text() or 0) if path.exists() else math.inf


def log_lines(log):
    """[(what, pid, scene)]; a line that is being written is left out."""
    if not Path(log).exists():
        return []
    lines = [line.split() for line in Path(log).read_text().splitlines(keepends=True) if line.endswith("\n")]
    return [(what, int(pid), int(scene)) for what, pid, scene in lines]


def in_process(folder, count):
    """Name -> bytes of an undisturbed job, made without any engine."""
    source = FakeScenes()
    renderer = source.open()
    wanted = Manifest(
        made_with=source.made_with(), versions=package_versions(), scenes_per_shard=SHARD, count=count
    )
    with ShardWriter(Path(folder), wanted) as writer:
        for scene in range(count):
            write_part(Path(folder), scene, render_scene(renderer, source.seed, scene))
            writer.add(scene)
    return tree(folder)


def tree(folder):
    """Name -> bytes of everything in a folder but the lock."""
    files = (path for path in Path(folder).rglob("*") if path.is_file() and path.name != ".lock")
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


if __name__ == "__main__":  # python fake_scenes.py FOLDER LOG COUNT WORKERS DELAY
    folder, log, count, workers, delay = sys.argv[1:]
    job = FakeScenes(delay=float(delay), log=log)
    render_job(Path(folder), job, int(count), workers=int(workers), scenes_per_shard=SHARD)
