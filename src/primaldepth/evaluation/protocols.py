"""Protocols by name, made from their frozen descriptions."""

from collections.abc import Callable, Mapping
from functools import cache
from importlib import resources
from typing import Any

from primaldepth.core.documents import parse_json
from primaldepth.core.errors import InputError
from primaldepth.evaluation.aligned_holes import aligned_holes_protocol
from primaldepth.evaluation.middlebury import Middlebury2006, NoisyMiddlebury
from primaldepth.evaluation.noise_free import noise_free_protocol
from primaldepth.evaluation.protocol import Case, Protocol
from primaldepth.evaluation.real_holdout import real_holdout_protocol
from primaldepth.evaluation.rendered import RenderedDisparities, SimulatedTof
from primaldepth.evaluation.scoring import Scoring
from primaldepth.evaluation.tofmark import tofmark_protocol

__all__ = ["Case", "Protocol", "get_protocol", "protocol_names"]

_KINDS: dict[str, Callable[[Mapping[str, Any], Mapping[str, Any]], Protocol]] = {
    "noisy-middlebury": NoisyMiddlebury.of,
    "middlebury-2006": Middlebury2006.of,
    "noise-free": noise_free_protocol,
    "aligned-holes": aligned_holes_protocol,
    "real-holdout": real_holdout_protocol,
    "rendered": RenderedDisparities.of,
    "tofmark": tofmark_protocol,
    "tofmark-sim": SimulatedTof.of,
}


def protocol_names() -> tuple[str, ...]:
    """Return the names of all protocols.

    Example:
        >>> from primaldepth.evaluation.protocols import protocol_names
        >>> "real-holdout" in protocol_names()
        True
    """
    return tuple(_KINDS)


def get_protocol(name: str) -> Protocol:
    """Return the protocol `name`, from its frozen description.

    Args:
        name: of `protocol_names`.

    Raises:
        InputError: if there is no such protocol.

    Example:
        >>> from primaldepth.evaluation.protocols import get_protocol
        >>> get_protocol("noisy-middlebury").scales
        (2, 4, 8, 16)
    """
    if name not in _KINDS:
        raise InputError("", f"unknown protocol '{name}'", f"known: {', '.join(_KINDS)}")
    frozen = _frozen(name)
    common = {
        "name": name,
        "version": frozen["version"],
        "folder": frozen["folder"],
        "scales": tuple(frozen["scales"]),
        "scoring": Scoring.parse(frozen["scoring"], f"protocol '{name}'"),
    }
    return _KINDS[name](frozen, common)


@cache
def _frozen(name: str) -> dict[str, Any]:
    text = (resources.files(__package__) / "frozen" / f"{name}.json").read_text()
    frozen: dict[str, Any] = parse_json(text, f"protocol '{name}'")
    return frozen
