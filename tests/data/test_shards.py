"""Shards: the same bytes in any order, nothing lost when interrupted, damage named, read back as written."""

import json
import os
import shutil

import numpy as np
import pytest
import torch

from primaldepth.core.errors import FileFormatError, InputError
from primaldepth.data import shard_writer
from primaldepth.data.manifest import Manifest
from primaldepth.data.shard_writer import ShardWriter
from primaldepth.data.shards import Shards, shard_problems
from primaldepth.data.single_scenes import part_path, write_part

COUNT, SHARD = 10, 4


def record(scene):
    rng = np.random.default_rng(scene)
    return {
        "image": rng.integers(0, 256, (3, 5, 3), np.uint8),
        "depth": rng.random((3, 5), np.float32),
        "ids": rng.integers(0, 999, (3, 5), np.uint16),
        "valid": rng.random((3, 5)) < 0.5,
        "seed": np.asarray(scene, np.int64),
    }


def wanted(count=COUNT, **changed):
    made_with = {"preset": "fake", "size": 5, "textures": None, **changed}
    return Manifest(made_with=made_with, versions={"x": "1"}, scenes_per_shard=SHARD, count=count)


def fill(folder, scenes=None, count=COUNT):
    with ShardWriter(folder, wanted(count)) as writer:
        for scene in writer.missing() if scenes is None else scenes:
            write_part(folder, scene, record(scene))
            writer.add(scene)
    return folder


def tree(folder):
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != ".lock")
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@pytest.fixture
def whole(tmp_path):
    return fill(tmp_path / "whole")


def problems(folder):
    return shard_problems(folder, Manifest.read(folder))


def shard(folder, number=0):
    return folder / Manifest.read(folder).shards[number].file


class TestWriting:
    def test_what_lies_in_the_folder(self, whole):
        assert sorted(os.listdir(whole)) == [
            ".lock",
            "manifest.json",
            "scenes-000000000-000000004.safetensors",
            "scenes-000000004-000000008.safetensors",
            "scenes-000000008-000000010.safetensors",
        ]
        values = json.loads((whole / "manifest.json").read_text())
        assert values["count"] == COUNT
        assert [(entry["first"], entry["count"]) for entry in values["shards"]] == [(0, 4), (4, 4), (8, 2)]

    def test_any_order_gives_the_same_bytes(self, whole, tmp_path):
        assert tree(fill(tmp_path / "a", reversed(range(COUNT)))) == tree(whole)

    def test_interrupted_after_every_scene(self, whole, tmp_path):
        folder = tmp_path / "a"
        for scene in (3, 9, 0, 5, 1, 8, 7, 2, 4, 6):
            fill(folder, [scene])
        assert tree(folder) == tree(whole)

    def test_extended(self, whole, tmp_path):
        longer = tree(fill(tmp_path / "a", count=15))
        with ShardWriter(whole, wanted(15)) as writer:
            assert writer.missing() == [10, 11, 12, 13, 14]
        assert tree(fill(whole, count=15)) == longer

    def test_a_smaller_count_keeps_what_is_there(self, whole):
        before = tree(whole)
        fill(whole, count=3)
        assert tree(whole) == before

    def test_a_count_that_was_too_large_can_be_taken_back(self, whole, tmp_path):
        folder = fill(tmp_path / "a", [0, 1, 2, 3, 5, 20], count=1000)
        found = tree(fill(folder))
        assert found.pop("parts/000000020.safetensors")
        assert found == tree(whole)

    def test_an_error_keeps_what_is_finished(self, tmp_path):
        folder = tmp_path / "a"

        def fail():
            with ShardWriter(folder, wanted()) as writer:
                write_part(folder, 0, record(0))
                writer.add(0)
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            fail()
        with ShardWriter(folder, wanted()) as writer:
            assert writer.missing() == list(range(1, COUNT))

    def test_scenes_with_other_arrays_do_not_mix(self, tmp_path):
        def mix():
            with ShardWriter(tmp_path, wanted(2)) as writer:
                for scene, arrays in enumerate([record(0), {"image": np.zeros(3)}]):
                    write_part(tmp_path, scene, arrays)
                    writer.add(scene)

        with pytest.raises(FileFormatError, match=r"000000001\.safetensors: other arrays than in"):
            mix()

    def test_one_writer_at_a_time(self, tmp_path):
        with (
            ShardWriter(tmp_path, wanted()),
            pytest.raises(InputError, match="another process is rendering"),
            ShardWriter(tmp_path, wanted()),
        ):
            pass
        fill(tmp_path)  # the lock is free again

    def test_another_job_is_refused_by_name(self, whole):
        with pytest.raises(
            InputError, match=r"size is 5 there and 6 now; textures is None there and 'a' now"
        ):
            ShardWriter(whole, wanted(size=6, textures="a")).__enter__()
        other = wanted().model_copy(update={"versions": {"x": "2"}})
        with pytest.raises(InputError, match="version of x is '1' there and '2' now"):
            ShardWriter(whole, other).__enter__()

    def test_foreign_folders_are_left_alone(self, tmp_path):
        (tmp_path / "holiday.jpg").write_bytes(b"x")
        with pytest.raises(InputError, match=r"other files \(holiday.jpg\) and no manifest"):
            ShardWriter(tmp_path, wanted()).__enter__()
        with pytest.raises(InputError, match="is a file, not a folder"):
            ShardWriter(tmp_path / "holiday.jpg", wanted()).__enter__()
        assert (tmp_path / "holiday.jpg").read_bytes() == b"x"


class TestKilledBetweenSteps:
    """The moments a test cannot hit by chance: between two steps of writing a shard."""

    @pytest.mark.parametrize("place", [(shard_writer, "write_shard"), (ShardWriter, "_save")])
    def test_before_the_shard_or_the_manifest(self, whole, tmp_path, monkeypatch, place):
        folder = fill(tmp_path / "a", range(6))
        before = tree(whole)

        class Killed(BaseException):
            pass

        def killed(*_):
            raise Killed

        def interrupted():
            with ShardWriter(folder, wanted()) as writer:
                for scene in (6, 7):
                    write_part(folder, scene, record(scene))
                with monkeypatch.context() as patch:
                    patch.setattr(*place, killed)
                    patch.setattr(ShardWriter, "_remove_leftovers", lambda _: None)
                    writer.add(6)
                    writer.add(7)
                    writer.flush()

        with pytest.raises(Killed):
            interrupted()
        assert tree(fill(folder)) == before

    def test_leftovers_are_removed(self, whole):
        before = tree(whole)
        write_part(whole, 3, record(3))  # killed before the parts of a finished shard were removed
        (whole / "scenes-000000008-000000012.safetensors").write_bytes(b"not in the manifest")
        (whole / ".scenes-000000008.77-ab.safetensors").write_bytes(b"half")
        (whole / "parts" / ".000000009.77-ab.safetensors").write_bytes(b"half")
        assert tree(fill(whole)) == before


def entry(**changes):
    usual = {"file": "a.safetensors", "first": 0, "count": 4, "bytes": 9, "sha256": "0" * 64}
    return {**usual, **changes}


def manifest_text(**changes):
    return json.dumps({**wanted().model_dump(), **changes})


MANIFESTS = {
    "text": ("hello", "not a readable manifest"),
    "other": ('{"a": 1}', "not a manifest of rendered scenes"),
    "newer": ('{"format": "primaldepth-shards", "version": 2}', "version 2, this program reads 1"),
    "keys": ('{"format": "primaldepth-shards", "version": 1, "cuont": 1}', "did you mean 'count'"),
    "brackets": ("[" * 100_000, r"not a readable manifest \(nested deeper"),
    "digits": ('{"format": ' + "1" * 5000 + "}", r"not a readable manifest \(a number of more than"),
    "surrogate": ('{"format": "\\ud800"}', "not a readable manifest"),
    "long": (
        '{"format": "primaldepth-shards", "version": "%s"}' % ("x" * 10**6),
        r"version 'x{56}\.\.\., this",
    ),
    "scenes": (manifest_text(count=10**12), "'count': .*less than or equal to 4194304"),
    "first": (manifest_text(shards=[entry(first=10**12)]), "shards.0: 'first': .*less than or equal"),
    "count": (manifest_text(shards=[entry(count=10**12)]), "shards.0: 'count': .*less than or equal"),
    "overlap": (manifest_text(shards=[entry(), entry(file="b.safetensors")]), "two shards hold scene 0"),
    "one file": (manifest_text(shards=[entry(), entry(first=4)]), "two shards are in one file"),
}


class TestDamage:
    def flip(self, path):
        data = bytearray(path.read_bytes())
        data[-1] ^= 1
        path.write_bytes(data)

    def test_a_damaged_part_is_made_again(self, whole, tmp_path):
        folder = fill(tmp_path / "a", [0, 1, 2])
        self.flip(part_path(folder, 0))
        part_path(folder, 1).write_bytes(b"")
        with ShardWriter(folder, wanted()) as writer:
            assert writer.missing() == [0, 1, *range(3, COUNT)]
        assert tree(fill(folder)) == tree(whole)

    @pytest.mark.parametrize("how", ["missing", "bytes"])
    def test_a_missing_or_shorter_shard_is_made_again(self, whole, how):
        before, path = tree(whole), shard(whole, 1)
        path.unlink() if how == "missing" else path.write_bytes(path.read_bytes()[:-1])
        assert how in problems(whole)[0]
        with ShardWriter(whole, wanted()) as writer:
            assert writer.missing() == [4, 5, 6, 7]
            assert path.name in writer.damaged[0]
        assert tree(fill(whole)) == before

    def test_a_changed_shard_is_found_by_its_checksum(self, whole):
        self.flip(shard(whole, 1))
        assert problems(whole) == [f"{shard(whole, 1)}: differs from its checksum"]
        with pytest.raises(FileFormatError, match="differs from its checksum"):
            Shards(whole, verify=True)
        with ShardWriter(whole, wanted(), verify=True) as writer:
            assert writer.missing() == [4, 5, 6, 7]

    def test_an_intact_folder_has_no_problems(self, whole):
        assert problems(whole) == []
        assert len(Shards(whole, verify=True)) == COUNT

    def test_reading_damaged_files(self, whole):
        path = shard(whole, 1)
        path.write_bytes(path.read_bytes()[:-1])
        shards = Shards(whole)
        with pytest.raises(FileFormatError, match="cut short"):
            shards.load()
        with pytest.raises(FileFormatError, match="cut short"):
            shards[5]
        assert shards[0]["seed"] == 0
        shutil.copy(shard(whole, 2), path)
        with pytest.raises(FileFormatError, match="not the file its manifest describes"):
            shards.load(keys=["image"])

    @pytest.mark.parametrize(("text", "message"), MANIFESTS.values(), ids=MANIFESTS)
    def test_manifests(self, tmp_path, text, message):
        (tmp_path / "manifest.json").write_text(text)
        with pytest.raises(InputError, match=message):
            Shards(tmp_path)

    def test_a_manifest_cannot_name_files_elsewhere(self, whole):
        text = (whole / "manifest.json").read_text()
        (whole / "manifest.json").write_text(text.replace("scenes-000000000-", "../x-"))
        with pytest.raises(InputError, match="pattern"):
            Shards(whole)

    def test_pipes_are_not_waited_for(self, whole):
        shard(whole, 1).unlink()
        os.mkfifo(whole / "scenes-000000004-000000008.safetensors")
        with pytest.raises(InputError, match="is not a regular file"):
            Shards(whole)[5]
        (whole / "manifest.json").unlink()
        os.mkfifo(whole / "manifest.json")
        with pytest.raises(InputError, match="is not a regular file"):
            Shards(whole)

    def test_scenes_without_what_is_needed(self, whole):
        shards = Shards(whole)
        shards.check("depth", "image", "valid")
        with pytest.raises(InputError, match="no array 'guide_camera'; there are"):
            shards.check("guide_camera")

    @pytest.mark.parametrize(
        "changes",
        [
            {"depth": np.zeros((3, 5), np.uint8)},
            {"depth": np.zeros((3, 5, 1), np.float32)},
            {"image": np.zeros((3, 5, 4), np.uint8)},
            {"depth": np.zeros((4, 5), np.float32)},
            {"depth": np.zeros((0, 5), np.float32), "image": np.zeros((0, 5, 3), np.uint8)},
        ],
    )
    def test_scenes_of_other_types_or_shapes(self, tmp_path, changes):
        with ShardWriter(tmp_path, wanted(1)) as writer:
            write_part(tmp_path, 0, {**record(0), **changes})
            writer.add(0)
        with pytest.raises(
            FileFormatError, match=r"expected (float32\[n, n\]|uint8\[n, n, 3\])|different sizes"
        ):
            Shards(tmp_path).check("depth", "image")

    def test_folders_without_scenes(self, tmp_path):
        with pytest.raises(InputError, match="holds no rendered scenes"):
            Shards(tmp_path)
        with pytest.raises(InputError, match="not a folder"):
            Shards(tmp_path / "gone")


class TestReading:
    def test_one_and_all(self, whole):
        shards = Shards(whole)
        assert (len(shards), shards.missing, shards.scenes) == (COUNT, 0, list(range(COUNT)))
        for scene, found in enumerate(shards):
            for name, array in record(scene).items():
                np.testing.assert_array_equal(found[name], array)
                np.testing.assert_array_equal(shards[scene][name], array)
        assert shards[-1]["seed"] == COUNT - 1
        with pytest.raises(IndexError):
            shards[COUNT]

    def test_load_stacks_in_order(self, whole, monkeypatch):
        monkeypatch.setattr("primaldepth.data.shards._CHUNK", 100)  # several reads per shard
        found = Shards(whole).load()
        for name in record(0):
            expected = np.stack([record(scene)[name] for scene in range(COUNT)])
            assert found[name].dtype == torch.from_numpy(expected).dtype
            np.testing.assert_array_equal(found[name].numpy(), expected)

    @pytest.mark.parametrize(("start", "stop"), [(0, 4), (3, 9), (5, None), (-2, None), (4, 4), (9, 99)])
    def test_load_a_range(self, whole, start, stop):
        found = Shards(whole).load(keys=["seed"], start=start, stop=stop)
        assert list(found) == ["seed"]
        assert found["seed"].tolist() == list(range(COUNT))[start:stop]

    def test_load_into_memory_that_is_there(self, whole):
        shards = Shards(whole)
        out = shards.load(keys=["seed", "depth"], stop=4)
        found = shards.load(keys=["seed", "depth"], start=5, stop=9, out=out)
        assert found["depth"].data_ptr() == out["depth"].data_ptr()
        assert found["seed"].tolist() == [5, 6, 7, 8]
        with pytest.raises(InputError, match=r"out\['depth'\] is torch.float32 \(4, 3, 5\) on cpu, expected"):
            shards.load(keys=["depth"], out=out)
        with pytest.raises(InputError, match=r"expected contiguous torch.int64 \(4,\) on cpu"):
            shards.load(keys=["seed"], stop=4, out={"seed": torch.zeros(8, dtype=torch.int64)[::2]})

    def test_an_array_that_is_not_there(self, whole):
        with pytest.raises(InputError, match=r"no array 'colour'; there are .*depth"):
            Shards(whole).load(keys=["colour"])

    def test_an_unfinished_job_can_be_read(self, tmp_path):
        shards = Shards(fill(tmp_path / "a", [4, 5, 6, 7, 0]))
        assert (len(shards), shards.missing, shards.scenes) == (4, 6, [4, 5, 6, 7])
        assert shards.load()["seed"].tolist() == [4, 5, 6, 7]

    def test_an_empty_job_can_be_read(self, tmp_path):
        shards = Shards(fill(tmp_path / "a", []))
        assert (len(shards), shards.load()) == (0, {})

    @pytest.mark.gpu
    def test_load_on_the_gpu(self, whole):
        found, expected = Shards(whole).load("cuda"), Shards(whole).load()
        assert all(found[name].device.type == "cuda" for name in expected)
        assert all(torch.equal(found[name].cpu(), expected[name]) for name in expected)
