"""`primaldepth serve`: what is wrong is said before anything is loaded."""

import importlib.util
import os
import socket
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

import pytest
from small_files import Cli

from primaldepth.app.server import listen
from primaldepth.app.service_settings import ServiceSettings
from primaldepth.cli.serve import _token
from primaldepth.core.errors import InputError

pytest.importorskip("fastapi", reason="the extra 'app' is not installed")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--max-pixels", "0"), "'max_pixels'"),
        (("--seconds", "-1"), "'seconds'"),
        (("--port", "70000"), "'port'"),
        (("--device", "tpu"), "device: 'tpu' is not one of"),
        (("--method", "nlh-l3"), "did you mean 'nlh-l2'"),
        (("--allowed-host", "http://depth.example.org"), "the name of a host alone"),
        (("--allowed-host", "depth.example.org:443"), "the name of a host alone"),
    ],
)
def test_wrong_options_are_named(cli: Cli, options: tuple[str, ...], message: str) -> None:
    outcome = cli("serve", *options)
    assert outcome.code == 2
    assert message in outcome.err
    assert len(outcome.lines) == 1


def test_weights_as_the_default_method_are_refused(cli: Cli) -> None:
    """A client could not name them, and would be told the path."""
    weights = sorted((files("primaldepth") / "weights").glob("*.safetensors"))[0]
    outcome = cli("serve", "--method", str(weights))
    assert outcome.code == 2
    assert "by name, not files" in outcome.err
    assert len(outcome.lines) == 1


def test_a_device_that_is_missing_is_told(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    outcome = cli("serve", "--device", "cuda")
    assert outcome.code == 2
    assert "no CUDA device" in outcome.err
    assert len(outcome.lines) == 1


def test_a_token_that_is_no_file_is_not_waited_for(cli: Cli, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with (tmp_path / "giant").open("wb") as file:
        file.truncate(2**40)
    for path, text in (
        (tmp_path / "pipe", "is not a regular file"),
        (Path("/dev/zero"), "is not a regular file"),
        (tmp_path / "giant", "more than the limit of 4096"),
        (tmp_path / "none", "no such file"),
        (tmp_path, "is a directory"),
    ):
        outcome = cli("serve", "--token-file", str(path))
        assert (outcome.code, outcome.out) == (2, "")
        assert text in outcome.err


def test_a_short_token_is_refused(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("secret\n")
    outcome = cli("serve", "--token-file", str(tmp_path / "token"))
    assert outcome.code == 2
    assert "can be guessed" in outcome.err
    assert "secret" not in outcome.err


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _long(path: Path) -> None:
    path.write_text("x" * 5000)


def _binary(path: Path) -> None:
    path.write_bytes(b"\xff" * 32)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (_pipe, "is not a regular file"),
        (Path.mkdir, "is a directory"),
        (lambda path: None, "no such file"),
        (_long, "more than the limit of 4096"),
        (_binary, "not a readable text file"),
    ],
)
def test_a_token_is_read_from_a_small_text_file_alone(
    cli: Cli, tmp_path: Path, make: Callable[[Path], None], message: str
) -> None:
    """A pipe would be waited for without end."""
    make(tmp_path / "token")
    outcome = cli("serve", "--token-file", str(tmp_path / "token"))
    assert outcome.code == 2
    assert message in outcome.err
    assert len(outcome.lines) == 1


def test_no_process_that_the_service_starts_inherits_the_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRIMALDEPTH_TOKEN", "0123456789abcdef")
    assert _token(None) == "0123456789abcdef"
    assert "PRIMALDEPTH_TOKEN" not in os.environ


def test_a_port_that_is_taken_is_told(cli: Cli) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        outcome = cli("serve", "--no-page", "--port", str(taken.getsockname()[1]))
    assert outcome.code == 2
    assert "cannot listen there" in outcome.err


def test_who_connects_before_the_service_runs_waits() -> None:
    """And nobody else can take the port."""
    settings = ServiceSettings(port=0)
    with listen(settings) as first:
        port = first.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port), timeout=5):
            pass
        with pytest.raises(InputError, match="cannot listen there"):
            listen(ServiceSettings(port=port))


def test_without_gradio_the_page_is_not_offered(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(
        "primaldepth.cli.serve.find_spec", lambda name: None if name == "gradio" else real(name)
    )
    outcome = cli("serve")
    assert outcome.code == 2
    assert "--no-page" in outcome.err
