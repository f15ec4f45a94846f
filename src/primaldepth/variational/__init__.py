"""Variational models of depth super-resolution and the one primal-dual step that minimises them all."""

from primaldepth.variational.affinities import edge_tensor, guide_affinities, guide_distance, proximity
from primaldepth.variational.data_terms import DataTerm
from primaldepth.variational.energies import Energy, OnDepth, Term, Unconstrained
from primaldepth.variational.models import MODELS, ModelParameters, build_energy
from primaldepth.variational.penalties import Absolute, GroupNorm, Huber, Penalty, Quadratic
from primaldepth.variational.primal_dual import SolverWorkspace, State, primal_dual_step
from primaldepth.variational.solver import Solution, SolverProgress, solve
from primaldepth.variational.step_sizes import StepSizes, check_step_sizes, preconditioned

__all__ = [
    "MODELS",
    "Absolute",
    "DataTerm",
    "Energy",
    "GroupNorm",
    "Huber",
    "ModelParameters",
    "OnDepth",
    "Penalty",
    "Quadratic",
    "Solution",
    "SolverProgress",
    "SolverWorkspace",
    "State",
    "StepSizes",
    "Term",
    "Unconstrained",
    "build_energy",
    "check_step_sizes",
    "edge_tensor",
    "guide_affinities",
    "guide_distance",
    "preconditioned",
    "primal_dual_step",
    "proximity",
    "solve",
]
