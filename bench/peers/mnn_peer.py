"""MNN on the CPU, in f32, on a model made by its own converter."""

import pathlib
import sys

import MNN
import numpy as np
from peer import Array, Options, Peer, converted


class Mnn(Peer):
    def __init__(self, model: str, options: Options) -> None:
        self.name = "mnn " + MNN.version()
        self._feeds = options.feeds
        tool = pathlib.Path(sys.executable).parent / "mnnconvert"
        words = ["-f", "ONNX", "--modelFile", "model.onnx", "--MNNModel", "model.mnn", "--bizCode", "bench"]
        self._model = converted(model, ".mnn", [str(tool), *words])
        self._config = {"backend": "CPU", "numThread": options.threads, "precision": "high"}

    def load(self) -> None:
        self._net = MNN.Interpreter(str(self._model))
        self._session = self._net.createSession(self._config)
        wanted = self._net.getSessionInputAll(self._session)
        arrays = [self._feeds.get(name, next(iter(self._feeds.values()))) for name in wanted]
        for tensor, array in zip(wanted.values(), arrays, strict=True):
            self._net.resizeTensor(tensor, array.shape)
        self._net.resizeSession(self._session)
        resized = self._net.getSessionInputAll(self._session).values()
        self._inputs = [(t, host_tensor(a)) for t, a in zip(resized, arrays, strict=True)]

    def infer(self) -> None:
        for tensor, host in self._inputs:  # a run may write on its inputs
            tensor.copyFrom(host)
        self._net.runSession(self._session)

    def outputs(self) -> dict[str, Array]:
        self.infer()
        results = {}
        for name, tensor in self._net.getSessionOutputAll(self._session).items():
            host = host_tensor(np.zeros(tensor.getShape(), np.float32))
            tensor.copyToHostTensor(host)
            results[name] = np.array(host.getNumpyData()).copy()
        return results


def host_tensor(array: Array) -> "MNN.Tensor":
    """In the order of the model, whatever MNN does inside."""
    whole = array.dtype.kind == "i"
    data = array.astype(np.int32 if whole else np.float32)
    kind = MNN.Halide_Type_Int if whole else MNN.Halide_Type_Float
    return MNN.Tensor(data.shape, kind, data, MNN.Tensor_DimensionType_Caffe)
