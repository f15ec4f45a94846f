"""Random numbers for the tests of sensors."""

import torch


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)
