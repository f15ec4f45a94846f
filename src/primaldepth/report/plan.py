"""The methods and scales that the report runs, and why others are left out."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from pydantic import Field

from primaldepth.core.settings import Count, Positive, Settings
from primaldepth.methods import create, list_methods
from primaldepth.methods.network import Network
from primaldepth.networks.joint import DepthNet, NetworkSettings
from primaldepth.networks.zoo import SHIPPED, load
from primaldepth.variational import MODELS
from primaldepth.variational.models import WindowSize

NO_WEIGHTS = "no weights yet"
_COMPARED = ("ferstl13", "nlh-l2", "pdn-any-small", "pdn-any")


class ReportSettings(Settings):
    """Contents of the report; the defaults are the paper's studies.

    Args:
        methods: rows of the benchmark's table; None for all.
        study_scale: of everything that is not the benchmark's table.
        shown_energy: the energy of the window study and of the support weights.
        windows: sides of the non-local window.
        iterations: on every grid, in the studies of energies and windows.
        tof_methods: rows of the ToF table.
        noise_free_methods: rows of ours in the table without noise; the last one is compared in words.
        noise_free_frames: at most so many frames of each set are run, spread evenly over those there are.
        camera_methods: rows of the tables with holes and of the first one, which has all kinds of evidence;
            the last one is compared in words.
        camera_scales: scales that are run, by protocol; all where a protocol is not named.
        shown_methods: columns of the pictures.
        error_limit: error that gets the full colour in the pictures, in the benchmark's unit.
        pixel: (scene, row, column) whose support weights are drawn.
    """

    methods: tuple[str, ...] | None = None
    study_scale: Count = 8
    shown_energy: str = "nlh-l2"
    windows: tuple[WindowSize, ...] = (3, 5, 7, 9, 11, 13, 15, 17)
    iterations: Count = 20
    tof_methods: tuple[str, ...] = ("nearest", "bilinear", "kopf07", "he10", "ferstl13", "nlh-l2", "pdn-any")
    noise_free_methods: tuple[str, ...] = ("bicubic", *_COMPARED)
    noise_free_frames: Count = 25
    camera_methods: tuple[str, ...] = ("nearest", "bicubic", "kopf07", *_COMPARED)
    camera_scales: dict[str, tuple[Count, ...]] = Field(default={"aligned-holes": (4,)})
    shown_methods: tuple[str, ...] = ("bilinear", "he10", "ferstl13", "fcn-pdn-s", "pdn-any")
    error_limit: Positive = 5.0
    pixel: tuple[str, int, int] = ("art", 913, 449)


@dataclass(frozen=True, slots=True)
class Line:
    """One row of the benchmark's table.

    Args:
        family: of the method; a rule is drawn where it changes.
        scales: at which it is run.
        absent: what stands at the others.
    """

    name: str
    family: str
    scales: tuple[int, ...]
    absent: str = ""


def has_weights(name: str, scale: int) -> bool:
    """Whether `name` is no network, or its weights for this scale are shipped.

    Args:
        name: of a method.
        scale: pixels per sample, each way.
    """
    return name not in SHIPPED or not {None, scale}.isdisjoint(SHIPPED[name].present)


def lines(settings: ReportSettings, scales: Sequence[int]) -> list[Line]:
    """List every method in the order of the documentation, then the networks.

    Args:
        settings: of the report.
        scales: of the benchmark.

    Raises:
        InputError: if a method is not known.
    """
    families = {info.name: info.family for info in list_methods()} | dict.fromkeys(SHIPPED, "network")
    chosen = families if settings.methods is None else settings.methods
    for name in chosen:
        if name not in families:
            create(name)  # says which names are known
    return [_line(name, families[name], scales) for name in families if name in chosen]


def _line(name: str, family: str, scales: Sequence[int]) -> Line:
    if name in SHIPPED:
        return Line(name, family, tuple(s for s in scales if has_weights(name, s)), NO_WEIGHTS)
    return Line(name, family, tuple(scales))


def energy_networks(settings: ReportSettings) -> dict[str, Network]:
    """Return the FCN alone ("fcn") and followed by each energy; empty while it has no weights.

    The solver is untrained: `settings.iterations` steps of the classical size on the FCN's depth and
    affinities.
    """
    if not has_weights("fcn-s", settings.study_scale):
        return {}
    net = load("fcn-s", settings.study_scale)
    solved = {model: _followed_by(net, model, settings.iterations) for model in MODELS}
    return {"fcn": Network("fcn", net), **{key: Network(f"fcn+{key}", each) for key, each in solved.items()}}


def _followed_by(net: DepthNet, model: str, iterations: int) -> DepthNet:
    values = {**net.settings.model_dump(), "iterations": iterations, "model": model}
    with torch.random.fork_rng(devices=[]):
        full = DepthNet(NetworkSettings(**values))
    full.fcn.load_state_dict(net.fcn.state_dict())
    return full.eval()
