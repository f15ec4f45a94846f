"""Score a network while it learns: on frozen protocols, and on scenes held out from training."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

import torch
from torch import Tensor

from primaldepth.core.frame import Frame
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
class ValidationFrame:
    """A frame that networks are scored on.

    Args:
        group: name of the group that it belongs to.
        case: the frame and its truth.
        metrics: names of the numbers that are needed beside the RMSE.
    """

    group: str
    case: Case
    metrics: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class ValidationResult:
    """What the network made of one frame.

    Args:
        frame: the frame.
        depth: result of the network, (1, 1, H, W).
        sigma: its uncertainty, (1, 1, H, W), of a network that gives one.
        scores: the RMSE and the metrics of the frame, by name; None for one that is not defined there.
    """

    frame: ValidationFrame
    depth: Tensor
    sigma: Tensor | None
    scores: Scores


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
        self.frames = [each for name, group in plan.groups.items() for each in _frames(name, group, device)]
        if held_out is not None:
            scales = recipe.validation.scales or recipe.scales
            for scale in scales:
                label = HELD_OUT if len(scales) == 1 else f"{HELD_OUT} x{scale}"
                self.frames += _held_out_frames(held_out, recipe, scale, label)

    @property
    def groups(self) -> list[str]:
        """Names of the groups that get a score."""
        return sorted(
            {number_name(each.group, metric) for each in self.frames for metric in ("rmse", *each.metrics)}
        )

    def results(self, net: DepthNet) -> Iterator[ValidationResult]:
        """Yield the network's result on every frame."""
        half = self._precision if next(net.parameters()).is_cuda else torch.float32
        method = Network("net", net.eval(), precision=half)
        for each in self.frames:
            case, found = each.case, method(each.case.frame)
            error = torch.where(case.known, found.depth - case.truth, 0.0)
            rmse = float((error.square().sum() / case.known.sum()).sqrt())
            more = case.scores(found) if each.metrics else {}
            yield ValidationResult(
                each, found.depth, found.sigma, {"rmse": rmse, **{name: more[name] for name in each.metrics}}
            )
        net.train()


def summary(results: Iterable[ValidationResult]) -> dict[str, float]:
    """Return the mean of every number of each group, over the frames on which it is defined."""
    values: dict[str, list[float]] = {}
    for one in results:
        for metric, value in one.scores.items():
            if value is not None:
                values.setdefault(number_name(one.frame.group, metric), []).append(value)
    return {name: fmean(found) for name, found in values.items()}


def deciding(groups: Iterable[str]) -> list[str]:
    """Return the groups of the protocols, or where there are none, those of the scenes held out."""
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
        The score, or None where there are no scores.
    """
    chosen = parts or {group: ScorePart() for group in deciding(scores)}
    return weighted_score(scores, chosen) if chosen else None


def _frames(name: str, group: Group, device: torch.device) -> Iterator[ValidationFrame]:
    for scene in group.scenes:
        case = group.protocol.load(group.data, scene, group.scale).to(device)
        yield ValidationFrame(name, case, tuple(sorted(group.metrics)))


def _held_out_frames(scenes: Scenes, recipe: Recipe, scale: int, group: str) -> Iterator[ValidationFrame]:
    """Yield whole scenes, degraded by the recipe's first sensor with fixed seeds."""
    camera = sensor(recipe.data.mixture[0].sensor, scale=scale)
    size = min(int(side) for side in scenes.depth.shape[1:]) // scale * scale
    colours = recipe.net.colours
    ranges = {"far": recipe.data.far, "near": recipe.data.near}
    still = Variation(**ranges, gamma=0.0, contrast=0.0, grain=0.0, turn=False)
    for index in range(len(scenes)):
        one = Scenes(scenes.depth[index : index + 1], scenes.image[index : index + 1])
        random = generator("held-out", index)
        patch = one.draw(1, size, random, still, "disparity" if camera.kind == "disparity" else "z", colours)
        samples = camera(patch.depth, patch.valid, generator=random)
        if not bool(samples.valid.any()):
            continue  # nothing to see
        sigma = noise_map(samples.sigma, samples.depth, samples.valid)
        frame = Frame(samples.depth, samples.valid, patch.guide, samples.confidence, sigma, camera.sampling)
        yield ValidationFrame(group, Case(f"scene {index}", scale, frame, patch.depth, patch.valid))
