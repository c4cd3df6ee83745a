"""ONNX Runtime on the CPU, with all optimisations."""

import onnxruntime
from peer import Array, Options, Peer, count_in_threads

WARNINGS_AND_WORSE = 3


class OnnxRuntime(Peer):
    def __init__(self, model: str, options: Options) -> None:
        self.name = "onnxruntime " + onnxruntime.__version__
        self._model, self._feeds = model, options.feeds
        # For throughput as many runs at once as threads, one thread each.
        self._workers = options.threads if options.throughput else 1
        session = onnxruntime.SessionOptions()
        session.log_severity_level = WARNINGS_AND_WORSE
        session.intra_op_num_threads = 1 if self._workers > 1 else options.threads
        session.inter_op_num_threads = 1
        session.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
        self._options = session

    def load(self) -> None:
        self._session = onnxruntime.InferenceSession(self._model, self._options, ["CPUExecutionProvider"])
        self._bindings = []
        for _ in range(self._workers):
            binding = self._session.io_binding()
            for i in self._session.get_inputs():
                binding.bind_cpu_input(i.name, self._feeds[i.name])
            for o in self._session.get_outputs():
                binding.bind_output(o.name)
            self._bindings.append(binding)

    def infer(self) -> None:
        self._session.run_with_iobinding(self._bindings[0])

    def outputs(self) -> dict[str, Array]:
        self.infer()
        names = [o.name for o in self._session.get_outputs()]
        return dict(zip(names, self._bindings[0].copy_outputs_to_cpu(), strict=True))

    def stream(self, seconds: float) -> tuple[int, float]:
        return count_in_threads(
            lambda k: self._session.run_with_iobinding(self._bindings[k]), self._workers, seconds
        )
