"""One ONNX file for every size, equal to torch."""

import pytest

import random_nets
from primaldepth.core.errors import FileFormatError, InputError, MissingDependencyError, PrimalDepthError
from primaldepth.export import check_parity, export_onnx
from primaldepth.export import onnx as export
from primaldepth.networks import NetworkSettings
from primaldepth.variational import MODELS

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxscript")
pytest.importorskip("onnxruntime")

UNSEEN = [(37, 21), (12, 50), (31, 31), (1, 6)]  # portrait, landscape, odd, thinner than any window
SMALL = {"layers": 2, "maps": 3, "window": 5, "iterations": 2}


def random_net(seed=0, **changes):
    return random_nets.random_net(seed, **{**SMALL, **changes})


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """fcn-pdn-s and its file."""
    net, path = random_net(), tmp_path_factory.mktemp("onnx") / "net.onnx"
    export_onnx(net, path)
    return net, path


CASES = [{"iterations": 0}, {"iterations": 0, "input": "d"}, {"input": "d"}]
ENERGIES = [{"model": name} for name in MODELS if name != "nlh-l2"]


@pytest.mark.parametrize("changes", CASES + ENERGIES, ids=str)
def test_unseen_sizes(tmp_path, changes):
    net = random_net(**changes)
    export_onnx(net, tmp_path / "net.onnx")
    for parity in check_parity(net, tmp_path / "net.onnx", UNSEEN, tolerance=1e-5):
        assert parity.error <= 1e-5


def test_unseen_sizes_of_the_whole_network(exported):
    found = check_parity(*exported, UNSEEN)
    assert [parity.size for parity in found] == UNSEEN
    assert max(parity.error for parity in found) <= 1e-5


def test_names_and_free_sizes(exported):
    graph = onnx.load(exported[1]).graph
    values = [*graph.input, *graph.output]
    assert [value.name for value in values] == ["depth", "sigma", "trust", "guide", "result"]
    for value in values:
        one, channel, height, width = value.type.tensor_type.shape.dim
        assert (one.dim_value, channel.dim_value) == (1, 1)
        assert (height.dim_param, width.dim_param) == ("height", "width")


def test_the_file_tells_of_the_network_and_not_of_this_machine(exported):
    net, path = exported
    model = onnx.load(path)
    assert (model.producer_name, model.opset_import[0].version) == ("primaldepth", 18)
    assert NetworkSettings.model_validate_json(model.metadata_props[0].value) == net.settings
    assert b".py" not in path.read_bytes()


def test_the_network_is_left_as_it_was(tmp_path):
    net = random_net(iterations=1).train()
    before = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    export_onnx(net, tmp_path / "net.onnx")
    assert net.training
    assert all(before[name].equal(tensor) for name, tensor in net.state_dict().items())


def test_other_weights_are_noticed(exported):
    with pytest.raises(PrimalDepthError, match=r"differs from the network by .* at 7x9"):
        check_parity(random_net(seed=1), exported[1], [(9, 7)])


@pytest.mark.parametrize("opset", [9, 17, 999])
def test_opsets_out_of_range(tmp_path, opset):
    with pytest.raises(InputError, match=f"opset {opset} is not supported; use 18 to"):
        export_onnx(random_net(), tmp_path / "net.onnx", opset)
    assert list(tmp_path.iterdir()) == []


def test_files_that_are_not_onnx(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        check_parity(random_net(), tmp_path / "none.onnx", [(3, 3)])
    (tmp_path / "garbage.onnx").write_bytes(b"garbage" * 99)
    with pytest.raises(FileFormatError, match="onnxruntime cannot read it"):
        check_parity(random_net(), tmp_path / "garbage.onnx", [(3, 3)])


def test_a_missing_package_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(export, "find_spec", lambda name: None)
    with pytest.raises(MissingDependencyError, match=r"onnx, onnxscript; .*primaldepth\[export\]"):
        export_onnx(random_net(), tmp_path / "net.onnx")


def test_a_network_for_every_scale(tmp_path):
    """Sizes that fit no stride; the file also reads the ratio and gives the uncertainty."""
    net = random_net(backbone="unet", widths=(8, 8, 16), blocks=(1, 0, 1), window=3)
    export_onnx(net, tmp_path / "net.onnx")
    assert max(parity.error for parity in check_parity(net, tmp_path / "net.onnx", UNSEEN)) <= 1e-5
    graph = onnx.load(tmp_path / "net.onnx").graph
    names = [value.name for value in (*graph.input, *graph.output)]
    assert names == ["depth", "sigma", "trust", "guide", "ratio", "result", "uncertainty"]


def test_a_network_with_the_sample_term(tmp_path):
    """The sampling operator is an input, so that one file serves every ratio of the sizes."""
    net = random_net(
        backbone="unet", widths=(8, 8), blocks=(1, 1), window=3, iterations=4, samples=True
    ).eval()
    export_onnx(net, tmp_path / "net.onnx")
    assert max(parity.error for parity in check_parity(net, tmp_path / "net.onnx", UNSEEN)) <= 1e-4
    graph = onnx.load(tmp_path / "net.onnx").graph
    names = [value.name for value in graph.input]
    assert names[5:] == ["rows", "columns", "samples", "sample_sigma", "sample_trust"]
    sizes = {value.name: [dim.dim_param for dim in value.type.tensor_type.shape.dim] for value in graph.input}
    assert sizes["rows"] == ["samples_height", "height"]
    assert sizes["samples"][2:] == ["samples_height", "samples_width"]
