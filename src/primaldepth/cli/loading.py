"""The inputs of one job: from its files, or from a shot of a recording."""

from pathlib import Path

from primaldepth.api import Inputs, Spikes, load_inputs
from primaldepth.cli.batch import Job
from primaldepth.core.errors import InputError
from primaldepth.core.frame import Sampling
from primaldepth.geometry.cameras import Cameras
from primaldepth.geometry.ros import intrinsics_of
from primaldepth.io import Kind, Unit


def read_job(
    job: Job,
    *,
    unit: Unit | None,
    kind: Kind | None,
    noise: str,
    cameras: Cameras | Path | None,
    spikes: Spikes,
    sampling: Sampling | None,
) -> Inputs:
    """Read and check; a recording's own unit and camera stand where none is given."""
    if job.shot is None:
        return load_inputs(
            job.depth,
            job.guide,
            unit=unit,
            kind=kind,
            noise=noise,
            confidence=job.confidence,
            cameras=cameras,
            spikes=spikes,
            sampling=sampling,
        )
    content = job.shot.read()
    if unit is not None and not isinstance(content.depth, Path):
        raise InputError(f"--unit {unit}: {job.guide} says its own unit; leave the option out")
    if cameras is None and content.camera is not None:
        cameras = Cameras(guide=intrinsics_of(content.camera))
    return load_inputs(
        content.depth,
        content.guide,
        unit=unit or job.unit,
        kind=kind,
        noise=noise,
        confidence=content.confidence,
        cameras=cameras,
        spikes=spikes,
        sampling=sampling,
    )
