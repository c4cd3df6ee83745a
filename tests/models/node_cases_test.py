"""The ONNX package's own node cases, through the plan and through the reference interpreter.

node_cases_test.py [--write docs/onnx-node-cases.md] [--only TEXT]
Passed, not supported or wrong, by operator; wrong must be zero. The cases have all their inputs as inputs of the model, also axes and sizes, which in real
models are constants: a case that is refused as it is runs once more with its short lists and numbers as constants.
"""

import argparse
import collections
import concurrent.futures
import os
import pathlib
import subprocess
import sys
import tempfile
import warnings

import numpy as np

warnings.filterwarnings("ignore")
import onnx  # noqa: E402
import onnx.numpy_helper  # noqa: E402
from onnx.backend.test.case import node, utils  # noqa: E402
from onnx.backend.test.case.node import collect_testcases  # noqa: E402

TOOL = os.environ.get("LAMINA_TOOL", "build/release/bin/lamina")
NUMPY_TYPES = set("efdilqbhBHILQ?")
BFLOAT16 = onnx.TensorProto.BFLOAT16
# Types that numpy lacks, and what npz files have in their place: codes of floats, numbers of packed integers.
SMALL_FLOATS = {"float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "float4_e2m1fn"}
PACKED = {"int4": np.int8, "int2": np.int8, "uint4": np.uint8, "uint2": np.uint8}


def arrays_of(case) -> tuple[list, list] | None:
    """Inputs and outputs as arrays; None when there are sequences or strings."""
    inputs, outputs = case.data_sets[0]
    for values in (inputs, outputs):
        for i, value in enumerate(values):
            if isinstance(value, onnx.TensorProto):
                values[i] = value = onnx.numpy_helper.to_array(value)
            if isinstance(value, (int, float, bool, np.generic)):
                values[i] = value = np.asarray(value)
            if not isinstance(value, np.ndarray):
                return None
            name = value.dtype.name
            if name == "bfloat16" and values is outputs:
                values[i] = value.astype(np.float32)
            elif value.dtype.char not in NUMPY_TYPES and name not in SMALL_FLOATS and name not in PACKED and name != "bfloat16":
                return None
    return inputs, outputs


def is_bfloat16(case, output: int) -> bool:
    ports = case.model.graph.output
    return output < len(ports) and ports[output].type.tensor_type.elem_type == BFLOAT16


def compare(case, got: list[np.ndarray], wanted: list[np.ndarray]) -> str:
    for i, (a, b) in enumerate(zip(got, wanted, strict=True)):
        if a.shape != b.shape:
            return f"output {i}: shape {list(a.shape)}, wanted {list(b.shape)}"
        if b.dtype.name in SMALL_FLOATS and a.dtype == np.uint8:
            a, b = a.view(b.dtype).astype(np.float32), b.astype(np.float32)
            if not np.array_equal(a, b, equal_nan=True):
                return f"output {i}: {int((a != b).sum())} of {b.size} differ"
            continue
        if b.dtype.name in PACKED:
            b = b.astype(PACKED[b.dtype.name])
        if a.dtype != b.dtype:
            return f"output {i}: type {a.dtype}, wanted {b.dtype}"
        if b.dtype.kind in "iub":
            if not np.array_equal(a, b):
                return f"output {i}: {int((a != b).sum())} of {b.size} differ"
        elif not np.allclose(a.astype(np.float64), b.astype(np.float64), rtol=max(case.rtol, 2e-2 if is_bfloat16(case, i) else 1e-3),
                             atol=max(case.atol, 1e-2 if is_bfloat16(case, i) else 1e-5 if b.dtype.char != "e" else 1e-3), equal_nan=True):
            return f"output {i}: off by {np.nanmax(np.abs(a.astype(np.float64) - b.astype(np.float64))):.3g}"
    return ""


def with_constants(case, inputs: list[np.ndarray]) -> tuple[onnx.ModelProto, list[np.ndarray]] | None:
    """The model with numbers and short lists of integers as initialisers, and the inputs that are left; None when there are none such."""
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    graph = model.graph
    chosen = [a.size == 1 and a.ndim < 2 or (a.ndim == 1 and a.dtype.kind == "i" and a.size <= 8) for a in inputs]
    if len(graph.input) != len(inputs) or not any(chosen):
        return None
    ports = list(graph.input)
    del graph.input[:]
    graph.input.extend(port for port, constant in zip(ports, chosen, strict=True) if not constant)
    graph.initializer.extend(onnx.numpy_helper.from_array(a, port.name) for port, a, constant in zip(ports, inputs, chosen, strict=True) if constant)
    return model, [a for a, constant in zip(inputs, chosen, strict=True) if not constant]


def plain_arrays(value) -> list[np.ndarray] | None:
    """A tensor, or the elements of a sequence; None where there is something else."""
    elements = value if isinstance(value, list) else [value]
    arrays = [onnx.numpy_helper.to_array(e) if isinstance(e, onnx.TensorProto) else np.asarray(e) for e in elements]
    return arrays if all(a.dtype.char in NUMPY_TYPES for a in arrays) else None


def with_elements(case) -> tuple[onnx.ModelProto, list[np.ndarray], list[np.ndarray]] | None:
    """The model with an input for each element of a sequence, which it puts together itself, and with an output for each element and for the
    length. None where there is something else than tensors and sequences of them."""
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    graph = model.graph
    inputs, outputs = case.data_sets[0]
    sides = [(True, *pair) for pair in zip(graph.input, inputs, strict=False)] + [(False, *pair) for pair in zip(graph.output, outputs, strict=False)]
    given: list[tuple[str, np.ndarray]] = []
    wanted: list[tuple[str, np.ndarray]] = []
    before: list[onnx.NodeProto] = []
    after: list[onnx.NodeProto] = []
    for is_input, port, value in sides:
        arrays = plain_arrays(value)
        if arrays is None:
            return None
        if not isinstance(value, list):
            (given if is_input else wanted).append((port.name, arrays[0]))
            continue
        names = [f"{port.name}.{i}" for i in range(len(arrays))]
        (given if is_input else wanted).extend(zip(names, arrays, strict=True))
        if is_input:
            kind = port.type.optional_type.elem_type if port.type.HasField("optional_type") else port.type
            empty = onnx.helper.make_node("SequenceEmpty", [], [port.name], dtype=kind.sequence_type.elem_type.tensor_type.elem_type)
            before.append(onnx.helper.make_node("SequenceConstruct", names, [port.name]) if names else empty)
            continue
        for i, name in enumerate(names):
            after.append(onnx.helper.make_node("Constant", [], [f"{name}.at"], value_int=i))
            after.append(onnx.helper.make_node("SequenceAt", [port.name, f"{name}.at"], [name]))
        wanted.append((f"{port.name}.length", np.array(len(arrays), np.int64)))
        after.append(onnx.helper.make_node("SequenceLength", [port.name], [f"{port.name}.length"]))
    nodes = before + list(graph.node) + after
    for field, items in ((graph.input, ports_of(given)), (graph.output, ports_of(wanted)), (graph.node, nodes)):
        del field[:]
        field.extend(items)
    return model, [a for _, a in given], [a for _, a in wanted]


def ports_of(arrays: list[tuple[str, np.ndarray]]) -> list[onnx.ValueInfoProto]:
    return [onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for name, a in arrays]


def run(case) -> tuple[str, str]:
    """-> ("passed" | "not supported" | "wrong", why)"""
    values = arrays_of(case)
    if values is None:
        apart = with_elements(case)
        if apart is None:
            return "not supported", "sequences, strings or types that no lamina tensor has"
        verdict, why = run_model(case, *apart)
        return verdict, why or "sequences made of tensors"
    verdict, why = run_model(case, case.model, *values)
    again = with_constants(case, values[0]) if verdict == "not supported" else None
    if again is None:
        return verdict, why
    verdict, other = run_model(case, *again, values[1])
    return (verdict, why) if verdict == "not supported" else (verdict, f"with constants: {other}" if other else "with constants")


def run_model(case, proto: onnx.ModelProto, inputs: list[np.ndarray], wanted: list[np.ndarray]) -> tuple[str, str]:
    random = any(n.op_type.startswith(("Random", "Bernoulli", "Multinomial")) for n in case.model.graph.node) or "training" in case.name
    with tempfile.TemporaryDirectory() as folder:
        model, feed, out = (str(pathlib.Path(folder) / name) for name in ("m.onnx", "in.npz", "out.npz"))
        pathlib.Path(model).write_bytes(proto.SerializeToString())
        np.savez(feed, **{f"in{i}": a for i, a in enumerate(inputs)})
        for way in ([], ["--reference"]):
            done = subprocess.run([TOOL, "run", model, "--by-position", "--inputs", feed, "--output", out, "--quiet", "--threads", "1", *way],
                                  capture_output=True, text=True, timeout=300)
            if done.returncode == 1 and "unsupported" in done.stderr:
                return "not supported", done.stderr.strip().split("unsupported: ")[-1]
            if done.returncode:
                return "wrong", f"{' '.join(way)} exit {done.returncode}: {done.stderr.strip()}"
            results = np.load(out)
            if random:
                continue
            why = compare(case, [results[f"out{i}"] for i in range(len(wanted))], wanted)
            if why:
                return "wrong", f"{'reference ' if way else ''}{why}"
    return "passed", ""


def operator_of(case) -> str:
    return case.model.graph.node[0].op_type if len(case.model.graph.node) == 1 else max((n.op_type for n in case.model.graph.node), key=lambda t: case.name.count(t.lower()))


def table(rows: list[tuple]) -> str:
    counts: dict[str, collections.Counter] = collections.defaultdict(collections.Counter)
    for case, (verdict, _) in rows:
        counts[operator_of(case)][verdict] += 1
    total = collections.Counter(verdict for _, (verdict, _) in rows)
    constant = sum(verdict == "passed" and bool(why) for _, (verdict, why) in rows)
    lines = ["# The ONNX package's node cases", "",
             f"`tests/models/node_cases_test.py --write` made this page with onnx {onnx.__version__}. Each case runs on the plan and on the reference interpreter.",
             f"**{total['passed']} passed, {total['not supported']} not supported, {total['wrong']} wrong.** {constant} of the passed cases are refused if all their",
             "inputs are inputs of the model. They pass if numbers and short lists of integers (axes, sizes) are constants, or if their sequences are made of",
             "tensors in the model. Not supported are, among others, sequences as inputs and outputs of the model, optionals that may be absent, strings, maps",
             "and training; such a model is refused with the list of its operators.", "",
             "| operator | passed | not supported | wrong |", "| --- | --- | --- | --- |"]
    lines += [f"| {name} | {c['passed']} | {c['not supported']} | {c['wrong']} |" for name, c in sorted(counts.items())]
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=pathlib.Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--show", action="store_true", help="also what is not supported")
    options = parser.parse_args()
    utils.import_recursive(node)
    cases = [c for c in collect_testcases() if c.kind == "node" and c.model is not None and options.only in c.name]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        rows = list(zip(cases, pool.map(run, cases), strict=True))
    total = collections.Counter(verdict for _, (verdict, _) in rows)
    for case, (verdict, why) in rows:
        if verdict == "wrong" or (options.show and verdict != "passed"):
            print(f"{verdict}: {case.name}: {why}")
    print(f"{total['passed']} passed, {total['not supported']} not supported, {total['wrong']} wrong")
    if options.write:
        options.write.write_text(table(rows))
    return 1 if total["wrong"] or not total["passed"] else 0


if __name__ == "__main__":
    sys.exit(main())
