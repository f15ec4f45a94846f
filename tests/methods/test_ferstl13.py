from step_scene import noisy_step

from primaldepth.methods import create
from primaldepth.methods.ferstl13 import Ferstl13, Ferstl13Settings

SHORT = {"iterations": 20, "coarse_iterations": 10}


def test_the_published_weights():
    q = Ferstl13Settings()
    assert (q.beta, q.gamma) == (9.0, 0.85)
    assert q.alpha_0 == 17 / 1.2


def test_it_is_the_energy_of_atgv_with_data_weighted_by_the_scale():
    frame, _ = noisy_step(scale=4)
    found = Ferstl13(Ferstl13Settings(lam=0.7, growth=1.5, **SHORT))(frame)
    fixed = {"lam": 0.7 * 4**1.5, "growth": 0.0, "contrast": 0.0}
    same = {"beta": 9.0, "gamma": 0.85, "alpha_0": 17 / 1.2, "ratio": Ferstl13Settings().ratio}
    expected = create("atgv-l2", {**fixed, **same, **SHORT})(frame)
    assert found.depth.equal(expected.depth)
    assert found.info == expected.info
