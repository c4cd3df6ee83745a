"""lamina.compat.onnxruntime by itself: what is lamina's way, and what is refused."""

import json
import threading
from pathlib import Path

import lamina.compat.onnxruntime as compat
import models
import numpy as np
import onnx
import pytest
from forks import held_by_another_thread, in_child
from lamina.compat.onnxruntime.capi import onnxruntime_pybind11_state as state

A = np.arange(8, dtype=np.float32).reshape(2, 4)
B = np.ones((2, 4), np.float32)


def session(proto: onnx.ModelProto, **options):
    return compat.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"], **options)


def test_terminate():
    one = session(models.endless())
    options = compat.RunOptions()
    feed = {"x": np.ones((32, 32), np.float32), "count": np.array(2**40)}
    timer = threading.Timer(0.5, lambda: setattr(options, "terminate", True))
    timer.start()
    with pytest.raises(state.Fail, match="Exiting due to terminate flag being set to true"):
        one.run(None, feed, options)
    with pytest.raises(state.Fail, match="terminate flag"):
        one.run(None, feed, options)
    options.terminate = False
    feed["count"] = np.array(2)
    assert one.run(None, feed, options)[0].shape == (32, 32)


def test_profiling(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    options = compat.SessionOptions()
    options.enable_profiling = True
    one = session(models.sums(), sess_options=options)
    for _ in range(3):
        assert one.run(["sum"], {"a": A, "b": B})[0].tolist() == (A + B).tolist()
    path = one.end_profiling()
    assert path.startswith("onnxruntime_profile_")
    events = json.loads(Path(path).read_text())
    assert sum(event["cat"] == "Session" for event in events) == 3 and all(event["ph"] == "X" for event in events)
    assert {event["name"] for event in events if event["cat"] == "Node"} and one.get_profiling_start_time_ns() > 0


def test_external_data_in_memory(tmp_path):
    proto = models.with_default()
    onnx.save(proto, tmp_path / "m.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)
    options = compat.SessionOptions()
    data = (tmp_path / "w.bin").read_bytes()
    options.add_external_initializers_from_files_in_memory(["w.bin"], [data], [len(data)])
    one = compat.InferenceSession((tmp_path / "m.onnx").read_bytes(), options)
    assert one.run(None, {"x": np.zeros(4, np.float32)})[0].tolist() == [10] * 4
    assert compat.InferenceSession(tmp_path / "m.onnx").get_modelmeta().graph_name == "g"


def test_bits_of_types_that_numpy_lacks():
    for name, bits in (("bfloat16", np.uint16), ("float8_e4m3fn", np.uint8)):
        x = np.arange(3, dtype=bits)
        (y,) = session(models.identity(name, (3,))).run(None, {"x": x}, compat.RunOptions())
        assert y.view(bits).tolist() == x.tolist()
        with pytest.raises(state.InvalidArgument, match="Unexpected input data type"):
            session(models.identity(name, (3,))).run(None, {"x": x.astype(np.int16)})


def test_free_dimensions():
    options = compat.SessionOptions()
    options.add_free_dimension_override_by_name("n", 2)
    one = session(models.sums(), sess_options=options)
    assert [port.shape for port in one.get_inputs()] == [[2, 4], [2, 4]]


def test_what_is_not_there():
    calls = [
        lambda: compat.SessionOptions().register_custom_ops_library("x.so"),
        lambda: compat.SessionOptions().add_initializer("w", None),
        lambda: compat.RunOptions().add_active_adapter(None),
        lambda: compat.LoraAdapter(),
        lambda: compat.ModelCompiler(None),
        lambda: compat.register_execution_provider_library("x", "x.so"),
    ]
    for call in calls:
        with pytest.raises(NotImplementedError, match="not in lamina's form of ONNX Runtime; .*(lamina|weights)"):
            call()
    options = compat.SessionOptions()
    options.optimized_model_filepath = "x.onnx"
    with pytest.raises(NotImplementedError, match="lamina.optimize"):
        session(models.relu(), sess_options=options)
    with pytest.raises(AttributeError, match="docs/python.md"):
        compat.nothing_of_this_name  # noqa: B018


def test_switches_that_do_nothing():
    compat.disable_telemetry_events()
    compat.enable_telemetry_events()
    compat.set_default_logger_severity(4)
    compat.set_default_logger_verbosity(0)
    compat.set_seed(1)
    compat.preload_dlls(cuda=False)
    compat.set_global_thread_pool_sizes(1, 1)
    assert compat.get_device() == "CPU" and "lamina" in compat.get_build_info()
    assert compat.__version__ == compat.get_version_string() and not compat.has_collective_ops()


def test_a_file_that_changes_or_goes(tmp_path):
    """What a session knows of its file is read once; what would need the file again is an error."""
    path = tmp_path / "model.onnx"
    model = models.sums()
    model.producer_name = "a test"
    onnx.save(model, path)
    session = compat.InferenceSession(str(path))
    onnx.save(models.relu(), path)
    assert session.get_modelmeta().producer_name == "a test"
    with pytest.raises(state.Fail, match="was changed"):
        session.set_providers(["CPUExecutionProvider"])
    path.unlink()
    assert session.get_overridable_initializers() == []
    with pytest.raises(state.Fail, match="was changed"):
        session.set_providers(["CPUExecutionProvider"])


def test_a_child_finds_locks_free_and_has_threads_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    settings = compat.SessionOptions()
    settings.enable_profiling = True
    one, other = session(models.sums()), session(models.sums(), sess_options=settings)
    options = compat.RunOptions()

    def asynchronous():
        done, got = threading.Event(), []

        def callback(outputs, data, error):
            got.append((outputs, error))
            done.set()

        one.run_async(["sum"], {"a": A, "b": B}, callback, None)
        assert done.wait(60) and not got[0][1] and got[0][0][0].tolist() == (A + B).tolist()

    def child():
        lists = {"a": A.tolist(), "b": B.tolist()}
        assert one.run(["sum"], lists)[0].tolist() == (A + B).tolist()
        assert one.run(["sum"], lists, options)[0].tolist() == (A + B).tolist()
        assert other.run(["sum"], lists)[0].tolist() == (A + B).tolist()
        asynchronous()

    asynchronous()
    with held_by_another_thread(one._lock, other._lock, other._profile._lock, options.__dict__["_lock"]):
        assert in_child(child) == 0
    asynchronous()
