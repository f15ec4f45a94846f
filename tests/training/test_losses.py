"""Losses against one-liners, image by image; affinities by hand; names."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from primaldepth.core.errors import InputError
from primaldepth.training.losses import (
    LOSSES,
    affinity_loss,
    get_loss,
    laplace_loss,
    masked_mean,
    register_loss,
)


def edges(truth):
    """True where the truth varies by more than 2 within 5x5 pixels."""
    padded = np.pad(truth, 2, mode="edge")
    windows = np.lib.stride_tricks.sliding_window_view(padded, (5, 5))
    return windows.max((2, 3)) - windows.min((2, 3)) > 2.0


PENALTIES = {
    "l2": lambda e, t: e**2,
    "l1": lambda e, t: np.abs(e),
    "huber": lambda e, t: np.where(np.abs(e) < 1, e**2 / 2, np.abs(e) - 0.5),
    "charbonnier": lambda e, t: np.sqrt(e**2 + 0.01),
    "edge-l2": lambda e, t: np.where(edges(t), 4.0, 1.0) * e**2,
}


def maps(seed, batch=3, size=(7, 9)):
    """Errors across the kinks of all losses, a truth with steps, and a mask; the last image has none."""
    rng = np.random.default_rng(seed)
    error = 3.0 * rng.standard_normal((batch, 1, *size))
    truth = rng.integers(0, 2, (batch, 1, *size)) * rng.choice([1.0, 4.0]) + 0.1 * error
    valid = rng.random((batch, 1, *size)) < 0.7
    valid[-1] = False
    return error, valid, truth


def test_every_loss_has_its_one_liner():
    ours = {name for name, loss in LOSSES.items() if loss.__module__ == "primaldepth.training.losses"}
    assert ours == {*PENALTIES, "rmse", "rmse-slopes"}  # an example of the docs may have registered one more


@pytest.mark.parametrize("name", PENALTIES)
@given(seed=st.integers(0, 2**32 - 1))
def test_against_numpy(name, seed):
    error, valid, truth = maps(seed)
    each = [
        PENALTIES[name](e[0], t[0])[v[0]].mean() if v.any() else 0.0
        for e, v, t in zip(error, valid, truth, strict=True)
    ]
    found = get_loss(name)(*map(torch.from_numpy, (error, valid, truth)))
    assert float(found) == pytest.approx(np.mean(each), rel=1e-12)


@pytest.mark.parametrize("name", PENALTIES)
def test_the_mean_of_the_shares_is_the_whole(name):
    whole = list(map(torch.from_numpy, maps(1, batch=6)))
    shares = [[each[start : start + 2] for each in whole] for start in (0, 2, 4)]
    mean = sum(get_loss(name)(*share) for share in shares) / 3
    assert float(mean) == pytest.approx(float(get_loss(name)(*whole)), rel=1e-12)


def test_no_valid_pixel_gives_zero_and_a_zero_gradient():
    values = torch.ones(2, 1, 3, 3, requires_grad=True)
    loss = masked_mean(values, torch.zeros(2, 1, 3, 3, dtype=torch.bool))
    loss.backward()
    assert loss.item() == 0.0
    assert not values.grad.any()


class TestAffinities:
    """A row of three pixels with the depths 0, 0.5, 0.52; the pair of x is x - 1."""

    truth = torch.tensor([0.0, 0.5, 0.52]).view(1, 1, 1, 3)
    valid = torch.ones_like(truth, dtype=torch.bool)
    offsets = ((0, -1),)

    def loss(self, affinities, valid=None):
        given = torch.tensor(affinities).view(1, 1, 1, 3)
        mask = self.valid if valid is None else torch.tensor(valid).view(1, 1, 1, 3)
        return float(affinity_loss(given, self.truth, mask, self.offsets))

    def test_by_hand(self):
        # gaps from |0.5| and |0.02| over 0.1: 3 beyond the kink, 0.4 below it
        assert self.loss([9.0, 0.2, -0.06]) == pytest.approx(((3 - 0.5) + 0.5 * 0.4**2) / 2, rel=1e-5)

    def test_sign_does_not_matter(self):
        assert self.loss([0.0, -0.5, 0.02]) == pytest.approx(0.0, abs=1e-6)

    def test_pairs_that_leave_the_image_do_not_count(self):
        assert self.loss([9.0, 0.2, -0.06]) == self.loss([0.0, 0.2, -0.06])

    def test_pairs_with_an_unknown_end_do_not_count(self):
        assert self.loss([0.0, 9.0, 0.02], [False, True, True]) == pytest.approx(0.0, abs=1e-6)
        assert self.loss([0.0, 0.5, 9.0], [True, True, False]) == pytest.approx(0.0, abs=1e-6)


class TestNames:
    def test_unknown(self):
        with pytest.raises(InputError, match=r"loss 'l3' is not one of l2, l1, huber"):
            get_loss("l3")

    def test_taken(self):
        with pytest.raises(InputError, match="loss 'l2' exists"):
            register_loss("l2")(lambda error, valid, truth: error.sum())

    def test_one_of_ones_own(self, monkeypatch):
        monkeypatch.setattr("primaldepth.training.losses.LOSSES", dict(LOSSES))

        @register_loss("quartic")
        def quartic(error, valid, truth):
            return masked_mean(error**4, valid)

        assert get_loss("quartic") is quartic


@given(seed=st.integers(0, 2**32 - 1))
def test_rmse_against_numpy(seed):
    error, valid, truth = maps(seed)
    squares = [(e[v] ** 2).mean() if v.any() else 0.0 for e, v in zip(error, valid, strict=True)]
    found = get_loss("rmse")(*(torch.tensor(value) for value in (error, valid, truth)))
    assert float(found) == pytest.approx(np.mean(np.sqrt(np.add(squares, 1e-4))))


class TestSlopes:
    """A pattern of the pixel's size costs, and only where truth is smooth."""

    def loss(self, error, truth, valid=None):
        valid = torch.ones_like(error, dtype=torch.bool) if valid is None else valid
        return float(get_loss("rmse-slopes")(error, valid, truth) - get_loss("rmse")(error, valid, truth))

    def stripes(self):
        return 0.25 * (torch.arange(12) % 2).expand(1, 1, 12, 12).double()

    def test_the_mean_difference_of_neighbours(self):
        assert self.loss(self.stripes(), torch.zeros(1, 1, 12, 12)) == pytest.approx(0.25)
        assert self.loss(self.stripes().mT, torch.zeros(1, 1, 12, 12)) == pytest.approx(0.25)

    def test_an_error_that_all_pixels_share_costs_nothing(self):
        assert self.loss(torch.full((1, 1, 12, 12), 3.0), torch.zeros(1, 1, 12, 12)) == 0.0

    def test_edges_and_unknown_pixels_stay_out(self):
        truth = 10.0 * (torch.arange(12) >= 6).expand(1, 1, 12, 12)
        error = torch.zeros(1, 1, 12, 12)
        error[..., 5:7] = 4.0  # a blurred edge
        assert self.loss(error, truth) == 0.0
        valid = error == 0.0
        assert self.loss(error, torch.zeros_like(error), valid) == 0.0
        assert self.loss(error, torch.zeros_like(error)) > 0.0


def test_the_likeliest_scale_is_the_mean_error():
    error, valid = torch.tensor([-3.0, 1.0, 2.0, 50.0]).view(1, 1, 2, 2), torch.ones(1, 1, 2, 2) > 0
    valid[..., 1, 1] = False
    losses = [laplace_loss(error, torch.full_like(error, b).log(), valid) for b in (1.8, 2.0, 2.2)]
    assert losses[1] < min(losses[0], losses[2])
    assert float(losses[1]) == pytest.approx(1.0 + np.log(2.0))
