"""One name, one method: the registry and the classical baselines."""

from primaldepth.methods.registry import MethodEntry, MethodInfo, create, list_methods

__all__ = ["MethodEntry", "MethodInfo", "create", "list_methods"]
