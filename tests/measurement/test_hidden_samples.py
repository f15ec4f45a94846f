"""Uncertain samples behind nearer ones of their colour are hidden, but not beyond an edge of the image."""

import torch

from primaldepth.measurement.hidden_samples import behind_colours

SIZE = (40, 60)


def samples():
    """(depth, valid) every five pixels: a card at 1 m in the left half, a wall at 2 m in the right."""
    y, x = torch.meshgrid(*(torch.arange(n) for n in SIZE), indexing="ij")
    valid = ((y % 5 == 2) & (x % 5 == 2))[None, None]
    depth = torch.where(x < 30, 1.0, 2.0)[None, None]
    return depth, valid


def guide():
    return torch.where(torch.arange(SIZE[1]) < 30, 0.3, 0.7).expand(1, 3, *SIZE)


def at(*places):
    found = torch.zeros(1, 1, *SIZE, dtype=torch.bool)
    for row, column in places:
        found[0, 0, row, column] = True
    return found


def test_a_point_of_the_wall_on_the_card_is_hidden():
    depth, valid = samples()
    uncertain = at((12, 12), (12, 17), (22, 42))
    depth = torch.where(uncertain, 2.0, depth)
    assert torch.equal(behind_colours(depth, valid, uncertain, guide()), at((12, 12), (12, 17)))


def test_beyond_an_edge_of_the_image_nothing_is_known():
    """No certain sample lies on the wall, and those of the card end at its edge."""
    depth, valid = samples()
    uncertain = valid & (torch.arange(SIZE[1]) >= 30)
    assert not bool(behind_colours(depth, valid, uncertain, guide()).any())


def test_without_the_edge_they_would_be_hidden():
    depth, valid = samples()
    uncertain = valid & (torch.arange(SIZE[1]) >= 30)
    found = behind_colours(depth, valid, uncertain, torch.full((1, 3, *SIZE), 0.5))
    assert bool(found[0, 0, :, 32].any())


def test_certain_samples_are_never_hidden():
    depth, valid = samples()
    depth = torch.where(at((12, 12)), 2.0, depth)
    assert not bool(behind_colours(depth, valid, torch.zeros_like(valid), guide()).any())


def test_nothing_is_hidden_where_all_is_uncertain():
    depth, valid = samples()
    assert not bool(behind_colours(depth, valid, valid, guide()).any())
