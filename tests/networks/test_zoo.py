"""Weights on disk: what goes in comes out, and nothing else is accepted."""

import hashlib
import json
import os

import pytest
import torch
from safetensors.torch import load_file, save, save_file
from small_nets import card_of, images, small_net

from primaldepth.core.errors import FileFormatError, InputError
from primaldepth.networks import DepthNet, NetworkSettings, from_pretrained, load, save_model, zoo
from primaldepth.networks.card import read_card
from primaldepth.networks.zoo import SHIPPED


@pytest.fixture
def saved(tmp_path):
    """The path of a saved network."""
    net = small_net()
    save_model(tmp_path / "net.safetensors", net, card_of(net))
    return tmp_path / "net.safetensors"


def edit_card(weights, **changes):
    path = weights.with_suffix(".json")
    values = json.loads(path.read_text()) | changes
    path.write_text(json.dumps(values))


def replace_tensors(weights, tensors):
    """Other tensors with a card that vouches for them."""
    data = save(tensors)
    weights.write_bytes(data)
    edit_card(weights, sha256=hashlib.sha256(data).hexdigest())


def refused(path, match, kind=FileFormatError):
    with pytest.raises(kind, match=match) as caught:
        from_pretrained(path)
    assert str(path.parent) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("changes", [{}, {"iterations": 0}, {"input": "d"}, {"model": "nltgv-l1"}])
def test_round_trip(tmp_path, changes):
    net = small_net(**changes)
    card = save_model(tmp_path / "a.b-x8", net, card_of(net))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.b-x8.json", "a.b-x8.safetensors"]
    back = from_pretrained(tmp_path / "a.b-x8")
    assert back.settings == net.settings
    assert not back.training
    given = images(9, 8)
    with torch.no_grad():
        assert back(*given).depth.equal(net(*given).depth)
    assert read_card(tmp_path / "a.b-x8.json") == card
    assert card.sha256 == hashlib.sha256((tmp_path / "a.b-x8.safetensors").read_bytes()).hexdigest()
    assert card.model_copy(update={"sha256": ""}) == card_of(net)


def test_all_ways_to_name_a_network(saved):
    for path in (saved, str(saved), saved.with_suffix(""), saved.with_suffix(".json"), saved.parent):
        assert from_pretrained(path).settings.window == 3


def test_half_precision_on_disk_is_read_as_float32(tmp_path):
    net = small_net()
    save_model(tmp_path / "half", net, card_of(net), half=True)
    stored = load_file(tmp_path / "half.safetensors")
    assert stored["fcn.head.weight"].dtype == torch.float16
    assert stored["pdn.log_coefficients"].dtype == torch.float32
    back = from_pretrained(tmp_path / "half")
    assert {p.dtype for p in back.parameters()} == {torch.float32}
    given = images(9, 8)
    with torch.no_grad():
        torch.testing.assert_close(back(*given).depth, net(*given).depth, rtol=0, atol=2e-3)


def test_saving_is_repeatable_and_replaces(saved):
    before = saved.read_bytes()
    net = small_net()
    save_model(saved, net, card_of(net))
    assert saved.read_bytes() == before
    save_model(saved, small_net(seed=1), card_of(net))
    assert saved.read_bytes() != before
    from_pretrained(saved)


def test_saving_refuses_what_could_not_be_read_back(tmp_path):
    net = small_net()
    with pytest.raises(InputError, match="not those of the network"):
        save_model(tmp_path / "net", net, card_of(small_net(maps=4)))
    with torch.no_grad():
        net.fcn.head.weight[0, 0, 0, 0] = 1e6
    with pytest.raises(InputError, match=r"'fcn.head.weight' holds NaN or values too large"):
        save_model(tmp_path / "net", net, card_of(net), half=True)
    assert list(tmp_path.iterdir()) == []


def test_no_file(tmp_path):
    refused(tmp_path / "none.safetensors", "no such weight file", InputError)


def test_a_folder_must_hold_one_network(tmp_path, saved):
    (tmp_path / "second.safetensors").write_bytes(saved.read_bytes())
    with pytest.raises(InputError, match=r"2 weight files in this folder \(net.safetensors, second"):
        from_pretrained(tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"0 weight files in this folder \(none\)"):
        from_pretrained(tmp_path / "empty")


def test_the_current_folder_is_a_folder(saved, monkeypatch):
    monkeypatch.chdir(saved.parent)
    assert from_pretrained(".").settings.window == 3


def test_no_card(saved):
    saved.with_suffix(".json").unlink()
    refused(saved, "no model card beside the weights", InputError)


@pytest.mark.parametrize("text", ["", "{", "\xff", "[" * 100_000])
def test_a_card_that_is_not_json(saved, text):
    saved.with_suffix(".json").write_text(text, encoding="latin-1")
    refused(saved, "not a JSON model card")


def test_a_card_that_is_not_an_object(saved):
    saved.with_suffix(".json").write_text("[1, 2]")
    refused(saved, "a list, expected a JSON object")


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"scors": {}}, "unknown key 'scors'; did you mean 'scores'"),
        ({"settings": {"layer": 3}}, "settings: unknown key 'layer'; did you mean 'layers'"),
        ({"settings": {"layers": 1}}, "'layers'"),
        ({"settings": {"window": 4}}, "window size must be odd"),
        ({"settings": {"model": "nlh-l3"}}, "model 'nlh-l3' is not one of"),
        ({"settings": 5}, "'settings'"),
        ({"created": "2024-05-01T00:00:00"}, "'created'"),
        ({"sha256": "xyz"}, "'sha256'"),
        ({"scale": 0}, "'scale"),
        ({"seconds": -1}, "'seconds'"),
        ({"scores": {"rmse": float("nan")}}, r"not a JSON model card \(NaN is no finite number\)"),
        ({"settings": {"layers": 10**6}}, "'layers': .*less than or equal to 100"),
        ({"settings": {"maps": 10**9}}, "'maps': .*less than or equal to 1024"),
        ({"settings": {"iterations": 10**9}}, "'iterations': .*less than or equal to 1000"),
        ({"settings": {"backbone": "unet", "widths": [8] * 9}}, "'widths': .*at most 8"),
        ({"settings": {"backbone": "unet", "blocks": [10**6]}}, "'blocks.0': .*less than or equal to 32"),
        ({"settings": {"backbone": "unet", "widths": []}}, "expected one of each per level"),
        ({"name": "x" * 10**5, "scale": "y" * 10**5}, r"'scale': .{0,120}found 'y{56}\.\.\."),
    ],
)
def test_a_card_with_wrong_values(saved, changes, match):
    edit_card(saved, **changes)
    refused(saved, match, InputError)


def test_missing_keys_of_the_card(saved):
    values = json.loads(saved.with_suffix(".json").read_text())
    del values["name"]
    saved.with_suffix(".json").write_text(json.dumps(values))
    refused(saved, "'name': Field required", InputError)


def test_another_hash(saved):
    net = small_net(seed=1)
    save_file(net.state_dict(), saved)
    refused(saved, "sha256 .* says .*damaged or not the one the card describes")


def test_a_card_without_a_hash(saved):
    edit_card(saved, sha256="")
    refused(saved, "says nothing")


def test_an_empty_file(saved):
    saved.write_bytes(b"")
    refused(saved, r"is empty \(0 bytes\)")


@pytest.mark.parametrize("keep", [1, 7, 8, 100, -1])
def test_a_truncated_file(saved, keep):
    saved.write_bytes(saved.read_bytes()[:keep])
    refused(saved, "truncated or not a safetensors file")


@pytest.mark.parametrize("data", [b"garbage" * 50, b"\x80\x04\x95pickle", b"\xff" * 64])
def test_garbage(saved, data):
    saved.write_bytes(data)
    edit_card(saved, sha256=hashlib.sha256(data).hexdigest())
    refused(saved, "truncated or not a safetensors file")


def test_a_missing_tensor(saved):
    tensors = load_file(saved)
    del tensors["fcn.head.bias"]
    replace_tensors(saved, tensors)
    refused(saved, r"tensor 'fcn.head.bias' is missing")


def test_an_unknown_tensor(saved):
    replace_tensors(saved, load_file(saved) | {"extra": torch.zeros(1)})
    refused(saved, "unknown tensor 'extra'")


def test_a_wrong_shape(saved):
    replace_tensors(saved, load_file(saved) | {"fcn.head.bias": torch.zeros(6)})
    refused(saved, r"'fcn.head.bias' has shape \(6,\), expected \(5,\)")


def test_a_card_that_asks_for_more_memory_than_there_is(saved, monkeypatch):
    """It is refused by counting, and no network is built: the largest there may be has 4e9 parameters."""
    edit_card(saved, settings={"backbone": "unet", "widths": [1024] * 8, "blocks": [32] * 8})
    with monkeypatch.context() as patch:
        patch.setattr(zoo, "DepthNet", None)
        refused(saved, r"truncated or not .* bytes cannot hold the \d{10} parameters of its card")


def test_a_file_far_too_large_for_its_card(saved):
    with saved.open("r+b") as file:
        file.truncate(2**40)
    refused(saved, r"1099511627776 bytes, too many for the \d+ parameters of its card")


def test_a_pipe_in_place_of_weights_or_card(saved):
    for path in (saved, saved.with_suffix(".json")):
        path.unlink()
        os.mkfifo(path)
        refused(saved, "is not a regular file", InputError)
        path.unlink()
        path.write_text("{}")


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"input": "d", "iterations": 0, "layers": 2, "maps": 1},
        {"model": "nltgv-l1", "window": 3},
        {"model": "atgv-l2", "iterations": 3},
        {"backbone": "unet"},
        {"backbone": "unet", "input": "d", "widths": [16], "blocks": [0]},
        {"backbone": "unet", "widths": [8, 24], "blocks": [3, 1], "window": 5},
    ],
)
def test_parameters_are_counted_without_building(settings):
    chosen = NetworkSettings(**settings)
    with torch.device("meta"):
        assert chosen.parameters == sum(each.numel() for each in DepthNet(chosen).state_dict().values())


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.int32])
def test_a_wrong_type(saved, dtype):
    tensors = load_file(saved)
    replace_tensors(saved, tensors | {"fcn.head.bias": tensors["fcn.head.bias"].to(dtype)})
    refused(saved, "'fcn.head.bias' is torch.* expected float32 or float16")


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_not_numbers(saved, value):
    tensors = load_file(saved)
    tensors["fcn.head.bias"][2] = value
    replace_tensors(saved, tensors)
    refused(saved, "'fcn.head.bias' holds NaN or infinite values")


@pytest.fixture
def shipped(tmp_path, monkeypatch):
    """A folder of weights in place of the package's."""
    monkeypatch.setattr(zoo, "weights_folder", lambda: tmp_path)
    for name, changes in {"fcn-s": {"iterations": 0}, "fcn-pdn-d": {"input": "d"}}.items():
        net = small_net(**changes)
        save_model(tmp_path / f"{name}-x8", net, card_of(net, name=name))
    return tmp_path


def test_shipped_names(shipped):
    assert load("fcn-s", 8).pdn is None
    assert load("fcn-pdn-d", scale=8).settings.input == "d"


def test_a_trained_first_estimate_with_an_untrained_solver(shipped):
    net, alone = load("fcn+nlh-s", 8), load("fcn-s", 8)
    given = images(9, 8)
    with torch.no_grad():
        joined, first = net(*given), alone(*given).depth
    assert joined.first.equal(first)
    assert not joined.depth.equal(first)
    assert (net.settings.iterations, net.settings.model) == (20, "nlh-l2")
    assert net.pdn.coefficients.std(dim=0).max() < 1e-6


@pytest.mark.parametrize("name", ["fcn-d", "fcn+nlh-d", "fcn-pdn-s"])
def test_weights_that_do_not_exist_yet(shipped, name):
    with pytest.raises(InputError, match="no trained weights exist yet for this name and scale 8"):
        load(name, 8)


@pytest.mark.parametrize("scale", [None, 3, 32])
def test_scales_without_weights(shipped, scale):
    with pytest.raises(InputError, match=f"scale {scale} is not one of 2, 4, 8, 16"):
        load("fcn-s", scale)


def test_unknown_names_name_the_nearest():
    with pytest.raises(InputError, match="unknown network 'fcn-pdns'; did you mean 'fcn-pdn-s'"):
        load("fcn-pdns", 8)


def test_an_impossible_device(shipped):
    with pytest.raises(InputError, match="device 'nowhere' cannot be used"):
        load("fcn-s", 8, device="nowhere")


def test_a_network_with_one_set_of_weights_needs_no_scale(shipped):
    net = small_net(input="s")
    save_model(shipped / "pdn-any", net, card_of(net, name="pdn-any", scale=None))
    first, second = load("pdn-any"), load("pdn-any", 8)
    assert first.fcn.head.weight.equal(second.fcn.head.weight)


@pytest.mark.parametrize("name", SHIPPED)
def test_every_shipped_network_can_be_loaded(name):
    assert list(SHIPPED[name].present) == list(SHIPPED[name].files)
    for scale, path in SHIPPED[name].present.items():
        card = read_card(path.with_suffix(".json"))
        assert card.name == SHIPPED[name].weights
        assert card.scale == scale
        assert card.commit
        assert card.scores
        assert load(name, scale).settings.input == ("s" if SHIPPED[name].uses_guide else "d")


def test_the_weights_are_small():
    assert sum(path.stat().st_size for path in zoo.weights_folder().glob("fcn*.safetensors")) < 20e6
