"""Running a network without gradient; on a GPU played back as a CUDA graph."""

import threading
from collections import OrderedDict
from dataclasses import dataclass

import torch
from torch import Tensor

from primaldepth.networks.inputs import NetworkInput
from primaldepth.networks.joint import DepthNet
from primaldepth.networks.precision import usual_dtype
from primaldepth.operators.base import LinearOperator
from primaldepth.operators.pairwise import pick_backend

LARGEST = 2**22  # pixels of a recorded batch: the kernels of larger ones take longer than the calls
KEPT = 2**23  # pixels of all recordings together, about 300 bytes each in bfloat16


@dataclass(frozen=True, slots=True)
class RecordingKey:
    """What a recording holds for: the shapes of the maps, the CUDA stream, and where the weights lie.

    Also the sampling operator, whose weights the recorded kernels read where they lie.
    """

    shapes: tuple[torch.Size, ...]
    stream: int
    places: tuple[int, ...]
    A: LinearOperator | None = None

    @property
    def pixels(self) -> int:
        """Pixels of all images of the batch."""
        count, _, height, width = self.shapes[0]
        return count * height * width


class RecordedGraph:
    """The kernels of one run, with the memory they read and write."""

    def __init__(self, inference: "Inference", maps: NetworkInput) -> None:
        self._inputs = maps.each(torch.clone)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph, capture_error_mode="thread_local"):
            self._output = inference.run(self._inputs)

    def __call__(self, maps: NetworkInput) -> Tensor:
        """Run the recorded kernels on other values."""
        for mine, image in zip(self._inputs.tensors(), maps.tensors(), strict=True):
            mine.copy_(image)
        self._graph.replay()
        return self._output.clone()


class Inference:
    """Maps of a window -> depth and, where the network gives it, sigma: (B, 1 or 2, H, W).

    On a GPU a frame's kernels are shorter than the calls that start them. So the second frame of a size is
    recorded, and from then on one call starts them all.

    Args:
        net: its weights are read again with every frame.
        precision: of the convolutions, and on a GPU of the stored dual variables; None for what suits the
            device and the network.
    """

    def __init__(self, net: DepthNet, precision: torch.dtype | None = torch.float32) -> None:
        self._net, self._precision = net, precision
        self._seen: OrderedDict[RecordingKey, RecordedGraph | None] = OrderedDict()
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[type["Inference"], tuple[DepthNet, torch.dtype | None]]:
        """Pickle only the network and the precision: another process makes its own recordings."""
        return Inference, (self._net, self._precision)

    def __call__(self, maps: NetworkInput) -> Tensor:
        """Run the network, or play its recording back."""
        if not self._can_be_recorded(maps.depth):
            return self.run(maps)
        device = maps.depth.device
        stream = torch.cuda.current_stream(device).cuda_stream
        places = tuple(each.data_ptr() for each in self._net.parameters())  # others after it was moved
        A = None if maps.samples is None else maps.samples.A
        key = RecordingKey(tuple(image.shape for image in maps.tensors()), stream, places, A)
        with self._lock, torch.cuda.device(device):
            if key not in self._seen:  # kernels are compiled and chosen now
                self._remember(key)
                return self.run(maps)
            recording = self._seen[key] or RecordedGraph(self, maps)
            self._seen[key] = recording
            self._seen.move_to_end(key)
            return recording(maps)

    def dtype_on(self, device: torch.device) -> torch.dtype:
        """Return the type of the convolutions for frames on the device.

        Args:
            device: of the frames.
        """
        return usual_dtype(self._net, device) if self._precision is None else self._precision

    def _remember(self, key: RecordingKey) -> None:
        """Keep a recording as the newest; drop the oldest ones that would take too much memory."""
        self._seen[key] = None
        while sum(each.pixels for each in self._seen) > max(KEPT, key.pixels):
            self._seen.popitem(last=False)

    def run(self, maps: NetworkInput) -> Tensor:
        """Run the network without recording it.

        Args:
            maps: of a window.

        Returns:
            (B, 1 or 2, H, W).
        """
        device, dtype = maps.depth.device, self.dtype_on(maps.depth.device)
        with torch.no_grad(), torch.autocast(device.type, dtype, enabled=dtype != torch.float32):
            found = self._net(*maps)
        return found.depth if found.sigma is None else torch.cat([found.depth, found.sigma], dim=1)

    def _can_be_recorded(self, image: Tensor) -> bool:
        """Return whether the network can be recorded: on a GPU, not too large, without asking the host."""
        if not image.is_cuda or image.shape[0] * image.shape[2] * image.shape[3] > LARGEST:
            return False
        solver = self._net.pdn
        return solver is None or (solver.is_fused and pick_backend(image) == "triton")
