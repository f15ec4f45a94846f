"""Names to methods."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from primaldepth.core.errors import InputError, did_you_mean
from primaldepth.core.frame import Method
from primaldepth.core.settings import Settings
from primaldepth.methods.barron16 import Barron16, Barron16Settings
from primaldepth.methods.chan08 import Chan08, Chan08Settings
from primaldepth.methods.diebel05 import Diebel05, Diebel05Settings
from primaldepth.methods.ferstl13 import Ferstl13, Ferstl13Settings
from primaldepth.methods.he10 import He10, He10Settings
from primaldepth.methods.interpolation import Interpolation
from primaldepth.methods.kopf07 import Kopf07, Kopf07Settings
from primaldepth.methods.network import NetworkOptions, network_method
from primaldepth.methods.park11 import Park11, Park11Settings
from primaldepth.methods.variational import DEFAULTS, Variational, VariationalSettings
from primaldepth.methods.yang07 import Yang07, Yang07Settings
from primaldepth.networks.zoo import SHIPPED
from primaldepth.operators.sampling import Kernel
from primaldepth.variational import Progress

Watcher = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class MethodInfo:
    """What users see in the list of methods."""

    name: str
    family: str
    uses_guide: bool
    summary: str
    settings: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Baseline:
    """A published method: how it is made from its settings, whose defaults are ours."""

    family: str
    make: Callable[[Any], Method]
    settings: type[Settings]
    summary: str


_BASELINES: dict[str, Baseline] = {
    "kopf07": Baseline("filter", Kopf07, Kopf07Settings, "joint bilateral upsampling"),
    "yang07": Baseline(
        "filter", Yang07, Yang07Settings, "cost volume, filtered bilaterally and searched, twice over"
    ),
    "he10": Baseline(
        "filter", He10, He10Settings, "guided filter: depth as a local linear function of the guide"
    ),
    "chan08": Baseline(
        "filter", Chan08, Chan08Settings, "bilateral filter, by the guide at steps, by depth on flat parts"
    ),
    "diebel05": Baseline(
        "optimisation", Diebel05, Diebel05Settings, "Markov random field, neighbours weighted by the guide"
    ),
    "park11": Baseline(
        "optimisation", Park11, Park11Settings, "Markov random field with non-local means regularisation"
    ),
    "ferstl13": Baseline(
        "optimisation", Ferstl13, Ferstl13Settings, "atgv-l2 with the weights it was published with"
    ),
    "barron16": Baseline(
        "optimisation", Barron16, Barron16Settings, "fast bilateral solver on shifted grids"
    ),
}

_INTERPOLATIONS: dict[str, tuple[Kernel, str]] = {
    "nearest": ("nearest", "value of the sample whose cell covers the pixel"),
    "bilinear": ("bilinear", "linear between sample centres"),
    "bicubic": ("bicubic", "cubic convolution, a = -1/2"),
}

_SUMMARIES = {
    "atv-l2": "anisotropic total variation, edges from the guide",
    "atgv-l2": "anisotropic second-order total generalised variation",
    "nltv-l2": "non-local total variation, pairs weighted by the guide",
    "nlh-l2": "non-local Huber regularisation",
    "nlh-l1": "non-local Huber regularisation, absolute data term",
    "nltgv-l2": "non-local total generalised variation",
    "nltgv-l1": "non-local total generalised variation, absolute data term",
}


def list_methods() -> list[MethodInfo]:
    """Every method, in the order of the documentation."""
    plain = [
        MethodInfo(name, "interpolation", False, summary, {})
        for name, (_, summary) in _INTERPOLATIONS.items()
    ]
    baselines = [
        MethodInfo(name, each.family, True, each.summary, each.settings().model_dump())
        for name, each in _BASELINES.items()
    ]
    models = [
        MethodInfo(name, "variational", True, summary, DEFAULTS[name].model_dump())
        for name, summary in _SUMMARIES.items()
    ]
    networks = [
        MethodInfo(name, "network", each.uses_guide, each.summary, NetworkOptions().model_dump())
        for name, each in SHIPPED.items()
        if each.present
    ]
    return plain + baselines + models + networks


def create(name: str, options: Mapping[str, Any] | None = None, *, progress: Watcher | None = None) -> Method:
    """The method `name`, with `options` in place of its defaults.

    Args:
        progress: called now and then by methods that iterate.
    """
    options = options or {}
    if name in _INTERPOLATIONS:
        if options:
            raise InputError(f"method '{name}' has no options, got {', '.join(options)}")
        return Interpolation(name, _INTERPOLATIONS[name][0])
    if name in _BASELINES:
        baseline = _BASELINES[name]
        return baseline.make(baseline.settings.parse(options, f"method '{name}'"))
    if name in DEFAULTS:
        settings = VariationalSettings.parse({**DEFAULTS[name].model_dump(), **options}, f"method '{name}'")
        return Variational(name, settings, progress)
    if name in SHIPPED or name.endswith(".safetensors"):
        return network_method(name, options)
    names = [info.name for info in list_methods()]
    hint = did_you_mean(name, names)
    raise InputError(f"unknown method '{name}'{hint and f'; {hint}'} (known: {', '.join(names)})")
