"""Is what `make dist` built complete? Install the wheel into an empty environment and use it there.

python scripts/check_wheel.py DIST
"""

import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).parents[1]
LOCATE = """
import primaldepth
from primaldepth.samples import sample_files

files = sample_files()
print(primaldepth.__file__, files.depth, files.guide, sep="\\n")
"""


def main() -> None:
    """Check the contents, install, run the sample, and measure the import."""
    folder = Path(sys.argv[1])
    wheel, source = _only(folder, "*.whl"), _only(folder, "*.tar.gz")
    check_contents(wheel, source)
    with tempfile.TemporaryDirectory() as place:
        python = install(wheel, Path(place) / "venv")
        use(python, Path(place))
        _run(sys.executable, str(ROOT / "scripts" / "import_time.py"), str(python))
    print(f"{wheel.name} and {source.name} are good")


def check_contents(wheel: Path, source: Path) -> None:
    """Every file of the package, data included, lies in both."""
    source_folder = ROOT / "src"
    files = {
        path.relative_to(source_folder).as_posix()
        for path in source_folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    with zipfile.ZipFile(wheel) as archive:
        in_wheel = set(archive.namelist())
    with tarfile.open(source) as archive:
        in_source = {name.partition("/src/")[2] for name in archive.getnames()}
    for archive_name, names in ((wheel.name, in_wheel), (source.name, in_source)):
        if missing := sorted(files - names):
            sys.exit(f"{archive_name}: lacks {', '.join(missing[:10])} ({len(missing)} files)")
    data = sum(not name.endswith(".py") for name in files)
    print(f"{wheel.name}: {len(files)} files of the package, {data} of them data")


def install(wheel: Path, place: Path) -> Path:
    """The interpreter of a new environment that has the wheel and what it needs, and nothing else.

    The hash of every other file is checked, and `pip check` compares what the wheel asks for with what is
    there. The lock also has the extra `fast`, which the package must work without.
    """
    venv.create(place, with_pip=True)
    python = place / "bin" / "python"
    torch = "torch-cpu" if version("torch").endswith("+cpu") else "torch"
    locks = [f"--requirement={ROOT / 'requirements' / name}.txt" for name in ("build", "demo", torch)]
    pip = (str(python), "-m", "pip", "--quiet", "--disable-pip-version-check")
    _run(*pip, "install", "--require-hashes", *locks)
    _run(*pip, "install", "--no-deps", str(wheel))
    _run(*pip, "uninstall", "--yes", "numba", "llvmlite")
    _run(*pip, "check")
    return python


def use(python: Path, place: Path) -> None:
    """`primaldepth upsample` on the sample in the wheel."""
    module, depth, guide = _run(str(python), "-c", LOCATE, cwd=place).split()
    if not Path(module).is_relative_to(python.parents[1].resolve()):
        sys.exit(f"{module}: imported from elsewhere than the new environment")
    out = place / "fine.png"
    _run(str(python.parent / "primaldepth"), "upsample", depth, guide, "-o", str(out), cwd=place)
    if not out.is_file():
        sys.exit("upsample wrote no file")
    print(f"upsample on the packaged sample wrote {out.stat().st_size} bytes")


def _only(folder: Path, pattern: str) -> Path:
    found = list(folder.glob(pattern))
    if len(found) != 1:
        sys.exit(f"{folder}: {len(found)} files {pattern}, expected one")
    return found[0].resolve()


def _run(*command: str, cwd: Path | None = None) -> str:
    done = subprocess.run(command, cwd=cwd, stdout=subprocess.PIPE, text=True, check=False)  # noqa: S603
    sys.stdout.write(done.stdout if "import_time" in " ".join(command) else "")
    if done.returncode:
        sys.exit(f"{' '.join(command)}: ended with status {done.returncode}")
    return done.stdout


if __name__ == "__main__":
    main()
