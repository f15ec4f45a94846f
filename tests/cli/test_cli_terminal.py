"""Names of files and what stands in files cannot command the terminal or forge lines of the log."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from small_files import Cli

from primaldepth.cli.output import printable
from primaldepth.io import DepthMap, write_depth

NAME = "f\x1b]0;title\x1b\\\x1b[31m\x9b2J\u202e[bold]x\nprimaldepth: 1.png"
FAST = ("--method", "bilinear")


@pytest.fixture
def hostile(files: Path) -> Path:
    """Depth maps and images under a name as an archive of a stranger can bring it."""
    for folder, source in (("depths", "depth.png"), ("images", "guide.png")):
        Path(folder).mkdir()
        shutil.copy(source, Path(folder) / NAME)
        shutil.copy(source, Path(folder) / "2.png")
    return files


def assert_harmless(text: str) -> None:
    assert [each for each in text if not each.isprintable() and each != "\n"] == []
    assert "title" not in text or "\\x1b]0;title" in text


def test_control_characters_are_written_as_python_does() -> None:
    assert printable("depth 1.png äöü 深さ") == "depth 1.png äöü 深さ"
    assert printable("a\x1b[31m\n\r\t\x7f\x9b\u202e\udcff") == r"a\x1b[31m\n\r\t\x7f\x9b\u202e\udcff"


def test_results_and_errors_of_a_batch(cli: Cli, hostile: Path) -> None:
    (hostile / "depths" / "2.png").write_text("no picture")
    done = cli("upsample", "depths", "images", "-o", "out", *FAST)
    assert done.code == 1
    assert r"f\x1b]0;title\x1b\\x1b[31m\x9b2J\u202e[bold]x\nprimaldepth: 1.png" in done.err
    assert_harmless(done.err + done.out)
    assert (hostile / "out" / NAME).is_file()


def test_tables_of_scenes(cli: Cli, hostile: Path) -> None:
    for path in (hostile / "depths").iterdir():
        write_depth(path, DepthMap.from_array(np.linspace(1.0, 2.0, 48 * 64).reshape(48, 64), unit="mm"))
    for path in (hostile / "images").iterdir():
        Image.fromarray(np.full((48, 64, 3), 99, np.uint8)).save(path)
    done = cli("evaluate", "depths", "images", "--reduce", "2", "--jobs", "1", *FAST)
    assert done.code == 0, done.err
    assert "bilinear" in done.out
    assert_harmless(done.err + done.out)


def test_an_error_of_one_file(cli: Cli, files: Path) -> None:
    done = cli("upsample", "gone\x1b[2J.png", "guide.png", "-o", "out.png", *FAST)
    assert done.code == 2
    assert r"gone\x1b[2J.png" in done.err
    assert_harmless(done.err)


def test_the_picture_of_an_evaluation_goes_through_no_link(cli: Cli, hostile: Path) -> None:
    (hostile / "worst-frame.png").symlink_to("victim.png")
    done = cli("evaluate", "depths", "images", "--reduce", "2", *FAST)
    assert done.code == 2
    assert "worst-frame.png: is a link" in done.err
    assert not (hostile / "victim.png").exists()
