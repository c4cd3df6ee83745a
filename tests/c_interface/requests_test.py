"""Requests through lamina/c.h: runs, stops, callbacks, and several threads at once."""

import ctypes
import gc
import os
import tempfile
import threading
import time
import unittest
from pathlib import Path

import numpy as np
from calls import (
    CLASSIFIER,
    FOR_EVER,
    MODELS,
    RUNNING_SUM,
    SOON,
    Fails,
    array_of,
    borrowed,
    compiled_of,
    dims,
    endless,
    from_memory,
    lib,
    options,
    output,
    ports,
    raw,
    until,
)
from header import Failed


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


if __name__ == "__main__":
    unittest.main()
