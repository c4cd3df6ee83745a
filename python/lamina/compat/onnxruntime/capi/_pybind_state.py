"""Names of the compiled part of ONNX Runtime."""

from lamina.compat.onnxruntime.capi.onnxruntime_pybind11_state import *  # noqa: F403
