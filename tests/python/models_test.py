"""All models of ../shared/models: the same bits as from the command, and no copy of any input or output."""

import os
import subprocess
from pathlib import Path

import lamina
import numpy as np
import pytest

SHARED = Path(os.environ.get("LAMINA_SHARED", Path(__file__).resolve().parents[3] / "shared")) / "models"
TOOL = os.environ.get("LAMINA_TOOL", str(Path(__file__).resolve().parents[2] / "build/release/bin/lamina"))
FOLDERS = ("onnx", "ir", "qdq")
MODELS = sorted(
    path
    for folder in FOLDERS
    for path in (SHARED / folder).glob("*")
    if path.suffix in (".onnx", ".xml") and not path.name.startswith("NEGATIVE") and path.with_suffix(".npz").exists()
)
if not MODELS:
    pytest.skip(f"there are no models in {SHARED}", allow_module_level=True)


def inputs_of(model: lamina.CompiledModel, path: Path) -> dict[str, np.ndarray]:
    """The inputs in the file's npz: by name, or as in0, in1, ..."""
    with np.load(path.with_suffix(".npz")) as arrays:
        values = {}
        for i, port in enumerate(model.inputs):
            for key in (port.name, f"in{i}", f"in.{port.name}", f"in_{port.name}"):
                if key in arrays:
                    values[port.name] = arrays[key].astype(port.numpy_dtype, order="C")
                    break
            else:
                raise KeyError(f"{path.name}: no {port.name} in {list(arrays)}")
    return values


@pytest.mark.parametrize("path", MODELS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_model(path, tmp_path):
    model = lamina.load(path)
    try:
        inputs = inputs_of(model, path)
    except KeyError as error:
        pytest.skip(str(error))
    given = tmp_path / "inputs.npz"
    np.savez(given, **{f"in{i}": inputs[port.name] for i, port in enumerate(model.inputs)})
    ran = subprocess.run(
        [TOOL, "run", str(path), "--inputs", str(given), "--output", str(tmp_path / "outputs.npz")],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ran.returncode == 0, ran.stderr
    outputs = model(inputs)
    with np.load(tmp_path / "outputs.npz") as wanted:
        for i, port in enumerate(model.outputs):
            key = port.name if port.name in wanted else list(wanted)[i]
            assert outputs[i].tobytes() == wanted[key].tobytes(), port.name
            assert outputs[i].shape == wanted[key].shape

    request = model.request()
    for name, value in inputs.items():
        request.set_input(name, value)
    targets = [lamina.empty(output.shape, output.dtype) for output in outputs]
    for i, target in enumerate(targets):
        request.set_output(i, target)
    request.run()
    assert request.copies == 0
    for i, target in enumerate(targets):
        assert request.output(i).ctypes.data == target.ctypes.data
        assert target.tobytes() == outputs[i].tobytes()
        request.set_output(i, None)
    request.run()
    views = [request.output(i) for i in range(len(targets))]
    addresses = [view.ctypes.data for view in views]
    request.run()
    assert [request.output(i).ctypes.data for i in range(len(targets))] == addresses
    assert request.copies == 0
    for view, output in zip(views, outputs, strict=True):
        assert view.tobytes() == output.tobytes()
