"""The same name and seed make the same input; promises are made only where a checksum covers the damage."""

import random
import zlib

import pytest

pytest.importorskip("h5py", reason="the extra 'mat' is not installed")
pytest.importorskip("rosbags", reason="the extra 'bags' is not installed")
pytest.importorskip("av", reason="the extra 'video' is not installed")
pytest.importorskip("fastapi", reason="the extra 'app' is not installed")

from benchmarks.attack import arrays, bomb_files, exr, jpeg, mat5, png, seed_images, tiff
from benchmarks.attack.bombs import BOMBS
from benchmarks.attack.cases import Seed, digest, whole
from benchmarks.attack.mutations import mutator
from benchmarks.attack.readers import READERS
from benchmarks.attack.run import InputMaker, chosen, plan
from benchmarks.attack.summary import Summary
from benchmarks.attack.watch import InputOutcome


def drawn(seed):
    return random.Random(seed)  # noqa: S311 - inputs of tests


def test_the_same_name_makes_the_same_files(tmp_path):
    found = []
    for attempt in ("first", "second"):
        inputs = InputMaker(seed=3)
        for name in ("png:5", "npz:8", "cameras:11", "tiff:2"):
            folder = tmp_path / attempt / name.replace(":", "-")
            folder.mkdir(parents=True)
            mutant = inputs.make(name, folder)
            found.append((name, {path.name: path.read_bytes() for path in folder.iterdir()}, mutant.how))
    assert found[:4] == found[4:]


def test_the_plan_has_the_bombs_first_and_every_reader_by_its_share():
    names = plan(READERS, 2000)
    assert names[: len(BOMBS)] == [bomb.name for bomb in BOMBS]
    counts = {reader.name: sum(name.startswith(f"{reader.name}:") for name in names) for reader in READERS}
    assert counts["png"] > 10 * counts["mat73"] > 0
    assert 1900 < len(names) - len(BOMBS) < 2100
    assert len(set(names)) == len(names)


def test_every_bomb_belongs_to_a_reader():
    assert {bomb.reader for bomb in BOMBS} <= {reader.name for reader in READERS}
    assert len({bomb.name for bomb in BOMBS}) == len(BOMBS)


def test_a_reader_of_another_name_is_refused():
    with pytest.raises(SystemExit, match="no reader 'gif'"):
        chosen(["gif"])


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
def test_every_mutation_makes_files(reader):
    seeds = InputMaker(seed=0).seeds(reader.name)
    for index in range(30):
        mutant = reader.mutate(drawn(f"{reader.name} {index}"), seeds)
        assert all(isinstance(data, bytes) for data in mutant.files.values())
        assert mutant.promise in ("any", "same", "refused")


@pytest.mark.parametrize(
    ("parse", "pack", "seeds"),
    [
        (png.chunks, png.packed, seed_images.png_guides),
        (lambda data: exr.parsed(data), exr.packed, seed_images.exrs),
        (arrays.members, arrays.zipped, seed_images.npzs),
    ],
)
def test_what_is_parsed_and_packed_again_is_read_as_before(tmp_path, parse, pack, seeds):
    from primaldepth.io.rasters import read_raster

    for seed in seeds(drawn(0)):
        [(name, data)] = seed.files.items()
        values = []
        for content in (data, pack(parse(data))):
            (tmp_path / name).write_bytes(content)
            values.append(digest(read_raster(tmp_path / name, "guide" if "guide" in name else "depth")))
        assert values[0] == values[1]


def test_jpeg_segments_and_matlab_elements_are_packed_as_they_were():
    for seed in seed_images.jpeg_guides(drawn(0)):
        data = seed.files["guide.jpg"]
        assert jpeg.packed(jpeg.segments(data)) == data
    for seed in seed_images.mats(drawn(0))[:2]:
        data = seed.files["depth.mat"]
        assert mat5.packed(data[:128], mat5.elements(data)) == data


def test_every_directory_of_a_tiff_is_found():
    for seed in seed_images.tiffs(drawn(0)):
        [(_, entries, _)] = tiff.directories(seed.files["depth.tif"])
        assert {256, 257, 273} <= {entry.tag for entry in entries} | {273}
        assert len(entries) > 8


def test_only_damage_under_a_checksum_promises_the_same_values():
    sealed = Seed({"a.bin": bytes(100)}, whole({"a.bin": bytes(100)}))
    part = Seed({"a.bin": bytes(100)}, {"a.bin": ((50, 100),)})
    free = Seed({"a.bin": bytes(100)})
    promises = {}
    for name, seed in (("sealed", sealed), ("part", part), ("free", free)):
        mutants = [mutator()(drawn(index), [seed]) for index in range(200)]
        promises[name] = {each.promise for each in mutants if each.how == "bytes of a.bin"}
        for each in mutants:
            if name == "part" and each.promise == "same":
                assert each.files["a.bin"][:50] == bytes(50)
                assert len(each.files["a.bin"]) == 100
    assert promises == {"sealed": {"same"}, "part": {"any", "same"}, "free": {"any"}}


def test_a_repaired_checksum_promises_nothing():
    mutate = mutator(lambda rng, files: files)
    seed = Seed({"a.bin": bytes(100)}, whole({"a.bin": bytes(100)}))
    promises = [mutate(drawn(index), [seed]).promise for index in range(100)]
    assert 40 < promises.count("any") < 95


def test_zeros_are_deflated_without_being_held():
    stream = bomb_files.deflated_zeros(3, b"head")
    assert zlib.decompress(stream) == b"head" + bytes(3 << 20)


def test_the_summary_groups_faults_and_keeps_the_extremes():
    summary = Summary(seed=0)
    for index in range(5):
        outcome = InputOutcome("none", [("foreign", f"KeyError: '{index}' (cards.py:12)")], seconds=index)
        shown = summary.add(f"card:{index}", outcome, "bytes")
        assert len(shown) == (index == 0)
    summary.add("png:0", InputOutcome("read", growth_mib=7.0), "bytes")
    report = summary.report()
    assert [(each["count"], each["detail"]) for each in report["faults"]] == [(5, "KeyError at cards.py:12")]
    assert (report["inputs"], report["read"], report["with_faults"]) == (6, 1, 5)
    assert report["slowest"] == (4, "card:4")
    assert report["largest_growth_mib"] == (7.0, "png:0")
