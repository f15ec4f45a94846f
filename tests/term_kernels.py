"""A term's kernel asked for by itself: its result, or None where the update is left to the definition."""

from primaldepth.variational.energies import Unconstrained
from primaldepth.variational.kernels import DEFINITION, DualUpdate, step_kernel, table, value_kernel


def fused_dual_step(K, F, p, u_bar, sigma, out=None):
    update = DualUpdate(K, F, p, u_bar, sigma)
    kernel = step_kernel(update)
    return None if kernel is DEFINITION else kernel.step(update, out)


def fused_value(K, F, u):
    kernel = value_kernel(K, F, u)
    return None if kernel is DEFINITION else kernel.value(K, F, u)


def fused_descent(u, pulls, tau, theta):
    kernel = table("DESCENTS", u).get(Unconstrained)
    return kernel.run(u, pulls, tau, theta) if kernel and kernel.fits(u, pulls, tau, theta) else None
