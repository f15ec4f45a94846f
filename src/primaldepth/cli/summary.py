"""What `upsample` says about one frame in a line of log."""

from primaldepth.pipeline.report import Report
from primaldepth.pipeline.warnings import Advice

ADVICE = Advice(
    unit="--unit",
    noise="--noise",
    cameras="--cameras",
    robust="--method nlh-l1",
    keep_spikes="give --spikes keep",
    keep_small="write .npy, .exr or .tiff to keep them",
    invalid="--invalid 65535",
)


def sentence(report: Report) -> str:
    """Return size, time, unit, noise and departure of one result, without the file's name."""
    low, high = report.input_size, report.output_size
    parts = [
        f"{low[0]}x{low[1]} to {high[0]}x{high[1]} in {report.seconds:.1f} s",
        _unit_text(report),
        f"kind {report.kind}",
        *_median_text(report),
        *_noise_text(report),
        *_residual_text(report),
        f"{100 * report.measured_fraction:.1f} % measured",
    ]
    if report.spikes:
        parts.append(f"spikes taken for holes: {report.spikes}")
    if report.overruled:
        parts.append(f"samples overruled{' and put back' if report.put_back else ''}: {report.overruled}")
    if report.uncertain:
        parts.append(f"uncertain pixels left as holes: {report.uncertain}")
    if report.empty_fraction > 0:
        parts.append(f"{100 * report.empty_fraction:.1f} % left as holes")
    return ", ".join(parts)


def _unit_text(report: Report) -> str:
    """The unit that the depth was read in, and that of the result where it is another."""
    read, written = report.input_unit, report.unit
    return f"unit {read}" + ("" if read == written else f" (result: {written})")


def _median_text(report: Report) -> list[str]:
    """In metres whatever the file's unit: a wrong one is seen at once."""
    depth = report.median_depth
    if depth is None:
        return []
    name, unit = ("disparity", "px") if report.kind == "disparity" else ("depth", "m")
    return [f"median {name} {depth:.4g} {unit}"]


def _noise_text(report: Report) -> list[str]:
    sigma = report.noise_sigma
    return [] if sigma is None else [f"noise {report.length(sigma)} ({report.noise_origin})"]


def _residual_text(report: Report) -> list[str]:
    rms, sigmas = report.residual_rms, report.residual_sigmas
    if rms is None:
        return []
    text = f"departs {report.length(rms)} RMS from the samples"
    return [text + (f" ({sigmas:.2g} sigma)" if sigmas else "")]
