"""Models and compiled models through lamina/c.h, on real files: what they say, read and refuse."""

import ctypes
import json
import os
import tempfile
import unittest

import numpy as np
import onnx
from calls import (
    CLASSIFIER,
    MODELS,
    Fails,
    array_of,
    borrowed,
    compiled_of,
    dims,
    from_memory,
    lib,
    options,
    output,
    ports,
    rows,
    scaled,
)


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

        where = (1, (ctypes.c_size_t * 1)(4), ctypes.cast(shapes, ctypes.POINTER(ctypes.c_void_p)))
        length = ctypes.c_size_t()
        lib.compiled_explain(compiled, *where, None, 0, ctypes.byref(length))
        text = ctypes.create_string_buffer(length.value + 1)
        lib.compiled_explain(compiled, *where, text, length.value + 1, ctypes.byref(length))
        explained = json.loads(text.value)
        self.assertEqual(len(text.value), length.value)
        layers = {layer["name"]: layer for layer in explained["layers"]}
        self.assertEqual((layers["Div@0"]["fate"], layers["Div@0"]["into"]), ("fused", "Conv@0"))
        self.assertTrue(explained["verdict"]["command"].startswith("lamina "))
        with Fails(lib.BAD_INPUT, 'the sizes of input "x" are not known'):
            lib.compiled_explain(compiled, 0, None, None, None, 0, ctypes.byref(length))
        with Fails(lib.BAD_INPUT, "shapes of 2 inputs: the model has 1"):
            lib.compiled_explain(compiled, 2, where[1], where[2], None, 0, ctypes.byref(length))

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

    def test_other_shapes(self):
        sizes = (ctypes.c_int64 * 4)(-1, 3, 48, 48)
        most = (ctypes.c_int64 * 4)(8, 3, 48, 640)
        least = (ctypes.c_int64 * 4)(1, 3, 48, 48)
        given = type(lib.input_shape()) * 2
        rows = given(
            lib.input_shape(name=b"x", rank=4, dims=least, most=most),
            lib.input_shape(name=b"x", rank=4, dims=sizes),
        )
        read = lib.read_options(input_shapes=rows, input_shape_count=1)
        model = lib.made(lib.model_read, str(CLASSIFIER).encode(), ctypes.byref(read))
        (port,) = ports(model, lib.INPUT)
        self.assertEqual([port.dims[i] for i in range(4)], [-1, 3, 48, -1])
        shapes = (ctypes.POINTER(ctypes.c_int64) * 1)(sizes)
        where = (1, (ctypes.c_size_t * 1)(4), ctypes.cast(shapes, ctypes.POINTER(ctypes.c_void_p)))
        one = lib.input_shape(name=b"x", rank=4, dims=(ctypes.c_int64 * 4)(5, 3, 48, 48))
        out = lib.port()
        for count, batch in ((0, -1), (1, 5)):
            found = lib.made(lib.model_output_ports, model, ctypes.byref(one), count)
            lib.list_port(found, 0, ctypes.byref(out))
            self.assertEqual([out.dims[i] for i in range(out.rank)], [batch, 2])
            lib.list_free(found)
        compiled = compiled_of(model)
        info = lib.compiled_info()
        for shape, plans in (((2, 3, 48, 96), 1), ((3, 3, 48, 96), 2)):
            sizes[:] = shape
            lib.compiled_plan(compiled, *where)
            lib.compiled_get(compiled, ctypes.byref(info))
            self.assertEqual(info.plans, plans)
        with Fails(lib.BAD_INPUT, "shapes of 0 inputs"):
            lib.compiled_plan(compiled, 0, None, None)
        lib.compiled_free(compiled)
        lib.model_free(model)
        read = lib.read_options(input_shapes=rows, input_shape_count=2)
        with Fails(lib.BAD_INPUT, 'two shapes for "x"'):
            lib.made(lib.model_read, str(CLASSIFIER).encode(), ctypes.byref(read))
        rows[0].name = None
        with Fails(lib.BAD_INPUT, "the name of an input"):
            lib.made(lib.model_read, str(CLASSIFIER).encode(), ctypes.byref(read))
        read = lib.read_options(input_shape_count=1)
        with Fails(lib.BAD_INPUT, "input_shapes"):
            lib.made(lib.model_read, str(CLASSIFIER).encode(), ctypes.byref(read))

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


if __name__ == "__main__":
    unittest.main()
