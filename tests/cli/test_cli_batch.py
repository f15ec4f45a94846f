"""Folders and globs: pairing, going on after a failure, and what is said about it."""

from collections.abc import Callable
from pathlib import Path

import pytest
from small_files import Cli

from primaldepth.cli import upsample as verb
from primaldepth.core.errors import PrimalDepthError
from primaldepth.io import read_depth

FAST = ("--method", "bilinear")


@pytest.fixture
def recording(files: Path) -> Path:
    """depths/{a,b,c}.png with b damaged, guides/{1,2,3}.png, and a file of notes in each."""
    for name, source in (("a", "depth.png"), ("b", "truncated.png"), ("c", "holes.png")):
        _copy(files / source, files / "depths" / f"{name}.png")
    for name in "123":
        _copy(files / "guide.png", files / "guides" / f"{name}.png")
    for folder in ("depths", "guides"):
        (files / folder / "notes.txt").write_text("not an image")
    return files


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(exist_ok=True)
    target.write_bytes(source.read_bytes())


def visible(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))


@pytest.mark.parametrize(
    ("depths", "guides"),
    [
        ("depths", "guides"),
        ("depths/*.png", "guides/*.png"),
        ("depths", "guide.png"),
        ("dep*/[abc].png", "guides"),
    ],
)
def test_goes_on_after_a_failure_and_exits_1(cli: Cli, recording: Path, depths: str, guides: str) -> None:
    outcome = cli("upsample", depths, guides, "-o", "out", *FAST, "--json")
    assert outcome.code == 1
    assert visible(recording / "out") == ["a.png", "c.png"]
    assert [Path(report["depth"]).name for report in outcome.json] == ["a.png", "b.png", "c.png"]
    assert ["error" in report for report in outcome.json] == [False, True, False]
    assert f"primaldepth: {outcome.json[1]['error']}" in outcome.lines
    assert outcome.lines[-1] == f"primaldepth: 1 of 3 failed: {Path('depths/b.png')}"


def test_a_failure_that_does_not_name_the_depth_gets_its_name(cli: Cli, recording: Path) -> None:
    _copy(recording / "small.png", recording / "guides" / "3.png")
    outcome = cli("upsample", "depths", "guides", "-o", "out", *FAST)
    assert outcome.code == 1
    assert any("depths/c.png: guide: 4x4 is smaller" in line for line in outcome.lines)
    assert outcome.lines[-1].startswith("primaldepth: 2 of 3 failed")


def test_all_good_is_exit_0_and_a_list(cli: Cli, recording: Path) -> None:
    _copy(recording / "depth.png", recording / "depths" / "b.png")
    folders = ("--preview", "previews", "--cloud", "clouds", "--measured", "masks")
    outcome = cli("upsample", "depths", "guides", "-o", "out.v2", *folders, *FAST, "--json")
    assert outcome.code == 0
    assert len(outcome.json) == 3
    for folder, extension in (("out.v2", "png"), ("previews", "png"), ("clouds", "ply"), ("masks", "png")):
        assert visible(Path(folder)) == [f"{name}.{extension}" for name in "abc"]
    assert read_depth("out.v2/c.png").valid.all()


def test_one_match_is_still_a_batch(cli: Cli, recording: Path) -> None:
    outcome = cli("upsample", "depths/a*.png", "guide.png", "-o", "out", *FAST, "--json")
    assert outcome.code == 0
    assert isinstance(outcome.json, list)


def test_hidden_files_are_no_frames(cli: Cli, recording: Path) -> None:
    """Such as macOS leaves beside every file on a foreign disk."""
    before = cli("upsample", "depths", "guides", "-o", "before", *FAST, "--json").json
    (recording / "guides" / "._1.png").write_bytes(b"attributes")
    after = cli("upsample", "depths", "guides", "-o", "after", *FAST, "--json").json
    assert len(after) == len(before)


@pytest.mark.parametrize("place", ["depth", "out"])
def test_a_link_to_itself_is_told(cli: Cli, recording: Path, place: str) -> None:
    (recording / "loop.png").symlink_to("loop.png")
    names = {"depth": "depth.png", "out": "new.png", place: "loop.png"}
    outcome = cli("upsample", names["depth"], "guide.png", "-o", names["out"], *FAST)
    assert outcome.code == 2
    assert len(outcome.lines) == 1
    assert "loop.png" in outcome.err


def test_confidence_is_paired_too(cli: Cli, recording: Path) -> None:
    outcome = cli("upsample", "depths", "guides", "-o", "out", "--confidence", "guides/1*", *FAST)
    assert outcome.code == 2
    assert "3 depth files but 1 confidence maps" in outcome.err


@pytest.fixture
def failing(recording: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Let every method raise an error of this text."""

    def fail(text: str) -> None:
        def method(frame: object) -> None:
            raise RuntimeError(text)

        monkeypatch.setattr(verb, "create", lambda *_, **__: method)

    return fail


def test_running_out_of_memory_is_a_failure_of_one_file(cli: Cli, failing: Callable[[str], None]) -> None:
    failing("DefaultCPUAllocator: can't allocate memory: you tried to allocate 1 bytes")
    outcome = cli("upsample", "depths", "guides", "-o", "out", *FAST)
    assert outcome.code == 1
    assert "not enough memory on cpu for 32x24 pixels" in outcome.err


def test_an_error_of_this_program_is_not_hidden(cli: Cli, failing: Callable[[str], None]) -> None:
    failing("a bug")
    with pytest.raises(RuntimeError, match="a bug") as caught:
        cli("upsample", "depths", "guides", "-o", "out", *FAST)
    assert not isinstance(caught.value, PrimalDepthError)


@pytest.mark.parametrize("extension", [".npy", ".exr", ".tiff"])
def test_the_batch_keeps_the_input_s_format(cli: Cli, recording: Path, extension: str) -> None:
    assert cli("upsample", "depth.png", "guide.png", "-o", f"in/x{extension}", *FAST).code == 0
    assert cli("upsample", "in", "guide.png", "-o", "out", *FAST).code == 0
    assert visible(Path("out")) == [f"x{extension}"]


def test_files_that_miss_different_partners_are_not_paired_in_order(cli: Cli, files: Path) -> None:
    for depth, guide in (("depth_000", "rgb_001"), ("depth_001", "rgb_002"), ("depth_003", "rgb_003")):
        _copy(files / "depth.png", files / "depths" / f"{depth}.png")
        _copy(files / "guide.png", files / "guides" / f"{guide}.png")
    outcome = cli("upsample", "depths", "guides", "-o", "out", *FAST)
    assert outcome.code == 2
    lost = f"{Path('depths/depth_000.png')}, {Path('guides/rgb_002.png')}"
    assert f"no partner of the same name or number: {lost}" in outcome.err
    assert not (files / "out").exists()
    (files / "guides/rgb_002.png").rename(files / "guides/rgb_000.png")
    outcome = cli("upsample", "depths", "guides", "-o", "out", *FAST, "--json")
    assert [Path(each["guide"]).stem for each in outcome.json] == ["rgb_000", "rgb_001", "rgb_003"]


def numbered_files(files: Path, depths: list[str], guides: list[str]) -> None:
    for folder, source, names in (("depths", "depth.png", depths), ("guides", "guide.png", guides)):
        for name in names:
            _copy(files / source, files / folder / f"{name}.png")


def test_pairing_in_order_is_told_with_the_first_and_the_last_pair(cli: Cli, recording: Path) -> None:
    outcome = cli("upsample", "depths", "guides", "-o", "out", *FAST)
    assert "guides are paired in order: a.png with 1.png, c.png with 3.png" in outcome.err


def test_pairing_by_number_needs_no_word(cli: Cli, files: Path) -> None:
    numbered_files(files, ["1", "2"], ["rgb_01", "rgb_02"])
    outcome = cli("upsample", "depths", "guides", "-o", "out", *FAST)
    assert outcome.code == 0, outcome.err
    assert "paired" not in outcome.err


def test_the_last_number_pairs_where_the_cameras_are_numbered_too(cli: Cli, files: Path) -> None:
    numbered_files(files, ["cam0_a1", "cam0_b2", "cam0_c4"], ["cam1_a4", "cam1_b1", "cam1_c2"])
    outcome = cli("upsample", "depths", "guides", "-o", "out", *FAST, "--json")
    assert outcome.code == 0, outcome.err
    assert [Path(each["guide"]).stem for each in outcome.json] == ["cam1_b1", "cam1_c2", "cam1_a4"]
    pairs = "cam0_a1.png with cam1_b1.png, cam0_c4.png with cam1_a4.png"
    assert f"guides are paired by the last number of their names: {pairs}" in outcome.err


@pytest.mark.parametrize("guides", [["cam1_1", "cam1_3", "cam1_4"], ["cam1_1", "cam1_4"]])
def test_last_numbers_without_partner_are_refused(cli: Cli, files: Path, guides: list[str]) -> None:
    numbered_files(files, ["cam0_1", "cam0_2", "cam0_4"], guides)
    outcome = cli("upsample", "depths", "guides", "-o", "out", *FAST)
    assert outcome.code == 2
    assert f"no partner of the same name or number: {Path('depths/cam0_2.png')}" in outcome.err
    assert not (files / "out").exists()


def test_a_missing_partner_is_named(cli: Cli, files: Path) -> None:
    for number in range(4):
        _copy(files / "depth.png", files / "depths" / f"{number}.png")
        if number != 2:
            _copy(files / "guide.png", files / "guides" / f"{number}.png")
    outcome = cli("upsample", "depths", "guides", "-o", "out", *FAST)
    assert outcome.code == 2
    lost = Path("depths/2.png")
    assert (
        f"4 depth files but 3 guides in guides; no partner of the same name or number: {lost}" in outcome.err
    )


NAMES = {
    "suffix": (("1", "2", "10"), ("1_rgb", "2_rgb", "10_rgb")),
    "zeros": (("1", "2", "10"), ("0001", "0002", "0010")),
    "zeros of depth": (("d_01", "d_02", "d_10"), ("1", "2", "10")),
    "other text": (("a1", "b2", "c3"), ("z1", "y2", "x3")),
    "two numbers": (("1_11", "1_110", "11_1"), ("c1_11", "c1_110", "c11_1")),
    "stamps of TUM": (("1305031102.160407", "1305031102.194330"), ("1305031102.175304", "1305031102.211214")),
    "stamps": (("5.25", "5.5", "40.125"), ("5.31", "5.56", "40.188")),
    "folders": (("s2/a", "s2/b", "s10/c"), ("s2/x", "s2/y", "s10/z")),
}


@pytest.mark.parametrize(("depths", "guides"), NAMES.values(), ids=NAMES)
@pytest.mark.parametrize("extra", [(), ("--temporal",)], ids=["", "temporal"])
def test_partners_have_the_same_number_and_come_in_its_order(
    cli: Cli, files: Path, depths: tuple[str, ...], guides: tuple[str, ...], extra: tuple[str, ...]
) -> None:
    for depth, guide in zip(depths, guides, strict=True):
        for name, source in ((f"depths/{depth}.png", "depth.png"), (f"guides/{guide}.png", "guide.png")):
            (files / name).parent.mkdir(parents=True, exist_ok=True)
            _copy(files / source, files / name)
    outcome = cli("upsample", "depths/**/*.png", "guides/**/*.png", "-o", "out", *FAST, *extra, "--json")
    assert outcome.code == 0, outcome.err
    expected = [
        (f"depths/{depth}.png", f"guides/{guide}.png") for depth, guide in zip(depths, guides, strict=True)
    ]
    assert [
        (Path(each["depth"]).as_posix(), Path(each["guide"]).as_posix()) for each in outcome.json
    ] == expected


def stamped(files: Path, folder: str, seconds: list[float]) -> list[str]:
    """Names of files in `folder`, so many seconds after a time."""
    names = [f"{1305031100 + each:.6f}.png" for each in seconds]
    for name in names:
        _copy(files / folder.replace("s", ".png"), files / folder / name)
    return names


@pytest.mark.parametrize(
    ("guides", "expected", "apart"),
    [
        ([-0.1, 0.01, 0.13], [1, 1, 2], "0.040"),
        ([-0.1, 0.01, 0.06, 0.13], [1, 2, 3], "0.010"),
        ([0.0, 0.03, 0.05, 0.09, 0.12], [0, 2, 4], "0.000"),
        ([500.0, 510.0, 520.0], [0, 1, 2], None),
    ],
    ids=["one early", "one more", "faster and in step", "another clock"],
)
def test_time_stamps_pair_the_nearest(
    cli: Cli, files: Path, guides: list[float], expected: list[int], apart: str | None
) -> None:
    stamped(files, "depths", [0.0, 0.05, 0.12])
    names = stamped(files, "guides", guides)
    outcome = cli("upsample", "depths", "guides", "-o", "out", *FAST, "--json")
    assert outcome.code == 0, outcome.err
    assert [Path(each["guide"]).name for each in outcome.json] == [names[index] for index in expected]
    said = f"guides are paired by time stamp, at most {apart} s apart"
    assert (said in outcome.err) if apart else ("time stamp" not in outcome.err)


@pytest.mark.parametrize("guides", [[-0.1, 0.01, 0.06], [0.01, 0.06, 3.0]], ids=["late", "alone"])
def test_a_depth_far_in_time_from_all_guides_is_named(cli: Cli, files: Path, guides: list[float]) -> None:
    depths = stamped(files, "depths", [0.0, 0.05, 7.0])
    stamped(files, "guides", guides)
    outcome = cli("upsample", "depths", "guides", "-o", "out", *FAST)
    assert outcome.code == 2
    assert f"none of the guides is within 0.1 s of {Path('depths') / depths[2]}" in outcome.err


def test_numbers_off_by_one_are_not_paired_in_order(cli: Cli, files: Path) -> None:
    for number in range(4):
        _copy(files / "depth.png", files / "depths" / f"{number}.png")
        _copy(files / "guide.png", files / "guides" / f"{number + 1:04d}.png")
    outcome = cli("upsample", "depths", "guides", "-o", "out", *FAST)
    assert outcome.code == 2
    assert f"same name or number: {Path('depths/0.png')}, {Path('guides/0004.png')}" in outcome.err
