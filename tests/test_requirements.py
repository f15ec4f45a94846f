"""The lock in requirements/ agrees with pyproject.toml; the bill of materials is made from it."""

import importlib
import re
from pathlib import Path

import pytest
import tomllib
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "requirements"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PIN = re.compile(
    r"^(?P<requirement>[\w.-]+==[^\\\n]+)(?P<hashes>(?: \\\n    --hash=sha256:[0-9a-f]{64})+)\n", re.MULTILINE
)
ENVIRONMENTS = {
    "demo torch": ["fast"],
    "demo torch-cpu": ["fast"],
    "serve torch": ["app", "fast", "mat"],
    "serve torch-cpu": ["app", "fast", "mat"],
    "dev torch": ["dev"],
    "dev torch-cpu triton": ["dev"],
}
LINUX = {"sys_platform": "linux", "platform_system": "Linux"}
SYSTEMS = [
    LINUX | {"python_version": "3.11", "python_full_version": "3.11.9"},
    LINUX | {"python_version": "3.12", "python_full_version": "3.12.1"},
]


def text_of(name):
    return (FOLDER / f"{name}.txt").read_text(encoding="utf-8")


def pins(name, system):
    """Package -> version that the file installs on this system."""
    found = {}
    for match in PIN.finditer(text_of(name)):
        requirement = Requirement(match["requirement"])
        if requirement.marker is None or requirement.marker.evaluate(system):
            assert requirement.name not in found, f"{requirement.name} is locked twice"
            (found[requirement.name],) = (each.version for each in requirement.specifier)
    return found


def declared(extras, system):
    """Requirements of the package with these extras, those of the extras that they include as well."""
    lines = list(PROJECT["project"]["dependencies"])
    for extra in extras:
        lines += PROJECT["project"]["optional-dependencies"][extra]
    for requirement in map(Requirement, lines):
        if requirement.name == PROJECT["project"]["name"]:
            yield from declared(sorted(requirement.extras), system)
        elif requirement.marker is None or requirement.marker.evaluate(system):
            yield requirement


@pytest.mark.parametrize("system", SYSTEMS, ids=lambda system: system["python_version"])
@pytest.mark.parametrize("files", ENVIRONMENTS)
def test_every_requirement_is_locked_at_a_version_in_its_range(files, system):
    versions = {package: version for name in files.split() for package, version in pins(name, system).items()}
    for requirement in declared(ENVIRONMENTS[files], system):
        package = canonicalize_name(requirement.name)
        assert package in versions, f"{package} is not locked: run make lock"
        assert requirement.specifier.contains(versions[package]), f"{requirement}, locked {versions[package]}"


def test_build_requirements_are_locked():
    versions = pins("build", SYSTEMS[0])
    for requirement in map(Requirement, PROJECT["build-system"]["requires"]):
        assert requirement.specifier.contains(versions[requirement.name]), f"{requirement}: run make lock"
    assert {"pip", "editables"} <= versions.keys()


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.txt")), ids=lambda path: path.stem)
def test_a_file_has_only_pins_with_hashes_and_no_place(path):
    text = path.read_text(encoding="utf-8")
    rest = PIN.sub("", text).splitlines()
    assert rest == ["# Written by make lock.", "--only-binary :all:"]
    assert PIN.search(text)


@pytest.mark.parametrize("system", SYSTEMS, ids=lambda system: system["python_version"])
def test_files_agree(system):
    """A package has one version in all files but for Triton, of which torch with CUDA accepts one only."""
    dev = pins("dev", system)
    for name in ("demo", "serve"):
        assert pins(name, system).items() <= dev.items()
    for name in ("build", "torch"):
        assert all(dev.get(package, version) == version for package, version in pins(name, system).items())
    assert pins("torch-cpu", system) == {"torch": pins("torch", system)["torch"] + "+cpu"}


@pytest.fixture
def sbom(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    return importlib.import_module("sbom")


def test_bill_of_materials_has_every_locked_package_that_is_installed(sbom):
    document = sbom.bill()
    assert (document["bomFormat"], document["specVersion"], document["version"]) == ("CycloneDX", "1.6", 1)
    assert document["metadata"]["component"]["licenses"] == [{"expression": "BSD-3-Clause"}]
    parts = {part["name"]: part for part in document["components"]}
    assert {"torch": "required", "fastapi": "optional", "pytest": "excluded"}.items() <= {
        name: part["scope"] for name, part in parts.items()
    }.items()
    for name, part in parts.items():
        assert part["purl"].startswith(f"pkg:pypi/{name}@")
        assert part["licenses"]
        assert all(re.fullmatch("[0-9a-f]{64}", each["content"]) for each in part["hashes"])
        assert part["hashes"]


def test_bill_of_materials_says_what_needs_what(sbom):
    document = sbom.bill()
    references = {
        part["name"]: part["bom-ref"] for part in [document["metadata"]["component"], *document["components"]]
    }
    edges = {each["ref"]: each["dependsOn"] for each in document["dependencies"]}
    assert edges.keys() == set(references.values())
    assert {references["torch"], references["fastapi"]} <= set(edges[references["primaldepth"]])
    assert references["sympy"] in edges[references["torch"]]
    assert {each for needed in edges.values() for each in needed} <= edges.keys()


def test_a_package_without_a_licence_says_so(sbom, tmp_path):
    folder = tmp_path / "plain-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: plain\nVersion: 1.0\n", encoding="utf-8")
    (package,) = importlib.metadata.distributions(path=[str(tmp_path)])
    assert sbom.licence(package) == {"license": {"name": "not stated"}}
