"""The fused layers on a GPU against the plain ones."""

import pytest
import torch

from primaldepth.networks.fcn import FCN
from primaldepth.networks.fused import aligned, aligned_input


def test_added_channels_are_zero():
    layer = torch.nn.Conv2d(3, 5, 3, padding=1)
    weight, bias = aligned(layer, torch.float32)
    assert (weight.shape, bias.shape) == ((8, 8, 3, 3), (8,))
    assert torch.equal(weight[:5, :3], layer.weight)
    assert int((weight != 0).sum()) == layer.weight.numel()
    assert torch.equal(bias, torch.cat([layer.bias, torch.zeros(3)]))
    assert aligned_input(torch.ones(1, 3, 2, 2)).shape == (1, 8, 2, 2)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("inputs", [2, 3])
def test_values_and_gradients(inputs):
    torch.manual_seed(0)
    net = FCN(inputs, 24, layers=4, maps=20).double().cuda()
    with torch.no_grad():
        net.head.weight.normal_(0, 0.1)
    x = torch.randn(2, inputs, 17, 23, device="cuda", dtype=torch.float64)
    exact = net.head(net.features(x))
    expected = torch.autograd.grad(exact.square().sum(), list(net.parameters()))
    allowed = torch.backends.cudnn.allow_tf32
    torch.backends.cudnn.allow_tf32 = False
    try:
        net.float()
        out = torch.cat(net(x.float()), dim=1)
        found = torch.autograd.grad(out.square().sum(), list(net.parameters()))
    finally:
        torch.backends.cudnn.allow_tf32 = allowed
    assert torch.allclose(out.double(), exact, rtol=1e-4, atol=1e-5)
    for one, other in zip(found, expected, strict=True):
        assert torch.allclose(one.double(), other, rtol=1e-3, atol=1e-4 * float(other.abs().max()))
