"""One name, one method: the registry and the classical baselines."""

from primaldepth.methods.registry import MethodInfo, create, list_methods

__all__ = ["MethodInfo", "create", "list_methods"]
