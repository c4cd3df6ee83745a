"""ncnn on the CPU, in f32, on a model made by its converter pnnx."""

import pathlib

import ncnn
import numpy as np
from peer import Array, Options, Peer, converted

HALF_PRECISION = ("fp16_packed", "fp16_storage", "fp16_arithmetic", "bf16_storage")


class Ncnn(Peer):
    def __init__(self, model: str, options: Options) -> None:
        self.name = "ncnn " + ncnn.__version__
        self._feeds = options.feeds
        shapes = ",".join(
            "[" + ",".join(map(str, a.shape)) + "]" + ("i64" if a.dtype.kind == "i" else "f32")
            for a in options.feeds.values()
        )
        tool = pathlib.Path(ncnn.__file__).parents[1] / "pnnx/pnnx"
        self._model = converted(
            model, ".ncnn.bin", [str(tool), "model.onnx", f"inputshape={shapes}", "fp16=0"]
        )
        self._net = ncnn.Net()
        self._net.opt.num_threads = options.threads
        for field in HALF_PRECISION:
            setattr(self._net.opt, "use_" + field, False)

    def load(self) -> None:
        description = str(self._model.with_suffix(".param"))
        if self._net.load_param(description) or self._net.load_model(str(self._model)):
            raise SystemExit("ncnn cannot load the converted model")
        # ncnn's tensors have no batch.
        arrays = (a[0] if a.ndim == 4 else a for a in self._feeds.values())
        self._mats = [ncnn.Mat(np.ascontiguousarray(a)) for a in arrays]

    def infer(self) -> None:
        self._extract()

    def outputs(self) -> dict[str, Array]:
        return {name: np.array(mat) for name, mat in self._extract().items()}

    def _extract(self) -> "dict[str, ncnn.Mat]":
        extractor = self._net.create_extractor()
        for name, mat in zip(self._net.input_names(), self._mats, strict=True):
            extractor.input(name, mat)
        results = {name: extractor.extract(name) for name in self._net.output_names()}
        if not results or any(status for status, _ in results.values()):
            raise SystemExit("ncnn cannot run the converted model")
        return {name: mat for name, (_, mat) in results.items()}
