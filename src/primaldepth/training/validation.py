"""Looking at a network while it learns: on frozen protocols, and on scenes held out from training."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from primaldepth.core.errors import InputError, PrimalDepthError
from primaldepth.core.frame import Frame
from primaldepth.core.seeds import generator
from primaldepth.data.noise import noise_map
from primaldepth.data.patches import Scenes, Variation
from primaldepth.data.sensors import sensor
from primaldepth.evaluation.protocols import Protocol, get_protocol
from primaldepth.methods.network import Network
from primaldepth.networks import DepthNet
from primaldepth.training.recipe import Recipe

HELD_OUT = "held-out"
BENCHMARK = "noisy-middlebury"


@dataclass(frozen=True, slots=True, eq=False)
class Look:
    """One frame with its truth."""

    group: str
    name: str
    frame: Frame
    truth: Tensor
    known: Tensor


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """What the network made of one frame."""

    look: Look
    depth: Tensor
    rmse: float
    sigma: Tensor | None = None


class Validator:
    """Scores networks; frames stay on the device.

    Args:
        recipe: names protocols, scale and sensor.
        held_out: scenes that are not trained on, or None.
        data: folder of the protocols.
        device: where the network runs.
    """

    def __init__(
        self, recipe: Recipe, held_out: Scenes | None, data: Path | None, device: torch.device
    ) -> None:
        self.missing: list[str] = []
        self.looks: list[Look] = []
        self._precision = torch.bfloat16 if recipe.precision == "bf16" else torch.float32
        scales = recipe.validation.scales or recipe.scales
        for name in recipe.validation.protocols:
            protocols = [_allowed(name, scale) for scale in scales]
            try:
                protocols[0].root(data)
            except PrimalDepthError as error:
                self.missing.append(str(error))
                continue
            for protocol, scale in zip(protocols, scales, strict=True):
                self.looks += _protocol_looks(protocol, scale, data, device, _label(name, scales, scale))
        if held_out is not None:
            for scale in scales:
                self.looks += _held_out_looks(held_out, recipe, scale, _label(HELD_OUT, scales, scale))

    @property
    def groups(self) -> list[str]:
        """What scores are given for."""
        return sorted({look.group for look in self.looks})

    def see(self, net: DepthNet) -> Iterator[Seen]:
        """The network's result on every frame."""
        half = self._precision if next(net.parameters()).is_cuda else torch.float32
        method = Network("net", net.eval(), precision=half)
        for look in self.looks:
            found = method(look.frame)
            error = torch.where(look.known, found.depth - look.truth, 0.0)
            rmse = (error.square().sum() / look.known.sum()).sqrt()
            yield Seen(look, found.depth, float(rmse), found.sigma)
        net.train()


def summary(seen: list[Seen]) -> dict[str, float]:
    """Mean RMSE of each group."""
    groups = dict.fromkeys(one.look.group for one in seen)
    return {
        group: sum(one.rmse for one in seen if one.look.group == group)
        / sum(one.look.group == group for one in seen)
        for group in groups
    }


def deciding(groups: Iterable[str]) -> list[str]:
    """The groups of the protocols, or where there are none, those of the scenes held out."""
    every = list(groups)
    return [group for group in every if not group.startswith(HELD_OUT)] or every


def selection_score(scores: dict[str, float]) -> float | None:
    """What checkpoints are chosen by: the geometric mean over all protocols, else over held-out scenes.

    None where nothing was looked at.
    """
    chosen = [scores[group] for group in deciding(scores)]
    return math.prod(chosen) ** (1.0 / len(chosen)) if chosen else None


def _label(name: str, scales: tuple[int, ...], scale: int) -> str:
    return name if len(scales) == 1 else f"{name} x{scale}"


def _allowed(name: str, scale: int) -> Protocol:
    """The protocol of that name; not the benchmark, on which weights must not be chosen."""
    if name == BENCHMARK:
        raise InputError(
            f"validation.protocols: {name} is the benchmark, weights must not be chosen by it; "
            "use middlebury-2006 or rendered"
        )
    protocol = get_protocol(name)
    protocol.check(scale)
    return protocol


def _protocol_looks(
    protocol: Protocol, scale: int, data: Path | None, device: torch.device, group: str
) -> list[Look]:
    cases = [protocol.load(data, scene, scale) for scene in protocol.scenes]
    return [
        Look(group, case.scene, case.frame.to(device), case.truth.to(device), case.known.to(device))
        for case in cases
    ]


def _held_out_looks(scenes: Scenes, recipe: Recipe, scale: int, group: str) -> list[Look]:
    """Whole scenes, degraded by the recipe's first sensor with fixed seeds."""
    camera = sensor(recipe.data.mixture[0].sensor, scale=scale)
    size = min(int(side) for side in scenes.depth.shape[1:]) // scale * scale
    colours = recipe.net.colours
    still = Variation(recipe.data.far, recipe.data.near, 0.0, 0.0, 0.0, False)
    looks = []
    for index in range(len(scenes)):
        one = Scenes(scenes.depth[index : index + 1], scenes.image[index : index + 1])
        random = generator("held-out", index)
        patch = one.draw(1, size, random, still, "disparity" if camera.kind == "disparity" else "z", colours)
        samples = camera(patch.depth, patch.valid, generator=random)
        if not bool(samples.valid.any()):
            continue  # nothing to see
        sigma = noise_map(samples.sigma, samples.depth, samples.valid)
        frame = Frame(samples.depth, samples.valid, patch.guide, samples.confidence, sigma, camera.sampling)
        looks.append(Look(group, f"scene {index}", frame, patch.depth, patch.valid))
    return looks
