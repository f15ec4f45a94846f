"""`bench render` stores and reads real files; only the renderer is left out here."""

import numpy as np

from primaldepth.bench import scene_rendering as render_bench
from primaldepth.scenes.scene_source import RenderSettings


def test_rows(monkeypatch):
    times = {"llvm": 50.0, "scalar": 1000.0}
    arrays = {"depth": np.ones((32, 32), np.float32)}
    monkeypatch.setattr(RenderSettings, "resolved", lambda self: self)
    monkeypatch.setattr(
        render_bench, "_render_ms", lambda settings, _: (times[settings.variant], {"build": 9.0}, arrays)
    )
    monkeypatch.setattr(render_bench, "STORED", 3)
    monkeypatch.setattr(render_bench, "copy_bandwidth", lambda _: 1e9)
    one, loading = render_bench.bench_render("cpu")
    assert (one.backend, one.ms, one.reference_ms, one.speedup) == ("llvm", 50.0, 1000.0, 20.0)
    assert one.parts_ms == {"build": 9.0, "write": one.floor_ms}
    assert one.floor_ms > 0  # measured: the time to store a scene
    assert loading.name == "load 3 scenes, 0.00 GB"
    assert loading.floor_ms == 1e3 * 2 * 3 * 4096 / 1e9
