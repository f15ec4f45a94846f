"""Bags of every kind are read alike, and what they claim is checked before it is believed."""

import bz2
import os
import random
import sqlite3
import struct
import zlib
from contextlib import suppress

import numpy as np
import pytest

import recording_files as layouts
from primaldepth.core.errors import FileFormatError, InputError, PrimalDepthError
from primaldepth.io.sequences import read_recording
from primaldepth.io.sequences.bags import packing
from primaldepth.io.sequences.bags.mcap import MAGIC, McapFile

rosbag1 = pytest.importorskip("rosbags.rosbag1")
rosbag2 = pytest.importorskip("rosbags.rosbag2")
lz4 = pytest.importorskip("lz4.frame")
zstd = pytest.importorskip("backports.zstd")


def packed_by(name):
    """Options and a preparation of the writer."""
    if name in ("bz2", "lz4"):
        return {"ros": 1, "prepare": lambda w: w.set_compression(w.CompressionFormat[name.upper()])}
    storage, _, mode = name.partition("-")
    options = {"storage_plugin": rosbag2.StoragePlugin[storage.upper()]}
    if not mode:
        return {"options": options}
    packing_of = (rosbag2.CompressionMode[mode.upper()], rosbag2.CompressionFormat.ZSTD)
    return {"options": options, "prepare": lambda w: w.set_compression(*packing_of)}


KINDS = (
    *("ros1", "bz2", "lz4", "sqlite3", "sqlite3-file", "sqlite3-message"),
    *("mcap", "mcap-file", "mcap-message", "mcap-storage"),
)


def write(tmp_path, kind, **more):
    """The path of a bag of that kind."""
    chosen = {"ros": 1} if kind == "ros1" else packed_by(kind)
    place = tmp_path / (f"{kind}.bag" if chosen.get("ros") == 1 else kind)
    layouts.write_bag(place, **chosen, **more)
    return place


def check_content(recording, *, compressed=False):
    assert len(recording) == layouts.COUNT
    for number, shot in enumerate(recording):
        content = shot.read()
        np.testing.assert_allclose(content.depth, layouts.depth_of(number), rtol=1e-6)
        off = np.abs(content.guide.astype(int) - layouts.image_of(number).astype(int)).max()
        assert off <= (8 if compressed else 0)
        assert content.cameras.guide.fx == 30.0


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_read(tmp_path, kind, compressed):
    place = write(tmp_path, kind, compressed=compressed)
    check_content(read_recording(place), compressed=compressed)


@pytest.mark.parametrize("kind", ["sqlite3", "mcap"])
def test_a_file_stands_for_its_folder_or_for_itself(tmp_path, kind):
    place = write(tmp_path, kind)
    (file,) = (path for path in place.iterdir() if path.suffix != ".yaml")
    check_content(read_recording(file))
    (place / "metadata.yaml").unlink()
    check_content(read_recording(file))


def test_names_are_files_whatever_they_look_like(tmp_path):
    """A name with a question mark and a percent sign is no address of a database."""
    place = write(tmp_path, "sqlite3")
    (file,) = place.glob("*.db3")
    odd = tmp_path / "a?mode=memory&%41#b.db3"
    file.rename(odd)
    check_content(read_recording(odd))


def png_chunk(name, content):
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))


@pytest.mark.parametrize("kind", ["ros1", "sqlite3", "mcap"])
def test_one_bad_frame_leaves_the_others(tmp_path, kind):
    """A compressed image of any content is an error of ours that names the bag, for its shot alone."""
    head = b"\x89PNG\r\n\x1a\n" + png_chunk(b"IHDR", struct.pack(">IIBBBBB", 60_000, 60_000, 8, 2, 0, 0, 0))
    bombs = [
        head + png_chunk(b"IDAT", zlib.compress(bytes(100))) + png_chunk(b"IEND", b""),
        b"\x89PNG\r\n\x1a\n" + b"x" * 50,
        b"GIF89a" + bytes(20),
        b"%!PS-Adobe\n",
        b"",
        b"\xff\xd8\xff" + bytes(9),
    ]
    for bad in bombs:

        def change(name, shot, data, bad=bad):
            place = data.find(b"\xff\xd8")
            if name != layouts.COLOR or shot != 1:
                return data
            return data[: place - 4] + struct.pack("<I", len(bad)) + bad

        folder = tmp_path / str(bombs.index(bad))
        folder.mkdir()
        place = write(folder, kind, compressed=True, change=change)
        recording = read_recording(place)
        with pytest.raises(InputError, match=str(place)):
            recording.shots[1].read()
        for number in (0, 2):
            np.testing.assert_allclose(
                recording.shots[number].read().depth, layouts.depth_of(number), rtol=1e-6
            )


@pytest.mark.parametrize("kind", ["ros1", "sqlite3", "mcap"])
@pytest.mark.parametrize("length", [0x7FFFFFFF, 0xFFFFFFFF])
def test_texts_and_images_of_absurd_lengths(tmp_path, kind, length):
    def change(name, shot, data):
        place = data.find(b"bgr8") - 4
        return (
            data
            if name != layouts.COLOR or shot
            else data[:place] + struct.pack("<I", length) + data[place + 4 :]
        )

    with pytest.raises(FileFormatError, match="not a readable bag"):
        read_recording(write(tmp_path, kind, change=change))


@pytest.mark.parametrize("width", [0, 2**31])
def test_images_of_absurd_sizes(tmp_path, width):
    def change(name, shot, data):
        place = data.find(b"camera\0") + 8 + 4  # after the height
        return (
            data
            if name != layouts.COLOR or shot
            else data[:place] + struct.pack("<I", width) + data[place + 4 :]
        )

    with pytest.raises(FileFormatError, match="too short"):
        read_recording(write(tmp_path, "sqlite3", change=change)).shots[0].read()


@pytest.mark.parametrize("kind", ["ros1", "sqlite3", "mcap"])
def test_pipes_are_not_waited_for(tmp_path, kind):
    place = write(tmp_path, kind)
    file = place if place.is_file() else next(path for path in place.iterdir() if path.suffix != ".yaml")
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(InputError, match=r"is not a regular file|not a recording"):
        read_recording(place)


class TestPacking:
    """A few bytes cannot become many."""

    GIANT = 2**30

    @pytest.mark.parametrize("how", ["bz2", "lz4", "zstd"])
    def test_claims_out_of_proportion_are_refused(self, how):
        with pytest.raises(ValueError, match="100 bytes claim to hold 1073741824"):
            packing.unpack(bytes(100), how, self.GIANT)

    @pytest.mark.parametrize("how", ["bz2", "lz4", "zstd"])
    def test_nothing_is_unpacked_beyond_the_claim(self, how):
        data = {"bz2": bz2.compress, "lz4": lz4.compress, "zstd": zstd.compress}[how](bytes(2**22))
        assert packing.unpack(data, how, 2**22) == bytes(2**22)
        for size in (2**22 - 1, 10, 0, 2**22 + 1):
            with pytest.raises(ValueError, match=r"holds another number|cut short"):
                packing.unpack(data, how, size)
        with pytest.raises((ValueError, RuntimeError, OSError)):
            packing.unpack(data[:-20], how, 2**22)

    def test_unknown_ways(self):
        with pytest.raises(ValueError, match="unknown way"):
            packing.unpack(b"", "brotli", 10)

    def test_messages_and_files(self, tmp_path, monkeypatch):
        assert packing.unpack_message(b"plain") == b"plain"
        assert packing.unpack_message(zstd.compress(bytes(1000))) == bytes(1000)
        monkeypatch.setattr(packing, "_SPARE", 1000)
        monkeypatch.setattr(packing, "_RATIO", 10)
        monkeypatch.setattr(packing, "_FILE_RATIO", 10)
        data = zstd.compress(bytes(2**20))
        with pytest.raises(ValueError, match="of a message hold more than"):
            packing.unpack_message(data)
        (tmp_path / "a").write_bytes(data)
        with pytest.raises(ValueError, match="hold far more"):
            packing.unpack_file(tmp_path / "a", tmp_path / "b", packing.Allowance())
        (tmp_path / "a").write_bytes(zstd.compress(os.urandom(3000))[:-50])
        with pytest.raises(ValueError, match="cut short"):
            packing.unpack_file(tmp_path / "a", tmp_path / "b", packing.Allowance())


def record(kind, content):
    return bytes([kind]) + struct.pack("<Q", len(content)) + content


def text(value):
    return struct.pack("<I", len(value)) + value.encode()


SCHEMA = record(3, struct.pack("<H", 1) + text("sensor_msgs/msg/Image") + text("ros2msg") + text(""))
CHANNEL = record(4, struct.pack("<HH", 7, 1) + text("/image") + text("cdr") + text(""))


def message(time, content=b"x"):
    return record(5, struct.pack("<HIQQ", 7, 0, time, time) + content)


def chunk(content, *, size=None, checksum=None, how=""):
    inner = zstd.compress(content) if how == "zstd" else content
    head = struct.pack("<QQQ", 0, 9, len(content) if size is None else size)
    head += struct.pack("<I", zlib.crc32(content) if checksum is None else checksum)
    return record(6, head + text(how) + struct.pack("<Q", len(inner)) + inner)


def mcap(tmp_path, *records):
    path = tmp_path / "a.mcap"
    path.write_bytes(
        MAGIC + record(1, text("ros2") + text("")) + b"".join(records) + record(2, bytes(20)) + MAGIC
    )
    return path


class TestMcap:
    def messages(self, path):
        file = McapFile(path)
        assert dict(file.connections) == {7: ("/image", "sensor_msgs/msg/Image")}
        return [(row[0], file.message(7, row[1], row[2])) for row in file.rows(7).tolist()]

    def test_messages_without_chunks(self, tmp_path):
        path = mcap(tmp_path, SCHEMA, CHANNEL, message(5, b"first"), message(3, b""))
        assert self.messages(path) == [(5, b"first"), (3, b"")]

    @pytest.mark.parametrize("how", ["", "zstd"])
    def test_chunks_without_an_index(self, tmp_path, how):
        path = mcap(tmp_path, chunk(SCHEMA + CHANNEL + message(5) + message(6, b"yy"), how=how))
        assert self.messages(path) == [(5, b"x"), (6, b"yy")]

    def test_an_index_of_a_topic_that_only_the_chunk_names(self, tmp_path):
        content = SCHEMA + CHANNEL + message(5)
        table = struct.pack("<QQ", 5, len(SCHEMA + CHANNEL))
        index = record(7, struct.pack("<HI", 7, len(table)) + table)
        assert self.messages(mcap(tmp_path, chunk(content), index)) == [(5, b"x")]

    def test_a_checksum_that_differs(self, tmp_path):
        with pytest.raises(ValueError, match="differs from its checksum"):
            McapFile(mcap(tmp_path, chunk(SCHEMA + CHANNEL + message(5), checksum=1)))

    @pytest.mark.parametrize(
        "records",
        [
            (chunk(SCHEMA, size=2**40),),
            (chunk(SCHEMA, size=2**40, how="zstd"),),
            (record(7, struct.pack("<HI", 7, 0xFFFFFFFF)),),
            (chunk(SCHEMA), record(7, struct.pack("<HI", 7, 0xFFFFFFFF))),
            (SCHEMA, CHANNEL, message(2**63)),
            (bytes([6]) + struct.pack("<Q", 2**64 - 1),),
            (record(4, struct.pack("<HHI", 7, 1, 0xFFFFFFFF)),),
            (*(record(4, struct.pack("<HH", n, 1) + text("/t") + text("cdr")) for n in range(5000)),),
        ],
    )
    def test_absurd_claims(self, tmp_path, records):
        with pytest.raises(FileFormatError, match="not a readable bag"):
            read_recording(mcap(tmp_path, *records))


class TestSqlite:
    @pytest.fixture
    def database(self, tmp_path):
        (path,) = write(tmp_path, "sqlite3").glob("*.db3")
        with sqlite3.connect(path) as database:
            yield path, database
        database.close()

    def refused(self, path, database, match="not a readable bag"):
        database.commit()
        with pytest.raises(FileFormatError, match=match):
            read_recording(path)

    def test_a_view_that_never_ends(self, database):
        path, tables = database
        tables.executescript(
            "ALTER TABLE messages RENAME TO kept; CREATE VIEW messages AS WITH RECURSIVE n(id) AS "
            "(SELECT 1 UNION ALL SELECT id + 1 FROM n) SELECT id, 1 topic_id, id timestamp, x'00' data FROM n"
        )
        self.refused(path, tables, "no plain tables")

    def test_columns_that_are_computed(self, database):
        path, tables = database
        tables.execute("ALTER TABLE messages ADD COLUMN more INT AS (length(zeroblob(99999999)))")
        self.refused(path, tables, "no plain tables")

    def test_more_steps_than_the_file_can_have_rows(self, database, monkeypatch):
        path, tables = database
        monkeypatch.setattr("primaldepth.io.sequences.bags.sqlite._STEPS", 1)
        tables.executemany(
            "INSERT INTO topics VALUES (?, 'x', 'y', 'cdr', '', '')", ((n,) for n in range(9, 999))
        )
        tables.commit()
        monkeypatch.setattr("primaldepth.io.sequences.bags.sqlite._BUDGET", 100)
        monkeypatch.setattr("primaldepth.io.sequences.bags.sqlite._PER_BYTE", 0)
        self.refused(path, tables, "interrupted")

    @pytest.mark.parametrize("value", ["NULL", "'soon'", "1.5", "x'00'"])
    def test_times_and_messages_of_other_types(self, database, value):
        path, tables = database
        columns = f"id, topic_id, {value} timestamp, {value} data"
        tables.execute(f"CREATE TABLE other AS SELECT {columns} FROM messages")  # noqa: S608
        tables.executescript("DROP TABLE messages; ALTER TABLE other RENAME TO messages")
        self.refused(path, tables, "no message on|not a readable bag")


DAMAGED = 60


@pytest.mark.parametrize("kind", [*KINDS[:3], "sqlite3", "mcap", "mcap-storage"])
def test_damage_anywhere_is_told(tmp_path, kind):
    """Whatever bytes are changed, a bag is read or refused with an error of ours."""
    place = write(tmp_path, kind, compressed=True)
    file = place if place.is_file() else next(path for path in place.iterdir() if path.suffix != ".yaml")
    good, rng = file.read_bytes(), random.Random(kind)  # noqa: S311
    for _ in range(DAMAGED):
        data = bytearray(good)
        for _ in range(rng.choice((1, 3))):
            at = rng.randrange(len(data))
            data[at : at + 4] = rng.choice((b"\xff" * 4, b"\0" * 4, rng.randbytes(4), b""))
        file.write_bytes(data)
        with suppress(PrimalDepthError):
            for shot in read_recording(place):
                shot.read()


def test_a_bag_of_many_topics_of_images(tmp_path):
    channels = [record(4, struct.pack("<HH", n, 1) + text(f"/t{n}") + text("cdr")) for n in range(100)]
    with pytest.raises(FileFormatError, match="100 topics of images, more than 64"):
        read_recording(mcap(tmp_path, SCHEMA, *channels))


def test_names_of_topics_cannot_write_to_the_terminal(tmp_path):
    channels = [record(4, struct.pack("<HH", 1, 1) + text("/\x1b[2Jtopic") + text("cdr")), CHANNEL]
    with pytest.raises(FileFormatError) as caught:
        read_recording(mcap(tmp_path, SCHEMA.replace(b"Image", b"Other"), *channels))
    assert "\x1b" not in str(caught.value)
    assert "found /image (Other)" in str(caught.value)


def packed_zeros(mebibytes):
    return zstd.compress(bytes(mebibytes << 20))


def packed_bag(folder, **files):
    folder.mkdir()
    (folder / "metadata.yaml").write_text("rosbag2_bagfile_information:\n  version: 5\n")
    for name, data in files.items():
        (folder / f"{name}.db3.zstd").write_bytes(data)
    return folder


def unpacked_bytes(monkeypatch, tmp_path):
    """A function that tells how much was written to the temporary folder."""
    written = []
    take = packing.Allowance.take
    monkeypatch.setattr(packing.Allowance, "take", lambda self, n: (written.append(n), take(self, n)))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return lambda: sum(written)


def test_the_packed_files_of_a_bag_share_what_they_may_hold(tmp_path, monkeypatch):
    """Each file holds what one file may, and together they would fill the disk."""
    data, written = packed_zeros(15), unpacked_bytes(monkeypatch, tmp_path)
    folder = packed_bag(tmp_path / "bag", **{f"a{index}": data for index in range(20)})
    with pytest.raises(FileFormatError, match="packed files hold far more than recordings do"):
        read_recording(folder)
    assert written() < 40 << 20
    assert [path.name for path in tmp_path.iterdir()] == ["bag"]


def test_the_length_of_a_file_with_a_hole_counts_for_nothing(tmp_path, monkeypatch):
    written = unpacked_bytes(monkeypatch, tmp_path)
    folder = packed_bag(tmp_path / "bag", a=packed_zeros(100))
    os.truncate(folder / "a.db3.zstd", 2**40)
    with pytest.raises(FileFormatError, match="packed files hold far more than recordings do"):
        read_recording(folder)
    assert written() < 40 << 20


def test_a_bag_of_too_many_files(tmp_path, monkeypatch):
    monkeypatch.setattr("primaldepth.io.sequences.bags.MOST_FILES", 3)
    folder = packed_bag(tmp_path / "bag", **{f"a{index}": packed_zeros(0) for index in range(4)})
    with pytest.raises(FileFormatError, match="holds more than 3 files"):
        read_recording(folder)
