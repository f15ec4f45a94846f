"""Write the software bill of materials of this environment as CycloneDX JSON.

python scripts/sbom.py OUT

Components are the installed packages that requirements/*.txt lock: name, version, licence, the SHA-256 of
every file that the lock admits for this version, and what each depends on. `scope` is "required" for what the
package with its extra `fast` needs, "optional" for the service, and "excluded" for tools of development.
"""

import json
import re
import sys
from collections.abc import Iterator
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any
from urllib.parse import quote

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

LOCKS = Path(__file__).parents[1] / "requirements"
SCOPES = {  # of a package that several files lock, the last one counts
    **dict.fromkeys(("dev", "build", "triton"), "excluded"),
    "serve": "optional",
    **dict.fromkeys(("demo", "torch", "torch-cpu"), "required"),
}
PIN = re.compile(r"^([\w.-]+)==([^\s;]+)(.*(?:\n +--hash.*)+)", re.MULTILINE)
PRODUCT = "primaldepth"


def main() -> None:
    """Write the file that the command line names."""
    document = bill()
    Path(sys.argv[1]).write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    print(f"{sys.argv[1]}: {len(document['components'])} components")


def bill() -> dict[str, Any]:
    """The document, without time and serial number: the same environment gives the same bytes."""
    installed = {canonicalize_name(each.name): each for each in distributions()}
    known = {name: component(installed[name]) | lock for name, lock in sorted(locked(installed).items())}
    product = component(installed[PRODUCT]) | {"type": "application"}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": product},
        "components": list(known.values()),
        "dependencies": [dependencies(installed[name], known) for name in (PRODUCT, *known)],
    }


def locked(installed: dict[str, Distribution]) -> dict[str, dict[str, Any]]:
    """Scope and hashes of every installed package whose version is the locked one."""
    found = {}
    for lock, scope in SCOPES.items():
        for name, version, hashes in PIN.findall((LOCKS / f"{lock}.txt").read_text(encoding="utf-8")):
            if name in installed and installed[name].version == version:
                digests = [
                    {"alg": "SHA-256", "content": each} for each in re.findall(r"sha256:(\w+)", hashes)
                ]
                found[name] = {"scope": scope, "hashes": digests}
    return found


def component(package: Distribution) -> dict[str, Any]:
    """Name, version, licence and identifiers, from the metadata of the installed package."""
    name = canonicalize_name(package.name)
    identifier = f"pkg:pypi/{name}@{quote(package.version)}"
    return {
        "type": "library",
        "bom-ref": identifier,
        "name": name,
        "version": package.version,
        "licenses": [licence(package)],
        "purl": identifier,
    }


def dependencies(package: Distribution, known: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Reference of a package, and of those among the known ones that it depends on."""
    needed = {known[name]["bom-ref"] for name in needs(package) if name in known}
    return {"ref": component(package)["bom-ref"], "dependsOn": sorted(needed)}


def licence(package: Distribution) -> dict[str, Any]:
    """The SPDX expression if the metadata has one, else the licence's name as the package states it."""
    if expression := package.metadata.get("License-Expression"):
        return {"expression": expression}
    classes = [each for each in package.metadata.get_all("Classifier", []) if each.startswith("License")]
    first_line = package.metadata.get("License", "").partition("\n")[0]
    stated = ", ".join(each.rpartition(" :: ")[2] for each in classes) or first_line or "not stated"
    return {"license": {"name": stated}}


def needs(package: Distribution) -> Iterator[str]:
    """Names of the packages that this one depends on here; of the product also those of its extras."""
    extras = package.metadata.get_all("Provides-Extra", []) if package.name == PRODUCT else []
    for requirement in map(Requirement, package.requires or []):
        marker = requirement.marker
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *extras)):
            yield canonicalize_name(requirement.name)


if __name__ == "__main__":
    main()
