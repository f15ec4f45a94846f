"""What kernels compiled by numba share: arrays of tensors, and a number of threads that agrees with torch."""

from typing import Any

import numba
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Array = NDArray[np.floating[Any]]
_threads = torch.get_num_threads()
MAX_THREADS = numba.get_num_threads()  # starts numba's threads, which changes torch's number as well
torch.set_num_threads(_threads)


@numba.njit(cache=True)
def band_of(job: int, bands: int, height: int) -> tuple[int, int, int, int]:
    """Return the image and the band of a job, and the band's first row and the one behind its last."""
    band = job % bands
    return job // bands, band, height * band // bands, height * (band + 1) // bands


def array_of(t: Tensor) -> Array:
    """Return the tensor's numbers as an array in the order of its axes.

    Args:
        t: any shape, on the CPU.
    """
    array: Array = t.detach().contiguous().numpy()
    return array


def thread_count(images: int, height: int, reach: int) -> int:
    """Set numba's threads to what the work can use, and return into how many bands to split each image.

    Args:
        images: of the batch.
        height: rows of each.
        reach: rows above a row that its work reads or writes; a band has at least four times as many.

    Returns:
        Bands of each image.
    """
    threads = min(torch.get_num_threads(), MAX_THREADS)
    bands = max(1, min(threads, height // (4 * reach)))
    numba.set_num_threads(min(threads, images * bands))
    return bands
