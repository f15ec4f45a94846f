"""Recipes: everything that fixes a training run, as TOML files that may extend each other."""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationInfo, field_validator

from primaldepth.core.settings import Count, NotNegative, Positive, Settings, Share
from primaldepth.data.manifest import MOST_SCENES
from primaldepth.data.patches import Range, Variation
from primaldepth.evaluation.weighted_score import Criterion, Scale
from primaldepth.io.layered_toml import read_layered
from primaldepth.networks import NetworkSettings
from primaldepth.networks.card import Asset
from primaldepth.scenes.scene_source import RenderSettings
from primaldepth.sensors import TimeOfFlight, sensor_class
from primaldepth.sensors.triangulation import Triangulation

FileName = Annotated[str, Field(pattern=r"^[\w+.-]+$")]


class Mix(Settings):
    """One of the sensors that a network learns to read.

    Args:
        sensor: of `data.sensors`.
        share: of the steps, relative to the other sensors'.
        noise: range of the factor on the sensor's noise, drawn log-uniformly for each patch.
        weight: of its errors, relative to the other sensors': theirs may be counted in another unit.
        scale: those of the recipe's it is drawn with; all if empty.
        albedo: surfaces return light as bright as the guide shows them; else all are white. Only for sensors
            with an amplitude.
        plain: share of the patches of which one noise is told for all samples, as where it is estimated.
        false: share of the patches that have samples which are simply wrong.
        drawn: parameters of the sensor are drawn between its `ranges` for every batch; else they are its
            defaults.
        silent: share of the patches whose confidence is not told; only for sensors that give one.
    """

    sensor: str
    share: Positive = 1.0
    weight: Positive = 1.0
    noise: Range = (1.0, 1.0)
    scale: tuple[Scale, ...] = ()
    albedo: bool = False
    plain: Share = 0.0
    false: Share = 0.0
    drawn: bool = False
    silent: Share = 0.0

    @field_validator("albedo")
    @classmethod
    def _has_amplitude(cls, albedo: bool, info: ValidationInfo) -> bool:
        name = info.data.get("sensor", "")
        if albedo and not issubclass(sensor_class(name), (TimeOfFlight, Triangulation)):
            raise ValueError(f"sensor '{name}' has no amplitude")
        return albedo


class DataRecipe(Variation):
    """How patches are degraded; `Variation` has the keys that say how they are varied.

    Args:
        sensor: of `data.sensors`.
        noise: range of the factor on the sensor's noise, drawn log-uniformly for each patch.
        mix: several sensors instead of one.
        blend: parts of a batch, each with a sensor and a scale of its own; then `patch` is a multiple of
            every scale.
        holes: share of the patches whose samples have holes beyond the sensor's own.
        unsaid: share of the batches whose sampling nobody says, for networks with the sample term: it reads
            them as it would read the frames of an unknown camera, rightly or not.
        balance: errors at scale s count s^-balance times, so that large scales do not outweigh the others.
        jitter: largest relative change of the spread and shift of the centre that normalise a patch:
            a patch is normalised by its scene, which the frame's samples only estimate.
        held_out: scenes at the end of the folder that are validated on, not trained on; at most a fifth.
    """

    sensor: str = "middlebury-noisy-v1"
    noise: Range = (1.0, 1.0)
    mix: Annotated[tuple[Mix, ...], Field(max_length=100)] = ()
    blend: Count = 1
    holes: Share = 0.0
    unsaid: Share = 0.0
    balance: NotNegative = 0.0
    jitter: NotNegative = 0.1
    held_out: Annotated[int, Field(ge=0)] = 16

    @property
    def mixture(self) -> tuple[Mix, ...]:
        """The sensors, at least one."""
        return self.mix or (Mix(sensor=self.sensor, noise=self.noise),)


class StageRecipe(Settings):
    """One stage of training.

    Args:
        part: "fcn" trains the FCN on its own output, "joint" FCN and primal-dual part on the result, "pdn"
            the primal-dual part alone on the fixed FCN, "head" the primal-dual part and the FCN's last layer.
        steps: of the optimiser.
        batch: patches in a step.
        patch: side of a patch; a multiple of the scale.
        optimiser: "adamw", "muon" (orthogonal steps of all kernels but the first and last) or "sgd".
        rate: largest learning rate.
        schedule: "cosine" to zero, "constant", or "steps": halved at half, a fifth of that at 5/6.
        warmup: steps of linear growth of the rate.
        decay: weight decay of the convolutions.
        clip: of the gradient: its norm, for sgd each value.
        loss: name of the loss on the result, in pixels of disparity or centimetres.
        first: weight of the same loss on the FCN's output, in all parts but fcn.
        affinity: weight of the loss on the affinities.
        likelihood: weight of the loss on the uncertainty, for a network that gives one.
        rate_pdn: factor on the rate for the primal-dual coefficients.
        ema: decay of the averaged weights that are validated and kept; 0 keeps the last ones.
        save_as: name under which the stage's weights are written at its end.
    """

    part: Literal["fcn", "joint", "pdn", "head"]
    steps: Count
    batch: Annotated[int, Field(ge=1, le=2**16)] = 64
    patch: Annotated[int, Field(ge=16)] = 128
    optimiser: Literal["adamw", "muon", "sgd"] = "adamw"
    rate: Positive = 1e-3
    schedule: Literal["cosine", "constant", "steps"] = "cosine"
    warmup: Annotated[int, Field(ge=0)] = 100
    decay: NotNegative = 1e-4
    clip: Positive = 1.0
    loss: str = "l2"
    first: NotNegative = 0.0
    affinity: NotNegative = 0.0
    likelihood: NotNegative = 0.0
    rate_pdn: Positive = 1.0
    ema: Annotated[float, Field(ge=0, lt=1)] = 0.999
    save_as: FileName | None = None


class SceneSet(RenderSettings):
    """Scenes that a run renders for itself, with the settings of `primaldepth render`.

    Args:
        count: number of scenes.
        assets: what lies in the folders of textures and meshes, for the card.
    """

    count: Annotated[int, Field(ge=1, le=MOST_SCENES)]
    assets: tuple[Asset, ...] = ()

    @property
    def render(self) -> RenderSettings:
        """The settings of the renderer alone."""
        return RenderSettings(**{name: getattr(self, name) for name in RenderSettings.model_fields})


class ValidationRecipe(Settings):
    """Frames that a network is scored on while it is trained.

    Args:
        every: steps; 0 validates only at the end of each stage.
        protocols: names of protocols, or criteria with a weight each. A name is a criterion with all its
            defaults, but it is left out, with a note, where its data is missing.
        scales: to validate at; those of the recipe if empty.
        patience: validations without improvement after which a stage ends; 0 never.
    """

    every: Annotated[int, Field(ge=0)] = 1000
    protocols: tuple[str | Criterion, ...] = ("middlebury-2006",)
    scales: tuple[Scale, ...] = ()
    patience: Annotated[int, Field(ge=0)] = 0

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the protocols, each once."""
        found = (each if isinstance(each, str) else each.protocol for each in self.protocols)
        return tuple(dict.fromkeys(found))


class Recipe(Settings):
    """A whole training run.

    Args:
        name: of the run.
        scenes: a set of scenes for each stage, in their order; the last one serves the stages after it.
            Without any, the run is given a folder of scenes.
        scale: pixels per sample, per side; several make one network for all of them, see `data.blend`.
        seed: of weights, patches and noise.
        start: weights to start from, a path; None starts from nothing. The number of iterations may differ.
        keep: share of the backbone it started from in the one it saves, the mean of both: what is new is
            learned in part, and what was known is not forgotten. With 1 only the solver is new, and the trust
            in samples of a backbone that had none.
        precision: of the convolutions; a CPU computes in bf16 where it has instructions for it and the
            network is for any scale, else in fp32.
        accumulate: parts in which a batch is computed, one after the other, to save memory.
        half: store convolution kernels as float16 in the weight files.
        on_nan: "stop" saves the batch and stops, "skip" leaves the step out and says so.
        checkpoint_every: steps; there is one at the end of each stage too.
    """

    name: str = Field(min_length=1)
    scale: Scale | tuple[Scale, ...]
    seed: Annotated[int, Field(ge=0)] = 0
    net: NetworkSettings = NetworkSettings()
    data: DataRecipe = DataRecipe()
    stages: Annotated[tuple[StageRecipe, ...], Field(min_length=1, max_length=100)]
    scenes: tuple[SceneSet, ...] = ()
    validation: ValidationRecipe = ValidationRecipe()
    start: str | None = None
    keep: Share = 0.0
    precision: Literal["fp32", "bf16"] = "bf16"
    accumulate: Count = 1
    half: bool = False
    on_nan: Literal["stop", "skip"] = "stop"
    checkpoint_every: Count = 1000

    @field_validator("scale")
    @classmethod
    def _not_empty(cls, scale: int | tuple[int, ...]) -> int | tuple[int, ...]:
        if scale == ():
            raise ValueError("expected at least one scale")
        return scale

    @field_validator("keep")
    @classmethod
    def _has_start(cls, keep: float, info: ValidationInfo) -> float:
        if keep and info.data.get("start") is None:
            raise ValueError("there is no 'start' to keep anything of")
        return keep

    @field_validator("scenes")
    @classmethod
    def _has_stages(cls, scenes: tuple[SceneSet, ...], info: ValidationInfo) -> tuple[SceneSet, ...]:
        if len(scenes) > len(info.data.get("stages", scenes)):
            raise ValueError("more sets of scenes than stages")
        return scenes

    @property
    def sha256(self) -> str:
        """Hash of all that changes the result."""
        places = {"__all__": {"textures", "variant", "meshes"}}
        text = self.model_dump_json(exclude={"on_nan": True, "checkpoint_every": True, "scenes": places})
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def scales(self) -> tuple[int, ...]:
        """All scales, at least one."""
        return self.scale if isinstance(self.scale, tuple) else (self.scale,)

    @field_validator("stages")
    @classmethod
    def _names_are_free(cls, stages: tuple[StageRecipe, ...]) -> tuple[StageRecipe, ...]:
        names = [stage.save_as for stage in stages if stage.save_as]
        if len(set(names)) < len(names):
            raise ValueError(f"two stages are saved under one name, save_as = {', '.join(names)}")
        if taken := set(names) & {"checkpoint", "config"}:
            raise ValueError(f"save_as = {min(taken)}: the run itself has a file of that name")
        return stages


def read_recipe(path: Path, changes: Sequence[str] = ()) -> Recipe:
    """Read a recipe from a TOML file.

    Args:
        path: of the file, which may extend others that lie beside or below it. In `save_as`, `{name}` stands
            for the recipe's name and `{input}` for `net.input`.
        changes: `a.b=value` each, which replace values of the file.

    Returns:
        The recipe, with every default filled in.

    Raises:
        InputError: a file cannot be read, or a key is unknown or wrong.

    Example:
        >>> from pathlib import Path
        >>> from primaldepth.training.recipe import read_recipe
        >>> _ = Path("small.toml").write_text('''
        ... name = "small"
        ... scale = 4
        ... stages = [{part = "fcn", steps = 100, batch = 4, patch = 64, rate = 1e-3}]
        ... ''')
        >>> read_recipe(Path("small.toml"), ["net.layers=3"]).net.layers
        3
    """
    values = read_layered(path, changes, what="TOML recipe")
    return Recipe.parse(_with_names(values), str(path))


def _with_names(values: dict[str, Any]) -> dict[str, Any]:
    """Return the same with `{name}` and `{input}` in `save_as` replaced."""
    stages, net = values.get("stages"), values.get("net")
    read = net.get("input", NetworkSettings().input) if isinstance(net, dict) else NetworkSettings().input
    for stage in stages if isinstance(stages, list) else ():
        if isinstance(stage, dict) and isinstance(stage.get("save_as"), str):
            named = stage["save_as"].replace("{name}", str(values.get("name")))
            stage["save_as"] = named.replace("{input}", str(read))
    return values
