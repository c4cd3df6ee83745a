"""lamina.backend: the tests of the package onnx, in this process, and the interface of onnx.backend.base."""

import re
import unittest
from pathlib import Path

import lamina
import lamina.backend
import ml_dtypes
import models
import numpy as np
import onnx
import pytest
from lamina._packed import pack, unpack
from onnx import TensorProto, helper
from onnx.backend.base import Backend, BackendRep
from onnx.backend.test import BackendTest

PAGE = Path(__file__).resolve().parents[2] / "docs/onnx-node-cases.md"
pytestmark = pytest.mark.filterwarnings("ignore:.*(overflow|invalid value|divide by zero).*:RuntimeWarning")  # of the cases
RANDOM = ("Bernoulli", "Multinomial", "Random", "Dropout")
X = np.array([-1, 2, -3, 4], np.float32)


class Reasons(lamina.backend.Backend):
    """The backend as it is, but the runner hears the reason of a refusal from prepare(), not only that there is one."""

    is_compatible = None
    random = False

    @classmethod
    def prepare(cls, model, device="CPU", **options):
        options = {key: value for key, value in options.items() if key not in ("rtol", "atol")}
        Reasons.random = any(node.op_type.startswith(RANDOM) for node in model.graph.node) or any(
            node.op_type.startswith(RANDOM) for function in model.functions for node in function.node
        )
        return super().prepare(model, device, threads=1, **options)


class Cases(BackendTest):
    @classmethod
    def assert_similar_outputs(cls, ref_outputs, outputs, rtol, atol, model_dir=None):
        if not Reasons.random:
            super().assert_similar_outputs(ref_outputs, outputs, rtol, atol, model_dir)
            return
        # Their generator of random numbers is not ours: all but the values can be compared, and what values there are.
        for wanted, got in zip(ref_outputs, outputs, strict=True):
            assert got.shape == wanted.shape and got.dtype == wanted.dtype
            if set(np.unique(wanted.astype(float))) <= {0, 1}:
                assert set(np.unique(got.astype(float))) <= {0, 1}


@pytest.fixture(scope="module")
def cases():
    # What is wanted there is 1.9e-7 instead of 0, and the tolerance is relative.
    rounded = {f"test_dft_inverse{opset}": {"atol": 1e-6} for opset in ("", "_opset19")}
    return Cases(Reasons, __name__, rounded).exclude("_cuda$").test_cases


class Counted(unittest.TestResult):
    """Counts what has passed: whether testsRun has what was skipped differs between versions of Python."""

    passed = 0

    def addSuccess(self, test) -> None:
        super().addSuccess(test)
        self.passed += 1


def outcome(case) -> tuple[int, dict[str, str]]:
    """How many have passed, and the reasons of those that were refused. Anything else fails."""
    result = Counted()
    unittest.defaultTestLoader.loadTestsFromTestCase(case).run(result)
    wrong = result.errors + result.failures
    assert not wrong, f"{len(wrong)} wrong, the first: {wrong[0][1]}"
    refused = {test.id(): why for test, why in result.skipped if "_cuda$" not in why and "device CUDA" not in why}
    assert all(": unsupported: " in why or why.startswith(("input ", "output ")) for why in refused.values()), refused
    return result.passed, refused


def test_node_cases_as_on_their_page(cases):
    passed, refused = outcome(cases["OnnxBackendNodeModelTest"])
    page = PAGE.read_text()
    if f"with onnx {onnx.__version__}." in page:
        found = re.search(r"\*\*(\d+) passed, (\d+) not supported, 0 wrong", page)
        assert (str(passed), str(len(refused))) == found.groups(), refused
    assert passed > 1500


@pytest.mark.parametrize("kind", ["SimpleModel", "PyTorchConvertedModel", "PyTorchOperatorModel"])
def test_other_cases(cases, kind):
    passed, refused = outcome(cases[f"OnnxBackend{kind}Test"])
    assert passed >= 15
    known = ("opsets before 7", "type string", "training:Gradient")
    assert all(any(reason in why for reason in known) for why in refused.values()), refused


def test_the_interface():
    assert issubclass(lamina.backend.Backend, Backend) and issubclass(lamina.backend.BackendRep, BackendRep)
    rep = lamina.backend.prepare(models.sums(), threads=1)
    a, b = np.ones((2, 4), np.float32), np.full((2, 4), 2, np.float32)
    outputs = rep.run([a, b])
    assert outputs._fields == ("sum", "difference") and outputs["sum"][0, 0] == 3 and outputs[1][0, 0] == -1
    assert rep.run({"b": b, "a": a}).sum[1, 3] == 3
    assert lamina.backend.prepare(rep) is rep
    assert lamina.backend.run_model(models.relu(), [X]).y.tolist() == [0, 2, 0, 4]
    assert lamina.backend.run_model(models.relu().SerializeToString(), X).y.tolist() == [0, 2, 0, 4]
    assert lamina.backend.supports_device("CPU") and not lamina.backend.supports_device("CUDA:0")
    for wrong in ([a, b, b], [a], {"a": a, "c": b}, [a, b.astype(np.float64)]):
        with pytest.raises(lamina.BadInput):
            rep.run(wrong)
    with pytest.raises(lamina.BadOption, match="CUDA"):
        lamina.backend.prepare(models.relu(), "CUDA")
    with pytest.raises(lamina.BadOption, match="stream"):
        rep.run([a, b], stream=1)


def test_a_node():
    node = helper.make_node("TopK", ["x", "k"], ["values", "places"])
    values, places = lamina.backend.run_node(node, [X, np.array([2])])
    assert values.tolist() == [4, 2] and places.tolist() == [3, 1]
    node = helper.make_node("Add", ["a", "b"], ["c"])
    info = [(np.float32, (4,))]
    assert lamina.backend.run_node(node, [X, X], outputs_info=info, opset_version=14).c.tolist() == (2 * X).tolist()
    node = helper.make_node("Binarizer", ["x"], ["y"], domain="ai.onnx.ml", threshold=0.0)
    assert lamina.backend.run_node(node, X).y.tolist() == [0, 1, 0, 1]


def test_what_is_refused():
    string = helper.make_tensor_value_info("x", TensorProto.STRING, (2,))
    proto = models.graph_model([helper.make_node("Identity", ["x"], ["y"])], [string], [models.value("y", (2,))])
    assert not lamina.backend.is_compatible(proto) and lamina.backend.is_compatible(models.relu())
    port = helper.make_tensor_value_info("x", TensorProto.INT4, ("n",))
    packed = lamina.backend.prepare(models.graph_model([helper.make_node("Cast", ["x"], ["y"], to=1)], [port], [models.value("y", None)], opset=21))
    with pytest.raises(lamina.backend.Refused, match="packed elements of a shape that the model leaves open"):
        packed.run([np.zeros(4, ml_dtypes.int4)])
    with pytest.raises(lamina.Unsupported, match="type string") as refused:
        lamina.backend.prepare(proto)
    assert isinstance(refused.value, unittest.SkipTest) and refused.value.code == "unsupported"


def sequences() -> onnx.ModelProto:
    """parts: a sequence with y inserted at the place."""
    kind = helper.make_tensor_sequence_value_info
    node = helper.make_node("SequenceInsert", ["parts", "y", "place"], ["more"])
    ports = [kind("parts", TensorProto.FLOAT, None), models.value("y", (None,)), models.value("place", (), "int64")]
    return models.graph_model([node], ports, [kind("more", TensorProto.FLOAT, None)])


def test_numbers_that_are_no_integers():
    ports = [models.value("x", (2,), "int64")], [models.value("y", (2,), "int64")]
    rep = lamina.backend.prepare(models.graph_model([helper.make_node("Neg", ["x"], ["y"])], *ports))
    assert rep.run([[1, 2]])[0].tolist() == [-1, -2]
    with pytest.raises(lamina.BadInput, match='input "x" is float64, wanted int64'):
        rep.run([[1.5, 2]])
    ports = [models.value("x", (None,), "int64")], [models.value("y", (None,), "int64")]
    rep = lamina.backend.prepare(models.graph_model([helper.make_node("Neg", ["x"], ["y"])], *ports))
    assert rep.run([[]])[0].shape == (0,)  # a list that numpy takes for real numbers


def test_sequences_are_lists():
    rep = lamina.backend.prepare(sequences())
    for count in (1, 3, 2):
        parts = [np.full(i + 1, i, np.float32) for i in range(count)]
        (more,) = rep.run([parts, X, np.array(1)])
        wanted = [*parts[:1], X, *parts[1:]]
        assert len(more) == count + 1 and all(np.array_equal(a, b) for a, b in zip(more, wanted, strict=True))


@pytest.mark.parametrize("dtype, name", [("u4", "uint4"), ("i4", "int4"), ("u2", "uint2"), ("i2", "int2"), ("f4e2m1", "float4_e2m1fn")])
@pytest.mark.parametrize("size", [0, 1, 2, 3, 8, 9])
def test_elements_below_a_byte(dtype, name, size):
    kind = np.dtype(getattr(ml_dtypes, name))
    bits = 2 if dtype.endswith("2") else 4
    codes = np.random.default_rng(size).integers(0, 1 << bits, size).astype(np.uint8)
    if dtype.startswith("i"):
        values = np.where(codes >= 1 << (bits - 1), codes.astype(np.int8) - (1 << bits), codes.astype(np.int8)).astype(kind)
    else:
        values = codes.view(kind) if dtype.startswith("f") else codes.astype(kind)
    packed = pack(values, dtype)
    assert packed.nbytes == (size * bits + 7) // 8
    back = unpack(packed, dtype, (1, size))
    assert back.dtype == kind and np.array_equal(back[0].astype(np.float32), values.astype(np.float32))
    proto_type = helper.np_dtype_to_tensor_dtype(kind)
    ports = [helper.make_tensor_value_info(n, proto_type, (size,)) for n in "xy"]
    proto = models.graph_model([helper.make_node("Identity", ["x"], ["y"])], ports[:1], ports[1:], opset=25)
    proto.ir_version = 12
    assert np.array_equal(lamina.backend.run_model(proto, [values]).y.astype(np.float32), values.astype(np.float32))
