"""docs/python.md: its code runs as it stands, and its tables name what there is."""

import re
from pathlib import Path

import lamina
import lamina.compat.onnxruntime as compat
import models
import numpy as np
import onnx
from onnx import helper, numpy_helper

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/python.md").read_text()
PIECE = re.compile(r"(?:<!-- needs: (\w+) -->\n)?```python\n(.*?)```", re.DOTALL)


def classifier() -> onnx.ModelProto:
    """scores of ten classes, of any number of pictures."""
    rng = np.random.default_rng(1)
    kernel = rng.standard_normal((8, 3, 3, 3)).astype(np.float32)
    weights = rng.standard_normal((8, 10)).astype(np.float32)
    nodes = [
        helper.make_node("Conv", ["image", "kernel"], ["c"], strides=[8, 8]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("GlobalAveragePool", ["r"], ["p"]),
        helper.make_node("Flatten", ["p"], ["f"]),
        helper.make_node("MatMul", ["f", "weights"], ["m"]),
        helper.make_node("Softmax", ["m"], ["scores"]),
    ]
    constants = [numpy_helper.from_array(kernel, "kernel"), numpy_helper.from_array(weights, "weights")]
    ports = [models.value("image", ("N", 3, 224, 224))], [models.value("scores", ("N", 10))]
    return models.graph_model(nodes, *ports, constants)


def test_pieces(tmp_path, monkeypatch, capsys):
    """All pieces in their order, in one program."""
    monkeypatch.chdir(tmp_path)
    onnx.save(classifier(), "model.onnx")
    names: dict[str, object] = {"__name__": "__main__"}
    ran, left_out = 0, []
    for found in PIECE.finditer(PAGE):
        package, code = found.groups()
        if package:
            try:
                __import__(package)
            except ImportError:
                left_out.append(package)
                continue
        line = PAGE.count("\n", 0, found.start(2))
        exec(compile("\n" * line + code, "docs/python.md", "exec"), names)  # noqa: S102
        ran += 1
    text = capsys.readouterr().out
    assert ran >= 20 and "bad_input" in text and len(left_out) <= 1
    # What the page says is printed.
    said = re.search(r"print\(error\.code, error\)  # (\w+)  (.*)", PAGE)
    assert f"{said[1]} {said[2]}\n" in text, text


def test_all_python_of_the_page_is_found():
    assert PAGE.count("```python") == len(PIECE.findall(PAGE))
    assert PAGE.count("```") == 2 * PAGE.count("```python")


def test_names_in_the_tables():
    """Methods and functions of lamina that the right columns name."""
    subjects = {"request": lamina.Request, "queue": lamina.Queue, "m": lamina.CompiledModel, "model": lamina.Model, "lamina": lamina}
    rows = [line.split(" | ", 1)[1] for line in PAGE.split("## From ONNX Runtime")[1].splitlines() if line.startswith("| `")]
    found = [(s, n) for row in rows for s, n in re.findall(r"\b(request|queue|m|model|lamina)\.([a-z_]\w*|[A-Z]\w*)", row)]
    assert len(found) > 40
    for subject, name in found:
        if (subject, name) not in (("m", "lamina"),):  # a file: m.lamina
            assert hasattr(subjects[subject], name), f"{subject}.{name}"


def test_errors_in_the_table():
    table = PAGE.split("## Errors")[1].split("## ")[0]
    named = set(re.findall(r"`(\w+)`", "".join(row.split("|")[1] for row in table.splitlines() if row.startswith("| `"))))
    kinds = {name for name in lamina.__all__ if isinstance(getattr(lamina, name), type) and issubclass(getattr(lamina, name), lamina.Error)}
    assert named == kinds - {"Error"}


def test_links():
    for name in re.findall(r"\]\(([\w.-]+\.md)", PAGE):
        assert (ROOT / "docs" / name).exists(), name
    headings = {re.sub(r"[^\w -]", "", one.lower()).replace(" ", "-") for one in re.findall(r"^## (.*)", PAGE, re.MULTILINE)}
    for anchor in re.findall(r"\]\(#([\w-]+)\)", PAGE):
        assert anchor in headings, anchor
    assert "docs/python.md" in (ROOT / "README.md").read_text()


def test_versions():
    wanted = f"the interface of ONNX Runtime {compat.__version__.rsplit('.', 1)[0]}"
    assert wanted in PAGE
    compared = (ROOT / "tests/python/foreign/compare.py").read_text()
    for package, version in re.findall(r"^\| ([\w-]+) ([\d.]+) \|", PAGE, re.MULTILINE):
        assert f'"{package}=={version}"' in compared, package

