"""OpenVINO on the CPU, in f32."""

import time

import openvino
from peer import Array, Options, Peer


class OpenVino(Peer):
    def __init__(self, model: str, options: Options) -> None:
        self.name = "openvino " + openvino.__version__.split("-")[0]
        self._core = openvino.Core()
        self._model, self._feeds, self._throughput = model, options.feeds, options.throughput
        # f32: on some processors the default would be bf16.
        self._config: dict[str, object] = {
            "INFERENCE_NUM_THREADS": options.threads,
            "INFERENCE_PRECISION_HINT": "f32",
            "PERFORMANCE_HINT": "THROUGHPUT" if options.throughput else "LATENCY",
        }
        if not options.throughput:
            self._config["NUM_STREAMS"] = 1
        self._cached = bool(options.cache)
        if options.cache:
            self._config["CACHE_DIR"] = options.cache

    def load(self) -> None:
        source = self._model
        if not self._cached:  # with a cache, a compiled model is found by the file's name
            source = self._core.read_model(self._model)
            if any(i.partial_shape.is_dynamic for i in source.inputs):
                source.reshape({i: list(self._feeds[i.get_any_name()].shape) for i in source.inputs})
        compiled = self._core.compile_model(source, "CPU", self._config)
        outputs = enumerate(compiled.outputs)
        self._names = [o.get_any_name() if o.names else f"output_{k}" for k, o in outputs]
        if self._throughput:
            self._queue = openvino.AsyncInferQueue(compiled, 0)
            requests = list(self._queue)
        else:
            requests = [compiled.create_infer_request()]
        for request in requests:
            for i in compiled.inputs:
                request.set_tensor(i, openvino.Tensor(self._feeds[i.get_any_name()]))
        self._request = requests[0]

    def infer(self) -> None:
        self._request.infer(share_outputs=True)

    def outputs(self) -> dict[str, Array]:
        self.infer()
        return {n: self._request.get_output_tensor(k).data for k, n in enumerate(self._names)}

    def stream(self, seconds: float) -> tuple[int, float]:
        self._queue.start_async()
        self._queue.wait_all()
        begin, count = time.perf_counter(), 0
        while time.perf_counter() - begin < seconds:
            self._queue.start_async()
            count += 1
        self._queue.wait_all()
        return count, time.perf_counter() - begin
