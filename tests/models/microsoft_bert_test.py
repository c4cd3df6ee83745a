"""A small BERT as it is exported, with ONNX Runtime's fused operators, and as its optimiser writes it: the values are ONNX Runtime's, and fast kernels run it.

microsoft_bert_test.py [--ratio]: also measures how long they take against the plain one.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np

try:
    import bert_model
    import onnx
    import onnxruntime
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(0)

TOOL = os.environ.get("LAMINA_TOOL", "build/release/bin/lamina")
SMALL = {"layers": 2, "hidden": 64, "heads": 4, "length": 16}
LARGE = {"layers": 4, "hidden": 256, "heads": 4, "length": 128}


def runtimes_own(model: onnx.ModelProto) -> onnx.ModelProto:
    """What ONNX Runtime itself makes of a model before it runs it."""
    with tempfile.TemporaryDirectory() as folder:
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
        options.optimized_model_filepath = str(pathlib.Path(folder) / "m.onnx")
        options.log_severity_level = 4
        onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return onnx.load(options.optimized_model_filepath)


def models(sizes: dict[str, int]) -> dict[str, onnx.ModelProto]:
    made = {"plain": bert_model.bert(bert_model.Plain(1), **sizes), "fused": bert_model.bert(bert_model.Fused(1), **sizes)}
    made["the runtime's own"] = runtimes_own(made["plain"])
    for name, raw in (("optimised", True), ("optimised, lengths", False)):
        try:
            made[name] = bert_model.optimised(bert_model.bert(bert_model.Plain(1), **sizes), sizes["heads"], sizes["hidden"], raw)
        except ImportError as e:
            print(f"{name}: skipped: {str(e).splitlines()[0]}")
    return made


def inputs(batch: int, length: int) -> dict[str, np.ndarray]:
    random = np.random.default_rng(2)
    lengths = random.integers(length // 2, length + 1, batch)
    return {"input_ids": random.integers(0, 100, (batch, length)), "token_type_ids": random.integers(0, 2, (batch, length)),
            "attention_mask": (np.arange(length)[None] < lengths[:, None]).astype(np.int64)}


def lamina(*arguments: object) -> str:
    done = subprocess.run([TOOL, *map(str, arguments)], capture_output=True, text=True, timeout=120)
    if done.returncode:
        raise RuntimeError(f"{arguments}: exit {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def check(folder: pathlib.Path, made: dict[str, onnx.ModelProto]) -> list[str]:
    wrong, steps = [], {}
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    for name, model in made.items():
        file, feed, out = folder / f"{name}.onnx", folder / "in.npz", folder / "out.npz"
        onnx.save(model, file)
        for batch in (1, 3):
            values = inputs(batch, SMALL["length"])
            np.savez(feed, **values)
            wanted = onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"]).run(None, values)[0]
            for way in ([], ["--reference"]):
                lamina("run", file, "--inputs", feed, "--output", out, "--quiet", *way)
                off = np.abs(np.load(out)["last_hidden_state"] - wanted).max()
                if not off < 2e-4:
                    wrong.append(f"{name} {way}: off by {off:.3g}")
        table = lamina("benchmark", file, "--inputs", feed, "--iterations", "2", "-pc", "--threads", "1")
        steps[name] = {kernel: int(n) for n, kernel in re.findall(r"^(\d+) steps? +(native_gemm\S*|brg\S*|native_softmax\S*|native_attention\S*|reference)", table, re.MULTILINE)}
        if "lengths" in name:  # the file's own sum of integers
            steps[name].pop("reference", None)
        if "reference" in steps[name] or steps[name] != steps["plain"]:
            wrong.append(f"{name}: steps {steps[name]}, those of the plain one are {steps['plain']}")
    return wrong


def fastest(file: pathlib.Path, feed: pathlib.Path) -> float:
    return json.loads(lamina("benchmark", file, "--inputs", feed, "--seconds", "0.5", "--threads", "1", "--json", "-"))["latency_ms"]["min"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ratio", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        wrong = check(folder, models(SMALL))
        print("\n".join(wrong) or "all values and kernels as wanted")
        if options.ratio:
            np.savez(folder / "in.npz", **inputs(1, LARGE["length"]))
            made = models(LARGE)
            for name, model in made.items():
                onnx.save(model, folder / f"{name}.onnx")
            rounds = [[fastest(folder / f"{name}.onnx", folder / "in.npz") for name in made] for _ in range(15)]
            best = np.min(rounds, axis=0)
            for name, time in zip(made, best, strict=True):
                print(f"{name}: {time:.3f} ms, {time / best[0]:.3f} of the plain one")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
