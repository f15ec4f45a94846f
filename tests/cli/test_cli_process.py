"""In a process of its own: exit codes, streams, Ctrl-C, and what an import pulls in."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import tomllib

HEAVY = {
    *("mitsuba", "triton", "gradio", "fastapi", "matplotlib", "onnx", "scipy", "OpenEXR"),
    *("tifffile", "imageio", "h5py", "rich", "typer", "lightning", "ray"),
}
LIGHT = {"primaldepth", "numpy", "pydantic", "pydantic_core", "annotated_types", "typing_inspection"}
COMMAND = "import sys; from primaldepth.cli.main import run; sys.exit(run())"


def python(code: str, *arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        timeout=120,
    )


def test_import_adds_little_to_that_of_torch() -> None:
    """By what is loaded, not by the clock: `scripts/import_time.py` has the seconds."""
    ours, torch = imported_by("primaldepth"), imported_by("torch")
    assert HEAVY.isdisjoint(name.partition(".")[0] for name in ours)
    assert not {name for name in ours - torch if name.startswith("torch.")}
    packages = {name.partition(".")[0] for name in ours - torch} - sys.stdlib_module_names
    assert {name for name in packages if not name.startswith("_sysconfigdata")} <= LIGHT


def imported_by(module: str) -> set[str]:
    done = python(f"import sys, {module}; print(*sys.modules)")
    assert (done.returncode, done.stderr) == (0, "")
    return set(done.stdout.split())


def test_good_call(files: Path) -> None:
    arguments = ("upsample", "depth.png", "guide.png", "-o", "out.png", "--method", "bilinear", "--json")
    done = python(COMMAND, *arguments, cwd=files)
    assert done.returncode == 0
    assert done.stdout.startswith("{")
    assert len(done.stderr.splitlines()) == 1  # no progress bar where there is no terminal
    assert (files / "out.png").is_file()


def test_bad_call(files: Path) -> None:
    done = python(COMMAND, "upsample", "text.png", "guide.png", "-o", "out.png", cwd=files)
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1


INTERRUPTED = (  # a real SIGINT while the method runs
    "import os, signal\n"
    "from primaldepth.pipeline import batches\n"
    "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # jobs in the background ignore it
    "batches.compute = lambda *_: os.kill(os.getpid(), signal.SIGINT)\n" + COMMAND
)


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_interrupt_leaves_no_traceback_and_no_file(files: Path) -> None:
    arguments = ("upsample", "depth.png", "guide.png", "-o", "out.png", "--method", "bilinear")
    done = python(INTERRUPTED, *arguments, cwd=files)
    assert done.returncode == 130
    assert "Traceback" not in done.stderr
    assert "the same command" not in done.stderr
    assert not (files / "out.png").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_interrupt_while_torch_is_imported_is_one_line(tmp_path: Path) -> None:
    """The entry point that pyproject.toml names, with a torch that is interrupted in its first line."""
    (tmp_path / "torch.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    module, _, name = project["scripts"]["primaldepth"].partition(":")
    code = (
        "import signal, sys\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        f"sys.path.insert(0, '')\nfrom {module} import {name}\n{name}()"
    )
    done = python(code, "methods", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "primaldepth: interrupted\n")


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_interrupt_of_a_batch_says_how_to_go_on(files: Path) -> None:
    arguments = ("upsample", "dep*.png", "gui*.png", "-o", "fine", "--method", "bilinear")
    for more, said in (((), "the same command"), (("--overwrite",), "the same command without --overwrite")):
        done = python(INTERRUPTED, *arguments, *more, cwd=files)
        assert done.returncode == 130
        assert f"fine: stopped; {said} goes on from here" in done.stderr
        assert "Traceback" not in done.stderr
