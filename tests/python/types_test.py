"""Types, docstrings and names of the package: what editors, mypy and help() see."""

import inspect
import os
import subprocess
import sys
import typing
from pathlib import Path

import lamina
import pytest
from lamina import _lamina, errors

if "LAMINA_PYTHON_PRELOAD" in os.environ:
    pytest.skip("no stub in sanitized builds", allow_module_level=True)
PACKAGE = Path(lamina.__file__).parent


def mypy(*args: str) -> subprocess.CompletedProcess:
    environment = dict(os.environ)
    if PACKAGE.parent.name != "site-packages":  # where mypy looks by itself
        environment["MYPYPATH"] = str(PACKAGE.parent)
    return subprocess.run(
        [sys.executable, "-m", *args], capture_output=True, text=True, env=environment, timeout=500
    )


def test_the_stub_is_that_of_the_module():
    checked = mypy("mypy.stubtest", "lamina._lamina", "--ignore-disjoint-bases", "--concise")
    # nanobind's functions and classes are no plain ones, which stubtest does not know.
    known = ("is not a function", "metaclass differs", 'stub does not have *args parameter "args"')
    found = [line for line in checked.stdout.splitlines() if line.strip() and not line.strip().endswith(known)]
    assert not found and not checked.stderr, checked.stdout + checked.stderr


def test_the_sources_are_typed():
    checked = mypy("mypy", "--strict", "--cache-dir", os.devnull, "-p", "lamina")
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_the_package_says_that_it_is_typed():
    assert (PACKAGE / "py.typed").exists() and (PACKAGE / "_lamina.pyi").exists()


USE = """
import lamina, numpy as np
from pathlib import Path
m = lamina.load(Path("model.onnx"), threads=2, properties={"NUM_STREAMS": 2}, log=lambda level, line: print(line))
(y,) = m(np.zeros(4, np.float32))
outputs: lamina.Outputs = m({"x": y}, out=[None])
request = m.request()
request.set_input("x", y)
request.run(timeout=1.0)
best = request.output(0).argmax() + outputs["y"].argmax()
names = [port.name for port in m.inputs if port.shape is not None and port.shape[0] == "n"]
with lamina.Queue(m, jobs=2, callback=lambda outputs, userdata: None) as queue:
    queue.submit(y).result()["y"]
async def one() -> lamina.Outputs:
    return await m.run_async(y)
try:
    m(y)
except lamina.BadInput as error:
    code: str = error.code
"""
MISUSE = """
import lamina
m = lamina.load("model.onnx", thread=2)
n = lamina.load("model.onnx", precision="f8")
m.request().set_input(0.5, 1)
"""


def test_what_mypy_says_of_users_programs(tmp_path):
    good, bad = tmp_path / "good.py", tmp_path / "bad.py"
    good.write_text(USE)
    bad.write_text(MISUSE)
    checked = mypy("mypy", "--strict", "--cache-dir", os.devnull, str(good))
    assert checked.returncode == 0, checked.stdout
    checked = mypy("mypy", "--strict", "--cache-dir", os.devnull, str(bad))
    assert checked.stdout.count(": error:") == 3, checked.stdout


def public():
    for name in lamina.__all__:
        one = getattr(lamina, name)
        if name != "__version__":
            yield name, one
        if inspect.isclass(one):
            for member, value in vars(one).items():
                if not member.startswith("_") and member != "code":
                    yield f"{name}.{member}", value
            for base in one.__mro__:
                if base.__module__ == "lamina._lamina":
                    for member, value in vars(base).items():
                        if not member.startswith("_"):
                            yield f"{base.__name__}.{member}", value


@pytest.mark.parametrize("name, one", list(public()), ids=lambda v: v if isinstance(v, str) else "")
def test_everything_public_has_a_docstring(name, one):
    if type(one).__name__ in ("_tuplegetter",):  # fields of named tuples: documented at their class
        return
    assert inspect.getdoc(one), name


def test_an_exception_for_each_code():
    assert set(errors.BY_CODE) == set(_lamina.error_codes())
    for code, kind in errors.BY_CODE.items():
        assert kind.code == code and issubclass(kind, lamina.Error) and issubclass(kind, RuntimeError)
        assert getattr(lamina, kind.__name__) is kind
    bases = {
        lamina.BadInput: ValueError,
        lamina.BadOption: ValueError,
        lamina.Unsupported: NotImplementedError,
        lamina.OutOfMemory: MemoryError,
        lamina.Timeout: TimeoutError,
    }
    assert all(issubclass(kind, base) for kind, base in bases.items())


def test_names():
    assert lamina.__version__.count(".") == 2
    hints = typing.get_type_hints(lamina.load)
    assert hints["return"] is lamina.CompiledModel
