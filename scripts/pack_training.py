"""Pack what a recipe needs on a machine without a network: packages, scanned objects, frames to validate on.

    python scripts/pack_training.py configs/pdn-any.toml PACK --data DATA --objects objects.npz
    scripts/train_packed.sh PACK WORK OUT SECONDS configs/pdn-any.toml     on the other machine

That machine has torch, numpy, pillow and safetensors for the Python version given, and a copy of this
checkout; docs/, tests/ and the shipped weights may be left out. PACK is 53 MB for the recipe of `pdn-any`.
"""

import argparse
import lzma
import shutil
import subprocess
import sys
import tarfile
import tempfile
from importlib.metadata import version
from pathlib import Path
from zipfile import ZipFile

from primaldepth.training.recipe import read_recipe
from primaldepth.training.weights import commit

PACKAGES = (
    *("annotated-doc", "annotated-types", "click", "filelock", "fsspec", "lightning-fabric"),
    *("lightning-utilities", "markdown-it-py", "mdurl", "packaging", "pydantic", "pydantic-core", "rich"),
    *("shellingham", "tifffile", "typer", "typing-extensions", "typing-inspection"),
)
RENDERER = ("mitsuba", "drjit")
VARIANTS = ("cuda_ad_rgb", "llvm_ad_rgb", "scalar_rgb")
PLUGINS = (  # those that scenes name, and those that Mitsuba makes of numbers and colours in them
    *("area", "bitmap", "box", "constant", "cube", "d65", "diffuse", "envmap", "gaussian", "hdrfilm"),
    *("independent", "irregular", "mesh_attribute", "obj", "path", "perspective", "ply", "principled"),
    *("rawconstant", "rectangle", "regular", "sphere", "srgb", "tent", "twosided", "uniform"),
)
UNUSED = ("mitsuba/data/", "mitsuba/include/", "mitsuba/cmake/", "drjit/include/", "bin/")
FOLDERS = {
    "middlebury-2006": "middlebury_2006_half",
    "aligned-holes": "middlebury_2006_half",
    "noise-free": "noise_free/lu",  # NYUv2, the other half, is five times as large
    "real-holdout": "real_holdout",
}


def download(folder: Path, python: str) -> list[Path]:
    """Download the wheels of another Python version, in the versions that are installed here."""
    wanted = [f"{name}=={version(name)}" for name in (*PACKAGES, *RENDERER)]
    options = ["--no-deps", "--only-binary=:all:", "--python-version", python, "--dest", str(folder)]
    subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", *options, *wanted], check=True)  # noqa: S603
    return sorted(folder.glob("*.whl"))


def is_needed(name: str) -> bool:
    """Return whether a file of a wheel is needed to render surfaces in RGB and to train."""
    path = Path(name)
    if path.parent.as_posix() == "mitsuba/plugins":
        return path.stem in PLUGINS
    variant = path.name.split(".")[0]
    other = variant.startswith(("cuda_", "llvm_", "scalar_")) and variant not in VARIANTS
    return not (other or path.suffix == ".pyi" or name.startswith(UNUSED) or "/tests/" in name)


def write_archive(path: Path, folder: Path) -> None:
    """Write the files of a folder as .tar.xz."""
    with lzma.open(path, "wb", preset=6) as stream, tarfile.open(fileobj=stream, mode="w|") as archive:
        archive.add(folder, arcname=".")


def pack_packages(out: Path, python: str) -> None:
    """Write the Python packages as packages.tar.xz."""
    with tempfile.TemporaryDirectory() as place:
        tree = Path(place, "tree")
        for wheel in download(Path(place, "wheels"), python):
            with ZipFile(wheel) as files:
                files.extractall(tree, filter(is_needed, files.namelist()))  # noqa: S202
        write_archive(out / "packages.tar.xz", tree)


def pack_frames(out: Path, recipe: Path, data: Path) -> None:
    """Write the frames that the recipe validates on as frames.tar, uncompressed: pictures are."""
    validation = read_recipe(recipe).validation
    folders = {FOLDERS[name] for name in validation.names}
    with tarfile.open(out / "frames.tar", "w") as archive:
        for folder in sorted(folders):
            archive.add(data / folder, arcname=folder)


def main() -> None:
    """Write the pack and print the size of every file."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("recipe", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--data", type=Path, required=True, help="folder of the protocols' frames")
    parser.add_argument("--objects", type=Path, help="pack of scanned objects")
    parser.add_argument("--python", default="3.12", help="version of the other machine")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    pack_packages(arguments.out, arguments.python)
    pack_frames(arguments.out, arguments.recipe, arguments.data)
    if arguments.objects is not None:
        shutil.copy(arguments.objects, arguments.out / "objects.npz")
    (arguments.out / "commit").write_text(commit())
    for path in sorted(arguments.out.iterdir()):
        print(f"{path}: {path.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
