"""Frozen, typed settings whose unknown keys are errors that name the nearest key."""

from collections.abc import Mapping
from typing import Annotated, Any, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from typing_extensions import Self

from primaldepth.core.errors import InputError, did_you_mean, shortened

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=1)]
Iterations = Annotated[int, Field(ge=1, le=10_000)]
Few = Annotated[int, Field(ge=1, le=100)]


class Settings(BaseModel):
    """Base of every configuration in this package."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @classmethod
    def parse(cls, values: Mapping[str, Any], where: str) -> Self:
        """Build settings from plain values, such as those of a TOML file.

        Args:
            values: by key; tables, and lists of tables, for keys that are settings themselves.
            where: names the values in errors, such as the file they were read from.

        Returns:
            An instance of the class.

        Raises:
            InputError: a key is unknown or its value is wrong, in nested tables too.
        """
        return cls._parse(values, where, ": ")

    @classmethod
    def _parse(cls, values: Mapping[str, Any], where: str, joint: str) -> Self:
        for key in values:
            if key not in cls.model_fields:
                hint = did_you_mean(key, cls.model_fields) or f"known: {', '.join(cls.model_fields)}"
                raise InputError(where, f"unknown key {shortened(key)}", hint)
        try:
            return cls(
                **{
                    key: _parsed(cls.model_fields[key].annotation, value, f"{where}{joint}{key}")
                    for key, value in values.items()
                }
            )
        except ValidationError as error:
            first = error.errors()[0]
            key = ".".join(str(part) for part in first["loc"])
            found = shortened(first["input"])
            raise InputError(where, f"{shortened(key)}: {first['msg']} (found {found})") from error


def _parsed(annotation: Any, value: Any, where: str) -> Any:
    """Return settings in place of a table, or of each table of a list, where the annotation names some."""
    kind = _settings_in(annotation)
    if kind is not None and isinstance(value, Mapping):
        return kind._parse(value, where, ".")
    if kind is not None and isinstance(value, list):
        return tuple(_parsed(kind, entry, f"{where}.{n}") for n, entry in enumerate(value))
    return value


def _settings_in(annotation: Any) -> type[Settings] | None:
    if isinstance(annotation, type) and issubclass(annotation, Settings):
        return annotation
    return next((found for part in get_args(annotation) if (found := _settings_in(part))), None)
