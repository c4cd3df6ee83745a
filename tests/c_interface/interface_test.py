"""lamina/c.h through ctypes, on real models: what it says, runs and refuses; ownership, sizes of structs, threads.

The prototypes come from the header itself (header.py). Models: those of scripts/bootstrap, and small ones made here.
"""

import ctypes
import gc
import os
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path

import numpy as np
import onnx
from header import Failed, Library, library_path, short
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


class Models(unittest.TestCase):
    def test_real_model(self):
        model = lib.made(lib.model_read, str(CLASSIFIER).encode(), None)
        (port,) = ports(model, lib.INPUT)
        self.assertEqual((port.name, port.type, port.rank), (b"x", lib.F32, 4))
        self.assertEqual([port.dims[i] for i in range(4)], [-1, 3, -1, -1])
        self.assertTrue(port.text.startswith(b"f32["))
        self.assertEqual(lib.got(ctypes.c_char_p, lib.model_format, model), b"ONNX")
        compiled = compiled_of(model, CPU_THREADS_NUM=2)
        lib.model_free(model)
        info = lib.compiled_info()
        lib.compiled_get(compiled, ctypes.byref(info))
        self.assertEqual((info.streams, info.optimal_requests), (1, 1))
        shape = (ctypes.c_int64 * 4)(8, 3, 48, 192)
        shapes = (ctypes.POINTER(ctypes.c_int64) * 1)(shape)
        found = lib.made(lib.compiled_output_ports, compiled, 1, (ctypes.c_size_t * 1)(4), ctypes.cast(shapes, ctypes.POINTER(ctypes.c_void_p)))
        out = lib.port()
        lib.list_port(found, 0, ctypes.byref(out))
        self.assertEqual([out.dims[i] for i in range(out.rank)], [8, 2])
        with Fails(lib.BAD_CALL, "the list has ports, not texts"):
            lib.got(ctypes.c_char_p, lib.list_text, found, 0)
        with Fails(lib.BAD_INPUT, "element 1 of a list of 1"):
            lib.list_port(found, 1, ctypes.byref(out))
        lib.list_free(found)

        request = lib.made(lib.request_new, compiled)
        lib.request_set_profile(request, 1)
        picture = np.random.default_rng(1).random((1, 3, 48, 192), np.float32)
        tensor = borrowed(picture, const=True)
        lib.request_set_input_named(request, b"x", tensor)
        lib.request_run(request)
        scores = output(request)
        self.assertEqual(scores.shape, (1, 2))
        self.assertAlmostEqual(float(scores.sum()), 1, places=5)
        times = rows(lib.made(lib.request_layer_times, request), lib.list_layer_time, lib.layer_time)
        self.assertTrue(times and all(t["microseconds"] >= 0 and t["kernel"] for t in times))
        counters = rows(lib.made(lib.request_counters, request), lib.list_counter, lib.counter)
        self.assertTrue(any(c["name"] == b"Conv@0" for c in counters))
        self.assertTrue(any(c["status"] == lib.LAYER_OPTIMIZED_OUT and c["into"] for c in counters))
        self.assertTrue(any(c["status"] == lib.LAYER_EXECUTED and c["runs"] == 1 and c["kernel"] for c in counters))
        fusions = rows(lib.made(lib.compiled_fusions, compiled), lib.list_fusion, lib.fusion)
        self.assertTrue(any(f["rule"] == b"fuse-conv-simple" and f["count"] > 0 for f in fusions))
        self.assertGreater(lib.got(ctypes.c_size_t, lib.request_memory, request), 0)

        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.lamina").encode()
            lib.compiled_save(compiled, path)
            with Fails(lib.BAD_FILE):
                lib.compiled_save(compiled, b"/no/such/folder/model.lamina")
            again = lib.made(lib.model_read, path, None)
            second = compiled_of(again)
            outputs = (ctypes.c_void_p * 1)()
            lib.compiled_call(second, (ctypes.c_void_p * 1)(tensor), 1, outputs, 1)
            result = lib.tensor_info()
            lib.tensor_get(outputs[0], ctypes.byref(result))
            self.assertTrue(np.array_equal(array_of(result), scores))
            with Fails(lib.BAD_INPUT, "2 inputs: the model has 1"):
                lib.compiled_call(second, (ctypes.c_void_p * 2)(), 2, outputs, 1)
            for handle, free in ((outputs[0], lib.tensor_free), (second, lib.compiled_free), (again, lib.model_free)):
                free(handle)
        lib.tensor_free(tensor)
        lib.request_free(request)
        lib.compiled_free(compiled)

    def test_every_model(self):
        """Each model of scripts/bootstrap can be read, and its ports say what they should."""
        for path in sorted(MODELS.glob("*.onnx")):
            model = lib.made(lib.model_read, str(path).encode(), None)
            proto = onnx.load(str(path))
            self.assertEqual([p.name.decode() for p in ports(model, lib.OUTPUT)], [o.name for o in proto.graph.output])
            metadata = rows(lib.made(lib.model_metadata, model), lib.list_entry, lib.entry)
            wanted = {p.key: p.value for p in proto.metadata_props}
            self.assertEqual({m["key"].decode(): m["value"].decode() for m in metadata}, wanted)
            for entry in metadata:
                self.assertEqual((entry["key_length"], entry["value_length"]), (len(entry["key"]), len(entry["value"])))
            unsupported = lib.made(lib.model_unsupported, model)
            self.assertEqual(lib.got(ctypes.c_size_t, lib.list_size, unsupported), 0)
            lib.list_free(unsupported)
            lib.list_free(lib.made(lib.model_warnings, model))
            lib.model_free(model)

    def test_settable_and_warnings(self):
        model = from_memory(scaled())
        self.assertEqual([p.name for p in ports(model, lib.INPUT)], [b"x"])
        warnings = lib.made(lib.model_warnings, model)
        self.assertIn(b"scale", lib.got(ctypes.c_char_p, lib.list_text, warnings, 0))
        lib.list_free(warnings)
        metadata = rows(lib.made(lib.model_metadata, model), lib.list_entry, lib.entry)
        self.assertEqual([m["key"] for m in metadata], [b"author", b"what"])
        lib.model_free(model)

        names = (ctypes.c_char_p * 1)(b"scale")
        read = lib.read_options(settable=names, settable_count=1)
        model = from_memory(scaled(), ctypes.byref(read))
        x, scale = ports(model, lib.INPUT)
        self.assertEqual((x.dimension_names[0], x.dimension_names[1], x.value), (b"batch", b"", None))
        value = lib.tensor_info()
        lib.tensor_get(scale.value, ctypes.byref(value))
        self.assertEqual(array_of(value).tolist(), [2.0] * 4)
        compiled = compiled_of(model)
        request = lib.made(lib.request_new, compiled)
        ones, tens = np.ones((1, 4), np.float32), np.full(4, 10, np.float32)
        a, b = borrowed(ones), borrowed(tens)
        lib.request_set_input(request, 0, a)
        lib.request_run(request)
        self.assertEqual(output(request).tolist(), [[2.0] * 4])
        lib.request_set_input_named(request, b"scale", b)
        lib.request_run(request)
        self.assertEqual(output(request).tolist(), [[10.0] * 4])
        names[0] = b"scales"
        with Fails(lib.BAD_OPTION, "scales"):
            from_memory(scaled(), ctypes.byref(read))
        for handle, free in ((a, lib.tensor_free), (b, lib.tensor_free), (request, lib.request_free), (compiled, lib.compiled_free), (model, lib.model_free)):
            free(handle)

    def test_external_data(self):
        data = scaled(location="scale.bin").SerializeToString()
        values = np.full(4, 3, np.float32)
        external = (lib.types["lamina_c_external_data"] * 2)(
            lib.external_data(location=b"scale.bin", data=values.ctypes.data, bytes=values.nbytes),
            lib.external_data(location=b"other.bin", data=values.ctypes.data, bytes=4),
        )
        parts = lib.model_bytes(model=ctypes.cast(data, ctypes.c_void_p), model_bytes=len(data), name=b"mine.onnx")
        with Fails(lib.BAD_FILE, "mine.onnx"):
            lib.made(lib.model_from_memory, ctypes.byref(parts), None)
        parts.external_data, parts.external_count = external, 2
        released = []
        release = lib.types["lamina_c_release"](released.append)
        parts.release, parts.user = release, 77
        model = lib.made(lib.model_from_memory, ctypes.byref(parts), None)
        compiled = compiled_of(model, KEEP_WEIGHTS="YES")
        lib.model_free(model)
        x, outputs = np.ones((2, 4), np.float32), (ctypes.c_void_p * 1)()
        tensor = borrowed(x)
        lib.compiled_call(compiled, (ctypes.c_void_p * 1)(tensor), 1, outputs, 1)
        info = lib.tensor_info()
        lib.tensor_get(outputs[0], ctypes.byref(info))
        self.assertEqual(array_of(info).tolist(), [[3.0] * 4] * 2)
        lib.tensor_free(outputs[0])
        lib.tensor_free(tensor)
        lib.compiled_free(compiled)
        self.assertEqual(released, [77])

    def test_release_belongs_to_success(self):
        released = []
        release = lib.types["lamina_c_release"](released.append)
        parts = lib.model_bytes(model=ctypes.cast(b"nonsense", ctypes.c_void_p), model_bytes=8, release=release, user=1)
        with Fails(lib.BAD_FILE):
            lib.made(lib.model_from_memory, ctypes.byref(parts), None)
        array = np.zeros((2, 4), np.float32)
        with Fails(lib.BAD_INPUT, "31 bytes of memory, wanted 32"):
            lib.made(lib.tensor_borrow, lib.F32, *dims(2, 4), array.ctypes.data, 31, release, 2)
        with Fails(lib.BAD_INPUT):
            lib.made(lib.tensor_borrow, lib.F32, *dims(-2, 4), array.ctypes.data, 32, release, 3)
        self.assertEqual(released, [])

    def test_limits_of_reading(self):
        limits = options(LIMIT_NODES=3)
        read = lib.read_options(limits=limits)
        with Fails(lib.OVER_LIMIT, "LIMIT_NODES"):
            lib.made(lib.model_read, str(CLASSIFIER).encode(), ctypes.byref(read))
        lib.options_free(limits)
        stop = lib.made(lib.stop_new)
        lib.stop_request(stop)
        self.assertEqual(lib.got(ctypes.c_int32, lib.stop_requested, stop), 1)
        read = lib.read_options(stop=stop)
        with Fails(lib.CANCELED):
            lib.made(lib.model_read, str(CLASSIFIER).encode(), ctypes.byref(read))
        lib.stop_free(stop)

    def test_a_list_of_names_with_commas(self):
        of = options()
        values = (ctypes.c_char_p * 2)(b"Co{1,2}nv@.*", b"BatchNormalization@.*")
        lib.options_set_list(of, b"EXEMPT", values, 2)
        found = rows(lib.made(lib.options_properties, of), lib.list_property, lib.property)
        asked = {p["key"]: p["asked"] for p in found}
        self.assertEqual(asked[b"EXEMPT"], b"Co{1,2}nv@.*,BatchNormalization@.*")
        lib.options_free(of)
        keys = [o["key"] for o in rows(lib.made(lib.option_list), lib.list_option, lib.option)]
        self.assertIn(b"CPU_THREADS_NUM", keys)


class Requests(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = from_memory(endless())
        cls.x = np.ones((1, 4), np.float32)

    def request(self, streams, go, compiled=None):
        compiled = compiled or compiled_of(self.model, NUM_STREAMS=streams, CPU_THREADS_NUM=2)
        request = lib.made(lib.request_new, compiled)
        self.set_go(request, go)
        return request, compiled

    def set_go(self, request, go):
        x, flag = borrowed(self.x), lib.made(lib.tensor_new, lib.BOOLEAN, 0, None)
        info = lib.tensor_info()
        lib.tensor_get(flag, ctypes.byref(info))
        ctypes.memmove(info.data, bytes([go]), 1)
        lib.request_set_input(request, 0, x)
        lib.request_set_input(request, 1, flag)
        lib.tensor_free(x)
        lib.tensor_free(flag)

    def status(self, request):
        return lib.got(ctypes.c_int32, lib.request_status, request)

    def test_cancel(self):
        request, compiled = self.request(1, True)
        self.assertEqual(self.status(request), lib.REQUEST_IDLE)
        lib.request_start(request)
        self.assertEqual(lib.got(ctypes.c_int32, lib.request_wait_for, request, 20_000_000), 0)
        with Fails(lib.BUSY):
            lib.request_run(request)
        with Fails(lib.BUSY):
            output(request)
        lib.request_cancel(request)
        with Fails(lib.CANCELED):
            lib.request_wait(request)
        self.assertEqual(self.status(request), lib.REQUEST_CANCELED)
        with Fails(lib.BAD_INPUT):
            output(request)
        self.set_go(request, False)
        lib.request_run(request)
        self.assertEqual(output(request).tolist(), self.x.tolist())
        lib.request_free(request)
        lib.compiled_free(compiled)

    def test_cancel_a_run_in_another_thread(self):
        for streams in 0, 1:
            request, compiled = self.request(streams, True)
            seen = []

            def run(request=request, seen=seen):
                try:
                    lib.request_run(request)
                except Failed as failed:
                    seen.append(failed.status)

            thread = threading.Thread(target=run)
            thread.start()
            until(lambda request=request: self.status(request) == lib.REQUEST_RUNNING)
            lib.request_cancel(request)
            thread.join(SOON)
            self.assertEqual(seen, [lib.CANCELED])
            lib.request_free(request)
            lib.compiled_free(compiled)

    def test_run_with_a_time_limit(self):
        for streams in 0, 1:
            request, compiled = self.request(streams, True)
            begun = time.monotonic()
            with Fails(lib.OVER_LIMIT, "took more than the time of run_for"):
                lib.request_run_for(request, 50_000_000)
            self.assertLess(time.monotonic() - begun, SOON)
            self.set_go(request, False)
            for limit in 10**12, FOR_EVER:
                lib.request_run_for(request, limit)
                self.assertEqual(output(request).tolist(), self.x.tolist())
            lib.request_free(request)
            lib.compiled_free(compiled)

    def test_time_limit_in_the_queue(self):
        first, compiled = self.request(1, True)
        second, _ = self.request(1, False, compiled)
        lib.request_start(first)
        until(lambda: self.status(first) == lib.REQUEST_RUNNING)
        with Fails(lib.OVER_LIMIT, "no stream was free"):
            lib.request_run_for(second, 20_000_000)
        lib.request_cancel(first)
        with Fails(lib.CANCELED):
            lib.request_wait(first)
        lib.request_run_for(second, FOR_EVER)
        for request in first, second:
            lib.request_free(request)
        lib.compiled_free(compiled)

    def test_callback(self):
        request, compiled = self.request(1, False)
        calls, freed, ended = [], [], threading.Event()

        def done(user, status, error):
            calls.append((user, status, error, lib.last_error()))
            ended.set()
            return 0

        callback = lib.types["lamina_c_done"](done)
        release = lib.types["lamina_c_release"](freed.append)
        lib.request_set_callback(request, callback, 5, release)
        lib.request_start(request)
        self.assertTrue(ended.wait(SOON))
        lib.request_wait(request)
        self.assertEqual(calls, [(5, lib.OK, b"", b"")])
        ended.clear()
        self.set_go(request, True)
        lib.request_start(request)
        lib.request_cancel(request)
        self.assertTrue(ended.wait(SOON))
        with Fails(lib.CANCELED):
            lib.request_wait(request)
        self.assertEqual(calls[1][:2], (5, lib.CANCELED))
        self.assertIn(b"cancel", calls[1][2])
        self.assertEqual(freed, [])
        lib.request_free(request)
        until(lambda: freed == [5])  # a thread of lamina may have the request for a moment longer
        lib.compiled_free(compiled)

    def test_free_cancels(self):
        request, compiled = self.request(1, True)
        lib.request_start(request)
        lib.request_free(request)
        lib.compiled_free(compiled)

    def test_borrowed_memory(self):
        """The arrays themselves are read and written, and let go of when nobody has them any more."""
        request, compiled = self.request(1, False)
        freed = []
        release = lib.types["lamina_c_release"](freed.append)
        x, y = np.arange(4, dtype=np.float32).reshape(1, 4), np.zeros((1, 4), np.float32)
        a, b = borrowed(x, const=True, release=release, user=1), borrowed(y, release=release, user=2)
        shared = lib.made(lib.tensor_share, a)
        lib.request_set_input(request, 0, a)
        lib.request_set_output(request, 0, b)
        lib.tensor_free(a)
        lib.tensor_free(b)
        lib.request_run(request)
        self.assertEqual(y.tolist(), x.tolist())
        info = lib.tensor_info()
        lib.request_read_output(request, 0, ctypes.byref(info))
        self.assertEqual(info.data, y.ctypes.data)
        lib.tensor_get(shared, ctypes.byref(info))
        self.assertEqual((info.data, info.read_only), (x.ctypes.data, 1))
        with Fails(lib.BAD_INPUT):  # it may only be read
            lib.request_set_output(request, 0, shared)
        self.assertEqual(freed, [])
        lib.tensor_free(shared)
        self.assertEqual(freed, [])
        lib.request_set_output(request, 0, None)
        lib.request_free(request)
        self.assertEqual(sorted(freed), [1, 2])
        lib.compiled_free(compiled)

    def test_tensors(self):
        tensor = lib.made(lib.tensor_new, lib.F32, *dims(2, 3))
        info = lib.tensor_info()
        lib.tensor_get(tensor, ctypes.byref(info))
        self.assertEqual((info.data % 64, info.bytes, info.elements, info.aligned, info.read_only), (0, 24, 6, 1, 0))
        ctypes.memmove(info.data, np.arange(6, dtype=np.float32).tobytes(), 24)
        text, length = ctypes.create_string_buffer(100), ctypes.c_size_t()
        lib.tensor_text(tensor, text, 100, ctypes.byref(length))
        self.assertEqual(text.value, b"f32[2,3] {0, 1, 2, 3, 4, 5}")
        self.assertEqual(length.value, len(text.value))
        lib.tensor_text(None, text, 5, None)
        self.assertEqual(text.value, b"no t")
        other = lib.made(lib.tensor_reshape, tensor, *dims(3, 2))
        lib.tensor_get(other, ctypes.byref(info))
        self.assertEqual([info.dims[0], info.dims[1]], [3, 2])
        with Fails(lib.BAD_INPUT):
            lib.made(lib.tensor_reshape, tensor, *dims(7))
        self.assertEqual(lib.got(ctypes.c_int32, lib.tensor_compare, tensor, other), 0)
        scalar = lib.made(lib.tensor_new, lib.I64, 0, None)
        lib.tensor_get(scalar, ctypes.byref(info))
        self.assertEqual((info.rank, info.elements, info.bytes), (0, 1, 8))
        memory = ctypes.create_string_buffer(33)
        odd = lib.made(lib.tensor_borrow, lib.F32, *dims(8), ctypes.addressof(memory) + 1, 32, lib.types["lamina_c_release"](), None)
        even = lib.made(lib.tensor_align, odd)
        lib.tensor_get(odd, ctypes.byref(info))
        self.assertEqual(info.aligned, 0)
        lib.tensor_get(even, ctypes.byref(info))
        self.assertEqual(info.aligned, 1)
        self.assertEqual(lib.got(ctypes.c_int32, lib.tensor_compare, odd, even), 1)
        for handle in tensor, other, scalar, odd, even:
            lib.tensor_free(handle)
        with Fails(lib.BAD_INPUT, "more than this machine's memory"):
            lib.made(lib.tensor_new, lib.F64, *dims(2**40 - 1))
        with Fails(lib.BAD_INPUT):
            lib.got(ctypes.c_size_t, lib.element_count, *dims(2**62, 2**62))
        self.assertEqual(lib.got(ctypes.c_size_t, lib.element_count, *dims(3, 0, 5)), 0)
        for number in range(26):
            of = lib.type_info()
            lib.type_get(number, ctypes.byref(of))
            if number:
                self.assertEqual(lib.got(ctypes.c_int32, lib.type_named, of.name), number)
        self.assertEqual(lib.got(ctypes.c_int32, lib.type_named, b"f33"), lib.NO_TYPE)
        with Fails(lib.BAD_INPUT, "26 is no element type"):
            lib.type_get(26, ctypes.byref(lib.type_info()))

    def test_variables(self):
        path = MODELS / "silero_vad.onnx"
        model = lib.made(lib.model_read, str(path).encode(), None)
        compiled = compiled_of(model)
        self.assertEqual(lib.got(ctypes.c_size_t, lib.compiled_port_count, compiled, lib.VARIABLE), 0)
        request = lib.made(lib.request_new, compiled)
        lib.request_reset_state(request)
        with Fails(lib.BAD_INPUT):
            lib.made(lib.request_variable, request, b"v")
        lib.request_free(request)
        lib.compiled_free(compiled)
        lib.model_free(model)

        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "sum.xml")
            Path(path).write_text(RUNNING_SUM)
            Path(folder, "other.bin").write_bytes(np.zeros(4, np.float32).tobytes())
            read = lib.read_options(weights=os.path.join(folder, "other.bin").encode())
            with Fails(lib.BAD_FILE):
                lib.made(lib.model_read, path.encode(), None)
            model = lib.made(lib.model_read, path.encode(), ctypes.byref(read))
            (port,) = ports(model, lib.VARIABLE)
            self.assertEqual(port.name, b"state")
            compiled = compiled_of(model)
            request = lib.made(lib.request_new, compiled)
            x = borrowed(self.x)
            lib.request_set_input(request, 0, x)
            for total in 1, 2, 3:
                lib.request_run(request)
                self.assertEqual(output(request).tolist(), [[total] * 4])
            value, info = lib.made(lib.request_variable, request, b"state"), lib.tensor_info()
            lib.tensor_get(value, ctypes.byref(info))
            self.assertEqual(array_of(info).tolist(), [[3.0] * 4])
            lib.request_set_variable(request, b"state", x)
            lib.request_run(request)
            self.assertEqual(output(request).tolist(), [[2.0] * 4])
            with Fails(lib.BAD_INPUT, "null"):
                lib.request_set_variable(request, b"state", None)
            lib.request_reset_state(request)
            lib.request_run(request)
            self.assertEqual(output(request).tolist(), [[1.0] * 4])
            for handle, free in ((value, lib.tensor_free), (x, lib.tensor_free), (request, lib.request_free), (compiled, lib.compiled_free), (model, lib.model_free)):
                free(handle)


class Callbacks(unittest.TestCase):
    def test_log_and_progress(self):
        lines, stages, freed = [], [], []
        log = lib.types["lamina_c_log"](lambda user, level, line: lines.append((user, level, line)))
        progress = lib.types["lamina_c_progress"](lambda user, stage, done: stages.append((stage, done)) or 0)
        release = lib.types["lamina_c_release"](freed.append)
        of = options()
        lib.options_set_log(of, log, 3, release)
        lib.options_set_progress(of, progress, 4, release)
        model = lib.made(lib.model_read, str(CLASSIFIER).encode(), None)
        compiled = lib.made(lib.compile, model, of)
        lib.options_free(of)
        self.assertTrue(lines and all(user == 3 and 0 <= level <= 3 and line for user, level, line in lines))
        self.assertTrue(stages and all(0 <= done <= 1 for _, done in stages))
        self.assertEqual(freed, [])
        lib.compiled_free(compiled)
        lib.model_free(model)
        gc.collect()
        self.assertEqual(sorted(freed), [3, 4])

    def test_stop_from_progress(self):
        stop, of = lib.made(lib.stop_new), options()
        progress = lib.types["lamina_c_progress"](lambda user, stage, done: raw.lamina_c_stop_request(stop))
        lib.options_set_stop(of, stop)
        lib.options_set_progress(of, progress, None, lib.types["lamina_c_release"]())
        model = lib.made(lib.model_read, str(CLASSIFIER).encode(), None)
        with Fails(lib.CANCELED):
            lib.made(lib.compile, model, of)
        for handle, free in ((of, lib.options_free), (stop, lib.stop_free), (model, lib.model_free)):
            free(handle)


    def test_progress_ends_planning(self):
        """Shapes are new to the model in a run, whose planning the callback ends; the next run is as if nothing was."""
        answer, seen = [0], []
        progress = lib.types["lamina_c_progress"](lambda user, stage, done: answer[0])
        done = lib.types["lamina_c_done"](lambda user, status, error: seen.append((status, error)) or 0)
        of = options(NUM_STREAMS=1)
        lib.options_set_progress(of, progress, None, lib.types["lamina_c_release"]())
        model = lib.made(lib.model_read, str(CLASSIFIER).encode(), None)
        compiled = lib.made(lib.compile, model, of)
        request = lib.made(lib.request_new, compiled)
        picture = np.ones((1, 3, 48, 192), np.float32)
        tensor = borrowed(picture)
        lib.request_set_input(request, 0, tensor)
        lib.request_set_callback(request, done, None, lib.types["lamina_c_release"]())
        answer[0] = -3
        with Fails(lib.CALLBACK, "the progress callback returned -3"):
            lib.request_run(request)
        lib.request_start(request)
        with Fails(lib.CALLBACK, "the progress callback returned -3"):
            lib.request_wait(request)
        self.assertEqual(seen, [(lib.CALLBACK, b"the progress callback returned -3")])
        answer[0] = 0
        lib.request_run(request)
        self.assertEqual(output(request).shape, (1, 2))
        for handle, free in ((tensor, lib.tensor_free), (request, lib.request_free), (compiled, lib.compiled_free), (model, lib.model_free), (of, lib.options_free)):
            free(handle)


class Sizes(unittest.TestCase):
    """Callers with an older or a newer header."""

    def test_results(self):
        for size in range(0, ctypes.sizeof(lib.types["lamina_c_port"]) + 64, 8):
            model = from_memory(endless())
            memory = (ctypes.c_uint8 * 512)(*[0xEE] * 512)
            ctypes.c_size_t.from_buffer(memory).value = size
            port = ctypes.cast(memory, ctypes.POINTER(lib.types["lamina_c_port"]))
            if size < 8:
                with Fails(lib.BAD_INPUT, "lamina_c_port: its size is 0, wanted sizeof"):
                    lib.model_port(model, lib.INPUT, 0, port)
            else:
                lib.model_port(model, lib.INPUT, 0, port)
                whole = lib.port()
                lib.model_port(model, lib.INPUT, 0, ctypes.byref(whole))
                ours = ctypes.sizeof(whole)
                self.assertEqual(ctypes.c_size_t.from_buffer(memory).value, size)
                self.assertEqual(bytes(memory[8 : min(size, ours)]), bytes(whole)[8:size])
                self.assertEqual(bytes(memory[ours:size]), bytes(max(0, size - ours)))  # unknown: zero
                self.assertEqual(bytes(memory[size:]), b"\xee" * (512 - size))  # not the caller's struct
            lib.model_free(model)

    def test_arguments(self):
        kind = lib.types["lamina_c_read_options"]
        ours = ctypes.sizeof(kind)
        for size in range(8, ours + 64, 8):
            memory = (ctypes.c_uint8 * 512)(*[0xEE] * 512)  # what is beyond the size must not be read
            memory[8:size] = [0] * (size - 8)
            ctypes.c_size_t.from_buffer(memory).value = size
            lib.model_free(from_memory(endless(), ctypes.cast(memory, ctypes.POINTER(kind))))
            if size > ours:
                memory[size - 1] = 1
                with Fails(lib.UNSUPPORTED, f"members behind byte {ours} are set"):
                    from_memory(endless(), ctypes.cast(memory, ctypes.POINTER(kind)))
        for size in 0, 7, 4097, 2**63:
            ctypes.c_size_t.from_buffer(memory).value = size
            with Fails(lib.BAD_INPUT, "lamina_c_read_options: its size is"):
                from_memory(endless(), ctypes.cast(memory, ctypes.POINTER(kind)))

    def test_arrays_of_a_newer_header(self):
        class Longer(ctypes.Structure):
            _fields_ = [("known", lib.types["lamina_c_external_data"]), ("more", ctypes.c_uint64 * 3)]

        data, values = scaled(location="scale.bin").SerializeToString(), np.full(4, 3, np.float32)
        array = (Longer * 2)()
        for element, location in zip(array, (b"other.bin", b"scale.bin"), strict=True):
            element.known = lib.external_data(location=location, data=values.ctypes.data, bytes=values.nbytes)
            element.known.size = ctypes.sizeof(Longer)
        first = ctypes.cast(array, ctypes.POINTER(lib.types["lamina_c_external_data"]))
        parts = lib.model_bytes(model=ctypes.cast(data, ctypes.c_void_p), model_bytes=len(data), external_data=first, external_count=2)
        lib.model_free(lib.made(lib.model_from_memory, ctypes.byref(parts), None))


class Nulls(unittest.TestCase):
    def test_every_function(self):
        """Null for every pointer is an error, or allowed; never a crash."""
        allowed = {"options_properties", "shutdown", "tensor_text"}
        for name, (result, arguments) in lib.header.functions.items():
            function = getattr(raw, name)
            values = [None if "*" in kind or kind in lib.header.callbacks or kind == "function" else 0 for kind, _ in arguments]
            values = [v if v is not None or t not in lib.types else lib.types[t]() for v, (t, _) in zip(values, arguments, strict=True)]
            answer = function(*values)
            if name.endswith("_free"):
                continue
            if result != "lamina_c_status":
                self.assertIsNotNone(answer, name)
            elif answer not in (lib.BAD_CALL, lib.BAD_INPUT):
                self.assertIn(short(name), allowed, (name, answer, lib.last_error()))
            else:
                self.assertIn(b"null", lib.last_error(), name)

    def test_each_argument(self):
        """Of a call that works, each pointer in turn is null."""
        model = from_memory(endless())
        compiled = compiled_of(model)
        request = lib.made(lib.request_new, compiled)
        tensor, stop, of = lib.made(lib.tensor_new, lib.F32, *dims(1, 4)), lib.made(lib.stop_new), options()
        names = lib.made(lib.option_list)
        given = {
            "lamina_c_model*": model,
            "lamina_c_compiled*": compiled,
            "lamina_c_request*": request,
            "lamina_c_tensor*": tensor,
            "lamina_c_stop*": stop,
            "lamina_c_options*": of,
            "lamina_c_list*": names,
            "char*": b"x",
        }
        tried = 0
        for name, (result, arguments) in lib.header.functions.items():
            if result != "lamina_c_status" or name in ("lamina_c_shutdown", "lamina_c_request_wait", "lamina_c_compiled_save"):
                continue
            values = []
            for kind, _ in arguments:
                plain = " ".join(kind.replace("const", " ").split())
                if plain in given and not (plain == "char*" and "const" not in kind):
                    values.append(given[plain])
                elif kind in lib.types and "*" not in kind:
                    values.append(lib.types[kind]())
                elif plain.endswith("*") and plain[:-1] in lib.header.structs:
                    values.append(ctypes.pointer(lib.types[plain[:-1]](size=ctypes.sizeof(lib.types[plain[:-1]]))))
                else:
                    values.append(None)
            for at, (kind, _) in enumerate(arguments):
                if "*" in kind:
                    answer = getattr(raw, name)(*values[:at], None, *values[at + 1 :])
                    self.assertIn(answer, range(0, 13), name)
                    tried += 1
        self.assertGreater(tried, 100)
        for handle, free in (
            (names, lib.list_free), (of, lib.options_free), (stop, lib.stop_free), (tensor, lib.tensor_free),
            (request, lib.request_free), (compiled, lib.compiled_free), (model, lib.model_free),
        ):  # fmt: skip
            free(handle)

    def test_free_null(self):
        for name in lib.header.functions:
            if name.endswith("_free"):
                getattr(raw, name)(None)


class Errors(unittest.TestCase):
    def test_texts(self):
        with Fails(lib.BAD_FILE, "/no/such/model.onnx"):
            lib.made(lib.model_read, b"/no/such/model.onnx", None)
        with Fails(lib.BAD_OPTION, "CPU_THREADS_NUM"):
            options(CPU_THREAD_NUM=1)
        with Fails(lib.BAD_OPTION, "wanted"):
            options(CPU_THREADS_NUM="many")
        out = ctypes.c_void_p(1)
        self.assertEqual(raw.lamina_c_model_read(b"/no/such/model.onnx", None, ctypes.byref(out)), lib.BAD_FILE)
        self.assertIsNone(out.value)
        self.assertEqual([raw.lamina_c_status_name(s) for s in (0, 1, 12, 13, -1)], [b"ok", b"bad_file", b"callback", b"unknown", b"unknown"])
        with Fails(lib.BAD_FILE, "long: cannot be read: File name too long"):  # a path stays whole
            lib.made(lib.model_read, b"/" + b"long" * 900, None)
        with Fails(lib.BAD_OPTION, "…"):  # other names are shortened
            options(**{"LONG" * 900: 1})
        self.assertLessEqual(len(lib.last_error().decode()), 300)

    def test_each_thread_has_its_own(self):
        seen = {}

        def fail(number):
            for _ in range(200):
                raw.lamina_c_type_get(100 + number, None)
                seen.setdefault(number, set()).add(lib.last_error())

        threads = [threading.Thread(target=fail, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(seen, {n: {f"{100 + n} is no element type, wanted 0 to 25".encode()} for n in range(8)})

    def test_extensions(self):
        names = (ctypes.c_char_p * 1)(b"/no/such/extension.so")
        read = lib.read_options(extensions=names, extension_count=1)
        with Fails(lib.BAD_FILE, "extension.so"):
            from_memory(endless(), ctypes.byref(read))


class Threads(unittest.TestCase):
    def test_one_model_many_threads(self):
        model = lib.made(lib.model_read, str(CLASSIFIER).encode(), None)
        compiled = compiled_of(model, NUM_STREAMS=2, CPU_THREADS_NUM=2)
        picture = np.random.default_rng(2).random((3, 3, 48, 192), np.float32)
        wanted, faults = [], []

        def run(index, out):
            request = lib.made(lib.request_new, compiled)
            one = np.ascontiguousarray(picture[index : index + 1])
            tensor = borrowed(one, const=True)
            lib.request_set_input(request, 0, tensor)
            lib.tensor_free(tensor)
            lib.request_run(request)
            out.append(output(request))
            lib.request_free(request)

        for i in range(3):
            run(i, wanted)

        def work(number):
            try:
                for turn in range(20):
                    found = []
                    run((number + turn) % 3, found)
                    if not np.array_equal(found[0], wanted[(number + turn) % 3]):
                        faults.append((number, turn))
            except Exception as error:  # noqa: BLE001
                faults.append(error)

        threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(faults, [])
        lib.compiled_free(compiled)
        lib.model_free(model)
        lib.shutdown()


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

if __name__ == "__main__":
    unittest.main()
