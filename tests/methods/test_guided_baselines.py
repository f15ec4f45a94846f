"""What every published baseline owes to the guide."""

import pytest
from step_scene import noisy_step, rmse

from primaldepth.methods import create, list_methods

NAMES = [info.name for info in list_methods() if info.family in ("filter", "optimisation")]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("scale", [2, 4, 8])
def test_an_edge_of_the_guide_beats_bilinear(name, scale):
    frame, truth = noisy_step(scale, (64, 64))
    found = create(name)(frame).depth
    assert rmse(found, truth) < 0.8 * rmse(create("bilinear")(frame).depth, truth)
