"""The command line called in process, in a folder of small files."""

from collections.abc import Callable
from pathlib import Path

import pytest
from small_files import Cli, Outcome, write_bad_files, write_good_files

from primaldepth.cli import main


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    """Call `primaldepth` with these arguments, through the entry point users have."""

    def call(*arguments: object) -> Outcome:
        monkeypatch.setattr("sys.argv", ["primaldepth", *map(str, arguments)])
        try:
            main.run()
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 0
        captured = capsys.readouterr()
        return Outcome(code, captured.out, captured.err)

    return call


@pytest.fixture
def refused(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Call in an empty folder without data: it ends with code 2 and one line that holds `text`."""
    monkeypatch.delenv("PRIMALDEPTH_DATA", raising=False)
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str, text: str) -> None:
        outcome = cli(*arguments)
        assert (outcome.code, len(outcome.lines), outcome.out) == (2, 1, "")
        assert text in outcome.err

    return call


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No test sees what another one, or the user, has computed."""
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("PRIMALDEPTH_CACHE", str(folder))
    return folder


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with good and bad files: 8x6 depth, 32x24 guide."""
    monkeypatch.chdir(tmp_path)
    write_good_files()
    write_bad_files()
    return tmp_path
