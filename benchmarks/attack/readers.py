"""Every way into the package: which files it is given and how they are read."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from benchmarks.attack import forms, hdf5, seed_images, seed_models, seed_recordings, seed_texts, tensors
from benchmarks.attack.cases import Reader, WrongResult
from benchmarks.attack.in_service import read_form
from benchmarks.attack.mutations import mutator
from benchmarks.attack.seed_images import SHAPE
from primaldepth.api import load_inputs
from primaldepth.cli import serve
from primaldepth.core.errors import InputError, PrimalDepthError
from primaldepth.data.shards import Shards
from primaldepth.data.single_scenes import is_whole
from primaldepth.data.tensor_file import read_arrays
from primaldepth.io import read_confidence, read_depth, read_guide
from primaldepth.io.cameras import read_cameras
from primaldepth.io.cameras.azure_kinect import read_azure_kinect
from primaldepth.io.cameras.realsense import read_realsense
from primaldepth.io.cameras.ros import read_ros
from primaldepth.io.pointcloud import read_ply
from primaldepth.io.sequences import read_recording
from primaldepth.io.sequences.ros_images import color_pixels, depth_metres
from primaldepth.networks.card import read_card
from primaldepth.networks.zoo import from_pretrained
from primaldepth.pipeline import ledger
from primaldepth.scenes.textures import decoded_picture
from primaldepth.training.checkpoint import read_checkpoint
from primaldepth.training.recipe import read_recipe


def _only(folder: Path) -> Path:
    """The one file of an input."""
    paths = [path for path in sorted(folder.iterdir()) if path.name != hdf5.OUTSIDE]
    return paths[0] if paths else folder / "missing"


def _depth(folder: Path) -> Any:
    depth = read_depth(_only(folder))
    if not depth.valid.any() or depth.values.dtype != np.float64:
        raise WrongResult(f"depth of {depth.values.dtype}, {int(depth.valid.sum())} valid")
    return depth


def _guide(folder: Path) -> Any:
    guide = read_guide(_only(folder))
    well = guide.ndim == 3 and guide.dtype == np.float32 and guide.shape[2] in (1, 3)
    if not (well and np.isfinite(guide).all() and guide.min() >= 0 and guide.max() <= 1):
        raise WrongResult(f"guide {guide.shape} of {guide.dtype}")
    return guide


def _ros(folder: Path) -> Any:
    return read_ros(folder / "guide.yaml", folder / "depth.yaml", folder / "transform.json")


def _shards(folder: Path) -> Any:
    found = Shards(folder, verify=True)
    return [found.load(threads=1), [{name: np.array(each) for name, each in one.items()} for one in found]]


def _part(folder: Path) -> Any:
    path = _only(folder)
    if not is_whole(path):
        raise InputError(f"{path}: not whole")
    return {name: np.array(each) for name, each in read_arrays(path).items()}


def _recording(root: Path) -> Any:
    """Every shot as the command line reads it; one that is refused does not end the others."""
    recording = read_recording(root)
    found: list[Any] = []
    for shot in list(recording)[:20]:
        try:
            content = shot.read()
            given = {"confidence": content.confidence, "cameras": content.cameras}
            found.append(load_inputs(content.depth, content.guide, unit=recording.unit, **given).frame)
        except PrimalDepthError as error:
            if "\n" in str(error):
                raise WrongResult(f"message of several lines: {error}") from error
    return found


def _bag_1(folder: Path) -> Any:
    return _recording(folder / "a.bag")


def _bag_2(folder: Path) -> Any:
    return _recording(folder / "bag")


def _ros_image(folder: Path) -> Any:
    """A compressed image of a message."""
    path = _only(folder)
    message = SimpleNamespace(data=path.read_bytes(), format="16UC1; compressedDepth")
    return (depth_metres if path.name.startswith("depth") else color_pixels)(message, path)


def _alone(read: Callable[..., Any], *more: Any) -> Callable[[Path], Any]:
    """Return the reader of an input that is one file."""
    return lambda folder: read(_only(folder), *more)


plain = mutator()
READERS: tuple[Reader, ...] = (
    Reader("png", 90, seed_images.png_depths, plain, _depth),
    Reader("png-guide", 60, seed_images.png_guides, plain, _guide),
    Reader("jpeg", 60, seed_images.jpeg_guides, plain, _guide),
    Reader("tiff", 70, seed_images.tiffs, plain, _depth),
    Reader("tiff-guide", 30, partial(seed_images.tiffs, channels=3), plain, _guide),
    Reader("tiff-apart", 4, seed_images.tiffs_apart, plain, _depth, apart=True),
    Reader("tiff-guide-apart", 4, seed_images.tiff_guides_apart, plain, _guide, apart=True),
    Reader("exr", 60, seed_images.exrs, plain, _depth),
    Reader("exr-guide", 15, seed_images.exr_guides, plain, _guide),
    Reader("exr-apart", 4, seed_images.exrs_apart, plain, _depth, apart=True),
    Reader("pfm", 20, seed_images.pfms, plain, _depth),
    Reader("pnm", 20, seed_images.pnms, plain, _depth),
    Reader("npy", 30, seed_images.npys, plain, _depth),
    Reader("npz", 60, seed_images.npzs, plain, _depth),
    Reader("mat5", 60, seed_images.mats, plain, _depth),
    Reader("mat73", 3, seed_images.mats73, hdf5.mutated, _depth, apart=True),
    Reader("confidence", 30, seed_images.confidences, plain, _alone(read_confidence, SHAPE)),
    Reader("cameras", 60, seed_texts.cameras, plain, _alone(read_cameras)),
    Reader("matrix", 20, seed_texts.matrices, plain, _alone(read_cameras, (640, 480))),
    Reader("realsense", 40, seed_texts.realsenses, plain, _alone(read_realsense)),
    Reader("azure-kinect", 30, seed_texts.azures, plain, _alone(read_azure_kinect)),
    Reader("ros", 40, seed_texts.ros_rigs, plain, _ros),
    Reader("card", 30, seed_models.cards, plain, lambda folder: read_card(folder / "net.json")),
    Reader(
        "weights",
        25,
        seed_models.networks,
        mutator(tensors.mend_card),
        lambda folder: from_pretrained(folder / "net.safetensors").state_dict(),
    ),
    Reader("checkpoint", 15, seed_models.checkpoints, plain, read_checkpoint),
    Reader("recipe", 40, seed_texts.recipes, plain, lambda folder: read_recipe(folder / "recipe.toml")),
    Reader("shards", 30, seed_models.shards, mutator(tensors.mend_manifest), _shards),
    Reader("part", 20, seed_models.parts, mutator(tensors.mend_part), _part),
    Reader("token", 5, seed_texts.tokens, plain, _alone(serve._token)),
    Reader("journal", 10, seed_texts.journals, plain, _alone(ledger._read)),
    Reader("cloud", 10, seed_texts.clouds, plain, _alone(read_ply)),
    Reader("texture", 10, seed_recordings.textures, plain, _alone(decoded_picture)),
    Reader("tum", 6, seed_recordings.tums, plain, _recording),
    Reader("stray-scanner", 6, seed_recordings.strays, plain, _recording),
    Reader("record3d", 8, seed_recordings.record3ds, plain, _recording),
    Reader("film", 8, seed_recordings.films, plain, _recording),
    Reader("bag-1", 4, seed_recordings.bags_1, plain, _bag_1),
    Reader("sdk-bag", 4, seed_recordings.sdk_bags, plain, _bag_1),
    Reader("polycam", 6, seed_recordings.polycams, plain, _recording),
    Reader("scanner-app", 6, seed_recordings.scanner_apps, plain, _recording),
    Reader("one-folder", 4, seed_recordings.seven_scenes, plain, _recording),
    Reader("bag-2", 4, seed_recordings.bags_2, plain, _bag_2),
    Reader("mcap", 4, seed_recordings.mcaps, plain, _bag_2),
    Reader("ros-image", 20, seed_recordings.compressed_images, plain, _ros_image),
    Reader("form", 60, seed_models.bodies, forms.mutated, read_form),
)
