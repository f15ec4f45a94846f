"""Holes drawn into samples: some images, some of each, fixed by the generator."""

import pytest
import torch

from primaldepth.sensors.drawn_holes import MOST, holes

LIKE = torch.ones(400, 1, 24, 30)


def drawn(share, seed=0):
    return holes(LIKE, share, torch.Generator().manual_seed(seed))


def test_none_where_none_are_wanted():
    assert not drawn(0.0).any()


@pytest.mark.parametrize("share", [0.3, 1.0])
def test_a_share_of_the_images_has_some(share):
    some = drawn(share).flatten(1).any(dim=1).float().mean()
    assert float(some) == pytest.approx(share, abs=0.07)


def test_an_image_keeps_most_of_its_samples_on_average():
    lost = drawn(1.0).float().mean((1, 2, 3))
    assert 0.1 < float(lost.mean()) < MOST
    assert float(lost.max()) < 0.95


def test_the_generator_decides():
    assert torch.equal(drawn(0.5), drawn(0.5))
    assert not torch.equal(drawn(0.5), drawn(0.5, seed=1))


def test_some_holes_are_much_deeper_than_others():
    def widest_run(lost):
        rows = lost.flatten(0, 2).int()
        run = torch.zeros(len(rows), dtype=torch.int)
        best = run.clone()
        for column in rows.T:
            run = (run + 1) * column
            best = torch.maximum(best, run)
        return best.view(-1, LIKE.shape[2]).amax(1)

    runs = widest_run(drawn(1.0)).float()
    assert float(runs.quantile(0.3)) <= 8
    assert float(runs.quantile(0.9)) >= 14
