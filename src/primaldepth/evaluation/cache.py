"""Results kept by content: the same method on the same input is computed once."""

import hashlib
import json
import logging
import os
import platform
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import torch

from primaldepth.core.errors import InputError
from primaldepth.io import write_bytes
from primaldepth.io.files import read_json
from primaldepth.version import installed_version

log = logging.getLogger("primaldepth.evaluation")
Key = Mapping[str, Any]
_PACKAGES = ("torch", "numpy", "numba", "triton", "pillow")


def cache_folder() -> Path:
    """Return the cache folder: PRIMALDEPTH_CACHE, or `primaldepth` in XDG_CACHE_HOME (~/.cache)."""
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
        """Return what was stored for the key, or None."""
        try:
            stored = read_json(self._path(key))
        except InputError:
            return None
        if not isinstance(stored, dict) or stored.get("key") != json.loads(json.dumps(key)):
            return None
        result = stored.get("result")
        return result if isinstance(result, dict) else None

    def put(self, key: Key, result: Mapping[str, Any]) -> None:
        """Store the result for the key, atomically; warn once if that fails, and go on."""
        try:
            write_bytes(self._path(key), json.dumps({"key": key, "result": result}, indent=1).encode())
        except InputError as error:
            if not self._failed:
                log.warning("results are not kept: %s", error)
            self._failed = True

    def _path(self, key: Key) -> Path:
        digest = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()
        return self.folder / digest[:2] / f"{digest}.json"


@cache
def machine_identity(device: str) -> dict[str, str]:
    """Return what decides the last bits of a result: processor, and the packages that compute."""
    processor = (
        torch.cuda.get_device_name(device)
        if device.startswith("cuda")
        else f"{platform.machine()} {torch.backends.cpu.get_cpu_capability()}"
    )
    return {"device": processor, **{name: installed_version(name) for name in _PACKAGES}}
