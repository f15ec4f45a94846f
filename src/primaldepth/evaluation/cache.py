"""Results kept by content: the same method on the same input is computed once."""

import hashlib
import json
import logging
import os
import platform
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from importlib import resources
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

from primaldepth.core.errors import InputError
from primaldepth.core.settings import Settings
from primaldepth.evaluation.protocol import file_sha256
from primaldepth.io import write_bytes
from primaldepth.io.files import read_json
from primaldepth.methods.network import ShippedNetwork
from primaldepth.networks.zoo import SHIPPED

log = logging.getLogger("primaldepth.evaluation")
Key = Mapping[str, Any]
# no number depends on these: they only show or learn, and rendered scenes count by their content
_WITHOUT_EFFECT = ("cli/", "app/", "export/", "training/", "scenes/", "evaluation/report/")
_PACKAGES = ("torch", "numpy", "numba", "triton", "pillow")


def cache_folder() -> Path:
    """PRIMALDEPTH_CACHE, or `primaldepth` in XDG_CACHE_HOME (~/.cache)."""
    if own := os.environ.get("PRIMALDEPTH_CACHE"):
        return Path(own)
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "primaldepth"
    except RuntimeError as error:
        raise InputError("this user has no home folder; name a folder by PRIMALDEPTH_CACHE") from error


class ResultCache:
    """One small file per result; whatever cannot be read counts as absent.

    Args:
        folder: of the files; made when the first is written.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or cache_folder() / "results"
        self._failed = False

    def get(self, key: Key) -> dict[str, Any] | None:
        """What was stored for the key."""
        try:
            stored = read_json(self._path(key))
        except InputError:
            return None
        if not isinstance(stored, dict) or stored.get("key") != json.loads(json.dumps(key)):
            return None
        result = stored.get("result")
        return result if isinstance(result, dict) else None

    def put(self, key: Key, result: Mapping[str, Any]) -> None:
        """Store the result for the key, atomically; where that cannot be done, say so once and go on."""
        try:
            write_bytes(self._path(key), json.dumps({"key": key, "result": result}, indent=1).encode())
        except InputError as error:
            if not self._failed:
                log.warning("results are not kept: %s", error)
            self._failed = True

    def _path(self, key: Key) -> Path:
        digest = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()
        return self.folder / digest[:2] / f"{digest}.json"


def method_identity(method: object) -> dict[str, Any] | None:
    """Name, parameters and weights of a method; None if it has a part whose content cannot be named."""
    if not is_dataclass(method) or isinstance(method, type):
        return None
    identity: dict[str, Any] = {"class": type(method).__qualname__}
    for part in fields(method):
        value = getattr(method, part.name)
        if part.name == "progress" or not part.init:  # only watches, or made from the others
            continue
        named = _named(value)
        if named is _UNKNOWN:
            return None
        identity[part.name] = named
    if isinstance(method, ShippedNetwork):
        identity["weights"] = {path.name: file_sha256(path) for path in SHIPPED[method.name].present.values()}
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


@cache
def code_version() -> str:
    """SHA-256 of the package's sources that numbers depend on, so that an edited package is another one."""
    root = Path(str(resources.files("primaldepth")))
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        name = path.relative_to(root).as_posix()
        if not name.startswith(_WITHOUT_EFFECT):
            digest.update(f"{name} {file_sha256(path)}\n".encode())
    return digest.hexdigest()


@cache
def machine_identity(device: str) -> dict[str, str]:
    """What decides the last bits: processor, and the packages that compute."""
    processor = (
        torch.cuda.get_device_name(device)
        if device.startswith("cuda")
        else f"{platform.machine()} {torch.backends.cpu.get_cpu_capability()}"
    )
    return {"device": processor, **{name: _version(name) for name in _PACKAGES}}


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "none"
