"""Weights on disk: NAME.safetensors with NAME.json beside it, checked to the last tensor on reading."""

import hashlib
import os
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import torch
from torch import Tensor

from primaldepth.core.errors import FileFormatError, InputError, MissingFileError, shortened, unknown_name
from primaldepth.io.atomic import write_bytes
from primaldepth.io.files import open_file, reading
from primaldepth.networks.card import ModelCard, read_card
from primaldepth.networks.joint import DepthNet, NetworkSettings

SCALES = (2, 4, 8, 16)


@dataclass(frozen=True, slots=True)
class Shipped:
    """A network that comes with the package.

    Args:
        weights: name of its files.
        summary: for the list of methods.
        scales: it was trained for, each with its own weights; none: one set of weights for all.
        uses_guide: whether it looks at the image.
        gives_sigma: whether it says how far it may be off.
        has_solver: whether a primal-dual part follows the convolutions.
        partner: the network that it is averaged with where samples are not averages over pixels.
    """

    weights: str
    summary: str
    scales: tuple[int, ...] = SCALES
    uses_guide: bool = True
    gives_sigma: bool = False
    has_solver: bool = True
    partner: str | None = None

    @property
    def files(self) -> dict[int | None, Path]:
        """The weight files there should be, by scale."""
        if not self.scales:
            return {None: weights_folder() / f"{self.weights}.safetensors"}
        return {scale: weights_folder() / f"{self.weights}-x{scale}.safetensors" for scale in self.scales}

    @property
    def present(self) -> dict[int | None, Path]:
        """Weight files of this network that ship with the package."""
        return {scale: path for scale, path in self.files.items() if path.is_file()}


SHIPPED = {
    "fcn-d": Shipped("fcn-d", "convolutional network on the depth alone", uses_guide=False, has_solver=False),
    "fcn-s": Shipped("fcn-s", "convolutional network on depth and guide", has_solver=False),
    "fcn+nlh-d": Shipped("fcn-d", "fcn-d, then nlh-l2 with its affinities", uses_guide=False),
    "fcn+nlh-s": Shipped("fcn-s", "fcn-s, then nlh-l2 with its affinities"),
    "fcn-pdn-d": Shipped("fcn-pdn-d", "fcn-d and a solver trained with it", uses_guide=False),
    "fcn-pdn-s": Shipped("fcn-pdn-s", "fcn-s and a solver trained with it: the paper's network"),
    "pdn-any": Shipped(
        "pdn-any",
        "one network for every scale, noise and sensor",
        (),
        gives_sigma=True,
        partner="pdn-any-small",
    ),
    "pdn-any-small": Shipped("pdn-any-small", "the same for CPUs and small devices", (), gives_sigma=True),
}
UNTRAINED = {"iterations": 20, "model": "nlh-l2"}
_SUFFIXES = (".safetensors", ".json")
_STORED = (torch.float32, torch.float16)
_LEAST_BYTES, _MOST_BYTES = 2, 8  # of one stored parameter; types of 8 bytes are told by name
_LONGEST_HEADER = 2**20


def load(name: str, scale: int | None = None, device: torch.device | str = "cpu") -> DepthNet:
    """Load a network that ships with the package, in evaluation mode.

    Args:
        name: of a network in `primaldepth methods`, such as "pdn-any".
        scale: ratio of the sizes, one of those the network has weights for; not read by a network with one
            set of weights.
        device: the network is moved there.

    Returns:
        A `torch.nn.Module`.

    Raises:
        InputError: if the name is unknown, or there are no weights for this scale.

    Example:
        >>> import primaldepth
        >>> net = primaldepth.load("fcn-pdn-s", scale=8)
        >>> net.training, net.settings.iterations
        (False, 20)
    """
    if name not in SHIPPED:
        raise unknown_name("network", name, SHIPPED)
    files = SHIPPED[name].files
    if len(files) == 1:
        path = next(iter(files.values()))
    elif scale not in files:
        known = ", ".join(map(str, files))
        raise InputError(f"network '{name}'", f"scale {scale} is not one of {known}", "give one of them")
    else:
        path = files[scale]
    if not path.is_file():
        raise InputError(
            f"network '{name}'",
            f"no trained weights exist yet for this name and scale {scale}",
            "train them, or read your own with from_pretrained",
        )
    net = from_pretrained(path)
    return _moved(_with_untrained_solver(net) if "+nlh" in name else net, device)


def weights_folder() -> Path:
    """Return the folder of the weight files that ship with the package."""
    return Path(str(files("primaldepth") / "weights"))


def from_pretrained(path: str | os.PathLike[str]) -> DepthNet:
    """Load a network from a file of weights and the card beside it.

    Args:
        path: NAME.safetensors, NAME without its extension, or a folder that holds one network.

    Returns:
        The network on the CPU, in evaluation mode.

    Raises:
        InputError: if a file is missing, damaged, or does not fit its card.

    Example:
        >>> import primaldepth
        >>> from primaldepth.networks.zoo import weights_folder
        >>> net = primaldepth.from_pretrained(weights_folder() / "fcn-s-x4.safetensors")
        >>> net.settings.iterations  # convolutions alone
        0
    """
    weights, card_path = _pair(_found(Path(path)))
    try:
        file = open_file(weights)
    except MissingFileError as error:
        raise MissingFileError(weights, "no such weight file", "check the name") from error
    with file, reading(weights):
        card = read_card(card_path)
        data = file.read(_checked_size(weights, os.fstat(file.fileno()).st_size, card))
    tensors = _parsed(weights, data)
    digest = hashlib.sha256(data).hexdigest()
    if digest != card.sha256:
        raise FileFormatError(
            weights,
            f"sha256 {digest[:12]}, but {card_path.name} says {card.sha256[:12] or 'nothing'}",
            "the file is damaged or not the one the card describes, copy both again",
        )
    with torch.device("meta"):  # shapes alone: a wrong card cannot ask for memory, nor for random numbers
        net = _network(card.settings, card_path)
    _check_tensors(weights, tensors, net.state_dict())
    floats = {name: tensor.float() for name, tensor in tensors.items()}
    net.load_state_dict(floats, strict=True, assign=True)
    return net.eval()


def card_of(path: str | os.PathLike[str]) -> ModelCard:
    """Return the card of a saved network.

    Args:
        path: as `from_pretrained` takes it.

    Raises:
        FileFormatError: the card is missing or damaged.
    """
    return read_card(_pair(_found(Path(path)))[1])


def save_model(
    path: str | os.PathLike[str], net: DepthNet, card: ModelCard, *, half: bool = False
) -> ModelCard:
    """Write the weights NAME.safetensors and the card NAME.json, each atomically.

    Args:
        path: NAME, with or without the suffix.
        net: whose weights are written.
        card: what the weights are and how they were made.
        half: store convolution kernels as float16; everything else stays float32.

    Returns:
        The card with the sha256 of the weights.

    Raises:
        InputError: if a weight is not finite; nothing is written then.
    """
    from safetensors.torch import save

    weights, card_path = _pair(Path(path))
    if card.settings != net.settings:
        raise InputError(card_path, "the card's settings are not those of the network to be saved")
    tensors = {name: _stored(tensor, half) for name, tensor in net.state_dict().items()}
    for name, tensor in tensors.items():
        if not bool(torch.isfinite(tensor).all()):
            raise InputError(
                weights,
                f"not written: '{name}' holds NaN or values too large for {tensor.dtype}",
                "train again with a lower rate, or store float32",
            )
    data = save(tensors)
    complete = ModelCard(**{**dict(card), "sha256": hashlib.sha256(data).hexdigest()})
    write_bytes(weights, data)
    write_bytes(card_path, complete.to_json())
    return complete


def _stored(tensor: Tensor, half: bool) -> Tensor:
    kind = torch.float16 if half and tensor.ndim == 4 else torch.float32
    return tensor.detach().cpu().to(kind).contiguous()


def _pair(path: Path) -> tuple[Path, Path]:
    """Return the paths NAME.safetensors and NAME.json."""
    name = path.name
    for suffix in _SUFFIXES:
        name = name.removesuffix(suffix)
    if not name or path.name in _SUFFIXES:
        raise InputError(path, "give the name of a weight file")
    return path.with_name(name + _SUFFIXES[0]), path.with_name(name + _SUFFIXES[1])


def _found(path: Path) -> Path:
    """Return the weight file of a path; a folder must have exactly one inside."""
    if not path.is_dir() or (path.parent / f"{path.name}{_SUFFIXES[0]}").is_file():
        return path
    inside = sorted(path.glob("*.safetensors"))
    if len(inside) != 1:
        names = ", ".join(file.name for file in inside) or "none"
        raise InputError(path, f"{len(inside)} weight files in this folder ({names})", "name one of them")
    return inside[0]


def _checked_size(path: Path, size: int, card: ModelCard) -> int:
    """Return the size of a weight file; raise, before it is read, if it cannot hold the card's network."""
    if not size:
        raise FileFormatError(path, "the file is empty (0 bytes)", "copy it again from its source")
    count = card.settings.parameters
    if size < _LEAST_BYTES * count:
        raise FileFormatError(
            path,
            f"truncated or not a safetensors file: {size} bytes cannot hold the {count} parameters "
            "of its card",
            "copy both again from their source",
        )
    if size > _MOST_BYTES * count + _LONGEST_HEADER:
        raise FileFormatError(
            path,
            f"{size} bytes, too many for the {count} parameters of its card",
            "copy both again from their source",
        )
    return size


def _parsed(path: Path, data: bytes) -> dict[str, Tensor]:
    from safetensors import SafetensorError
    from safetensors.torch import load as parse

    try:
        if int.from_bytes(data[:8], "little") > _LONGEST_HEADER:
            raise ValueError("the header is too long")
        return parse(data)
    except (SafetensorError, ValueError, KeyError, RuntimeError) as error:
        raise FileFormatError(
            path, f"truncated or not a safetensors file ({len(data)} bytes)", "copy it again from its source"
        ) from error


def _network(settings: NetworkSettings, card_path: Path) -> DepthNet:
    try:
        return DepthNet(settings)
    except ValueError as error:
        raise InputError(card_path, f"settings: {error}") from error


def _check_tensors(path: Path, found: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    """Raise unless the tensors have the expected names, shapes and stored types, and finite values."""
    advice = "the file does not belong to this card"
    for name in sorted(set(expected) - set(found)):
        raise FileFormatError(path, f"tensor '{name}' is missing", advice)
    for name in sorted(set(found) - set(expected)):
        raise FileFormatError(path, f"unknown tensor {shortened(name)}", advice)
    for name, tensor in found.items():
        if tensor.shape != expected[name].shape:
            shapes = f"{tuple(tensor.shape)}, expected {tuple(expected[name].shape)}"
            raise FileFormatError(path, f"tensor '{name}' has shape {shapes}", advice)
        if tensor.dtype not in _STORED:
            raise FileFormatError(
                path, f"tensor '{name}' is {tensor.dtype}, expected float32 or float16", "convert it"
            )
        if not bool(torch.isfinite(tensor).all()):
            raise FileFormatError(path, f"tensor '{name}' holds NaN or infinite values", "train it again")


def _with_untrained_solver(net: DepthNet) -> DepthNet:
    """Return a network of the same FCN followed by the classical iteration."""
    with torch.random.fork_rng(devices=[]):
        full = DepthNet(NetworkSettings(**{**net.settings.model_dump(), **UNTRAINED}))
    full.fcn.load_state_dict(net.fcn.state_dict())
    return full.eval()


def _moved(net: DepthNet, device: torch.device | str) -> DepthNet:
    try:
        return net.to(device)
    except (RuntimeError, AssertionError) as error:
        raise InputError(f"device '{device}' cannot be used here; use cpu") from error
