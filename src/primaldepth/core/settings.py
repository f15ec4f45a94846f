"""Frozen, typed settings whose unknown keys are errors that name the nearest key."""

from collections.abc import Mapping
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

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
        """Build from plain values; `where` names them in the error."""
        for key in values:
            if key not in cls.model_fields:
                hint = did_you_mean(key, cls.model_fields) or f"known: {', '.join(cls.model_fields)}"
                raise InputError(f"{where}: unknown key {shortened(key)}; {hint}")
        try:
            return cls(**values)
        except ValidationError as error:
            first = error.errors()[0]
            key = ".".join(str(part) for part in first["loc"])
            found = shortened(first["input"])
            raise InputError(f"{where}: {shortened(key)}: {first['msg']} (found {found})") from error
