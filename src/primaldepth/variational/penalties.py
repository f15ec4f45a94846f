"""Convex penalties with their conjugates and proximal maps.

prox_{tau F}(z) = argmin_x  (x - z)^2 / (2 tau) + F(x),  and Moreau's identity
prox_{sigma F*}(p) = p - sigma prox_{F / sigma}(p / sigma) ties the pairs together.
`value` and `conjugate` return one number per image, shape (B,). Step sizes may be numbers
or tensors, weights may vary from pixel to pixel, and a weight of 0 switches a pixel off.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

Number = float | Tensor


def _per_image(values: Tensor) -> Tensor:
    return values.flatten(1).sum(dim=1)


def _length(z: Tensor) -> Tensor:
    """Return |z(x)|_2 over the channels, (B, 1, H, W)."""
    if torch.is_grad_enabled() and z.requires_grad:  # its gradient at 0 is 0, that of the root is not finite
        length: Tensor = torch.linalg.vector_norm(z, dim=1, keepdim=True)
        return length
    return z.square().sum(dim=1, keepdim=True).sqrt()  # many times faster over two or three channels


class Penalty(ABC):
    """F(z) = sum_x f_x(z(x)), convex.

    Attributes:
        couples_channels: whether f_x reads all channels of a pixel together: steps must not vary over them.
    """

    couples_channels: ClassVar[bool] = False

    @abstractmethod
    def value(self, z: Tensor) -> Tensor:
        """Return F(z), (B,).

        Args:
            z: (B, C, H, W).
        """

    @abstractmethod
    def conjugate(self, p: Tensor) -> Tensor:
        """Return F*(p), (B,), on its domain; points outside the domain are not looked for.

        Args:
            p: (B, C, H, W).
        """

    @abstractmethod
    def prox(self, z: Tensor, tau: Number) -> Tensor:
        """Return prox_{tau F}(z).

        Args:
            z: (B, C, H, W).
            tau: step, a number or broadcastable to z.
        """

    @abstractmethod
    def prox_conjugate(self, p: Tensor, sigma: Number) -> Tensor:
        """Return prox_{sigma F*}(p).

        Args:
            p: (B, C, H, W).
            sigma: step, a number or broadcastable to p.
        """

    @property
    @abstractmethod
    def dual_scale(self) -> Number:
        """Return the typical size of the dual variable, which balances the step sizes."""

    @property
    def has_conjugate(self) -> bool:
        """Return whether F* is finite everywhere."""
        return False


@dataclass(frozen=True, slots=True)
class Huber(Penalty):
    """F(z) = sum h(z),  h(z) = z^2 / (2 eps) if |z| <= eps w, else w |z| - eps w^2 / 2.

    F*(p) = eps p^2 / 2 for |p| <= w, as in the paper's saddle-point problem; eps = 0 is the
    weighted L1 norm. (The paper's primal formula w |z|_eps has its kink at eps, the
    saddle-point problem and its iteration have it at eps w; the iteration is what is run.)

    Args:
        w: weights >= 0, broadcastable to z.
        eps: width of the quadratic part, >= 0.

    Example:
        >>> import torch
        >>> from primaldepth.variational import Huber
        >>> Huber(w=1.0, eps=0.5).value(torch.tensor([[[[0.5, 2.0]]]]))  # 0.25 + 1.75
        tensor([2.])
    """

    w: Number
    eps: Number = 0.0

    def value(self, z: Tensor) -> Tensor:
        """Return the sum of h."""
        w = torch.as_tensor(self.w, dtype=z.dtype, device=z.device)
        p = self._dual_at(z, w)  # the maximiser: h(z) = p z - eps p^2 / 2
        return _per_image(p * z - 0.5 * self.eps * p**2)

    def _dual_at(self, z: Tensor, w: Tensor) -> Tensor:
        eps = torch.as_tensor(self.eps, dtype=z.dtype, device=z.device)
        slope = torch.where(eps > 0, z / torch.where(eps > 0, eps, 1.0), torch.sign(z) * w)
        return torch.clamp(slope, -w, w)

    def conjugate(self, p: Tensor) -> Tensor:
        """Return the sum of eps p^2 / 2."""
        return _per_image(0.5 * self.eps * p**2)

    def prox(self, z: Tensor, tau: Number) -> Tensor:
        """Return z / (1 + tau / eps) near 0, shrunk by tau w elsewhere; written through the dual."""
        return z - tau * self.prox_conjugate(z / tau, 1.0 / tau)

    def prox_conjugate(self, p: Tensor, sigma: Number) -> Tensor:
        """Return p / (1 + sigma eps), clamped to [-w, w]."""
        shrunk = p / (1.0 + sigma * self.eps)
        if isinstance(self.w, Tensor):
            return torch.minimum(torch.maximum(shrunk, -self.w), self.w)
        return shrunk.clamp(-self.w, self.w)

    @property
    def dual_scale(self) -> Number:
        """Return w, which |p| does not exceed."""
        return self.w


@dataclass(frozen=True, slots=True)
class GroupNorm(Penalty):
    """F(z) = sum_x w(x) |z(x)|_2 with the Euclidean norm over all channels (isotropic TV).

    F*(p) = 0 for |p(x)|_2 <= w(x). Step sizes must not vary over the channels.
    """

    w: Number
    couples_channels = True

    def value(self, z: Tensor) -> Tensor:
        """Return the sum of the weighted norms."""
        return _per_image(self.w * _length(z))

    def conjugate(self, p: Tensor) -> Tensor:
        """Return 0, which F* is on the ball."""
        return p.new_zeros(p.shape[0])

    def prox(self, z: Tensor, tau: Number) -> Tensor:
        """Return z with its length shrunk by tau w."""
        length = _length(z).clamp_min(torch.finfo(z.dtype).tiny)
        return z * (1.0 - tau * self.w / length).clamp_min(0.0)

    def prox_conjugate(self, p: Tensor, sigma: Number) -> Tensor:
        """Return p projected onto the ball |p(x)|_2 <= w(x)."""
        length = _length(p).clamp_min(torch.finfo(p.dtype).tiny)
        return p * (self.w / length).clamp_max(1.0)

    @property
    def dual_scale(self) -> Number:
        """Return w, which |p| does not exceed."""
        return self.w


@dataclass(frozen=True, slots=True)
class Distance(Penalty):
    """A penalty of the distance from data f, weighted by lam >= 0; lam = 0 switches a sample off."""

    f: Tensor
    lam: Number

    @property
    def dual_scale(self) -> Number:
        """Return lam: |p| is at most lam for the absolute value, lam |z - f| at the optimum of the square."""
        return self.lam


@dataclass(frozen=True, slots=True)
class Quadratic(Distance):
    """F(z) = sum lam / 2 (z - f)^2,  F*(p) = sum p^2 / (2 lam) + p f."""

    @property
    def has_conjugate(self) -> bool:
        """Return whether lam > 0 everywhere: where lam is 0, F* is infinite but at 0."""
        return bool((torch.as_tensor(self.lam) > 0).all())

    def value(self, z: Tensor) -> Tensor:
        """Return the weighted squared distance to f."""
        return _per_image(0.5 * self.lam * (z - self.f) ** 2)

    def conjugate(self, p: Tensor) -> Tensor:
        """Return the sum of p^2 / (2 lam) + p f where lam > 0."""
        lam = torch.as_tensor(self.lam, dtype=p.dtype, device=p.device)
        inside = 0.5 * p**2 / torch.where(lam > 0, lam, 1.0) + p * self.f
        return _per_image(torch.where(lam > 0, inside, 0.0))

    def prox(self, z: Tensor, tau: Number) -> Tensor:
        """Return (z + tau lam f) / (1 + tau lam)."""
        return (z + tau * self.lam * self.f) / (1.0 + tau * self.lam)

    def prox_conjugate(self, p: Tensor, sigma: Number) -> Tensor:
        """Return lam (p - sigma f) / (lam + sigma)."""
        return self.lam * (p - sigma * self.f) / (self.lam + sigma)


@dataclass(frozen=True, slots=True)
class Absolute(Distance):
    """F(z) = sum lam |z - f|,  F*(p) = p f for |p| <= lam."""

    def value(self, z: Tensor) -> Tensor:
        """Return the weighted absolute distance to f."""
        return _per_image(self.lam * (z - self.f).abs())

    def conjugate(self, p: Tensor) -> Tensor:
        """Return the sum of p f."""
        return _per_image(p * self.f)

    def prox(self, z: Tensor, tau: Number) -> Tensor:
        """Return z moved towards f by at most tau lam; written so that lam = 0 leaves z exactly as it is."""
        most = torch.as_tensor(tau * self.lam, dtype=z.dtype, device=z.device)
        return z - torch.clamp(z - self.f, -most, most)

    def prox_conjugate(self, p: Tensor, sigma: Number) -> Tensor:
        """Return p - sigma f, clamped to [-lam, lam]."""
        lam = torch.as_tensor(self.lam, dtype=p.dtype, device=p.device)
        return torch.clamp(p - sigma * self.f, -lam, lam)
