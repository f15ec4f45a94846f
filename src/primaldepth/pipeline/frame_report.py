"""The report on one result, as typed values: what was assumed and measured, and warnings."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from primaldepth.core.frame import Frame
from primaldepth.geometry.alignment import Alignment
from primaldepth.io import Unit
from primaldepth.io.units import per_metre
from primaldepth.pipeline.load import LARGEST, Inputs
from primaldepth.pipeline.outcome import Outcome
from primaldepth.pipeline.outputs import DepthResult
from primaldepth.pipeline.warnings import Advice, DepthWarning, warnings_of
from primaldepth.sensors.noise import AUTO_FLOOR, least_sigma

FEW = 16  # samples: the noise of fewer is a guess


@dataclass(frozen=True, slots=True)
class Report:
    """How one result was made, how far it departs from its samples, and its warnings.

    Sizes are (width, height). Lengths are metres, or pixels of disparity; None where they are not known.

    Args:
        unit: of the depth file that was written.
        noise_sigma: median standard deviation of the samples.
        noise_source: auto, a number or a sensor's name, as it was asked for.
        noise_is_least: whether the noise is the least that is assumed anyway.
        samples: how many are valid.
        rounded_off: estimates that are holes because the file's format would round them to 0.
        beyond: estimates that are holes because they are larger than the file's format can hold.
        spikes: samples that count as holes.
        overruled: confirmed samples that the method had left by more than `Request.keep_samples` sigma.
        put_back: whether the result was corrected at those.
        uncertain: estimates that are holes because of `Request.max_sigma`.
        largest_samples: samples that hold the largest number of a 16-bit file.
        info: what the method reports of its run.
        residual_outliers: departure in standard deviations, of samples that stand out from all around them.
        alignment: which view fits the image's edges best; None where nobody looked or edges are too few.
    """

    method: str
    kind: str
    unit: Unit
    input_unit: Unit
    input_size: tuple[int, int]
    output_size: tuple[int, int]
    median_depth: float | None
    noise_sigma: float | None
    noise_source: str
    noise_is_least: bool
    samples: int
    noise_unit: str
    measured_fraction: float
    empty_fraction: float
    rounded_off: int
    beyond: int
    spikes: int
    overruled: int
    put_back: bool
    uncertain: int
    largest_samples: int
    info: Mapping[str, Any]
    residual_rms: float | None
    residual_sigmas: float | None
    residual_median: float | None
    residual_outliers: float | None
    alignment: Alignment | None
    seconds: float
    warnings: tuple[DepthWarning, ...] = ()

    def json(self) -> dict[str, Any]:
        """Return plain values by name; a number that is not finite becomes None."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        values |= {"input_size": list(self.input_size), "output_size": list(self.output_size)}
        values["info"] = {key: _plain(value) for key, value in self.info.items()}
        values["alignment"] = None if self.alignment is None else self.alignment.json()
        values["warnings"] = [str(each) for each in self.warnings]
        return {name: _plain(value) for name, value in values.items()}

    def length(self, value: float) -> str:
        """Return a length as text, in mm, or a disparity in px: three digits or, from 1000 on, whole."""
        return length_text(value, self.kind)

    @property
    def line(self) -> str:
        """The line of log: size, time, unit, noise and departure of the result."""
        low, high = self.input_size, self.output_size
        parts = [
            f"{low[0]}x{low[1]} to {high[0]}x{high[1]} in {self.seconds:.1f} s",
            f"unit {self.input_unit}" + (f" (result: {self.unit})" if self.unit != self.input_unit else ""),
            f"kind {self.kind}",
            *self._measured_texts(),
            f"{100 * self.measured_fraction:.1f} % measured",
        ]
        if self.spikes:
            parts.append(f"spikes taken for holes: {self.spikes}")
        if self.overruled:
            parts.append(f"samples overruled{' and put back' if self.put_back else ''}: {self.overruled}")
        if self.uncertain:
            parts.append(f"uncertain pixels left as holes: {self.uncertain}")
        if self.empty_fraction > 0:
            parts.append(f"{100 * self.empty_fraction:.1f} % left as holes")
        return ", ".join(parts)

    def _measured_texts(self) -> Iterator[str]:
        """Yield depth, noise and departure in metres, so that a unit that was read wrongly stands out."""
        name, unit = ("disparity", "px") if self.kind == "disparity" else ("depth", "m")
        if self.median_depth is not None:
            yield f"median {name} {self.median_depth:.4g} {unit}"
        if self.noise_sigma is not None:
            origin = noise_origin(self.noise_source, self.noise_is_least, self.samples)
            yield f"noise {self.length(self.noise_sigma)} ({origin})"
        if self.residual_rms is not None:
            sigmas = f" ({self.residual_sigmas:.2g} sigma)" if self.residual_sigmas else ""
            yield f"departs {self.length(self.residual_rms)} RMS from the samples{sigmas}"


def report_of(outcome: Outcome, advice: Advice, result: DepthResult | None = None) -> Report:
    """Return the report on an outcome.

    Args:
        outcome: a prediction and what it was made of.
        advice: words of the front end for what can be chosen.
        result: what was written as depth, or None for arrays.
    """
    inputs, prediction, frame = outcome.inputs, outcome.prediction, outcome.inputs.frame
    departure = outcome.departure
    valid = prediction.valid if result is None else torch.from_numpy(result.valid)
    source = inputs.noise_source
    sigma = None if frame.sigma is None else float(frame.sigma[frame.valid].median())
    report = Report(
        method=outcome.request.method,
        kind=inputs.kind,
        unit=(inputs.unit or "m") if result is None else result.unit,
        input_unit=inputs.unit or "m",
        input_size=frame.low_size[::-1],
        output_size=frame.high_size[::-1],
        median_depth=_metres(inputs.median_depth, inputs),
        noise_sigma=_metres(sigma, inputs),
        noise_source=source[:60],  # a number may be written with any count of zeros
        noise_is_least=source == "auto" and _is_least(frame),
        samples=int(frame.valid.sum()),
        noise_unit="px" if inputs.kind == "disparity" else "m",
        measured_fraction=_fraction(prediction.measured),
        empty_fraction=1.0 - _fraction(valid),
        rounded_off=0 if result is None else result.rounded_off,
        beyond=0 if result is None else result.beyond,
        spikes=inputs.spikes,
        overruled=outcome.overruled,
        put_back=outcome.request.keep_samples > 0,
        uncertain=outcome.uncertain,
        largest_samples=_largest_samples(inputs),
        info=prediction.info,
        residual_rms=_metres(departure.rms, inputs),
        residual_sigmas=_plain(departure.sigmas),
        residual_median=_plain(departure.median),
        residual_outliers=_plain(departure.outliers),
        alignment=inputs.alignment,
        seconds=outcome.seconds,
    )
    return replace(report, warnings=warnings_of(report, outcome.request.meaning, advice))


def length_text(value: float, kind: str) -> str:
    """Return a length as text, in mm, or a disparity in px: three digits or, from 1000 on, whole.

    Args:
        value: metres, or pixels of disparity.
        kind: of the depth.
    """
    number, unit = (value, "px") if kind == "disparity" else (1000 * value, "mm")
    return f"{number:.0f} {unit}" if number >= 1000 else f"{number:.3g} {unit}"


def noise_origin(source: str, is_least: bool, samples: int) -> str:
    """Return in a few words where the noise level comes from, such as "estimated".

    Args:
        source: auto, a number, a sensor's name or "map".
        is_least: whether the noise is the least that is assumed anyway.
        samples: how many are valid.
    """
    if source != "auto":
        return "given" if source.replace(".", "", 1).isdecimal() else source
    if is_least:
        return "the least assumed"
    return "estimated" if samples >= FEW else f"a guess from {samples} samples"


def _is_least(frame: Frame) -> bool:
    """Return whether the noise of every sample is the lower bound that "auto" always assumes."""
    most = 1.01 * AUTO_FLOOR * frame.depth.max()
    if frame.sigma is None or bool(((frame.sigma > most) & frame.valid).any()):
        return False
    return bool((frame.sigma <= least_sigma(frame.depth, frame.valid))[frame.valid].all())


def _fraction(mask: Tensor) -> float:
    """Return the share of True in a mask, without converting it to numbers."""
    return int(mask.count_nonzero()) / mask.numel()


def _largest_samples(inputs: Inputs) -> int:
    """Count samples of the largest 16-bit number, which some cameras write where they measured nothing."""
    if inputs.kind == "disparity":
        return 0
    largest = np.float32(LARGEST / per_metre(inputs.unit or "m"))
    return int((inputs.frame.depth[inputs.frame.valid] == float(largest)).sum())


def _metres(value: float | None, inputs: Inputs) -> float | None:
    """Return a length in metres, or None where the unit of an array is not known."""
    if value is None or inputs.metres is None:
        return None
    found: float | None = _plain(value * inputs.metres)
    return found


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
