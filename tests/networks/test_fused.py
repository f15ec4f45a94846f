"""The fused layers on a GPU against the plain ones."""

import pytest
import torch

from primaldepth.networks.fcn import FCN
from primaldepth.networks.fused import aligned, aligned_input
from primaldepth.networks.unet import UNet


@pytest.fixture
def exact_products(monkeypatch):
    """No tf32."""
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)


def assert_close(found, expected):
    """Values and gradients of float32 on the GPU and of float64 on the CPU."""
    for one, other in zip(found, expected, strict=True):
        assert torch.allclose(one.double().cpu(), other, rtol=1e-3, atol=1e-4 * float(other.abs().max()))


def with_gradients(net, out):
    return [out.detach(), *torch.autograd.grad(out.square().sum(), list(net.parameters()))]


def test_added_channels_are_zero():
    layer = torch.nn.Conv2d(3, 5, 3, padding=1)
    weight, bias = aligned(layer, torch.float32)
    assert (weight.shape, bias.shape) == ((8, 8, 3, 3), (8,))
    assert torch.equal(weight[:5, :3], layer.weight)
    assert int((weight != 0).sum()) == layer.weight.numel()
    assert torch.equal(bias, torch.cat([layer.bias, torch.zeros(3)]))
    assert aligned_input(torch.ones(1, 3, 2, 2)).shape == (1, 8, 2, 2)


@pytest.mark.gpu
@pytest.mark.parametrize("inputs", [2, 3])
def test_values_and_gradients(inputs, exact_products):
    torch.manual_seed(0)
    net = FCN(inputs, 24, layers=4, maps=20).double()
    with torch.no_grad():
        net.head.weight.normal_(0, 0.1)
    x = torch.randn(2, inputs, 17, 23, dtype=torch.float64)
    expected = with_gradients(net, torch.cat(net(x), dim=1))
    net.float().cuda()
    assert_close(with_gradients(net, torch.cat(net(x.float().cuda()), dim=1)), expected)


@pytest.mark.gpu
def test_residual_blocks(exact_products):
    torch.manual_seed(0)
    net = UNet(7, 5, (16, 24), (1, 2)).double()
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.normal_(0, 0.1)
    x = torch.randn(2, 7, 18, 22, dtype=torch.float64)
    expected = with_gradients(net, net(x))
    net.float().cuda()
    assert_close(with_gradients(net, net(x.float().cuda())), expected)
