"""Small valid networks, checkpoints, folders of rendered scenes, and requests to the service."""

import random
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import torch

from benchmarks.attack import forms
from benchmarks.attack.cases import Files, Seed, whole
from benchmarks.attack.seed_images import depths, one, ours, picture, saved
from benchmarks.attack.seed_texts import cameras
from primaldepth.data.manifest import Manifest
from primaldepth.data.shard_writer import ShardWriter
from primaldepth.data.single_scenes import write_part
from primaldepth.networks.card import ModelCard
from primaldepth.networks.joint import DepthNet, NetworkSettings
from primaldepth.networks.zoo import save_model
from primaldepth.training.checkpoint import write_checkpoint
from primaldepth.training.state import Position, TrainState


def _collected(root: Path) -> Files:
    paths = [path for path in sorted(root.rglob("*")) if path.is_file() and not path.name.endswith(".lock")]
    return {str(path.relative_to(root)): path.read_bytes() for path in paths}


def networks(rng: random.Random) -> list[Seed]:
    """The weights are covered by the checksum in the card, the card is covered by nothing."""
    settings = [NetworkSettings(layers=2, maps=2, window=3, iterations=iterations) for iterations in (0, 2)]
    settings.append(NetworkSettings(backbone="unet", widths=(8, 8), blocks=(0, 0), window=3, iterations=1))
    return [_network(rng, each) for each in settings]


def _network(rng: random.Random, settings: NetworkSettings) -> Seed:
    torch.manual_seed(rng.randrange(2**31))
    card = ModelCard(name="fcn-s", scale=4, settings=settings, created=datetime(2024, 1, 1, tzinfo=UTC))
    with tempfile.TemporaryDirectory() as folder:
        save_model(Path(folder) / "net", DepthNet(settings), card)
        files = _collected(Path(folder))
    name = "net.safetensors"
    return Seed(files, {name: ((0, len(files[name])),)})


def cards(rng: random.Random) -> list[Seed]:
    return [Seed({"net.json": seed.files["net.json"]}) for seed in networks(rng)]


def checkpoints(rng: random.Random) -> list[Seed]:
    """The list of the pieces has the checksum of each; that it names others is noticed."""
    torch.manual_seed(rng.randrange(2**31))
    weights = {"a.weight": torch.rand(3, 4), "a.bias": torch.rand(4)}
    sums = {"0/step": torch.tensor(3.0), "0/exp_avg": torch.rand(3, 4)}
    state = TrainState("{}", "scenes", Position(step=3), weights, dict(weights), {}, sums)
    with tempfile.TemporaryDirectory() as folder:
        write_checkpoint(Path(folder), state)
        files = _collected(Path(folder))
    sealed = {name: data for name, data in files.items() if name != "checkpoint.json"}
    return [Seed(files, whole(sealed))]


def _arrays(rng: random.Random) -> dict[str, np.ndarray]:
    draw = np.random.default_rng(rng.randrange(2**32))
    return {
        "depth": draw.random((4, 6), np.float32),
        "image": draw.integers(0, 256, (4, 6, 3)).astype(np.uint8),
    }


def shards(rng: random.Random) -> list[Seed]:
    """Two shards; the manifest has the checksum of each, and none of its own."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        wanted = Manifest(made_with={"seed": 1}, versions={}, scenes_per_shard=2, count=4)
        with ShardWriter(root, wanted) as writer:
            for scene in range(4):
                write_part(root, scene, _arrays(rng))
                writer.add(scene)
        files = _collected(root)
    sealed = {name: ((0, len(data)),) for name, data in files.items() if name.startswith("scenes-")}
    return [Seed(files, sealed)]


def parts(rng: random.Random) -> list[Seed]:
    """The checksum in the header of a part speaks of the data alone, but the header says how to read it."""
    with tempfile.TemporaryDirectory() as folder:
        write_part(Path(folder), 0, _arrays(rng))
        files = _collected(Path(folder))
    data = next(iter(files.values()))
    return [one("part.safetensors", data, sealed=True)]


def bodies(rng: random.Random) -> list[Seed]:
    """Forms as a client of the service sends them."""
    depth = forms.part("depth", ours(".png", "mm", depths(rng)), "d.png")
    guide = forms.part("guide", saved(picture(rng, (10, 14)).save, ".png"), "g.png")
    camera = forms.part("cameras", cameras(rng)[0].files["cameras.json"], "c.json")
    fields = [forms.part("method", b"bilinear"), forms.part("unit", b"mm"), forms.part("noise", b"2.5")]
    found = ([depth, guide], [*fields, depth, guide, camera])
    return [one(forms.NAME, forms.packed(list(each))) for each in found]
