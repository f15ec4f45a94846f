"""Which code updates a term F(K u): a kernel for its operator, penalty and backend, else the definition.

A kernel computes what `DEFINITION` computes, in one pass over memory. `numba_kernels.TERMS` lists those of
the CPU. Each says which updates it can do; every other update is left to the definition.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

import torch
from torch import Tensor

from primaldepth.operators.base import LinearOperator
from primaldepth.operators.pairwise import pick_backend
from primaldepth.variational.penalties import Number, Penalty

MODULES = {"numba": "primaldepth.variational.numba_kernels"}  # imported on first use


@dataclass(frozen=True, slots=True)
class WeightedStep:
    """A dual step (base + slope w) / rows[k] for pair k, without a tensor of its own; no rows: all 1."""

    base: float
    slope: float
    w: Tensor
    rows: tuple[float, ...] | None = None

    @property
    def tensor(self) -> Tensor:
        """Return the steps as one tensor."""
        step = self.base + self.slope * self.w
        return step if self.rows is None else step / step.new_tensor(self.rows).view(-1, 1, 1)


def as_number(step: Number | WeightedStep) -> Number:
    """Return a dual step as a number or a tensor.

    Args:
        step: dual step of a term.
    """
    return step.tensor if isinstance(step, WeightedStep) else step


@dataclass(slots=True)  # not frozen: one is made for every term of every step
class DualUpdate:
    """What one dual update of a term F(K u) reads.

    Args:
        K: the operator; a kernel knows its type, under which it is listed.
        F: the penalty, likewise.
        p: (B, *K.out_shape) dual variable.
        u_bar: (B, *K.in_shape) extrapolated primal variable.
        sigma: dual step.
    """

    K: Any
    F: Any
    p: Tensor
    u_bar: Tensor
    sigma: Number | WeightedStep


def _never(*arguments: object) -> bool:
    return False


def _defined_step(update: DualUpdate, out: Tensor | None) -> tuple[Tensor, Tensor]:
    K, step = update.K, as_number(update.sigma)
    p = update.F.prox_conjugate(update.p + step * K(update.u_bar), step)
    return p, K.adjoint(p)


def _defined_value(K: Any, F: Any, u: Tensor) -> Tensor:
    values: Tensor = F.value(K(u))
    return values


@dataclass(frozen=True, slots=True)
class TermKernel:
    """Code for the terms of one operator and one penalty.

    Args:
        can_step: whether `step` can do an update.
        step: returns p+ = prox_{sigma F*}(p + sigma K u_bar) and K' p+. It may write p+ to the memory it is
            given beside the update, which may be p itself; nothing else is modified.
        has_value: whether `value` can be asked for K, F and u.
        value: returns F(K u), shape (B,).
    """

    can_step: Callable[[DualUpdate], bool]
    step: Callable[[DualUpdate, Tensor | None], tuple[Tensor, Tensor]]
    has_value: Callable[[Any, Any, Tensor], bool] = _never
    value: Callable[[Any, Any, Tensor], Tensor] = _defined_value


DEFINITION = TermKernel(_never, _defined_step)
"""Any operator and any penalty, differentiable, in torch's operations; it takes what no kernel does."""


def step_kernel(update: DualUpdate) -> TermKernel:
    """Return the code for a dual update: a kernel of the backend in force, or the definition.

    Args:
        update: what the dual update reads.
    """
    kernel = _listed(update.K, update.F, update.p)
    return kernel if kernel.can_step(update) else DEFINITION


def value_kernel(K: LinearOperator, F: Penalty, u: Tensor) -> TermKernel:
    """Return the code for F(K u): a kernel of the backend in force, or the definition.

    Args:
        K: operator of the term.
        F: its penalty.
        u: (B, *K.in_shape).
    """
    kernel = _listed(K, F, u)
    return kernel if kernel.has_value(K, F, u) else DEFINITION


def table(name: str, like: Tensor) -> Mapping[Any, Any]:
    """Return a table of kernels of the backend for such tensors; empty where the definition runs.

    An exporter follows the definition, for sizes it does not know.

    Args:
        name: of the table in the module of a backend.
        like: tensor whose device decides the backend.
    """
    return {} if torch.compiler.is_compiling() else _tables(pick_backend(like), name)


@cache
def _tables(backend: str, name: str) -> Mapping[Any, Any]:
    module = MODULES.get(backend)
    found: Mapping[Any, Any] = {} if module is None else getattr(import_module(module), name)
    return found


def _listed(K: LinearOperator, F: Penalty, like: Tensor) -> TermKernel:
    kernel: TermKernel = table("TERMS", like).get((K.parts, type(F)), DEFINITION)
    return kernel
