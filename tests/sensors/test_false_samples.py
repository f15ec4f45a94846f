"""False samples drawn into others: some images, few of each, alone or in clumps."""

import pytest
import torch

from primaldepth.sensors.false_samples import BEYOND, MOST, with_false_samples

TRUE = torch.linspace(1.0, 2.0, 30).expand(400, 1, 24, 30).clone()
ALL = torch.ones_like(TRUE, dtype=torch.bool)


def drawn(share=1.0, valid=ALL, seed=0):
    return with_false_samples(TRUE, valid, share, torch.Generator().manual_seed(seed))


def wrong(share=1.0, seed=0):
    return drawn(share, seed=seed) != TRUE


def test_none_where_none_are_wanted():
    assert torch.equal(drawn(0.0), TRUE)


def test_a_share_of_the_images_has_some():
    some, all_of_them = (wrong(share).flatten(1).any(dim=1).float().mean() for share in (0.3, 1.0))
    assert float(all_of_them) > 0.6  # some get so few that there are none
    assert float(some) == pytest.approx(0.3 * float(all_of_them), abs=0.07)


def test_they_are_few():
    rate = wrong().float().mean((1, 2, 3))
    assert 0.1 * MOST < float(rate.mean()) < MOST
    assert float(rate.max()) < 3 * MOST


def test_some_are_clumps_and_some_are_alone():
    found = wrong().float()
    beside = torch.nn.functional.avg_pool2d(found, 3, 1, 1) * 9 - found
    company = (beside * found).sum((1, 2, 3)) / found.sum((1, 2, 3)).clamp_min(1)
    many = company[found.sum((1, 2, 3)) >= 20]
    assert 0.2 < float((many > 2.0).float().mean()) < 0.8
    assert 0.2 < float((many < 1.5).float().mean()) < 0.8


def test_their_depth_lies_around_that_of_the_others_and_is_one_in_some_images():
    result = drawn()
    assert 1.0 / BEYOND <= float(result.min()) < 0.6
    assert 4.0 < float(result.max()) <= 2.0 * BEYOND + 1e-5
    images = [image[image != true] for image, true in zip(result, TRUE, strict=True)]
    one = [float(values.std()) < 1e-4 for values in images if len(values) >= 20]
    assert 0.3 < sum(one) / len(one) < 0.7


def test_holes_are_left_alone():
    valid = ALL.clone()
    valid[:, :, ::2] = False
    assert torch.equal(drawn(valid=valid)[~valid], TRUE[~valid])
    assert torch.equal(drawn(valid=~ALL), TRUE)


def test_the_generator_decides():
    assert torch.equal(drawn(), drawn())
    assert not torch.equal(drawn(), drawn(seed=1))
