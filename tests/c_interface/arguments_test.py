"""Structs of every size, null pointers and errors of lamina/c.h."""

import ctypes
import threading
import unittest

import numpy as np
from calls import Fails, compiled_of, dims, endless, from_memory, lib, options, raw, scaled
from header import short


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


if __name__ == "__main__":
    unittest.main()
