"""Packages of others add methods and sensors: those that docs/extending prints, and broken ones."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import tomllib
import torch

import primaldepth
from primaldepth.core.errors import InputError
from primaldepth.core.extensions import ExtensionWarning
from primaldepth.methods import create, list_methods
from primaldepth.methods.identity import method_identity
from primaldepth.sensors import sensor, sensor_names

DOCS = Path(__file__).parents[2] / "docs" / "extending"


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A folder of installed packages; what is imported from it is forgotten afterwards."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]


def install(site, package, group, entries, **modules):
    """Write what an installer leaves: the modules and the package's metadata."""
    for name, text in modules.items():
        (site / f"{name}.py").write_text(text, encoding="utf-8")
    info = site / f"{package.replace('-', '_')}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    lines = [f"{name} = {target}" for name, target in entries.items()]
    (info / "entry_points.txt").write_text("\n".join([f"[{group}]", *lines, ""]))


def printed(page, marker):
    """What a page prints of a package: the Python block with `marker`, and the pyproject.toml."""
    text = (DOCS / page).read_text(encoding="utf-8")
    blocks = {
        kind: re.findall(rf"^```{kind}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
        for kind in ("python", "toml")
    }
    (source,) = [block for block in blocks["python"] if marker in block]
    return source, blocks["toml"][0]


def install_printed(site, page, module, marker):
    """Install the package that a page prints, without pip: its module and its entry points."""
    source, project = printed(page, marker)
    project = tomllib.loads(project)["project"]
    ((group, entries),) = project["entry-points"].items()
    install(site, project["name"], group, entries, **{module: source})


PRINTED = [("method.md", "averaged", "ENTRY ="), ("sensor.md", "stereo", "class Stereo(Sensor)")]
USE = """
import torch
import primaldepth
from primaldepth.sensors import sensor
truth = torch.full((1, 1, 16, 16), 2.0)
samples = sensor("my-stereo-v1", scale=4, noise=0.0)(truth, generator=torch.Generator())
found = primaldepth.upsample(samples.depth, torch.rand(1, 1, 16, 16), method="averaged", noise=0.01)
assert torch.allclose(found.depth, truth)
"""


def test_pip_installs_the_printed_packages(tmp_path):
    packages = []
    for page, module, marker in PRINTED:
        source, project = printed(page, marker)
        packages.append(tmp_path / module)
        packages[-1].mkdir()
        (packages[-1] / f"{module}.py").write_text(source, encoding="utf-8")
        (packages[-1] / "pyproject.toml").write_text(project, encoding="utf-8")
    offline = ["--no-index", "--no-deps", "--no-build-isolation", "--disable-pip-version-check", "--quiet"]
    pip = [sys.executable, "-m", "pip", "install", *offline, "--target", str(tmp_path / "site"), *packages]
    subprocess.run(pip, check=True, cwd=tmp_path)
    environment = os.environ | {"PYTHONPATH": str(tmp_path / "site")}
    subprocess.run([sys.executable, "-c", USE], check=True, cwd=tmp_path, env=environment)


def test_the_printed_method_is_known_by_name(site):
    install_printed(site, "method.md", "averaged", "ENTRY =")
    info = list_methods()[-1]
    assert (info.name, info.family, dict(info.settings)) == ("averaged", "filter", {"window": 5})
    depth, guide = torch.full((6, 8), 1.5), torch.rand(24, 32)
    result = primaldepth.upsample(depth, guide, method="averaged", options={"window": 3}, noise=0.01)
    assert result.depth.shape == (24, 32)
    assert torch.allclose(result.depth, torch.tensor(1.5))
    with pytest.raises(InputError, match="method 'averaged': unknown key 'windw'; did you mean 'window'"):
        create("averaged", {"windw": 3})


def test_kept_results_of_the_printed_method_depend_on_its_source(site):
    install_printed(site, "method.md", "averaged", "ENTRY =")
    method = create("averaged")
    before = method_identity(method)
    assert before == method_identity(create("averaged"))
    with (site / "averaged.py").open("a") as file:
        file.write("# changed\n")
    assert method_identity(method) != before


def test_the_printed_sensor_is_known_by_name(site):
    install_printed(site, "sensor.md", "stereo", "class Stereo(Sensor)")
    assert sensor_names()[-1] == "my-stereo-v1"
    camera = sensor("my-stereo-v1", scale=2, noise=0.0)
    samples = camera(torch.full((1, 1, 8, 8), 2.0), generator=torch.Generator().manual_seed(0))
    assert torch.allclose(samples.depth, torch.tensor(2.0))
    assert samples.depth.shape == (1, 1, 4, 4)


BROKEN = {
    "no module": ("absent:ENTRY", "ModuleNotFoundError: No module named 'absent'"),
    "no such name": ("wrong:ABSENT", "AttributeError"),
    "raises": ("raising:ENTRY", "RuntimeError: no licence"),
    "wrong type": ("wrong:NUMBER", "TypeError: expected a primaldepth.methods.MethodEntry, found int"),
}


@pytest.mark.parametrize(("target", "found"), BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_package_is_a_warning_and_an_error_only_by_its_name(site, target, found):
    install_printed(site, "method.md", "averaged", "ENTRY =")
    sources = {"wrong": "NUMBER = 3\n", "raising": "raise RuntimeError('no licence')\n"}
    install(site, "bad-method", "primaldepth.methods", {"bad": target}, **sources)
    message = rf"method 'bad': package bad-method cannot be loaded \({found}"
    with pytest.warns(ExtensionWarning, match=message):
        names = [info.name for info in list_methods()]
    assert "averaged" in names
    assert "bad" not in names
    assert create("averaged").name == "averaged"
    with pytest.raises(InputError, match=f"{message}.*; update or uninstall that package"):
        create("bad")


def test_a_sensor_under_another_name_than_its_own_is_refused(site):
    entries = {"other-v1": "primaldepth.sensors.lidar:Lidar", "three": "sys:path"}
    install(site, "bad-sensor", "primaldepth.sensors", entries)
    with pytest.warns(ExtensionWarning) as caught:
        assert "other-v1" not in sensor_names()
    assert len(caught) == 2
    with pytest.raises(InputError, match="entry point is named 'other-v1', the sensor 'lidar-v1'"):
        sensor("other-v1")


def test_a_name_of_two_packages_is_an_error_that_names_both(site):
    install_printed(site, "method.md", "averaged", "ENTRY =")
    install(site, "rival", "primaldepth.methods", {"averaged": "averaged:ENTRY"})
    for ask in (list_methods, lambda: create("averaged")):
        with pytest.raises(InputError, match="method 'averaged': defined by") as caught:
            ask()
        assert {"my-method", "rival"} <= set(re.findall(r"[\w-]+", caught.value.found))
    assert create("bicubic").name == "bicubic"


def test_no_package_can_take_a_name_of_this_one(site):
    install(site, "rival", "primaldepth.methods", {"bicubic": "averaged:ENTRY"})
    install(site, "rival-sensor", "primaldepth.sensors", {"lidar-v1": "stereo:Stereo"})
    with pytest.raises(InputError, match="method 'bicubic': defined by primaldepth and rival; uninstall"):
        create("bicubic")
    with pytest.raises(InputError, match="sensor 'lidar-v1': defined by primaldepth and rival-sensor"):
        sensor_names()
    assert create("nearest").name == "nearest"
