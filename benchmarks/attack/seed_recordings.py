"""Small valid recordings: folders of depth maps and images, videos, and bags of ROS."""

import random
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image

from benchmarks.attack.cases import Files, Seed
from benchmarks.attack.seed_images import saved

sys.path.append(str(Path(__file__).parents[2] / "tests"))
import recording_files


def _folder(write: Callable[[Path], object]) -> Files:
    """Files by their names relative to the folder that `write` fills."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        write(root)
        paths = [path for path in sorted(root.rglob("*")) if path.is_file()]
        return {str(path.relative_to(root)): path.read_bytes() for path in paths}


def _written(write: Callable[[Path], object]) -> Callable[[random.Random], list[Seed]]:
    """Return what makes the one folder that `write` fills."""
    return lambda _: [Seed(_folder(write))]


tums = _written(recording_files.write_tum)
strays = _written(recording_files.write_stray_scanner)
polycams = _written(recording_files.write_polycam)
scanner_apps = _written(recording_files.write_scanner_app)
seven_scenes = _written(recording_files.write_seven_scenes)
bags_1 = _written(lambda root: recording_files.write_bag(root / "a.bag", ros=1))
sdk_bags = _written(lambda root: recording_files.write_sdk_bag(root / "a.bag"))
bags_2 = _written(lambda root: recording_files.write_bag(root / "bag", ros=2))


def record3ds(rng: random.Random) -> list[Seed]:
    files = _folder(recording_files.write_record3d)
    own = b'{"w": 64, "h": 48, "perFrameIntrinsicCoeffs": [[60.0, 60.0, 31.5, 23.5]], "K": [60.0]}'
    return [Seed(files), Seed({**files, "metadata.json": own})]


def films(rng: random.Random) -> list[Seed]:
    """StrayScanner with a video in each of three containers."""
    whole = _folder(lambda root: recording_files.write_stray_scanner(root, film=True))
    rest = {name: data for name, data in whole.items() if name != "rgb.mp4"}
    kinds = {
        suffix: saved(lambda path: recording_files.write_film(Path(path)), suffix)
        for suffix in (".avi", ".mkv")
    }
    return [Seed(whole), *(Seed({**rest, f"rgb{suffix}": data}) for suffix, data in kinds.items())]


def mcaps(rng: random.Random) -> list[Seed]:
    """The bag of ROS 2 converted to mcap."""

    def write(root: Path) -> None:
        from rosbags.rosbag2 import Reader, StoragePlugin, Writer
        from rosbags.typesys import Stores, get_typestore

        recording_files.write_bag(root / "old", ros=2)
        types = get_typestore(Stores.ROS2_HUMBLE)
        with (
            Reader(root / "old") as old,
            Writer(root / "bag", version=9, storage_plugin=StoragePlugin.MCAP) as new,
        ):
            topics = {
                each.id: new.add_connection(each.topic, each.msgtype, typestore=types)
                for each in old.connections
            }
            for connection, time, raw in old.messages():
                new.write(topics[connection.id], time, raw)
        for path in [*(root / "old").iterdir()]:
            path.unlink()

    return [Seed(_folder(write))]


def compressed_images(rng: random.Random) -> list[Seed]:
    """Images as a message of ROS holds them; a compressed depth map begins with twelve bytes of its own."""
    depth = Image.fromarray(np.arange(1000, 1048, dtype=np.uint16).reshape(6, 8))
    colour = Image.fromarray(recording_files.image_of(0))
    found = [{"depth.png": saved(depth.save, ".png")}]
    found += [{"color.jpg": saved(colour.save, ".jpg")}, {"color.png": saved(colour.save, ".png")}]
    return [Seed(files) for files in found]


def textures(rng: random.Random) -> list[Seed]:
    colour = Image.fromarray(recording_files.image_of(1))
    return [
        Seed({f"a{suffix}": saved(colour.save, suffix)})
        for suffix in (".jpg", ".png", ".tif", ".webp", ".bmp")
    ]
