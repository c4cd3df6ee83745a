"""lamina.compat.onnxruntime beside ONNX Runtime: the same results, texts and exceptions.

What is compared runs in this process, with the ONNX Runtime of the tests' other environment (.deps/py)."""

import os
import pickle
import sys
import threading
import warnings
from pathlib import Path

import lamina
import lamina.compat.onnxruntime as compat
import models
import numpy as np
import onnx
import pytest
from lamina.compat.onnxruntime.capi import onnxruntime_pybind11_state as state
from onnx import helper

ROOT = Path(__file__).resolve().parents[2]
OTHERS = Path(os.environ.get("LAMINA_DEPS", ROOT / ".deps")) / "py/lib"
SHARED = Path(os.environ.get("LAMINA_SHARED", ROOT.parent / "shared")) / "models"
A = np.arange(8, dtype=np.float32).reshape(2, 4)
B = np.ones((2, 4), np.float32)
CPU = ["CPUExecutionProvider"]


@pytest.fixture(scope="session")
def real():
    sys.path += [str(folder) for folder in OTHERS.glob("python*/site-packages")]
    module = pytest.importorskip("onnxruntime")
    module.set_default_logger_severity(4)
    return module


def session(module, proto: onnx.ModelProto, **options):
    return module.InferenceSession(proto.SerializeToString(), providers=CPU, **options)


def outcome(call):
    """What a call gives: its value, or the name and text of its exception."""
    try:
        value = call()
    except Exception as error:
        return type(error).__name__, str(error)
    return "value", value


def same(a, b) -> bool:
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, np.ndarray):
        return isinstance(b, np.ndarray) and a.dtype == b.dtype and a.shape == b.shape and np.array_equal(a, b)
    return a == b


RUNS = {
    "all": (None, {"a": A, "b": B}),
    "one": (["difference"], {"a": A, "b": B}),
    "order": (["difference", "sum"], {"a": A, "b": B}),
    "twice": (["sum", "sum"], {"a": A, "b": B}),
    "no names": ([], {"a": A, "b": B}),
    "a list": (None, {"a": A.tolist(), "b": B}),
    "a list of arrays": (None, {"a": list(A), "b": B}),
    "not contiguous": (None, {"a": np.asfortranarray(A), "b": B[::-1]}),
    "no rows": (None, {"a": A[:0], "b": B[:0]}),
    "unknown output": (["q"], {"a": A, "b": B}),
    "missing input": (None, {"a": A}),
    "unknown input": (None, {"a": A, "b": B, "c": B}),
    "type": (None, {"a": A.astype(np.float64), "b": B}),
    "rank": (None, {"a": A[0], "b": B}),
    "higher rank": (None, {"a": A[None], "b": B}),
    "size": (None, {"a": np.zeros((2, 5), np.float32), "b": B}),
    "number": (None, {"a": 3, "b": B}),
    "scalar": (None, {"a": np.float32(3), "b": B}),
    "tuple": (None, {"a": tuple(A), "b": B}),
    "no mapping": (None, [A, B]),
}


@pytest.mark.parametrize("run", RUNS)
def test_runs(real, run):
    theirs, ours = (outcome(lambda m=m: session(m, models.sums()).run(*RUNS[run])) for m in (real, compat))
    assert theirs[0] == ours[0] and same(theirs[1], ours[1]), (theirs, ours)


def test_exceptions_that_differ_in_their_texts(real):
    for module in (real, compat):
        kinds = module.capi.onnxruntime_pybind11_state
        one = session(module, models.sums())
        with pytest.raises(kinds.Fail):
            one.run(None, {"a": A, "b": np.ones((3, 4), np.float32)})
        with pytest.raises(TypeError):
            one.run("sum", {"a": A, "b": B})
        with pytest.raises(kinds.NoSuchFile, match="/no/model.onnx failed:Load model /no/model.onnx failed. File doesn't"):
            module.InferenceSession("/no/model.onnx", providers=CPU)
        with pytest.raises(kinds.InvalidProtobuf):
            module.InferenceSession(b"garbage", providers=CPU)
        with pytest.raises(kinds.InvalidArgument, match="No graph was found in the protobuf"):
            module.InferenceSession(b"", providers=CPU)
        with pytest.raises(TypeError, match="Unable to load from type '<class 'NoneType'>'"):
            module.InferenceSession(None, providers=CPU)
        with pytest.raises(TypeError):
            pickle.dumps(one)


def test_errors_of_lamina_are_the_causes():
    string = helper.make_tensor_value_info("x", onnx.TensorProto.STRING, (2,))
    proto = models.graph_model([helper.make_node("Identity", ["x"], ["y"])], [string], [models.value("y", (2,))])
    with pytest.raises(state.NotImplemented, match="9 : NOT_IMPLEMENTED : .*type string") as raised:
        session(compat, proto)
    assert isinstance(raised.value.__cause__, lamina.Unsupported)
    proto = models.graph_model([helper.make_node("Relu", ["z"], ["y"])], [models.value("x", (4,))], [models.value("y", (4,))])
    with pytest.raises(state.InvalidGraph, match='"z" is read'):
        session(compat, proto)


def test_exceptions_have_the_names_of_the_real_ones(real):
    theirs = real.capi.onnxruntime_pybind11_state
    for name, kind in vars(theirs).items():
        if isinstance(kind, type) and issubclass(kind, Exception):
            assert issubclass(getattr(state, name), Exception), name
            assert not issubclass(getattr(state, name), (RuntimeError, ValueError)), name


@pytest.mark.parametrize("dtype", [*models.ONNX_TYPES])
@pytest.mark.parametrize("shape", [(2, 3), ("n", None), (), None], ids=str)
def test_ports(real, dtype, shape):
    proto = models.identity(dtype, shape)
    theirs, ours = session(real, proto), session(compat, proto)
    for a, b in zip(theirs.get_inputs() + theirs.get_outputs(), ours.get_inputs() + ours.get_outputs(), strict=True):
        assert (a.name, a.type) == (b.name, b.type) and str(a).startswith("NodeArg(name=")
        assert a.shape == b.shape and isinstance(b.shape, list)


def test_metadata(real, tmp_path):
    proto = models.sums()
    proto.producer_name, proto.domain, proto.doc_string, proto.model_version = "maker", "a.b", "text, 模型", 7
    proto.graph.name, proto.graph.doc_string = "main", "of the graph"
    helper.set_model_props(proto, {"names": "{0: 'cat'}", "empty": ""})
    onnx.save(proto, tmp_path / "m.onnx")
    fields = ("producer_name", "graph_name", "domain", "description", "graph_description", "version", "custom_metadata_map")
    for source in (proto.SerializeToString(), tmp_path / "m.onnx", str(tmp_path / "m.onnx")):
        theirs, ours = (m.InferenceSession(source, providers=CPU).get_modelmeta() for m in (real, compat))
        assert [getattr(theirs, f) for f in fields] == [getattr(ours, f) for f in fields]
    assert session(compat, models.sums()).get_modelmeta().version == session(real, models.sums()).get_modelmeta().version


def test_inputs_with_a_value(real):
    x = np.arange(4, dtype=np.float32)
    for module in (real, compat):
        one = session(module, models.with_default())
        assert [port.name for port in one.get_inputs()] == ["x"]
        (port,) = one.get_overridable_initializers()
        assert (port.name, port.type, port.shape) == ("w", "tensor(float)", [4])
        assert one.run(None, {"x": x})[0].tolist() == (x + 10).tolist()
        assert one.run(None, {"x": x, "w": x})[0].tolist() == (x + x).tolist()
        assert session(module, models.sums()).get_overridable_initializers() == []


def test_session_options(real):
    for module in (real, compat):
        options = module.SessionOptions()
        for name in dir(real.SessionOptions):
            if not name.startswith("_"):
                assert hasattr(options, name) or name.endswith("ep_context_data_read_func"), name
        options.intra_op_num_threads = 1
        options.graph_optimization_level = module.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.execution_mode = module.ExecutionMode.ORT_PARALLEL
        options.enable_cpu_mem_arena = False
        options.log_severity_level = 3
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        assert options.get_session_config_entry("session.intra_op.allow_spinning") == "0"
        with pytest.raises(RuntimeError, match="does not have configuration with key: no"):
            options.get_session_config_entry("no")
        with pytest.raises(TypeError):
            options.intra_op_num_threads = "1"
        with pytest.raises(TypeError):
            options.graph_optimization_level = 99
        with pytest.raises(AttributeError):
            options.intra_op_threads = 1
        one = session(module, models.two_relus(), sess_options=options)
        assert one.get_session_options().intra_op_num_threads == 1
        assert one.run(None, {"x": A[0] - 2})[0].tolist() == [0, 0, 0, 1]
    assert one.model.threads == 1 and not one.model.fusions
    assert session(compat, models.two_relus()).model.fusions


def test_enumerations(real):
    for name in ("ExecutionMode", "ExecutionOrder", "GraphOptimizationLevel", "OrtAllocatorType", "OrtMemType"):
        theirs, ours = getattr(real, name), getattr(compat, name)
        assert {k: int(v) for k, v in theirs.__members__.items()} == {k: int(v) for k, v in ours.__members__.items()}
    assert str(compat.GraphOptimizationLevel(99)) == str(real.GraphOptimizationLevel(99))


def test_options_of_lamina():
    options = compat.SessionOptions()
    options.add_session_config_entry("lamina.NUM_STREAMS", "2")
    assert session(compat, models.relu(), sess_options=options).model.streams == 2
    text = models.relu().SerializeToString()
    one = compat.InferenceSession(text, providers=[("LaminaExecutionProvider", {"NUM_STREAMS": 3})])
    assert one.model.streams == 3
    assert one.get_provider_options() == {"LaminaExecutionProvider": {"NUM_STREAMS": "3"}, "CPUExecutionProvider": {}}
    options.add_session_config_entry("lamina.NUM_STREAM", "2")
    with pytest.raises(state.Fail, match="NUM_STREAMS"):
        session(compat, models.relu(), sess_options=options)


def test_providers(real):
    assert compat.get_available_providers() == ["LaminaExecutionProvider", "CPUExecutionProvider"]
    text = models.relu().SerializeToString()
    for module in (real, compat):
        assert module.InferenceSession(text, providers=CPU).get_providers() == CPU
        with pytest.warns(UserWarning, match="provider 'CUDAExecutionProvider' is not in available provider names"):
            one = module.InferenceSession(text, providers=["CUDAExecutionProvider", *CPU])
        assert one.get_providers() == CPU
        one.set_providers(CPU)
        assert one.run(None, {"x": A[0]})[0].tolist() == A[0].tolist()
        one.disable_fallback()
    with pytest.raises(ValueError, match="must be either strings"):
        compat.InferenceSession(text, providers=[3])
    with pytest.raises(ValueError, match="same length"):
        compat.InferenceSession(text, providers=CPU, provider_options=[])


def test_ort_values(real):
    for module in (real, compat):
        value = module.OrtValue.ortvalue_from_numpy(A)
        assert value.shape() == [2, 4] and value.data_type() == "tensor(float)" and value.element_type() == 1
        assert value.data_ptr() == A.ctypes.data == value.numpy().ctypes.data and value.device_name() == "cpu"
        assert value.is_tensor() and value.has_value() and not value.is_sparse_tensor()
        assert value.tensor_size_in_bytes() == 32 and np.from_dlpack(value).ctypes.data == A.ctypes.data
        assert np.array_equal(np.asarray(value), A) and np.array(value, copy=True).ctypes.data != A.ctypes.data
        assert module.OrtValue.from_dlpack(A.copy()).numpy().tolist() == A.tolist()
        one = session(module, models.sums())
        (total,) = one.run_with_ort_values(["sum"], {"a": value, "b": module.OrtValue.ortvalue_from_numpy(B)})
        assert total.numpy().tolist() == (A + B).tolist()
        assert one.run(["sum"], {"a": value, "b": B})[0].tolist() == (A + B).tolist()
        target = module.OrtValue.ortvalue_from_shape_and_type([2, 4], np.float32)
        target.update_inplace(A)
        assert target.numpy().tolist() == A.tolist()
        assert module.OrtValue.ortvalue_from_shape_and_type([3], 16).data_type() == "tensor(bfloat16)"
        bits = module.OrtValue.ortvalue_from_numpy_with_onnx_type(np.zeros(3, np.uint16), 16)
        assert bits.data_type() == "tensor(bfloat16)" and bits.shape() == [3]
        with pytest.raises(RuntimeError):
            module.OrtValue.ortvalue_from_numpy(A, "cuda", 0)
    with pytest.raises(NotImplementedError, match="dense"):
        compat.SparseTensor.sparse_coo_from_numpy([2], A, A, None)


def test_bindings(real):
    for module in (real, compat):
        one = session(module, models.sums())
        binding = one.io_binding()
        a, total = A.copy(), np.zeros((2, 4), np.float32)
        with pytest.raises(RuntimeError, match="At least one output"):
            one.run_with_iobinding(binding)
        binding.bind_cpu_input("a", a)
        binding.bind_input("b", "cpu", 0, np.float32, B.shape, B.ctypes.data)
        binding.bind_output("difference")
        binding.bind_output("sum", "cpu", 0, np.float32, (2, 4), total.ctypes.data)
        binding.synchronize_inputs()
        for add in (0, 5):
            a += add
            one.run_with_iobinding(binding)
            difference, other = binding.copy_outputs_to_cpu()
            assert difference.tolist() == (a - B).tolist() and total.tolist() == other.tolist() == (a + B).tolist()
        assert binding.get_outputs()[1].data_ptr() == total.ctypes.data
        value = module.OrtValue.ortvalue_from_shape_and_type([2, 4], np.float32)
        binding.clear_binding_outputs()
        binding.bind_ortvalue_output("sum", value)
        binding.bind_ortvalue_input("b", module.OrtValue.ortvalue_from_numpy(a))
        one.run_with_iobinding(binding)
        assert value.numpy().tolist() == (a + a).tolist() and len(binding.get_outputs()) == 1
        with pytest.raises(RuntimeError, match="Failed to find NodeArg with name: q"):
            binding.bind_cpu_input("q", a)
        binding.bind_cpu_input("a", a.astype(np.float64))
        with pytest.raises(RuntimeError, match="Unexpected input data type|Actual"):
            one.run_with_iobinding(binding)
        binding.bind_cpu_input("a", a)
        binding.bind_output("q")
        with pytest.raises(RuntimeError, match="Invalid output name: ?q"):
            one.run_with_iobinding(binding)


def test_asynchronous_runs(real):
    for module in (real, compat):
        one = session(module, models.sums())
        done, got = threading.Event(), []

        def callback(outputs, data, error, got=got, done=done):
            got.append((outputs, data, error))
            done.set()

        one.run_async(["sum"], {"a": A, "b": B}, callback, "data")
        assert done.wait(60) and got[0][0][0].tolist() == (A + B).tolist() and got[0][1:] == ("data", "")
        done.clear()
        one.run_async(["sum"], {"a": A[0], "b": B}, callback, 5)
        assert done.wait(60) and got[1][0] == [] and got[1][1] == 5 and got[1][2].startswith("Invalid rank for input: a")


INSTALL = """
import sys, importlib.util
import numpy as np
import lamina, lamina.compat.onnxruntime as compat
assert "onnxruntime" not in sys.modules
compat.install(); compat.install()
import onnxruntime as ort
from onnxruntime.capi.onnxruntime_pybind11_state import Fail, InvalidArgument
from onnxruntime.capi import _pybind_state as C
import onnxruntime.capi.onnxruntime_inference_collection as collection
from onnxruntime import InferenceSession, SessionOptions
assert ort is compat and importlib.util.find_spec("onnxruntime") and collection.InferenceSession is InferenceSession
assert C.Fail is Fail and C.get_available_providers()[-1] == "CPUExecutionProvider"
for name in ("onnxruntime.quantization", "onnxruntime.tools"):
    try: __import__(name)
    except ModuleNotFoundError: pass
    else: raise SystemExit(name)
session = InferenceSession(sys.argv[1] if len(sys.argv) > 1 else MODEL)
try: session.run(None, {"x": np.zeros(5, np.float32)})
except InvalidArgument: pass
compat.uninstall()
assert not [name for name in sys.modules if name.startswith("onnxruntime")]
"""


def test_install(tmp_path):
    onnx.save(models.relu(), tmp_path / "m.onnx")
    ran = models.python(INSTALL.replace("MODEL", repr(str(tmp_path / "m.onnx"))))
    assert ran.returncode == 0, ran.stderr


def test_install_comes_too_late_after_the_real_one(real):
    with pytest.raises(lamina.BadCall, match="imported already"):
        compat.install()
    assert sys.modules["onnxruntime"] is real


def shared_models() -> list[Path]:
    paths = sorted(path for folder in ("onnx", "qdq") for path in (SHARED / folder).glob("*.onnx"))
    return [path for path in paths if not path.name.startswith("NEGATIVE") and path.stat().st_size < 50_000_000]


@pytest.mark.parametrize("path", shared_models(), ids=lambda path: path.name)
def test_ports_of_models(real, path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        options = real.SessionOptions()
        options.graph_optimization_level = real.GraphOptimizationLevel.ORT_DISABLE_ALL
        try:
            theirs = real.InferenceSession(path, options, providers=CPU)
        except Exception as error:
            pytest.skip(f"ONNX Runtime does not take it: {error}")
    ours = compat.InferenceSession(path, providers=CPU)
    for a, b in zip(theirs.get_inputs(), ours.get_inputs(), strict=True):
        shape = [None if size == "?" else size for size in a.shape]  # as some exporters name what has no name
        assert (a.name, a.type, shape) == (b.name, b.type, b.shape)
    assert [(o.name, o.type) for o in theirs.get_outputs()] == [(o.name, o.type) for o in ours.get_outputs()]
    for a, b in zip(theirs.get_outputs(), ours.get_outputs(), strict=True):
        # Where both know a size they agree; one may have inferred more than the other.
        assert not a.shape or not b.shape or len(a.shape) == len(b.shape)
        assert all(x == y for x, y in zip(a.shape, b.shape, strict=False) if isinstance(x, int) and isinstance(y, int))
