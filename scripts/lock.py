"""Write requirements/*.txt anew: every package of every environment at one version, with its SHA-256 hashes.

python scripts/lock.py [--upgrade | --upgrade-package NAME ...]

Versions stay as they are unless an option asks for newer ones. torch is locked twice. torch.txt has the build
of the package index, on Linux with CUDA and the one version of Triton that it accepts. torch-cpu.txt has the
build without CUDA, as far as pip is configured to find it; triton.txt is the Triton to be used beside it.
"""

import hashlib
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import tomllib

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "requirements"
ENVIRONMENTS = {"demo": ["fast"], "serve": ["app", "fast", "mat"], "dev": ["dev"]}
OLDEST = "3.11.5"  # the oldest Python that all packages of the development environment support
PYTHONS = ("3.11", "3.12")
OF_TORCH = re.compile(r"torch$|triton$|cuda-|nvidia-")  # versions that depend on the build of torch
HEADER = "# Written by make lock.\n--only-binary :all:\n"


def main() -> None:
    """Resolve all packages together; each file then takes its part at the same versions."""
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        build = _write(place / "build.in", "pip", "editables", *build_requirements())
        everything = place / "everything.txt"
        everything.write_text("".join(path.read_text() for path in map(_lock, ("dev", "build", "torch"))))
        resolve(everything, "pyproject.toml", build, "--extra=dev", *sys.argv[1:])
        same = f"--constraint={everything}"
        left_out = [f"--no-emit-package={name}" for name in pins(everything) if OF_TORCH.match(name)]
        for environment, extras in ENVIRONMENTS.items():
            options = [f"--extra={extra}" for extra in extras]
            resolve(_lock(environment), "pyproject.toml", *options, *left_out, same)
        resolve(_lock("build"), build, same)
        resolve(_lock("torch"), _write(place / "torch.in", "torch"), same)
        resolve(_lock("triton"), _write(place / "triton.in", "triton"), *sys.argv[1:])
        lock_cpu_build(pins(everything)["torch"] + "+cpu", place)


def build_requirements() -> list[str]:
    """What pyproject.toml asks for to build the package."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]


def resolve(lock: Path, *arguments: str) -> None:
    """Let uv write one file, for all systems, from the versions that the file has now."""
    options = ["--quiet", "--universal", f"--python-version={OLDEST}", "--generate-hashes", "--no-annotate"]
    command = [sys.executable, "-m", "uv", "pip", "compile", *options, "--no-header", "--only-binary=:all:"]
    _run(*command, *arguments, f"--output-file={lock}")
    lock.write_text(HEADER + lock.read_text())


def lock_cpu_build(version: str, place: Path) -> None:
    """Lock the wheels without CUDA that pip finds, beside those already locked at this version."""
    for python in PYTHONS:
        options = ("--quiet", "--no-deps", "--only-binary=:all:", f"--python-version={python}")
        _run(
            sys.executable,
            "-m",
            "pip",
            "download",
            *options,
            f"--dest={place}",
            f"torch=={version}",
            check=False,
        )
    hashes = {hashlib.sha256(wheel.read_bytes()).hexdigest() for wheel in place.glob("torch-*.whl")}
    if pins(_lock("torch-cpu")).get("torch") == version:
        hashes.update(re.findall(r"sha256:(\w+)", _lock("torch-cpu").read_text()))
    if not hashes:
        sys.exit(f"torch=={version}: pip finds no such build, requirements/torch-cpu.txt is not up to date")
    lines = [f"torch=={version}", *(f"    --hash=sha256:{digest}" for digest in sorted(hashes))]
    _lock("torch-cpu").write_text(HEADER + " \\\n".join(lines) + "\n")


def pins(lock: Path) -> dict[str, str]:
    """Name -> version of every package in a file."""
    return dict(re.findall(r"^([\w.-]+)==([^\s;]+)", lock.read_text(), re.MULTILINE))


def _lock(name: str) -> Path:
    return FOLDER / f"{name}.txt"


def _write(path: Path, *lines: str) -> str:
    path.write_text("\n".join(lines))
    return str(path)


def _run(*command: str, check: bool = True) -> None:
    done = subprocess.run(command, cwd=ROOT, check=False)  # noqa: S603
    if check and done.returncode:
        sys.exit(f"{' '.join(command)}: ended with status {done.returncode}")


if __name__ == "__main__":
    main()
