"""lamina.optimize() and lamina.quantize(): files that compute the same, options, errors, Ctrl-C."""

import os
import subprocess
import sys
from pathlib import Path

import lamina
import models
import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper


def pictures(batch: int | str = 1) -> onnx.ModelProto:
    """conv1, relu1, conv2 of pictures with 3 channels and 8x8 points."""
    rng = np.random.default_rng(1)
    weights = {"w1": rng.standard_normal((4, 3, 3, 3)), "w2": rng.standard_normal((2, 4, 1, 1))}
    nodes = [
        helper.make_node("Conv", ["data", "w1"], ["a"], "conv1"),
        helper.make_node("Relu", ["a"], ["b"], "relu1"),
        helper.make_node("Conv", ["b", "w2"], ["y"], "conv2"),
    ]
    return models.graph_model(
        nodes,
        [models.value("data", (batch, 3, 8, 8))],
        [models.value("y", (batch, 2, 6, 6))],
        [numpy_helper.from_array(w.astype(np.float32), name) for name, w in weights.items()],
    )


def picture(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((1, 3, 8, 8)).astype(np.float32)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    onnx.save(pictures(), tmp_path / "net.onnx")
    return tmp_path / "net.onnx"


def run(model: object, x: np.ndarray) -> np.ndarray:
    return lamina.load(model, threads=1)(x)[0]


class TestOptimize:
    def test_every_kind_of_model(self, path, tmp_path):
        wanted = run(path, picture(1))
        for number, model in enumerate([path, str(path), path.read_bytes(), pictures(), lamina.Model(path)]):
            xml = tmp_path / "out" / f"net{number}.xml"
            report = lamina.optimize(model, xml)
            assert report.xml == str(xml) and report.bin == str(xml)[:-4] + ".bin"
            assert report.xml_bytes == xml.stat().st_size and report.before.operators == 3
            assert report.format == "ONNX" and report.page == "" and report.rewrites == sum(report.rules.values())
            np.testing.assert_allclose(run(xml, picture(1)), wanted, atol=1e-4)

    def test_options(self, path, tmp_path):
        xml = tmp_path / "x.xml"
        lamina.optimize(path, xml, input=[lamina.InputCut("conv2", shape=(None, 4, (1, 9), 5))], output=["y"])
        (port,) = lamina.Model(xml).inputs
        assert port.shape == (None, 4, None, 5)
        values = {"mean_values": [1, 2, 3], "scale_values": {"data": [4, 5, 6]}}
        lamina.optimize(path, xml, batch=2, layout={"data": "nchw->nhwc"}, **values)
        shown = np.stack([picture(1)[0], picture(2)[0]])
        given = np.ascontiguousarray(shown.transpose(0, 2, 3, 1))
        numbers = np.array([1, 2, 3], np.float32), np.array([4, 5, 6], np.float32)
        wanted = run(pictures(2), np.ascontiguousarray(((given - numbers[0]) / numbers[1]).transpose(0, 3, 1, 2)))
        np.testing.assert_allclose(run(xml, given), wanted, atol=1e-4)

    def test_texts_of_the_model_optimizer(self, path, tmp_path):
        xml, other = tmp_path / "x.xml", tmp_path / "y.xml"
        lamina.optimize(path, xml, input="conv2[1,4,3,3]", mean_values="[1,2,3,4]")
        lamina.optimize(path, other, input=[lamina.InputCut("conv2", (1, 4, 3, 3))], mean_values=[1, 2, 3, 4])
        assert xml.with_suffix(".bin").read_bytes() == other.with_suffix(".bin").read_bytes()

    def test_frozen_inputs(self, tmp_path):
        xml = tmp_path / "x.xml"
        shapes = {"a": (1, 4), "b": (1, 4)}
        lamina.optimize(models.sums(), xml, freeze_placeholder_with_value={"b": [1, 2, 3, 4]}, shape=shapes)
        outputs = lamina.load(xml)(np.zeros((1, 4), np.float32))
        assert outputs[0].tolist() == [[1, 2, 3, 4]]

    def test_errors(self, path, tmp_path):
        with pytest.raises(lamina.BadOption, match="^both input_shape and batch") as caught:
            lamina.optimize(path, tmp_path / "x.xml", batch=2, input_shape=[(1, 3, 8, 8)])
        assert caught.value.question == 56
        with pytest.raises(lamina.BadInput, match='^shape: there is no input "z"') as caught:
            lamina.optimize(path, tmp_path / "x.xml", shape={"z": (1,)})
        assert caught.value.question == 83
        with pytest.raises(lamina.BadOption, match="ends with .xml") as caught:
            lamina.optimize(path, tmp_path / "x.onnx")
        assert caught.value.question is None
        with pytest.raises(lamina.BadFile):
            lamina.optimize(tmp_path / "none.onnx", tmp_path / "x.xml")
        with pytest.raises(TypeError, match="settable"):
            lamina.optimize(lamina.Model(path), tmp_path / "x.xml", settable=["w1"])
        assert not (tmp_path / "x.xml").exists()

    def test_progress_and_page(self, path, tmp_path):
        stages = []
        report = lamina.optimize(path, tmp_path / "x.xml", page=True, progress=lambda stage, done: stages.append(done))
        assert stages[0] == 0 and stages[-1] == 1 and report.page.startswith("<!DOCTYPE html>")

        def stop(stage: str, done: float) -> None:
            raise KeyError("enough")

        with pytest.raises(KeyError, match="enough"):
            lamina.optimize(path, tmp_path / "y.xml", progress=stop)
        assert not (tmp_path / "y.xml").exists()


class TestQuantize:
    @pytest.mark.parametrize("ending", ["onnx", "xml"])
    def test_a_generator(self, path, tmp_path, ending):
        asked = []

        def data():
            for i in range(100):
                asked.append(i)
                yield picture(i)

        output = tmp_path / f"int8.{ending}"
        report = lamina.quantize(path, data(), output, samples=6, held_out=3, threads=1)
        assert asked == list(range(9))
        assert (report.samples, report.measured_with, report.held_out) == (6, 3, True)
        assert [layer.precision for layer in report.layers] == ["int8", "int8"]
        assert report.layers[0].input_type == "u8" and report.outputs[0].sqnr_db > 20
        assert report.output == str(output) and "quantised" in str(report)
        assert report._repr_html_().startswith("<!DOCTYPE html>")
        difference = run(output, picture(50)) - run(path, picture(50))
        assert np.abs(difference).max() < 0.5

    def test_every_kind_of_sample(self, path, tmp_path):
        kinds = {
            "arrays": lambda: [picture(i) for i in range(4)],
            "dicts": lambda: [{"data": picture(i)} for i in range(4)],
            "tuples": lambda: ((picture(i),) for i in range(4)),
            "lists": lambda: iter([[picture(i)] for i in range(4)]),
            "strided": lambda: [np.asfortranarray(picture(i)) for i in range(4)],
        }

        def one_buffer():
            buffer = np.empty((1, 3, 8, 8), np.float32)
            for i in range(4):
                buffer[:] = picture(i)
                yield buffer

        made = set()
        for name, data in [*kinds.items(), ("one buffer", one_buffer)]:
            output = tmp_path / f"{name}.onnx"
            lamina.quantize(path, data(), output, threads=1)
            made.add(output.read_bytes())
        assert len(made) == 1

    def test_a_loader_of_torch(self, tmp_path):
        data = pytest.importorskip("torch.utils.data")
        import torch

        pairs = data.TensorDataset(torch.randn(12, 3, 8, 8), torch.zeros(12))
        loader = data.DataLoader(pairs, batch_size=4)
        report = lamina.quantize(pictures("n"), ({"data": x} for x, _ in loader), tmp_path / "x.onnx", threads=1)
        assert report.samples == 3

    def test_options(self, path, tmp_path):
        data = [picture(i) for i in range(4)]
        output = tmp_path / "x.onnx"
        report = lamina.quantize(
            path, data, output, calibration="percentile", percentile=99.5, weight_bits=7, per_channel=False,
            symmetric_activations=True, exclude=["conv2"], equalize=False, correct_bias=False, threads=1,
        )  # fmt: skip
        assert report.settings == "symmetric activations by percentile 99.5, 7-bit weights per tensor, 4 samples"
        assert report.layers[1].reason == "exclude" and report.layers[1].precision == "f32"
        with pytest.raises(lamina.Unsupported, match="^max_drop 0"):
            lamina.quantize(path, data, output, max_drop=0, threads=1)
        with pytest.raises(lamina.BadOption, match="exclude none"):
            lamina.quantize(path, data, output, exclude=["none"], threads=1)

    def test_progress_as_of_tqdm(self, path, tmp_path):
        total = 0

        def update(n: int) -> None:
            nonlocal total
            assert n == 1
            total += n

        lamina.quantize(path, [picture(i) for i in range(4)], tmp_path / "x.onnx", progress=update, threads=1)
        assert total >= 12

    def test_errors(self, path, tmp_path):
        output = tmp_path / "x.onnx"
        with pytest.raises(lamina.BadInput, match="no samples"):
            lamina.quantize(path, [], output)
        with pytest.raises(lamina.BadInput, match="sample 0: 2 arrays, the model has 1 input; if a loader"):
            lamina.quantize(path, [(picture(1), np.zeros(1))], output)
        with pytest.raises(lamina.BadInput, match="data"):
            lamina.quantize(path, [picture(1).astype(np.float64)], output)
        with pytest.raises(lamina.BadInput):
            lamina.quantize(path, [{"date": picture(1)}], output)
        with pytest.raises(lamina.BadOption):
            lamina.quantize(path, [picture(1)], path)
        with pytest.raises(ValueError, match="samples 0"):
            lamina.quantize(path, [picture(1)], output, samples=0)
        with pytest.raises(TypeError):
            lamina.quantize(path, 7, output)

        def broken():
            yield picture(1)
            raise KeyError("the disk is gone")

        with pytest.raises(KeyError, match="the disk is gone"):
            lamina.quantize(path, broken(), output)

        def stop(n: int) -> None:
            raise KeyError("enough")

        with pytest.raises(KeyError, match="enough"):
            lamina.quantize(path, [picture(1)], output, progress=stop)
        assert not output.exists()


INTERRUPTED = """
import os, signal, sys, threading, time
sys.path.insert(0, FOLDER)
import numpy as np
import lamina, models, offline_test

signal.signal(signal.SIGINT, signal.default_int_handler)
model = lamina.Model(models.long_to_quantize())
x = np.ones((64, 256), np.float32)
sent = []
def send():
    time.sleep(1)
    sent.append(time.monotonic())
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=send).start()
try:
    while True:
        lamina.quantize(model, [x] * 64, OUTPUT)
except KeyboardInterrupt:
    print("after", time.monotonic() - sent[0])
assert lamina.quantize(offline_test.pictures(), [offline_test.picture(1)], OUTPUT, threads=1).samples == 1
"""


def test_ctrl_c_ends_quantize(tmp_path):
    code = INTERRUPTED.replace("FOLDER", repr(os.path.dirname(__file__)))
    code = code.replace("OUTPUT", repr(str(tmp_path / "x.onnx")))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stdout + done.stderr
    assert float(done.stdout.split()[1]) < 5, done.stdout
