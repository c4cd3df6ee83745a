"""What `lamina optimize` writes, in OpenVINO: random poolings give what `lamina run` gives of the model as it was, and
inputs and outputs are found by the names that they had.

OpenVINO is found as openvino_cases.py says; without it the test says so and is skipped.
"""

import argparse
import pathlib
import random
import subprocess
import sys
import tempfile

import numpy as np
import openvino_cases

TOLERANCE = 1e-4


def optimize(source: pathlib.Path, version: int) -> pathlib.Path:
    target = source.with_name(f"v{version}.xml")
    command = [
        openvino_cases.TOOL,
        "optimize",
        str(source),
        "-o",
        str(target),
        "--ir_version",
        str(version),
        "--silent",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    if done.returncode:
        raise RuntimeError(f"optimize: {done.stderr.strip()}")
    return target


def run(core, xml: pathlib.Path, value: np.ndarray) -> list[np.ndarray]:
    compiled = core.compile_model(core.read_model(str(xml)), "CPU", openvino_cases.EXACT)
    results = compiled([value])
    return [np.array(results[output]) for output in compiled.outputs]


def random_pooling(seed: int):
    """A model and its input: one mean or maximum, with as much padding, stride and dilation as chance gives."""
    import openvino
    from openvino import opset14, opset16

    draw = random.Random(seed)
    axes = draw.choice((1, 2, 2, 3))
    kernel = [draw.randint(1, 4) for _ in range(axes)]
    strides = [draw.randint(1, 4) for _ in range(axes)]
    dilations = [draw.choice((1, 2)) for _ in range(axes)] if draw.random() < 0.3 else [1] * axes
    begins = [draw.randint(0, k - 1) for k in kernel]
    ends = [draw.randint(0, k - 1) for k in kernel]
    extents = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    sizes = [draw.randint(max(1, e - b - p), e + 7) for e, b, p in zip(extents, begins, ends, strict=True)]
    shape = [draw.randint(1, 2), draw.choice((1, 3, 16)), *sizes]
    known = openvino.PartialShape(shape if draw.random() < 0.75 else [-1, shape[1]] + [-1] * axes)
    x = opset14.parameter(known, np.float32, name="x0")
    rounding = draw.choice(("floor", "ceil", "ceil", "ceil_torch", "ceil_torch"))
    if draw.random() < 0.2:
        node = opset14.max_pool(x, strides, dilations, begins, ends, kernel, rounding)
    else:
        excluded = draw.random() < 0.3
        node = opset16.avg_pool(
            x, strides, begins, ends, kernel, excluded, dilations=dilations, rounding_type=rounding
        )
    value = np.random.RandomState(seed).uniform(1, 3, shape).astype("f4")
    return openvino.Model([node.output(0)], [x], "pooling"), value


def check_pooling(core, seed: int, folder: pathlib.Path) -> str:
    import openvino

    model, value = random_pooling(seed)
    source = folder / "source.xml"
    openvino.serialize(model, str(source))
    wanted = openvino_cases.run_lamina(str(source), [value], folder)
    if isinstance(wanted, str):
        return wanted
    for version in (11, 10):
        try:
            got = run(core, optimize(source, version), value)[0]
        except RuntimeError as error:
            return f"IR {version}: {' '.join(str(error).split())[-200:]}"
        if model.is_dynamic() and got.shape == wanted["out0"].shape:  # of sizes that it does not know it divides nothing by nothing
            got = np.where(np.isnan(got) & (wanted["out0"] == 0), np.float32(0), got)
        if why := openvino_cases.difference(got, wanted["out0"], TOLERANCE):
            return f"IR {version}: {why}"
    return ""


def named_models() -> dict[str, object]:
    """Models whose results share values with others, with inputs, or are all that is left of a layer."""
    import openvino
    from openvino import opset13 as ops

    def start(layer: str = "p", name: str = "in"):
        node = ops.parameter([1, 4], np.float32, name=layer)
        node.output(0).tensor.set_names({name})
        return node

    def named(node, *names: str):
        node.output(0).tensor.set_names(set(names))
        return node

    p = start()
    shared = named(ops.relu(p), "t1", "t2,3")
    two = openvino.Model([ops.result(shared), ops.result(shared)], [p], "two results of one value")
    p = start()
    node = named(ops.relu(p), "t")
    first, second = ops.result(node), ops.result(node)
    named(first, "first"), named(second, "second", "2nd")
    apart = openvino.Model([second, first], [p], "two names of one value")
    p = start()
    copies = openvino.Model([ops.result(named(ops.split(p, 1, 1), "part"))], [p], "a split into one")
    p, q = start("p", "a"), start("q", "b")
    both = named(ops.add(p, q), "sum")
    through = openvino.Model([ops.result(both), ops.result(p)], [q, p], "an input that is a result")
    p = start("layer", "x")
    odd = openvino.Model([ops.result(named(ops.relu(p, name="x"), "layer"))], [p], "layers called as tensors")
    p = start()
    inner = named(ops.relu(p), "inner")
    order = openvino.Model(
        [ops.result(named(ops.abs(inner), "last")), ops.result(inner)],
        [p],
        "an earlier value is the last result",
    )
    return {model.friendly_name: model for model in (two, apart, copies, through, odd, order)}


def check_names(core, model, folder: pathlib.Path) -> str:
    import openvino

    source = folder / "source.xml"
    openvino.serialize(model, str(source))
    before = core.read_model(str(source))
    after = core.read_model(str(optimize(source, 11)))
    for what, old, new in (("input", before.inputs, after.inputs), ("output", before.outputs, after.outputs)):
        if len(old) != len(new):
            return f"{len(new)} {what}s, wanted {len(old)}"
        for i, (a, b) in enumerate(zip(old, new, strict=True)):
            if lost := a.names - b.names:
                return f"{what} {i} has lost {sorted(lost)}"
    for output in before.outputs:
        for name in output.names:
            after.output(name)  # throws
    core.read_model(str(optimize(source, 10)))  # it refuses names that have two meanings
    return ""


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", type=int, default=60, help="random poolings")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if not openvino_cases.use_openvino():
        return openvino_cases.skipped()
    import openvino

    core, wrong = openvino.Core(), 0
    models = named_models()
    for name, model in models.items():
        with tempfile.TemporaryDirectory() as folder:
            try:
                why = check_names(core, model, pathlib.Path(folder))
            except RuntimeError as error:
                why = " ".join(str(error).split())[-200:]
        if why:
            wrong += 1
            print(f"{name}: {why}")
    for seed in range(options.seed, options.seed + options.cases):
        with tempfile.TemporaryDirectory() as folder:
            why = check_pooling(core, seed, pathlib.Path(folder))
        if why:
            wrong += 1
            print(f"pooling, seed {seed}: {why}")
    print(f"{len(models)} models with names and {options.cases} poolings, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
