"""The published benchmark files: known numbers of interpolation, and our degradation against theirs."""

import pytest

from primaldepth.core.seeds import generator
from primaldepth.evaluation.metrics import mae, rmse
from primaldepth.evaluation.protocols import get_protocol
from primaldepth.methods import create
from primaldepth.operators.sampling import resample
from primaldepth.sensors.degradations import middlebury_noisy_v1, reduced_size

pytestmark = pytest.mark.data
SCENES = ("art", "books", "moebius")
NUMBERS = {
    ("nearest", 2): (6.547, 6.161, 6.595),
    ("bilinear", 2): (4.570, 3.940, 4.188),
    ("nearest", 16): (11.454, 7.327, 7.519),
    ("bilinear", 16): (9.716, 5.370, 5.419),
}


@pytest.mark.parametrize(("method", "scale"), NUMBERS)
def test_interpolation_scores_as_published(benchmark_data, method, scale):
    protocol = get_protocol("noisy-middlebury")
    cases = [protocol.load(benchmark_data, scene, scale) for scene in SCENES]
    found = [rmse(create(method)(case.frame).depth, case.truth, case.known) for case in cases]
    assert found == pytest.approx(NUMBERS[method, scale], abs=0.005)


@pytest.mark.parametrize(
    ("name", "expected"), [("real-holdout", (79.71, 28.09)), ("aligned-holes", (3.06, 1.11))]
)
def test_bicubic_on_maps_with_holes(benchmark_data, name, expected):
    """Means over the scenes of RMSE and MAE at x4, single pixels with noise."""
    protocol = get_protocol(name)
    if protocol.find(benchmark_data) is None:
        pytest.skip(f"no folder {protocol.folder}")
    cases = [protocol.load(benchmark_data, scene, 4) for scene in protocol.scenes]
    results = [(create("bicubic")(case.frame).depth, case.truth, case.known) for case in cases]
    found = [sum(measure(*each) for each in results) / len(results) for measure in (rmse, mae)]
    assert found == pytest.approx(expected, abs=0.006)


def residual(case, samples):
    """(samples - reduced truth, reduced truth) where neither end of the 8 bit cuts the noise off."""
    low = resample(case.truth, reduced_size(case.frame.high_size, case.scale), "bicubic").double()
    inside = (low > 60) & (low < 200)
    return (samples - low)[inside], low[inside]


@pytest.mark.parametrize("scale", [2, 4, 8, 16])
@pytest.mark.parametrize("scene", SCENES)
def test_our_degradation_is_the_published_one(benchmark_data, scene, scale):
    case = get_protocol("noisy-middlebury").load(benchmark_data, scene, scale)
    ours = middlebury_noisy_v1(case.truth, scale, generator("test", scene, scale))
    for samples in (case.frame.depth, ours):
        noise, disparity = residual(case, samples)
        assert float((noise * disparity).std()) == pytest.approx(651, rel=0.03)
        assert abs(float(noise.mean())) < 0.1
