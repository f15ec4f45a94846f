"""Freeze the scenes of a protocol on rendered scenes: means of blocks, and scaling to disparities.

python scripts/freeze_rendered.py rendered FOLDER
python scripts/freeze_rendered.py tofmark-sim FOLDER

FOLDER is what `primaldepth render` made with the settings in the protocol's description, whose scenes are
written anew. Only for a new version of a protocol: what was published once never changes.
"""

import json
import sys
from pathlib import Path

import numpy as np
import torch

from primaldepth.core.seeds import derive_seed, generator
from primaldepth.data.shards import Shards
from primaldepth.evaluation.rendered import block_means
from primaldepth.sensors import TimeOfFlight

FROZEN = Path(__file__).parents[1] / "src" / "primaldepth" / "evaluation" / "frozen"
SCENES = {"rendered": 12, "tofmark-sim": 6}
COVERED = 0.9  # of the ToF camera's pixels must measure: a scene that is lost in the dark tests nothing


def scaling(name: str, depth: np.ndarray) -> dict[str, float]:
    """Gain and offset that take the scene's inverse depth to a range like those of real disparity maps."""
    rng = np.random.default_rng(derive_seed("rendered scaling", 1, name))
    low, high = rng.uniform(40, 100), rng.uniform(170, 225)
    inverse = 1.0 / depth.astype(np.float64)
    gain = (high - low) / (inverse.max() - inverse.min())
    return {"gain": round(gain, 3), "offset": round(low - gain * inverse.min(), 3)}


def covered(arrays: dict[str, np.ndarray]) -> float:
    """Share of the ToF camera's pixels that measure something."""
    names = ("tof_distance", "tof_valid", "tof_amplitude")
    distance, valid, amplitude = (torch.from_numpy(arrays[name].copy())[None, None] for name in names)
    samples = TimeOfFlight()(distance, valid, generator=generator("covered"), amplitude=amplitude)
    return float(samples.valid.double().mean())


def main(protocol: str, folder: str) -> None:
    """Write the protocol's description with the first scenes of the folder that can be used."""
    path = FROZEN / f"{protocol}.json"
    head, shards = json.loads(path.read_text()), Shards(folder, verify=True)
    for key in ("preset", "size", "samples", "seed"):
        if shards.manifest.made_with[key] != head[key]:
            sys.exit(f"{folder}: {key} is {shards.manifest.made_with[key]}, expected {head[key]}")
    lines, number = [], 0
    while len(lines) < SCENES[protocol]:
        arrays, name = shards[number], f"s{number:02d}"
        scene = scaling(name, arrays["depth"][arrays["valid"]]) if protocol == "rendered" else {}
        if protocol == "rendered" or covered(arrays) >= COVERED:
            lines.append(f'  "{name}": {json.dumps({"number": number, **scene, **block_means(arrays)})}')
        number += 1
    head = {key: value for key, value in head.items() if key != "scenes"} | {"count": number}
    text = (
        json.dumps(head, indent=1).removesuffix("\n}") + ',\n "scenes": {\n' + ",\n".join(lines) + "\n }\n}\n"
    )
    path.write_text(text)
    print(f"wrote {path}, {len(text)} bytes")


if __name__ == "__main__":
    main(*sys.argv[1:])
