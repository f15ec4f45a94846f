"""Results are found again by content, and nothing else passes for one."""

import json
import os
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

from primaldepth.core.errors import InputError
from primaldepth.evaluation.cache import ResultCache, cache_folder
from primaldepth.methods import create, list_methods
from primaldepth.methods.identity import method_identity
from primaldepth.methods.network import Network
from primaldepth.networks import DepthNet, NetworkSettings

KEY = {"method": {"name": "nearest"}, "inputs": {"a": "0" * 64}, "scale": 2}


def test_the_folder_follows_the_environment(monkeypatch):
    assert cache_folder().name == "cache"
    monkeypatch.delenv("PRIMALDEPTH_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert cache_folder() == Path("/somewhere/primaldepth")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/home/me")
    assert cache_folder() == Path("/home/me/.cache/primaldepth")


def test_what_was_put_is_got(tmp_path):
    cache = ResultCache(tmp_path)
    assert cache.get(KEY) is None
    cache.put(KEY, {"rmse": 0.1 + 0.2, "edge_rmse": None})
    assert cache.get(KEY) == {"rmse": 0.1 + 0.2, "edge_rmse": None}
    assert cache.get({**KEY, "scale": 4}) is None


@pytest.mark.parametrize("content", [b"", b"[" * 10_000, b"\xff", b'{"key": NaN}', b"3", b'{"key": 1}', None])
def test_what_cannot_be_read_counts_as_absent(tmp_path, content):
    cache = ResultCache(tmp_path)
    cache.put(KEY, {"rmse": 0.1})
    (path,) = tmp_path.rglob("*.json")
    path.unlink()
    os.mkfifo(path) if content is None else path.write_bytes(content)
    assert cache.get(KEY) is None


def test_a_user_without_a_home_is_told_what_to_do(monkeypatch):
    def no_home():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("PRIMALDEPTH_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", no_home)
    with pytest.raises(InputError, match="name a folder by PRIMALDEPTH_CACHE"):
        ResultCache()


def test_where_nothing_can_be_kept_it_is_said_once(tmp_path, caplog):
    (tmp_path / "file").touch()
    cache = ResultCache(tmp_path / "file" / "results")
    cache.put(KEY, {"rmse": 1.0})
    cache.put(KEY, {"rmse": 1.0})
    assert cache.get(KEY) is None
    (record,) = caplog.records
    assert "results are not kept" in record.message


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"key": {}, "result": {"rmse": 1}}', "null"])
def test_a_damaged_file_counts_as_absent(tmp_path, damage):
    cache = ResultCache(tmp_path)
    cache.put(KEY, {"rmse": 1.0})
    (path,) = tmp_path.rglob("*.json")
    path.write_text(damage)
    assert cache.get(KEY) is None
    cache.put(KEY, {"rmse": 2.0})
    assert cache.get(KEY) == {"rmse": 2.0}


@pytest.mark.parametrize("info", list_methods(), ids=lambda info: info.name)
def test_every_method_has_an_identity(info):
    identity = method_identity(create(info.name))
    assert identity is not None
    assert identity == method_identity(create(info.name))
    assert json.loads(json.dumps(identity)) == identity
    assert all(json.dumps(value) in json.dumps(identity) for value in info.settings.values())


def test_identities_differ_by_parameters_and_not_by_who_watches():
    default, other = (create("atv-l2", options) for options in ({}, {"lam": 9.0}))
    assert method_identity(default) != method_identity(other)
    assert method_identity(default) == method_identity(create("atv-l2", progress=print))
    assert method_identity(create("nearest")) != method_identity(create("bilinear"))


@dataclass
class WithNet:
    name: str
    net: torch.nn.Module


def test_weights_are_part_of_the_identity():
    torch.manual_seed(0)
    net = torch.nn.Linear(2, 2)
    before = method_identity(WithNet("own", net))
    assert before == method_identity(WithNet("own", net))
    with torch.no_grad():
        net.bias[0] += 1
    assert method_identity(WithNet("own", net)) != before


def test_parts_without_a_name_have_no_identity():
    assert method_identity(WithNet("own", object())) is None


def test_a_network_of_ones_own_is_known_by_its_weights():
    net = DepthNet(NetworkSettings(maps=4, layers=2, iterations=2)).eval()
    before = method_identity(Network("own", net))
    assert before is not None
    assert before == method_identity(Network("own", net))
    assert before != method_identity(Network("own", net, precision=torch.bfloat16))
    with torch.no_grad():
        next(net.parameters()).add_(1.0)
    assert before != method_identity(Network("own", net))
    assert method_identity(lambda frame: frame) is None
