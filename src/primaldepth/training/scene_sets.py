"""The scenes of a run: a folder that is given, or the sets that its recipe names, one for each stage."""

from pathlib import Path

import torch

from primaldepth.core.errors import InputError
from primaldepth.data.manifest import MANIFEST, Manifest
from primaldepth.data.patches import Scenes
from primaldepth.data.shards import Shards
from primaldepth.networks.card import Asset
from primaldepth.training.recipe import Recipe, SceneSet


def missing_sets(recipe: Recipe, folder: Path) -> list[tuple[Path, SceneSet]]:
    """Return the recipe's sets of scenes that are not complete, each with its place below a folder.

    Raises:
        InputError: other scenes lie at the place of a set.
    """
    if _is_given(recipe, folder):
        return []
    wanted = {set_folder(folder, each): each for each in recipe.scenes}
    return [(place, each) for place, each in wanted.items() if _rendered(place, each) < each.count]


def set_folder(folder: Path, wanted: SceneSet) -> Path:
    """Return the place of a set below a folder; its name tells the sets of a recipe apart."""
    return folder / f"{wanted.preset}-{wanted.count}x{wanted.size}-seed{wanted.seed}"


def _is_given(recipe: Recipe, folder: Path) -> bool:
    """Return whether the folder holds scenes itself, which are then used instead of the recipe's."""
    return not recipe.scenes or (folder / MANIFEST).exists()


def _rendered(place: Path, wanted: SceneSet) -> int:
    """Return how many scenes of a set are there; they may come from another machine."""
    if not (place / MANIFEST).exists():
        return 0
    manifest, expected = Manifest.read(place), wanted.render.made_with()
    for key in expected.keys() - {"variant", "textures"}:
        if manifest.made_with.get(key) != expected[key]:
            raise InputError(
                place,
                f"holds other scenes: {key} is {manifest.made_with.get(key)} there and "
                f"{expected[key]} in the recipe",
                "choose another folder",
            )
    return sum(shard.count for shard in manifest.shards)


class SceneSets:
    """The scenes of every stage of a run.

    Args:
        recipe: of the run.
        folder: of scenes; or below which the recipe's sets lie.
        verify: compare every shard with its checksum.
    """

    def __init__(self, recipe: Recipe, folder: Path, *, verify: bool = False) -> None:
        for place, wanted in missing_sets(recipe, folder):
            found = _rendered(place, wanted)
            raise InputError(
                place,
                f"{found} of {wanted.count} scenes are there",
                "'primaldepth train' in one process renders the others",
            )
        self._recipe, self._given = recipe, _is_given(recipe, folder)
        places = [folder] if self._given else [set_folder(folder, each) for each in recipe.scenes]
        opened = {place: Shards(place, verify=verify) for place in dict.fromkeys(places)}
        self._sets = [opened[place] for place in places]
        self._loaded: tuple[Shards, Scenes] | None = None
        self._check()

    def _check(self) -> None:
        for index, stage in enumerate(self._recipe.stages):
            shards = self._of(index)
            if not len(shards):
                raise InputError(shards.folder, "no finished scenes", "render some first")
            shards.check("depth", "image")
            height, width = shards.specs["depth"].shape
            if stage.patch > min(height, width):
                raise InputError(
                    shards.folder,
                    f"scenes of {width}x{height} are smaller than stages.{index}.patch, {stage.patch}",
                    "lower it, or render larger scenes",
                )

    def _of(self, stage: int) -> Shards:
        return self._sets[min(stage, len(self._sets) - 1)]

    def _kept(self, shards: Shards) -> int:
        """Return the number of scenes at the end of a set that are not trained on."""
        return min(self._recipe.data.held_out, len(shards) // 5)

    def training(self, stage: int, device: torch.device) -> Scenes:
        """Return the scenes that a stage is trained on; only those of one set are kept on the device."""
        shards = self._of(stage)
        if self._loaded is None or self._loaded[0] is not shards:
            self._loaded = None  # its memory is needed
            self._loaded = shards, Scenes.load(shards, device, 0, len(shards) - self._kept(shards))
        return self._loaded[1]

    def held_out(self, device: torch.device) -> Scenes | None:
        """Return the scenes at the end of the last set, on which all stages are validated."""
        shards = self._sets[-1]
        kept = self._kept(shards)
        return Scenes.load(shards, device, len(shards) - kept) if kept else None

    @property
    def names(self) -> str:
        """One line that identifies the scenes; the same on every machine."""
        return "; ".join(dict.fromkeys(_described(shards) for shards in self._sets))

    @property
    def assets(self) -> tuple[Asset, ...]:
        """Works of others that the scenes show, with their licences."""
        found: list[Asset] = []
        for index, shards in enumerate(self._sets):
            made = shards.manifest.made_with
            folders = {"textures": made.get("textures") or "built-in", "meshes": made.get("meshes") or "none"}
            foreign = [(kind, each) for kind, each in folders.items() if each not in ("built-in", "none")]
            stated = () if self._given or not foreign else self._recipe.scenes[index].assets
            found += stated or tuple(Asset(name=f"{kind} {each}") for kind, each in foreign)
        return tuple(dict.fromkeys(found))


def _described(shards: Shards) -> str:
    made = sorted((key, value) for key, value in shards.manifest.made_with.items() if key != "variant")
    return f"{len(shards)} rendered scenes: {', '.join(f'{key} {value}' for key, value in made)}"
