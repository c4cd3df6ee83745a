"""load() and Model: where models come from, options, callbacks, what they say about themselves."""

import io
import os
import pickle
import re
import sys
import threading

import lamina
import models
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

X = np.array([-1, 2, -3, 4], np.float32)
WANTED = [0, 2, 0, 4]


class Program:
    """As torch.onnx.export gives."""

    def __init__(self, proto):
        self.model_proto = proto


def test_where_models_come_from(tmp_path):
    proto = models.relu()
    path = tmp_path / "a model, 模型.onnx"
    onnx.save(proto, path)
    text = path.read_bytes()
    for source in (path, str(path), text, bytearray(text), memoryview(text), proto, Program(proto)):
        model = lamina.load(source)
        assert model(X)[0].tolist() == WANTED
        assert lamina.Model(source).compile()(X)[0].tolist() == WANTED
    for wrong in (None, 3, [text], io.BytesIO(text)):
        with pytest.raises(TypeError, match="wanted a path, bytes or an onnx.ModelProto"):
            lamina.load(wrong)


class TooLarge:
    """As a ModelProto above 2 GB."""

    def SerializeToString(self):
        raise ValueError("Failed to serialize proto")


@pytest.mark.parametrize("model", [TooLarge(), Program(TooLarge())], ids=["ModelProto", "ONNXProgram"])
@pytest.mark.parametrize(
    "take",
    [
        lamina.load,
        lamina.Model,
        lambda m: lamina.optimize(m, "out.xml"),
        lambda m: lamina.quantize(m, [X], "out.onnx"),
    ],
    ids=["load", "Model", "optimize", "quantize"],
)
def test_a_proto_that_is_too_large(take, model):
    with pytest.raises(lamina.BadFile, match="at most 2 GB.*save_as_external_data=True"):
        take(model)


@pytest.mark.skipif("LAMINA_BIG_TESTS" not in os.environ, reason="takes 6 GB: set LAMINA_BIG_TESTS")
def test_a_real_proto_above_2_gb():
    proto = models.relu()
    for i in range(3):
        tensor = proto.graph.initializer.add(name=f"w{i}", data_type=TensorProto.FLOAT, dims=[200_000_000])
        tensor.raw_data = bytes(800_000_000)
    with pytest.raises(lamina.BadFile, match="at most 2 GB"):
        lamina.load(proto)


def test_onnx_and_torch_are_not_imported(tmp_path):
    """Models of these packages are known by their methods."""
    (tmp_path / "m.onnx").write_bytes(models.relu().SerializeToString())
    code = f"""
import sys, lamina
class Proto:
    def SerializeToString(self): return open({str(tmp_path / "m.onnx")!r}, "rb").read()
class Program:
    model_proto = Proto()
for model in (Proto(), Program()):
    lamina.load(model); lamina.optimize(model, {str(tmp_path / "out.xml")!r})
assert not {{"onnx", "torch", "google.protobuf"}} & set(sys.modules), sorted(sys.modules)
"""
    ran = models.python(code)
    assert ran.returncode == 0, ran.stderr


def test_second_files(tmp_path):
    text, zeros = models.COUNTER, np.arange(4, dtype=np.float32)
    (tmp_path / "net.xml").write_text(text)
    (tmp_path / "other.bin").write_bytes(zeros.tobytes())
    assert lamina.load(tmp_path / "net.xml", weights=tmp_path / "other.bin")(X)[0].tolist() == (X + zeros).tolist()
    assert lamina.load(text.encode(), weights=zeros.tobytes())(X)[0].tolist() == (X + zeros).tolist()
    with pytest.raises(lamina.BadFile):
        lamina.load(tmp_path / "net.xml")
    with pytest.raises(TypeError, match="wanted bytes"):
        lamina.load(text.encode(), weights=tmp_path / "other.bin")
    with pytest.raises(TypeError, match="wanted a path"):
        lamina.load(tmp_path / "net.xml", weights=zeros.tobytes())


def test_external_data(tmp_path):
    node = helper.make_node("Add", ["x", "w"], ["y"])
    w = np.arange(4, dtype=np.float32)
    proto = models.graph_model(
        [node], [models.value("x", (4,))], [models.value("y", (4,))], [numpy_helper.from_array(w, "w")]
    )
    path = tmp_path / "m.onnx"
    onnx.save(proto, path, save_as_external_data=True, location="w.data", size_threshold=0)
    assert lamina.load(path)(X)[0].tolist() == (X + w).tolist()
    text, data = path.read_bytes(), (tmp_path / "w.data").read_bytes()
    assert lamina.load(text, external_data={"w.data": data})(X)[0].tolist() == (X + w).tolist()
    with pytest.raises(lamina.BadFile):
        lamina.load(text)
    with pytest.raises(TypeError, match="models in memory"):
        lamina.load(path, external_data={"w.data": data})


def test_bytes_may_change_afterwards():
    text = bytearray(models.relu().SerializeToString())
    model = lamina.load(text)
    text[:] = bytes(len(text))
    assert model(X)[0].tolist() == WANTED


def test_errors(tmp_path):
    with pytest.raises(lamina.BadFile, match="no such file"):
        lamina.load(tmp_path / "missing.onnx")
    with pytest.raises(lamina.BadFile):
        lamina.load(b"junk")
    with pytest.raises(lamina.BadFile):
        lamina.load("")
    with pytest.raises(lamina.BadOption, match="did you mean"):
        lamina.load(models.relu(), properties={"NUM_STREAM": 1})
    with pytest.raises(lamina.BadOption, match='precision "f8", wanted model, f32, bf16 or f16'):
        lamina.load(models.relu(), precision="f8")
    with pytest.raises(lamina.BadOption):
        lamina.load(models.relu(), threads=-1)
    with pytest.raises(lamina.BadOption):
        lamina.load(models.relu(), disable=["no-such-rule"])
    with pytest.raises(lamina.BadOption, match="settable|input"):
        lamina.load(models.relu(), settable=["q"])
    with pytest.raises(lamina.Error):
        lamina.load(models.relu(), extensions=[tmp_path / "missing.so"])
    unknown = models.graph_model(
        [helper.make_node("NoSuchOperator", ["x"], ["y"], domain="a.b")],
        [models.value("x", (4,))],
        [models.value("y", (4,))],
    )
    unknown.opset_import.append(helper.make_opsetid("a.b", 1))
    assert "NoSuchOperator" in lamina.Model(unknown).unsupported[0]
    with pytest.raises(lamina.Unsupported, match="NoSuchOperator") as caught:
        lamina.load(unknown)
    assert isinstance(caught.value, NotImplementedError) and caught.value.code == "unsupported"


def test_limits():
    with pytest.raises(lamina.OverLimit, match="LIMIT_NODES"):
        lamina.load(models.sums(), limits={"nodes": 1})
    with pytest.raises(lamina.OverLimit, match="Relu"):
        lamina.load(models.relu(), limits={"denied_operators": ["Relu"]})
    with pytest.raises(lamina.BadOption, match="LIMIT_WISHES"):
        lamina.load(models.relu(), limits={"wishes": 3})
    endless = lamina.load(models.endless(), threads=1, limits={"loop_iterations": 1000})
    with pytest.raises(lamina.OverLimit, match="LIMIT_LOOP_ITERATIONS"):
        endless(np.ones((32, 32), np.float32), np.array(2000))


def test_ports():
    model = lamina.Model(models.sums())
    a, b = model.inputs
    assert (a.name, a.dtype, a.numpy_dtype, a.shape, a.ranked, a.value) == ("a", "f32", np.float32, ("n", 4), True, None)
    assert str(b) == "b f32[n,4]" and model.format == "ONNX" and model.warnings == [] == model.unsupported
    compiled = model.compile(threads=1)
    assert compiled.inputs == model.inputs and [p.name for p in compiled.outputs] == ["sum", "difference"]
    assert compiled.outputs_for((3, 4), (3, 4))[0].shape == (3, 4)
    with pytest.raises(lamina.BadInput):
        compiled.outputs_for((3, 4))
    loose = lamina.load(models.relu(None))
    assert loose.inputs[0].shape is None and not loose.inputs[0].ranked and loose(X)[0].tolist() == WANTED
    odd = lamina.Model(models.non_zeros()).outputs[0]
    assert odd.shape == (1, None) and odd.dtype == "i64"


def test_input_shapes(tmp_path):
    path = tmp_path / "net.onnx"
    onnx.save(models.sums(), path)
    shapes = {"a": [(1, 3), 4], "b": [None, 4]}
    model = lamina.load(path, input_shapes=shapes)
    assert [p.shape for p in model.inputs] == [(None, 4), (None, 4)]
    three = np.ones((3, 4), np.float32)
    assert model(three, three)[0].tolist() == [[2] * 4] * 3
    with pytest.raises(lamina.BadInput, match="a"):
        model(np.ones((4, 4), np.float32), np.ones((4, 4), np.float32))
    again = pickle.loads(pickle.dumps(model))
    with pytest.raises(lamina.BadInput, match="a"):
        again(np.ones((4, 4), np.float32), np.ones((4, 4), np.float32))
    fixed = lamina.Model(models.sums(), input_shapes={"a": (2, 4), "b": (2, 4)})
    assert fixed.outputs[0].shape == (2, 4)
    with pytest.raises(lamina.BadInput, match='no input "c"'):
        lamina.load(path, input_shapes={"c": [1, 4]})
    with pytest.raises(lamina.BadOption, match="from 3 to 1"):
        lamina.load(path, input_shapes={"a": [(3, 1), 4]})


@pytest.mark.parametrize("shape", ["14", [1.5, 4], [-1.0, 4], [True, 4], [2**63, 4], [(1, 2, 3), 4], [-2, 4], [(1, -1), 4]])
def test_shapes_that_are_none(shape):
    with pytest.raises(TypeError, match="wanted"):
        lamina.Model(models.sums(), input_shapes={"a": shape})


def test_a_bound_that_is_none():
    with pytest.raises(TypeError, match="a size: -1, wanted a bound that is a number from 0 on, or None"):
        lamina.Model(models.sums(), input_shapes={"a": [(1, -1), 4]})


def test_shapes_ahead(tmp_path):
    model = lamina.Model(models.sums())
    assert not model.is_compiled
    assert model.outputs_for({"a": (3, 4)})[0].shape == (3, 4)
    with pytest.raises(lamina.BadInput):
        model.outputs_for({"a": (3, 4), "b": (2, 4)})
    compiled = model.compile()
    assert compiled.plans == 0
    compiled.plan((3, 4), (3, 4))
    assert compiled.plans == 1
    compiled(np.ones((3, 4), np.float32), np.ones((3, 4), np.float32))
    assert compiled.plans == 1
    with pytest.raises(lamina.BadInput):
        compiled.plan((3, 4))
    compiled.save(tmp_path / "m.lamina")
    assert lamina.Model(tmp_path / "m.lamina").is_compiled


def test_what_it_says(tmp_path):
    path = tmp_path / "net.onnx"
    onnx.save(models.sums(), path)
    model = lamina.load(path, threads=1)
    assert re.fullmatch(
        r"<CompiledModel net: a f32\[n,4\], b f32\[n,4\] -> sum f32\[n,4\], difference f32\[n,4\], 1 thread, \d+ fusions?>",
        repr(model),
    )
    assert repr(lamina.Model(path)).startswith("<Model net.onnx: ONNX, a f32[n,4], b")
    html = model._repr_html_()
    assert html.startswith("<table>") and "sum f32[n,4]" in html and "packed" in html
    assert model.property("NUM_STREAMS") == "1" and any(p.key == "MAX_ISA" for p in model.properties)
    with pytest.raises(lamina.BadOption):
        model.property("NUM_STREAM")
    assert isinstance(model.fusions, dict) and model.weight_memory >= 0
    odd = models.relu()
    odd.graph.input[0].name = odd.graph.node[0].input[0] = "<b>"
    assert "&lt;b&gt;" in lamina.load(odd)._repr_html_()


def test_save(tmp_path):
    path = tmp_path / "m.onnx"
    onnx.save(models.relu(), path)
    lamina.load(path).save(tmp_path / "m.lamina")
    assert lamina.load(tmp_path / "m.lamina")(X)[0].tolist() == WANTED
    with pytest.raises(lamina.BadFile):
        lamina.load(path).save(tmp_path / "no folder" / "m.lamina")


def test_log_and_progress():
    lines, stages = [], []
    lamina.load(
        models.two_relus(),
        log=lambda level, line: lines.append((level, line)),
        progress=lambda stage, done: stages.append((stage, done)),
    )
    assert lines and {level for level, _ in lines} <= {"error", "warning", "info", "debug"}
    assert stages and all(isinstance(stage, str) and 0 <= done <= 1 for stage, done in stages)


def test_errors_of_callbacks(monkeypatch):
    seen = []
    monkeypatch.setattr(sys, "unraisablehook", lambda what: seen.append(what.exc_type))
    model = lamina.load(models.two_relus(), log=lambda level, line: 1 / 0)
    assert model(X)[0].tolist() == WANTED and set(seen) == {ZeroDivisionError}
    with pytest.raises(ZeroDivisionError):
        lamina.load(models.relu(), progress=lambda stage, done: 1 / 0)
    with pytest.raises(TypeError):
        lamina.load(models.relu(), progress=3)


def test_loading_leaves_the_gil_to_others():
    """Another thread of Python goes on while a model is read and compiled."""
    ticks, stop = 0, threading.Event()

    def tick():
        nonlocal ticks
        while not stop.wait(0.0005):
            ticks += 1

    thread = threading.Thread(target=tick)
    thread.start()
    lamina.load(models.long_to_compile(300))
    stop.set()
    thread.join()
    assert ticks > 0


def test_max_isa_is_for_the_whole_process():
    code = """if 1:
        import sys; sys.path.insert(0, FOLDER)
        import models, lamina
        lamina.load(models.relu(), max_isa="avx2")
        try:
            lamina.load(models.relu(), max_isa="sse41")
        except lamina.BadOption as error:
            print(error)
    """
    ran = models.python(f"FOLDER = {os.path.dirname(__file__)!r}\n{code}", env=dict(os.environ, LAMINA_MAX_ISA=""))
    assert "avx2" in ran.stdout, ran.stdout + ran.stderr


def test_strings_are_refused():
    node = helper.make_node("Identity", ["x"], ["y"])
    proto = models.graph_model(
        [node],
        [helper.make_tensor_value_info("x", TensorProto.STRING, [1])],
        [helper.make_tensor_value_info("y", TensorProto.STRING, [1])],
    )
    with pytest.raises(lamina.Error):
        lamina.load(proto)(np.array(["a"]))
