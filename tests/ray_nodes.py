"""A Ray cluster of two small nodes on this machine."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest


@contextmanager
def two_nodes(**environment: str) -> Iterator[Any]:
    """One CPU each; skipped where Ray is missing. `environment` is what the workers see."""
    ray = pytest.importorskip("ray", reason="needs the extra 'cluster'")
    from ray.cluster_utils import Cluster

    quiet = {
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
        "OMP_NUM_THREADS": "1",
    }
    small = {"num_cpus": 1, "object_store_memory": 80 << 20}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (quiet | environment).items():
            patch.setenv(name, value)
        nodes = Cluster(initialize_head=True, head_node_args={**small, "include_dashboard": False})
        try:
            nodes.add_node(**small)
            patch.setenv("RAY_ADDRESS", nodes.address)
            yield nodes
        finally:
            ray.shutdown()
            nodes.shutdown()
