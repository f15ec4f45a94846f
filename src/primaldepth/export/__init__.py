"""Networks for other runtimes."""

from primaldepth.export.onnx import Parity, check_parity, export_onnx

__all__ = ["Parity", "check_parity", "export_onnx"]
