"""Samples that stand alone on a fine grid, gathered on one as coarse as they are: what networks expect.

The sample term of a network reads them where they fall all the same.
"""

from collections.abc import Callable
from dataclasses import replace

from primaldepth.core.frame import Frame, Prediction
from primaldepth.measurement.lone_samples import Cells, cells_of


def with_samples(predict: Callable[[Frame, Frame], Prediction], frame: Frame) -> Prediction:
    """`predict(frame, samples)`; image by image where their samples stand apart differently."""
    if len({None if cells is None else cells.grid for cells in cells_of(frame)}) == 1:
        return predict(frame, gathered(frame))
    return Prediction.joined([predict(image, gathered(image)) for image in frame.images()])


def gathered(frame: Frame) -> Frame:
    """The frame itself; or, if its samples stand alone, their means over cells with about one sample each.

    The samples of all images have to have the same cells.
    """
    cells = cells_of(frame)[0]
    return frame if cells is None else averaged(frame, cells)


def averaged(frame: Frame, cells: Cells) -> Frame:
    """Means of the samples over cells; their noise falls with the number of samples in each."""
    depth, some = cells.means(frame.clean_depth(), frame.valid)
    count = cells.sums(frame.valid.to(depth.dtype)).clamp_min(1.0)
    variance = None if frame.sigma is None else cells.means(frame.sigma.square(), frame.valid)[0]
    trust = None if frame.confidence is None else cells.means(frame.confidence, frame.valid)[0]
    return replace(
        frame,
        depth=depth,
        valid=some,
        sigma=None if variance is None else (variance / count).sqrt(),
        confidence=trust,
        sampling="average",
    )
