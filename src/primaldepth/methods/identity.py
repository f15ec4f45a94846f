"""What decides the results of a method: its name, parameters and weights."""

import hashlib
import sys
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import torch

from primaldepth.core.settings import Settings
from primaldepth.io.files import file_sha256
from primaldepth.methods.network import ShippedNetwork
from primaldepth.networks.zoo import SHIPPED


def method_identity(method: object) -> dict[str, Any] | None:
    """Return name, parameters and weights of a method; None if it has a part whose content cannot be named.

    Of a method from another package the hash of its source file belongs to it.

    Args:
        method: made by `create`, or by another package.
    """
    if not is_dataclass(method) or isinstance(method, type):
        return None
    identity: dict[str, Any] = {"class": type(method).__qualname__}
    if not type(method).__module__.startswith("primaldepth."):  # whose code is not part of our version
        source = getattr(sys.modules.get(type(method).__module__), "__file__", None)
        if source is None:
            return None
        identity["source"] = file_sha256(Path(source))
    for part in fields(method):
        value = getattr(method, part.name)
        if part.name == "progress" or not part.init:  # only watches, or made from the others
            continue
        named = _named(value)
        if named is _UNKNOWN:
            return None
        identity[part.name] = named
    if isinstance(method, ShippedNetwork):
        names = [name for name in (method.name, SHIPPED[method.name].partner) if name is not None]
        paths = [path for name in names for path in SHIPPED[name].present.values()]
        identity["weights"] = {path.name: file_sha256(path) for path in paths}
    return identity


_UNKNOWN = object()


def _named(value: Any) -> Any:
    if isinstance(value, Settings):
        return value.model_dump(mode="json")
    if isinstance(value, torch.nn.Module):
        return _module_sha256(value)
    if isinstance(value, torch.dtype):
        return str(value)
    return value if value is None or isinstance(value, (str, int, float, bool)) else _UNKNOWN


def _module_sha256(module: torch.nn.Module) -> str:
    settings = getattr(module, "settings", None)
    digest = hashlib.sha256(f"{module!r} {settings!r}".encode())
    for name, tensor in sorted(module.state_dict().items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()
