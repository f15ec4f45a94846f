"""The card beside every weight file: what the network is and how it came to be."""

from pathlib import Path
from typing import Any

from pydantic import AwareDatetime, Field, FiniteFloat

from primaldepth.core.errors import FileFormatError, MissingFileError
from primaldepth.core.settings import Count, Settings
from primaldepth.io.files import read_json
from primaldepth.networks.joint import NetworkSettings


class Asset(Settings):
    """Something that others made and that scenes were rendered with, such as a collection of textures.

    Args:
        name: of the collection.
        licence: its name, as SPDX has it where it does.
        source: where it can be had.
    """

    name: str = Field(min_length=1)
    licence: str = Field("not stated", min_length=1)
    source: str = ""


class ModelCard(Settings):
    """Provenance of one set of weights, stored as JSON.

    Args:
        name: of the method, such as fcn-pdn-s.
        scale: upsampling factor it was trained for, or None for any.
        settings: shape of the network.
        sha256: of the weight file; filled in on saving.
        created: when, with its time zone.
        recipe: name of the recipe; empty for weights that are older than this key.
        recipe_sha256: of the resolved recipe, without what does not change the result.
        config: the resolved recipe.
        data: the scenes it was trained on: how many, and the settings that fix them.
        assets: what others made and the scenes show; empty if they show our own shapes and patterns alone.
        seed: of the training.
        commit: of the code.
        seconds: the training took.
        scores: name of a measure -> its value.
        notes: anything a user should know.
    """

    name: str = Field(min_length=1)
    scale: Count | None
    settings: NetworkSettings
    sha256: str = Field("", pattern="^([0-9a-f]{64})?$")
    created: AwareDatetime
    recipe: str = ""
    recipe_sha256: str = Field("", pattern="^([0-9a-f]{64})?$")
    config: dict[str, Any] = Field(default_factory=dict)
    data: str = ""
    assets: tuple[Asset, ...] = ()
    seed: int = 0
    commit: str = ""
    seconds: float = Field(0.0, ge=0, allow_inf_nan=False)
    scores: dict[str, FiniteFloat] = Field(default_factory=dict)
    notes: str = ""

    @property
    def scales(self) -> tuple[int, ...]:
        """Scales the network was trained for, from the card; empty if the card does not list them."""
        if self.scale is not None:
            return (self.scale,)
        listed = self.config.get("scale")
        scales = listed if isinstance(listed, list) else [listed]
        return tuple(each for each in scales if type(each) is int)

    def to_json(self) -> bytes:
        """Return the card as it is written."""
        return (self.model_dump_json(indent=2) + "\n").encode()


def read_card(path: Path) -> ModelCard:
    """Read a card; every key has to be known and in range.

    Args:
        path: of the card.

    Returns:
        The card.

    Raises:
        MissingFileError: there is no such file.
        FileFormatError: it is not a JSON object.
        InputError: a key is unknown or its value is wrong.
    """
    try:
        values = read_json(path, what="JSON model card")
    except MissingFileError as error:
        raise MissingFileError(
            path, "no model card beside the weights", "copy it from where the weights came from"
        ) from error
    if not isinstance(values, dict):
        found = type(values).__name__
        raise FileFormatError(path, f"a {found}, expected a JSON object with the card's keys")
    return ModelCard.parse(values, str(path))
