"""lamina beside other engines in one process, imported in all orders: right results, exit status 0, no hang.

Those that are at hand take part: in this environment, in the tests' other one (.deps/py), and in the folders of
LAMINA_PEERS (site-packages of environments with openvino, torch, numba or cv2)."""

import importlib.util
import itertools
import os
import sys
from pathlib import Path

import models
import onnx
import pytest

ROOT = Path(__file__).resolve().parents[2]
OTHERS = Path(os.environ.get("LAMINA_DEPS", ROOT / ".deps")) / "py/lib"
FOLDERS = [*os.environ.get("LAMINA_PEERS", "").split(os.pathsep), *map(str, OTHERS.glob(f"python3.{sys.version_info.minor}/site-packages"))]
ENGINES = ("onnxruntime", "openvino", "torch", "numba", "cv2")


def at_hand() -> list[str]:
    before = list(sys.path)
    sys.path += [folder for folder in FOLDERS if folder]
    try:
        return [name for name in ENGINES if importlib.util.find_spec(name) is not None]
    finally:
        sys.path[:] = before


def orders(names: list[str]) -> list[tuple[str, ...]]:
    """All orders of a few; of more than three: pairs with lamina, and rotations of all of them, forwards and backwards.
    LAMINA_ALL_ORDERS: all orders in any case (five have 120)."""
    if len(names) <= 3 or "LAMINA_ALL_ORDERS" in os.environ:
        return list(itertools.permutations(names))
    chosen = [pair for name in names[1:] for pair in ((names[0], name), (name, names[0]))]
    for row in (names, names[::-1]):
        chosen += [(*row[i:], *row[:i]) for i in range(len(row))]
    return chosen


FOUND = at_hand()
ORDERS = orders(["lamina", *FOUND])

PROGRAM = """
import os, sys, threading
sys.path += {folders!r}
import numpy as np
for name in {order!r}:
    __import__(name)
path, x = {path!r}, np.arange(-512, 512, dtype=np.float32)
# Not by NumPy's BLAS, which was once seen to wait for ever after the import of openvino, before lamina did anything.
wanted = np.full(1024, np.maximum(x, 0).sum(dtype=np.float64), np.float32)

def run_lamina():
    import lamina
    return lamina.load(path, threads=2)(x)[0]

def run_onnxruntime():
    import onnxruntime
    return onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, {{"x": x}})[0]

def run_openvino():
    import openvino
    return openvino.Core().compile_model(path, "CPU")(x)[0]

def run_torch():
    import torch
    return (torch.relu(torch.from_numpy(x)) @ torch.ones(1024, 1024)).numpy()

def run_numba():
    import numba
    @numba.njit(parallel=True)
    def product(x, w):
        y = np.zeros(w.shape[1], np.float32)
        for j in numba.prange(w.shape[1]):
            for i in range(len(x)):
                y[j] += max(x[i], np.float32(0)) * w[i, j]
        return y
    return product(x, np.ones((1024, 1024), np.float32))

def run_cv2():
    import cv2
    return cv2.gemm(np.maximum(x, 0)[None], np.ones((1024, 1024), np.float32), 1, None, 0)[0]

def check(name):
    for _ in range(3):
        got = globals()["run_" + name]()
        assert got.shape == wanted.shape and np.allclose(got, wanted, rtol=1e-4), (name, got[:3], wanted[:3])
    done.append(name)

done = []
for name in {order!r}:
    check(name)
threads = [threading.Thread(target=check, args=(name,)) for name in {order!r} for _ in range(2)]
for thread in threads: thread.start()
for thread in threads: thread.join()
child = os.fork()
if child == 0:  # a worker of a server that was loaded before
    check("lamina")
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
assert len(done) == 3 * len({order!r}), done
print("all right")
"""


@pytest.fixture(scope="module")
def path(tmp_path_factory) -> str:
    nodes = [
        onnx.helper.make_node("Relu", ["x"], ["r"]),
        onnx.helper.make_node("ConstantOfShape", ["sizes"], ["w"], value=onnx.helper.make_tensor("one", 1, [1], [1.0])),
        onnx.helper.make_node("MatMul", ["r", "w"], ["y"]),
    ]
    sizes = onnx.helper.make_tensor("sizes", onnx.TensorProto.INT64, [2], [1024, 1024])
    proto = models.graph_model(nodes, [models.value("x", (1024,))], [models.value("y", (1024,))], [sizes])
    file = tmp_path_factory.mktemp("model") / "m.onnx"
    onnx.save(proto, file)
    return str(file)


@pytest.mark.parametrize("order", ORDERS, ids=",".join)
def test_order(order, path):
    folders = [folder for folder in FOLDERS if folder]
    ran = models.python(PROGRAM.format(order=order, path=path, folders=folders), timeout=300)
    assert ran.returncode == 0 and ran.stdout.endswith("all right\n"), (ran.returncode, ran.stdout, ran.stderr)


@pytest.mark.parametrize("name", ENGINES)
def test_is_at_hand(name):
    if name not in FOUND:
        pytest.skip(f"{name} is not installed; LAMINA_PEERS may name the site-packages of an environment that has it")
