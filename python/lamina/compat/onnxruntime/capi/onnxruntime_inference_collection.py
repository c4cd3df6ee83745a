"""Names of the part of ONNX Runtime that is written in Python."""

from lamina.compat.onnxruntime.binding import IOBinding
from lamina.compat.onnxruntime.session import InferenceSession, Session
from lamina.compat.onnxruntime.values import OrtDevice, OrtValue, SparseTensor

__all__ = ["IOBinding", "InferenceSession", "OrtDevice", "OrtValue", "Session", "SparseTensor"]
