"""What the tests of lamina/c.h share: the library through ctypes, small models, tensors and rows as Python sees them.

The prototypes come from the header itself (header.py). Models: those of scripts/bootstrap, and small ones made here.
"""

import ctypes
import os
import sys
import time
from pathlib import Path

import numpy as np
from header import Failed, Library, library_path
from onnx import TensorProto, helper

MODELS = Path(os.environ["LAMINA_DEPS"]) / "models"
CLASSIFIER = MODELS / "ch_ppocr_mobile_v2.0_cls_infer.onnx"
SOON = 60  # seconds; generous: what is not stopped takes for ever
FOR_EVER = 2**62

if os.environ.get("LAMINA_SANITIZE"):
    print("skipped: a sanitized library cannot be loaded into a python that is not")
    sys.exit(77)
lib = Library(library_path())
raw = lib.raw


def dims(*sizes):
    return len(sizes), (ctypes.c_int64 * len(sizes))(*sizes)


def until(condition):
    begun = time.monotonic()
    while not condition():
        assert time.monotonic() - begun < SOON
        time.sleep(0.001)


def number_of(dtype):
    return lib.got(ctypes.c_int32, lib.type_named, {"float32": b"f32", "int64": b"i64", "bool": b"boolean"}[str(dtype)])


def borrowed(array, const=False, release=None, user=None):
    """A tensor in the memory of an array, which the caller keeps."""
    make = lib.tensor_borrow_const if const else lib.tensor_borrow
    return lib.made(
        make, number_of(array.dtype), *dims(*array.shape), array.ctypes.data, array.nbytes, release or lib.types["lamina_c_release"](), user
    )


def array_of(info):
    """A copy of what a lamina_c_tensor_info describes."""
    kind = {lib.F32: np.float32, lib.I64: np.int64}[info.type]
    data = ctypes.string_at(info.data, info.bytes)
    return np.frombuffer(data, kind).reshape([info.dims[i] for i in range(info.rank)])


def output(request, index=0):
    info = lib.tensor_info()
    lib.request_read_output(request, index, ctypes.byref(info))
    return array_of(info)


def rows(handle, get, kind):
    """All elements of a list, which is freed."""
    out = []
    for i in range(lib.got(ctypes.c_size_t, lib.list_size, handle)):
        row = kind()
        get(handle, i, ctypes.byref(row))
        out.append({n: getattr(row, n) for n, _ in row._fields_ if n not in ("size", "reserved")})
    lib.list_free(handle)
    return out


def ports(model, kind):
    out = []
    for i in range(lib.got(ctypes.c_size_t, lib.model_port_count, model, kind)):
        port = lib.port()
        lib.model_port(model, kind, i, ctypes.byref(port))
        out.append(port)
    return out


def options(**keys):
    handle = lib.made(lib.options_new)
    for key, value in keys.items():
        lib.options_set(handle, key.encode(), str(value).encode())
    return handle


def compiled_of(model, **keys):
    of = options(**keys)
    handle = lib.made(lib.compile, model, of)
    lib.options_free(of)
    return handle


def from_memory(proto, read_options=None):
    data = proto.SerializeToString()
    parts = lib.model_bytes(model=ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p), model_bytes=len(data))
    return lib.made(lib.model_from_memory, ctypes.byref(parts), read_options)


def endless():
    """y = x, after a Loop that runs for ever where `go` is true, and not at all where it is false."""
    f, b, i = TensorProto.FLOAT, TensorProto.BOOL, TensorProto.INT64
    value = helper.make_tensor_value_info
    body = helper.make_graph(
        [helper.make_node("Identity", ["c"], ["o"]), helper.make_node("Add", ["v", "v"], ["w"])],
        "body",
        [value("i", i, []), value("c", b, []), value("v", f, [1, 4])],
        [value("o", b, []), value("w", f, [1, 4])],
    )
    loop = helper.make_node("Loop", ["", "go", "x"], ["y"], body=body, name="forever")
    graph = helper.make_graph([loop], "g", [value("x", f, [1, 4]), value("go", b, [])], [value("y", f, [1, 4])])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def scaled(raw_scale=None, location=None):
    """y = x * scale, where scale is an input with a value, or lies in a file of its own."""
    f = TensorProto.FLOAT
    scale = helper.make_tensor("scale", f, [4], [2.0] * 4)
    if location:
        scale.ClearField("float_data")
        scale.data_location = TensorProto.EXTERNAL
        scale.external_data.add(key="location", value=location)
    inputs = [helper.make_tensor_value_info("x", f, ["batch", 4])]
    if not location:
        inputs.append(helper.make_tensor_value_info("scale", f, [4]))
    node = helper.make_node("Mul", ["x", "scale"], ["y"])
    graph = helper.make_graph([node], "g", inputs, [helper.make_tensor_value_info("y", f, ["batch", 4])], [scale])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    helper.set_model_props(model, {"author": "somebody", "what": "a test"})
    return model


class Fails:
    """with Fails(lib.BAD_INPUT, "text"): the call inside fails with that status, and an error that has the text."""

    def __init__(self, status, text=""):
        self.status, self.text = status, text

    def __enter__(self):
        return self

    def __exit__(self, kind, failed, trace):
        if kind is None:
            raise AssertionError(f"no error, wanted {self.status}: {self.text}")
        if kind is not Failed:
            return False
        assert failed.status == self.status, f"{failed.status} ({failed.text}), wanted {self.status}"
        assert self.text in failed.text, f'"{failed.text}", wanted "{self.text}"'
        assert "\n" not in failed.text and failed.text, failed.text
        return True


RUNNING_SUM = """<?xml version="1.0"?><net name="sum" version="11"><layers>
<layer id="0" name="x" type="Parameter" version="opset1"><data shape="1,4" element_type="f32"/>
<output><port id="0" names="x"><dim>1</dim><dim>4</dim></port></output></layer>
<layer id="1" name="zero" type="Const" version="opset1">
<data element_type="f32" shape="1,4" offset="0" size="16"/><output><port id="0"><dim>1</dim><dim>4</dim></port></output></layer>
<layer id="2" name="read" type="ReadValue" version="opset6">
<data variable_id="state" variable_shape="1,4" variable_type="f32"/><input><port id="0"><dim>1</dim><dim>4</dim></port></input>
<output><port id="1"><dim>1</dim><dim>4</dim></port></output></layer>
<layer id="3" name="sum" type="Add" version="opset1"><data auto_broadcast="numpy"/>
<input><port id="0"><dim>1</dim><dim>4</dim></port><port id="1"><dim>1</dim><dim>4</dim></port></input>
<output><port id="2"><dim>1</dim><dim>4</dim></port></output></layer>
<layer id="4" name="assign" type="Assign" version="opset6">
<data variable_id="state" variable_shape="1,4" variable_type="f32"/><input><port id="0"><dim>1</dim><dim>4</dim></port></input>
<output><port id="1"><dim>1</dim><dim>4</dim></port></output></layer>
<layer id="5" name="result" type="Result" version="opset1"><input><port id="0"><dim>1</dim><dim>4</dim></port></input></layer>
</layers><edges>
<edge from-layer="1" from-port="0" to-layer="2" to-port="0"/><edge from-layer="0" from-port="0" to-layer="3" to-port="0"/>
<edge from-layer="2" from-port="1" to-layer="3" to-port="1"/><edge from-layer="3" from-port="2" to-layer="4" to-port="0"/>
<edge from-layer="3" from-port="2" to-layer="5" to-port="0"/></edges></net>
"""
