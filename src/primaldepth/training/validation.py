"""Looking at a network while it learns: on frozen protocols, and on scenes held out from training."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean

import torch
from torch import Tensor

from primaldepth.core.frame import Frame, Prediction
from primaldepth.core.seeds import generator
from primaldepth.data.patches import Scenes, Variation
from primaldepth.evaluation.protocols import Case
from primaldepth.evaluation.scoring import Scores
from primaldepth.evaluation.weighted_score import ScorePart, weighted_score
from primaldepth.methods.network import Network
from primaldepth.networks import DepthNet
from primaldepth.sensors import sensor
from primaldepth.sensors.noise import noise_map
from primaldepth.training.recipe import Recipe
from primaldepth.training.validation_plan import Group, number_name, planned

HELD_OUT = "held-out"


@dataclass(frozen=True, slots=True, eq=False)
class Look:
    """One frame with its truth.

    Args:
        case: the same, where other numbers than the RMSE are wanted.
        metrics: these numbers.
    """

    group: str
    name: str
    frame: Frame
    truth: Tensor
    known: Tensor
    case: Case | None = None
    metrics: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """What the network made of one frame; `more` has the numbers that the look asks for."""

    look: Look
    depth: Tensor
    rmse: float
    sigma: Tensor | None = None
    more: Scores = field(default_factory=dict)


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
        plan = planned(recipe, data)
        self.missing, self.parts = plan.missing, plan.parts
        self._precision = torch.bfloat16 if recipe.precision == "bf16" else torch.float32
        self.looks = [look for name, group in plan.groups.items() for look in _looks(name, group, device)]
        if held_out is not None:
            scales = recipe.validation.scales or recipe.scales
            for scale in scales:
                label = HELD_OUT if len(scales) == 1 else f"{HELD_OUT} x{scale}"
                self.looks += _held_out_looks(held_out, recipe, scale, label)

    @property
    def groups(self) -> list[str]:
        """Names of the groups that get a score."""
        return sorted({name for look in self.looks for name in (look.group, *_more_names(look))})

    def see(self, net: DepthNet) -> Iterator[Seen]:
        """The network's result on every frame."""
        half = self._precision if next(net.parameters()).is_cuda else torch.float32
        method = Network("net", net.eval(), precision=half)
        for look in self.looks:
            found = method(look.frame)
            error = torch.where(look.known, found.depth - look.truth, 0.0)
            rmse = (error.square().sum() / look.known.sum()).sqrt()
            yield Seen(look, found.depth, float(rmse), found.sigma, _more(look, found))
        net.train()

    def score(self, scores: Mapping[str, float]) -> float | None:
        """Return the score by which checkpoints are chosen, see `selection_score`."""
        return selection_score(scores, self.parts)


def _more(look: Look, found: Prediction) -> Scores:
    """The numbers that the look asks for, computed as `evaluate` does."""
    if look.case is None or not look.metrics:
        return {}
    scores = look.case.scores(found)
    return {name: scores[name] for name in look.metrics}


def _more_names(look: Look) -> list[str]:
    return [number_name(look.group, metric) for metric in look.metrics]


def summary(seen: Sequence[Seen]) -> dict[str, float]:
    """Mean of every number of each group, over the frames on which it is defined."""
    values: dict[str, list[float]] = {}
    for one in seen:
        for metric, value in ({"rmse": one.rmse} | one.more).items():
            if value is not None:
                values.setdefault(number_name(one.look.group, metric), []).append(value)
    return {name: fmean(found) for name, found in values.items()}


def deciding(groups: Iterable[str]) -> list[str]:
    """The groups of the protocols, or where there are none, those of the scenes held out."""
    every = list(groups)
    return [group for group in every if not group.startswith(HELD_OUT)] or every


def selection_score(
    scores: Mapping[str, float], parts: Mapping[str, ScorePart] | None = None
) -> float | None:
    """Return the score by which checkpoints are chosen: the weighted score of the protocols.

    Args:
        scores: what `summary` returns.
        parts: contributions by name; without any, the score is the geometric mean over all protocols, or else
            over the scenes held out.

    Returns:
        The score, or None where nothing was looked at.
    """
    chosen = parts or {group: ScorePart() for group in deciding(scores)}
    return weighted_score(scores, chosen) if chosen else None


def _looks(name: str, group: Group, device: torch.device) -> Iterator[Look]:
    for scene in group.scenes:
        case = group.protocol.load(group.data, scene, group.scale).to(device)
        wanted = case if group.metrics else None
        yield Look(name, scene, case.frame, case.truth, case.known, wanted, tuple(sorted(group.metrics)))


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
