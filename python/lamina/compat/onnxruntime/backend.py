"""onnxruntime.backend: the same interface of the package onnx, on lamina."""

from lamina.backend import Backend, BackendRep, is_compatible, prepare, run_model, run_node, supports_device

__all__ = ["Backend", "BackendRep", "is_compatible", "prepare", "run_model", "run_node", "supports_device"]
