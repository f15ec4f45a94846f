"""How much each sample counts: the one rule that confidence follows."""

import torch
from torch import Tensor


def trusted_samples(valid: Tensor, confidence: Tensor | None) -> Tensor:
    """Return the mask of valid samples but those of confidence 0; all valid ones of a map that has no others.

    Args:
        valid: (B, 1, h, w) True where the sensor measured.
        confidence: (B, 1, h, w) in [0, 1], or None for equal trust.

    Returns:
        (B, 1, h, w).
    """
    if confidence is None:
        return valid
    found = valid & (confidence > 0)
    return torch.where(found.flatten(1).any(dim=1).view(-1, 1, 1, 1), found, valid)


def sample_trust(valid: Tensor, confidence: Tensor | None, like: Tensor) -> Tensor:
    """Return the weight of each sample: its confidence, or 1 if none is known or all are 0; 0 in holes.

    Args:
        valid: (B, 1, h, w) True where the sensor measured.
        confidence: (B, 1, h, w) in [0, 1], or None for equal trust.
        like: tensor whose type the weights have.

    Returns:
        (B, 1, h, w) in [0, 1].
    """
    if confidence is None:
        return valid.to(like.dtype)
    equal = torch.where(confidence > 0, confidence, 1.0)  # of a map that trusts nothing
    return torch.where(trusted_samples(valid, confidence), equal, 0.0)
