"""What every protocol is: a frozen benchmark whose inputs are checked before a case is built from them."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from typing_extensions import Self

from primaldepth.core.errors import InputError
from primaldepth.core.frame import Frame, Prediction
from primaldepth.evaluation.scoring import Scores, Scoring
from primaldepth.io.files import file_sha256 as file_sha256

Watcher = Callable[[str, int, int], None]
"""Called with (what is made, how many are done, how many there will be)."""


@dataclass(frozen=True, slots=True)
class Case:
    """One scene at one scale: the input, the truth, where it is known, and how a prediction is scored."""

    scene: str
    scale: int
    frame: Frame
    truth: Tensor
    known: Tensor
    scoring: Scoring = field(default_factory=Scoring)

    def to(self, device: torch.device | str) -> Self:
        """Return the case on another device, where predictions for it are then scored."""
        moved: dict[str, Any] = {
            each.name: value.to(device)
            for each in fields(self)
            if isinstance(value := getattr(self, each.name), (Tensor, Frame))
        }
        return replace(self, **moved)

    def scores(self, prediction: Prediction) -> Scores:
        """Return every number of the prediction, see `Scoring.scores`."""
        return self.scoring.scores(prediction.depth, self.frame, self.truth, self.known)


@dataclass(frozen=True, kw_only=True)
class Protocol(ABC):
    """A frozen benchmark: named scenes whose inputs are checked, scales, and how results are scored.

    Args:
        folder: its place below the data folder.
        scales: pixels of the guide per sample, per side.
        variant: name of this part, where a protocol has several: its set of scenes, or how samples are made.
    """

    name: str
    version: int
    folder: str
    scales: tuple[int, ...]
    scoring: Scoring
    variant: str = ""

    @property
    @abstractmethod
    def scenes(self) -> tuple[str, ...]:
        """Names of the scenes, in the order of the table."""

    @property
    @abstractmethod
    def made_of(self) -> str:
        """The protocol's inputs, in a few words."""

    @abstractmethod
    def holds(self, folder: Path) -> bool:
        """Return whether a folder looks like this protocol's."""

    @abstractmethod
    def inputs(self, root: Path, scene: str) -> dict[str, str]:
        """Return the SHA-256 of every file of the scene, and how they are read where that is a choice."""

    @abstractmethod
    def problems(self, root: Path, scene: str) -> list[str]:
        """Return a line for each input of the scene that is missing or differs from the frozen one."""

    @abstractmethod
    def build(self, root: Path, scene: str, scale: int) -> Case:
        """Build the case of a scene and scale from inputs that were checked.

        Args:
            root: folder of the protocol's inputs.
            scene: of `scenes`.
            scale: of `scales`.
        """

    @property
    def unit(self) -> str:
        """Unit of the errors."""
        return self.scoring.unit

    @property
    def is_frozen(self) -> bool:
        """Whether the inputs are known beforehand; False for frames of one's own."""
        return True

    def parts(self, data: Path | None) -> "tuple[Protocol, ...]":
        """Return what has to be run: the protocol itself, or one protocol for each variant or set of scenes.

        Args:
            data: folder of the protocols' folders, or the protocol's own. A protocol that scores whatever
                frames lie there has their names in the `scenes` of its parts.
        """
        return (self,)

    def left_out(self, data: Path | None) -> list[str]:
        """Return a line for each part of the protocol that is not in the folder and will not be run."""
        return []

    def find(self, data: Path | None) -> Path | None:
        """Return the protocol's folder below `data`, `data` itself if it is that folder, or None."""
        candidates = () if data is None else (data / self.folder, data)
        return next((folder for folder in candidates if self.holds(folder)), None)

    def root(self, data: Path | None, watch: Watcher | None = None) -> Path:
        """Return the folder of the inputs.

        Args:
            data: folder of the protocols' folders, or the protocol's own.
            watch: told of the progress where the inputs have to be made first.

        Raises:
            InputError: it is not there.
        """
        found = self.find(data)
        if found is None:
            place = "no data folder is given" if data is None else f"{data}: no folder '{self.folder}' there"
            way = "set PRIMALDEPTH_DATA, and " if data is None else ""
            raise InputError(f"{place}; {self.name} needs it ({way}see the docs, Protocols)")
        return found

    def load(self, data: Path | None, scene: str, scale: int) -> Case:
        """Check the scene's inputs, then build the case.

        Args:
            data: folder of the protocols' folders, or the protocol's own.
            scene: of `scenes`.
            scale: of `scales`.

        Returns:
            the case, on the CPU.

        Raises:
            InputError: an input is missing or differs from the frozen one.
        """
        self.check(scale)
        root = self.root(data)
        for problem in self.problems(root, scene):
            raise InputError(problem)
        return self.build(root, scene, scale)

    def changed_files(self, files: Mapping[Path, str]) -> list[str]:
        """Return a line for each file that is missing or whose SHA-256 is not the frozen one."""
        found = []
        for path, digest in files.items():
            if not path.is_file():
                found.append(f"{path}: missing")
            elif file_sha256(path) != digest:
                found.append(f"{path}: differs from the file {self.name} v{self.version} was frozen with")
        return found

    def check(self, scale: int) -> None:
        """Raise an error unless the protocol has this scale."""
        if scale not in self.scales:
            raise InputError(f"{self.name} has the scales {', '.join(map(str, self.scales))}, not {scale}")


@dataclass(frozen=True, kw_only=True)
class NamedFrames(Protocol):
    """A protocol that lists its frames by name.

    Args:
        names: frames that are scored; those of a part are in the folder.
    """

    names: tuple[str, ...]

    @property
    def scenes(self) -> tuple[str, ...]:
        """Names of the frames."""
        return self.names


def chosen_scenes(parts: Sequence[Protocol], names: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the scenes of each part that are named, one by one or by their part; all without names.

    Args:
        parts: what `Protocol.parts` returns.
        names: scenes, or variants.

    Raises:
        InputError: for a name that is neither.
    """
    known = {name for part in parts for name in (part.variant, *part.scenes) if name}
    for name in names:
        if name not in known:
            there = dict.fromkeys(part.variant for part in parts if part.variant) or parts[0].scenes
            text = f"{parts[0].name}: no scene '{name}' there (there is {', '.join(there)})"
            raise InputError(text)
    return [
        tuple(scene for scene in part.scenes if not names or part.variant in names or scene in names)
        for part in parts
    ]
