"""Find a method by name: those of this package, and those that other installed packages add."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from primaldepth.core.errors import InputError, did_you_mean
from primaldepth.core.extensions import Extensions
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
from primaldepth.variational import SolverProgress

Watcher = Callable[[SolverProgress], None]


@dataclass(frozen=True, slots=True)
class MethodInfo:
    """What users see of a method in the list of methods.

    Args:
        name: by which it is asked for.
        family: "interpolation", "filter", "optimisation", "variational", "network", or a word of its own.
        uses_guide: whether the image changes the result.
        summary: what it does, in one line.
        settings: every option with its default.
    """

    name: str
    family: str
    uses_guide: bool
    summary: str
    settings: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class MethodEntry:
    """How a method is listed, and made from its settings.

    An installed package adds a method by an entry point of the group "primaldepth.methods" that names one.

    Args:
        family: see `MethodInfo`.
        make: takes an instance of `settings` and returns the method.
        settings: its options; all have defaults.
        summary: what it does, in one line.
        uses_guide: whether the image changes the result.
    """

    family: str
    make: Callable[[Any], Method]
    settings: type[Settings]
    summary: str
    uses_guide: bool = True

    def info(self, name: str) -> MethodInfo:
        """Return what users see of it under `name`.

        Args:
            name: of the method.
        """
        return MethodInfo(name, self.family, self.uses_guide, self.summary, self.settings().model_dump())

    def create(self, name: str, options: Mapping[str, Any]) -> Method:
        """Make the method, with `options` in place of its defaults.

        Args:
            name: of the method.
            options: by name.

        Returns:
            The method.

        Raises:
            InputError: an option is unknown, or its value is wrong.
        """
        if options and not self.settings.model_fields:
            raise InputError(f"method '{name}' has no options, got {', '.join(options)}")
        return self.make(self.settings.parse(options, f"method '{name}'"))


def _interpolation(kernel: Kernel, summary: str) -> MethodEntry:
    return MethodEntry("interpolation", lambda _: Interpolation(kernel), Settings, summary, uses_guide=False)


_BASELINES: dict[str, MethodEntry] = {
    "nearest": _interpolation("nearest", "value of the sample whose cell covers the pixel"),
    "bilinear": _interpolation("bilinear", "linear between sample centres"),
    "bicubic": _interpolation("bicubic", "cubic convolution, a = -1/2"),
    "kopf07": MethodEntry("filter", Kopf07, Kopf07Settings, "joint bilateral upsampling"),
    "yang07": MethodEntry(
        "filter", Yang07, Yang07Settings, "cost volume, filtered bilaterally and searched, twice over"
    ),
    "he10": MethodEntry(
        "filter", He10, He10Settings, "guided filter: depth as a local linear function of the guide"
    ),
    "chan08": MethodEntry(
        "filter", Chan08, Chan08Settings, "bilateral filter, by the guide at steps, by depth on flat parts"
    ),
    "diebel05": MethodEntry(
        "optimisation", Diebel05, Diebel05Settings, "Markov random field, neighbours weighted by the guide"
    ),
    "park11": MethodEntry(
        "optimisation", Park11, Park11Settings, "Markov random field with non-local means regularisation"
    ),
    "ferstl13": MethodEntry(
        "optimisation", Ferstl13, Ferstl13Settings, "atgv-l2 with the weights it was published with"
    ),
    "barron16": MethodEntry(
        "optimisation", Barron16, Barron16Settings, "fast bilateral solver on shifted grids"
    ),
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


def _entry(name: str, loaded: object) -> MethodEntry:
    if not isinstance(loaded, MethodEntry):
        raise TypeError(f"expected a primaldepth.methods.MethodEntry, found {type(loaded).__name__}")
    loaded.info(name)  # raises if its settings lack defaults
    return loaded


_OWN = frozenset({*_BASELINES, *DEFAULTS, *SHIPPED})
_EXTENSIONS = Extensions("primaldepth.methods", "method", _entry)


def list_methods() -> list[MethodInfo]:
    """Return every method: those of this package in the order of the documentation, then those of others.

    Warns:
        ExtensionWarning: an installed package offers a method that cannot be loaded.

    Raises:
        InputError: two packages offer methods of the same name.

    Example:
        >>> from primaldepth.methods import list_methods
        >>> [info.name for info in list_methods()][:3]
        ['nearest', 'bilinear', 'bicubic']
    """
    baselines = [each.info(name) for name, each in _BASELINES.items()]
    models = [
        MethodInfo(name, "variational", True, summary, DEFAULTS[name].model_dump())
        for name, summary in _SUMMARIES.items()
    ]
    networks = [
        MethodInfo(name, "network", each.uses_guide, each.summary, NetworkOptions().model_dump())
        for name, each in SHIPPED.items()
        if each.present
    ]
    installed = [each.info(name) for name, each in _EXTENSIONS.load_all(_OWN).items()]
    return baselines + models + networks + installed


def create(name: str, options: Mapping[str, Any] | None = None, *, progress: Watcher | None = None) -> Method:
    """Make the method `name`, with `options` in place of its defaults.

    Args:
        name: of `list_methods`, or a file of weights that ends in ".safetensors".
        options: by name; `MethodInfo.settings` has all of them.
        progress: called now and then by methods that iterate.

    Returns:
        An object that turns a `Frame` into a `Prediction`.

    Raises:
        InputError: the name or an option is unknown, a value is wrong, or a package cannot be loaded.

    Example:
        >>> import torch
        >>> from primaldepth import Frame
        >>> from primaldepth.methods import create
        >>> depth = torch.full((1, 1, 4, 4), 2.0)
        >>> method = create("he10", {"radius": 2})
        >>> method(Frame(depth, depth > 0, torch.rand(1, 1, 8, 8))).depth.shape
        torch.Size([1, 1, 8, 8])
    """
    options = options or {}
    entry = _EXTENSIONS.find(name, _OWN) or _BASELINES.get(name)
    if entry is not None:
        return entry.create(name, options)
    if name in DEFAULTS:
        settings = VariationalSettings.parse({**DEFAULTS[name].model_dump(), **options}, f"method '{name}'")
        return Variational(name, settings, progress)
    if name in SHIPPED or name.endswith(".safetensors"):
        return network_method(name, options)
    names = [info.name for info in list_methods()]
    hint = did_you_mean(name, names)
    raise InputError(f"unknown method '{name}'{hint and f'; {hint}'} (known: {', '.join(names)})")
