"""Make the shipped examples: rendered scenes, each with the samples of a depth camera model.

    python scripts/make_examples.py [FOLDER]

Needs the extra `render`. The same versions of the renderer give the same files.
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

from primaldepth.geometry.cameras import Cameras, Intrinsics
from primaldepth.io import DepthMap, write_depth
from primaldepth.io.cameras import write_cameras
from primaldepth.scenes.scene_source import RenderSettings, SceneRenderer, render_scene
from primaldepth.sensors.registry import sensor

SETTINGS = RenderSettings(preset="rich", size=512, samples=128, seed=2026)
SENSOR, BASELINE = "structured-light-v1", 0.075  # metres
SCENES: dict[str, tuple[int, dict[str, Any]]] = {
    "vase": (2, {"scale": 8, "step": 1 / 32, "noise": 0.2, "near": 0.1}),
    "ball": (11, {"scale": 4, "step": 1 / 32, "noise": 0.2, "near": 0.1}),
}
FOLDER = Path(__file__).resolve().parents[1] / "src" / "primaldepth" / "samples"


def make(folder: Path, renderer: SceneRenderer, name: str) -> None:
    """Guide, samples, camera and where they come from."""
    scene, chosen = SCENES[name]
    arrays = render_scene(renderer, SETTINGS.seed, scene)
    fx, fy, cx, cy = (float(value) for value in arrays["guide_camera"])
    options = {**chosen, "baseline_focal": BASELINE * fx / chosen["scale"]}
    truth = torch.from_numpy(np.array(arrays["depth"]))[None, None]
    valid = torch.from_numpy(np.array(arrays["valid"]))[None, None]
    camera_model = sensor(SENSOR, **options)
    samples = camera_model(truth, valid, generator=torch.Generator().manual_seed(scene))
    depth = DepthMap.from_array(
        np.rint(samples.depth[0, 0].double().numpy() * 1000) / 1000, samples.valid[0, 0].numpy(), unit="mm"
    )
    place = folder / name
    write_depth(place / "depth.png", depth)
    Image.fromarray(arrays["image"]).save(place / "guide.jpg", quality=92, subsampling=0)
    write_cameras(place / "cameras.json", Cameras(Intrinsics(fx, fy, cx, cy, SETTINGS.size, SETTINGS.size)))
    about = {
        "made_by": "scripts/make_examples.py: rendered, no measured data",
        "scene": {
            "preset": SETTINGS.preset,
            "seed": SETTINGS.seed,
            "number": scene,
            "rays": SETTINGS.samples,
        },
        "depth": {"unit": "mm", "kind": camera_model.kind, "sensor": SENSOR, "seed": scene, **options},
    }
    (place / "example.json").write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")


def main() -> None:
    """Make every example."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    renderer = SETTINGS.resolved().open()
    for name in SCENES:
        make(folder, renderer, name)
        print(f"made {folder / name}")


if __name__ == "__main__":
    main()
