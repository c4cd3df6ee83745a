"""lamina explain and benchmark -pc: every layer has an outcome, rows add up."""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

import numpy as np
import onnx
from sample_models import ALL, DYNAMIC, FADED, FETCHED, LARGE, SMALL, with_inputs

TOOL = os.environ["LAMINA_TOOL"]
MACHINES = pathlib.Path(__file__).resolve().parents[2] / "machines"
FATES = {"runs", "fused", "free", "removed", "constant", "body", "waiting", "untaken"}


def lamina(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([TOOL, *map(str, arguments)], check=False, capture_output=True, text=True, timeout=300)


class Base(unittest.TestCase):
    def document(self, *arguments: object) -> dict:
        done = lamina(*arguments, "--json", "-")
        self.assertEqual(done.returncode, 0, f"{arguments}: {done.stderr}")
        return json.loads(done.stdout)

    def refused(self, status: int, *arguments: object, says: tuple[str, ...] = ()) -> None:
        done = lamina(*arguments)
        self.assertEqual(done.returncode, status, f"{arguments}: {done.stdout}{done.stderr}")
        lines = [line for line in done.stderr.strip().splitlines() if "seeded random values" not in line]
        self.assertEqual(len(lines), 1, f"{arguments}: {done.stderr}")
        for part in says:
            self.assertIn(part, lines[0])


class Explain(Base):
    def test_every_layer_of_every_model_has_an_outcome(self) -> None:
        for model in ALL:
            with self.subTest(model=model.name):
                layers = self.document("explain", *with_inputs(model), "--seconds", "0")["layers"]
                self.assertTrue(layers)
                running = {layer["name"] for layer in layers if layer["fate"] in ("runs", "free")}
                for layer in layers:
                    self.assertIn(layer["fate"], FATES)
                    self.assertTrue(layer["text"], layer)
                    if layer["fate"] == "runs":
                        first = layer["nodes"][0]
                        self.assertTrue(first["kernel"] and first["layout"] and first["precision"], layer)
                    if layer["fate"] == "fused":
                        self.assertIn(layer["into"], running)
                    if layer["fate"] == "removed":
                        self.assertEqual(layer["nodes"], [])

    def test_planning_takes_no_memory_for_inputs(self) -> None:
        """That many pictures would take 66 GB."""
        model = FETCHED / "ch_ppocr_mobile_v2.0_cls_infer.onnx"
        limits = ("--limit", "LIMIT_MEMORY=1000000000000", "--limit", "LIMIT_ELEMENTS=1000000000000")
        few, many = (self.document("explain", model, "--no-run", *limits, "--shape", f"x={n},3,48,192")["layers"] for n in (1, 600000))
        self.assertEqual([layer["name"] for layer in many], [layer["name"] for layer in few])

    def test_layers_are_those_of_the_file(self) -> None:
        fates = [layer["fate"] for layer in self.document("explain", SMALL, "--no-run")["layers"]]
        self.assertEqual(len(fates), 12)
        self.assertEqual(fates.count("fused"), 5)
        names = {layer["name"]: layer for layer in self.document("explain", SMALL, "--no-run")["layers"]}
        self.assertEqual(names["ReLU32"]["into"], "Convolution28")
        self.assertEqual(names["ReLU32"]["rule"], "fuse-conv-simple")
        self.assertEqual(names["Plus30"]["rule"], "fuse-linear")
        self.assertEqual(names["Times212_reshape1"]["rule"], "fold-constants")

    def test_times_add_up(self) -> None:
        document = self.document("explain", LARGE, "--seconds", "0.1", "--threads", "1")
        steps = sum(layer.get("us", 0) for layer in document["layers"])
        self.assertGreater(steps, 0)
        self.assertLessEqual(steps, document["us"] * 1.0001)
        shares = sum(layer.get("share", 0) for layer in document["layers"])
        self.assertAlmostEqual(shares, steps / document["us"], places=6)
        self.assertNotIn("us", self.document("explain", LARGE, "--no-run"))

    def test_lost_offers_and_refusals(self) -> None:
        nodes = [node for layer in self.document("explain", LARGE, "--no-run")["layers"] for node in layer["nodes"]]
        lost = [offer for node in nodes for offer in node.get("lost", [])]
        self.assertTrue(lost)
        self.assertTrue(all(offer["kernel"] and offer["us"] >= 0 for offer in lost))
        refused = [refusal for node in nodes for refusal in node.get("refused", [])]
        self.assertTrue(all(refusal["kernel"] and refusal["reason"] for refusal in refused))

    def test_table(self) -> None:
        done = lamina("explain", SMALL, "--seconds", "0.01")
        self.assertEqual(done.returncode, 0, done.stderr)
        for part in ("Convolution28", "in Convolution28 (fuse-linear)", "removed: ", "\n12 layers: 5 run, 5 fused, 1 free, 1 removed\n", "us a run", "between the steps"):
            self.assertIn(part, done.stdout)

    def test_plans_for_other_machines(self) -> None:
        plans = {path.stem: self.document("explain", LARGE, "--machine", path) for path in sorted(MACHINES.glob("*.json"))}
        self.assertEqual(len(plans), 5)
        kernels = {
            name: [node["kernel"] for layer in plan["layers"] for node in layer["nodes"] if "kernel" in node and node["chief"]]
            for name, plan in plans.items()
        }
        for name, level, others in (("haswell-laptop", "avx2", "avx512"), ("zen2-server", "avx2", "avx512"), ("hybrid-desktop", "avx2", "avx512"), ("zen4-desktop", "avx512", "avx2"), ("amx-server", "avx512", "avx2")):
            self.assertEqual(plans[name]["machine"]["level"], level)
            self.assertTrue(any(level in kernel for kernel in kernels[name]), kernels[name])
            self.assertFalse(any(others in kernel for kernel in kernels[name]), kernels[name])
            self.assertNotIn("us", plans[name])
        self.assertGreater(plans["haswell-laptop"]["estimate_us"], 1.3 * plans["amx-server"]["estimate_us"])
        text = lamina("explain", SMALL, "--machine", MACHINES / "amx-server.json").stdout
        for part in ("planned for AMX server", "64 threads", "estim. us", "us estimated on one thread"):
            self.assertIn(part, text)
        node = lamina("explain", SMALL, "--machine", MACHINES / "haswell-laptop.json", "--node", "Convolution28").stdout
        self.assertIn("not chosen ", node)
        self.assertNotIn("time ", node)

    def test_limited_machines(self) -> None:
        machine = MACHINES / "amx-server.json"
        text = lamina("explain", SMALL, "--machine", machine, "--max-isa", "avx2").stdout
        self.assertIn("planned for AMX server: 64 cores, two NUMA nodes: avx2, 64 threads", text)
        self.assertNotIn("avx512", text)
        done = subprocess.run([TOOL, "explain", SMALL, "--machine", machine], check=False, capture_output=True, text=True, timeout=60, env={**os.environ, "ONEDNN_MAX_CPU_ISA": "SSE41"})
        self.assertIn("oneDNN cannot be asked for avx512 here: its kernels for sse41 are shown instead", done.stdout)

    def test_machines_of_few_words(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            machine = pathlib.Path(folder) / "machine.json"
            machine.write_text('{"level": "avx2", "caches_kib": {"l1": 32, "l2": 1024, "l3": 19712}}')
            text = lamina("explain", SMALL, "--machine", machine).stdout
        self.assertTrue(text.startswith("planned for a machine without a name: avx2, 1 thread; caches 32 KiB, 1024 KiB, 19.25 MiB\n"), text)

    def test_layers_of_several_nodes(self) -> None:
        weights = onnx.numpy_helper.from_array(np.ones((4, 6), np.float32), "w")
        nodes = [onnx.helper.make_node("Einsum", ["x", "w"], ["y"], name="ein", equation="bhqd,dk->bqhk")]
        ports = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape) for name, shape in (("x", [2, 3, 5, 4]), ("y", [2, 5, 3, 6]))]
        with tempfile.TemporaryDirectory() as folder:
            model = pathlib.Path(folder) / "einsum.onnx"
            graph = onnx.helper.make_graph(nodes, "g", ports[:1], ports[1:], [weights])
            onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8), model)
            text = lamina("explain", model, "--no-run").stdout
            self.assertIn(", 2 steps", text)  # views are none
            self.assertIn("\n2 steps, ", text)
            self.assertIn("reference", lamina("explain", model, "--no-run", "--force", "ein=reference").stdout)
            self.assertIn("native_copy", lamina("explain", model, "--no-run", "--force", "ein=native_gemm", "--node", "ein").stdout)

    def test_layers_of_which_a_part_is_unused(self) -> None:
        nodes = [onnx.helper.make_node("Relu", ["x"], ["a"]), onnx.helper.make_node("Dropout", ["a"], ["b", "mask"]), onnx.helper.make_node("Softmax", ["b"], ["y"])]
        ports = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [2, 3]) for name in "xy"]
        with tempfile.TemporaryDirectory() as folder:
            model = pathlib.Path(folder) / "model.onnx"
            graph = onnx.helper.make_graph(nodes, "g", ports[:1], ports[1:])
            onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 13)], ir_version=8), model)
            self.assertEqual(self.document("explain", model, "--no-run")["layers"][1]["text"], "removed: changes nothing (remove-identity)")

    def test_layers_of_one_name(self) -> None:
        values = {"w": np.ones((4, 3, 3, 3), np.float32), "k": np.ones((1, 4, 1, 1), np.float32)}
        nodes = [("Identity", "x", "a"), ("Conv", "a w", "b"), ("Add", "k k", "kk"), ("Add", "b kk", "c"), ("Relu", "c", "d"), ("Softmax", "d", "y")]
        ports = [onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1, 3, 8, 8]), onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)]
        told = []
        with tempfile.TemporaryDirectory() as folder:
            for name in ("", "same"):
                made = [onnx.helper.make_node(op, read.split(), [out], name=name) for op, read, out in nodes]
                graph = onnx.helper.make_graph(made, "g", ports[:1], ports[1:], [onnx.numpy_helper.from_array(value, key) for key, value in values.items()])
                model = pathlib.Path(folder) / "model.onnx"
                onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8), model)
                told.append([(layer["fate"], layer.get("rule")) for layer in self.document("explain", model, "--no-run")["layers"]])
            self.assertEqual(lamina("explain", model, "--no-run", "--why", "fuse-linear", "same").stdout.count("fuse-linear at"), 1)
        self.assertEqual(told[0][0], ("removed", "remove-identity"))
        self.assertEqual(told[0][3], ("fused", "fuse-linear"))
        self.assertEqual(told[1], told[0])

    def test_refusals_follow_a_layer_into_the_nodes_that_replace_its_own(self) -> None:
        """A depthwise convolution joins the one before, of which was said why it multiplies no integers."""
        values = {"v": np.ones((32, 8, 1, 1), np.float32), "w": np.ones((32, 1, 3, 3), np.float32), "s": np.float32(0.1), "z": np.uint8(128)}
        nodes = [("QuantizeLinear", "x s z", "q", {}), ("DequantizeLinear", "q s z", "d", {}), ("Conv", "d v", "c", {}), ("Relu", "c", "r", {}), ("Conv", "r w", "y", {"group": 32})]
        ports = [onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1, 8, 56, 56]), onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)]
        made = [onnx.helper.make_node(op, read.split(), [out], name=out, **attributes) for op, read, out, attributes in nodes]
        graph = onnx.helper.make_graph(made, "g", ports[:1], ports[1:], [onnx.numpy_helper.from_array(np.asarray(value), key) for key, value in values.items()])
        with tempfile.TemporaryDirectory() as folder:
            model = pathlib.Path(folder) / "model.onnx"
            onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8), model)
            document = self.document("explain", model, "--no-run")
            self.assertEqual(document["rules"]["fuse-conv-depthwise"]["hits"], 1)
            history = document["layers"][2]["history"]
            refused = [entry["text"] for entry in history if entry["rule"] == "int8-product" and entry["kind"] == "refused"]
            self.assertTrue(any("its input is quantised, its weights" in text for text in refused), history)
            self.assertIn("its input is quantised, its weights", lamina("explain", model, "--no-run", "--why", "int8-product", "c").stdout)

    def test_wrong_machines(self) -> None:
        self.refused(1, "explain", SMALL, "--machine", "/nonexistent.json", says=("/nonexistent.json", "no such file"))
        self.refused(1, "explain", SMALL, "--machine", "/dev", says=("/dev", "is a folder"))
        self.refused(1, "explain", SMALL, "--machine", SMALL, says=("no JSON",))
        self.refused(2, "explain", SMALL, "--machine", MACHINES / "amx-server.json", "--no-run")
        with tempfile.TemporaryDirectory() as folder:
            mine = pathlib.Path(folder) / "mine.json"
            self.assertEqual(lamina("version", "--json", mine).returncode, 0)
            here = self.document("explain", SMALL, "--machine", mine)
            self.assertEqual(here["machine"], json.loads(mine.read_text())["machine"])

    def test_wanted_kernels(self) -> None:
        def kernel(*overrides: str) -> dict:
            arguments = [word for forced in overrides for word in ("--force", forced)]
            layer = self.document("explain", SMALL, "--no-run", "--node", "Convolution28", *arguments)["layers"][0]
            return next(node for node in layer["nodes"] if "lost" in node)

        free = kernel()
        others = [lost["kernel"].split(" ")[0] for lost in free["lost"] if "+" not in lost["kernel"] and ":" not in lost["kernel"]]
        self.assertTrue(others)
        for forced in (f"Convolution28={others[0]}", f"conv={others[0]}", f"Convolution={others[0]}"):
            self.assertEqual(kernel(forced)["kernel"], others[0])
            self.assertEqual(kernel(forced)["forced"], forced)
        self.assertEqual(kernel("conv=reference", f"Convolution28={others[0]}")["kernel"], others[0])
        self.assertIn("no kernel has", kernel("conv=nonsense")["forced"])
        self.refused(2, "explain", SMALL, "--no-run", "--force", "Convolution28=nonsense", says=("the kernels for it are", others[0]))
        self.refused(2, "explain", SMALL, "--no-run", "--force", "Convolution29=x", says=("Convolution28",))
        self.refused(2, "explain", SMALL, "--no-run", "--force", "nonsense", says=("wanted NODE=LABEL",))
        done = lamina("check", SMALL, "--force", "conv=reference", "--set", "FORCE=matmul=reference")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_one_layer(self) -> None:
        text = lamina("explain", SMALL, "--node", "ReLU32", "--seconds", "0.01").stdout
        for part in ("ReLU32  Relu", "in Convolution28", "kernel ", "time ", "estimated ", "made of ", "not chosen ", "input 0 ", "output 0 ", "rules, in order:"):
            self.assertIn(part, text)
        layers = self.document("explain", SMALL, "--node", "ReLU32", "--no-run")["layers"]
        self.assertEqual(len(layers), 1)
        node = next(node for node in layers[0]["nodes"] if "parts" in node)
        for parts, us in ((node["parts"], node["estimate_us"]), *((lost["parts"], lost["us"]) for lost in node["lost"])):
            self.assertTrue(parts)
            self.assertAlmostEqual(sum(part["us"] for part in parts), us)
            self.assertEqual(set(parts[0]), {"family", "calls", "work", "bytes", "us"})
        self.assertIn(f"{node['parts'][0]['family']} ", text)
        self.refused(1, "explain", SMALL, "--node", "ReLU23", says=('"ReLU23"', '"ReLU32"'))

    def test_plan(self) -> None:
        text = lamina("explain", SMALL, "--plan", "--no-run").stdout
        self.assertEqual(text, lamina("explain", SMALL, "--plan", "--seconds", "0").stdout)
        self.assertTrue(text.startswith("plan: "), text)
        for line in ('memory: arena ', 't0 f32[1,1,28,28] plain "Input3": 3136 bytes, input 0', 's0 kernel "Convolution28": ', "result 0 "):
            self.assertIn("\n" + line, text)
        self.assertEqual(self.document("explain", SMALL, "--plan", "--no-run")["plans"], [text])
        self.refused(2, "explain", SMALL, "--plan", "--node", "ReLU32")

    def test_why(self) -> None:
        done = lamina("explain", SMALL, "--why", "fuse-linear", "Plus30")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("fuse-linear at ", done.stdout)
        self.assertIn("never matched", lamina("explain", SMALL, "--why", "fuse-conv-sum", "Pooling66").stdout)
        why = self.document("explain", SMALL, "--why", "fuse-linear", "Plus30", "--no-run")
        self.assertEqual((why["history"][0]["kind"], why["plan"]), ("fired", []))
        # At the layer before: what the rule said of its reader.
        exempt = lamina("explain", SMALL, "--why", "fuse-conv-simple", "Convolution28", "--exempt", "ReLU32", "--no-run").stdout
        self.assertIn("refused: 'ReLU32' is exempt", exempt)
        self.assertIn("switched off", lamina("explain", SMALL, "--why", "fuse-linear", "Plus30", "--disable", "fuse-linear", "--no-run").stdout)
        self.assertIn("it begins at Add", self.document("explain", SMALL, "--why", "fuse-linear", "Pooling66", "--no-run")["text"])
        self.refused(2, "explain", SMALL, "--why", "fuse-linera", "Plus30", says=("fuse-linear",))
        self.refused(1, "explain", SMALL, "--why", "fuse-linear", "Plus31", says=('"Plus30"',))
        self.refused(2, "explain", SMALL, "--why", "fuse-linear")
        self.refused(2, "explain", SMALL, "--why", "fuse-linear", "Plus30", "--node", "Plus30")

    def test_every_rule_answers(self) -> None:
        """A sentence about each rule at each layer that is no constant."""
        document = self.document("explain", SMALL, "--no-run")
        names = [layer["name"] for layer in document["layers"] if layer["fate"] != "constant"]
        for rule in document["rules"]:
            for name in (names[0], names[len(names) // 2]):
                done = lamina("explain", SMALL, "--why", rule, name, "--no-run")
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertRegex(done.stdout, rf"^{rule}")
                self.assertGreater(len(done.stdout.strip()), len(rule) + 20)

    def test_summary(self) -> None:
        document = self.document("explain", SMALL, "--no-run", "--exempt", "ReLU32")
        self.assertEqual(document["fused"]["fuse-linear"], 3)
        self.assertEqual([(step["operators"], step["behind"]) for step in document["alone"]], [("Relu", "Convolution28")])
        self.assertIn("exempt", document["alone"][0]["reasons"][0])
        text = lamina("explain", SMALL, "--summary", "--exempt", "ReLU32", "--seconds", "0.01").stdout
        for part in ("fuse-linear ", "1 element-wise step runs on its own", "behind Convolution28", "is exempt"):
            self.assertIn(part, text)
        self.assertEqual(self.document("explain", SMALL, "--no-run")["alone"], [])

    def test_exempt_layers_are_their_own(self) -> None:
        layers = {layer["name"]: layer for layer in self.document("explain", SMALL, "--no-run", "--exempt", "ReLU32")["layers"]}
        self.assertEqual(layers["ReLU32"]["fate"], "runs")

    def test_denormal_numbers_are_told(self) -> None:
        said = "197 of 224 numbers in 2 constants are denormal (below 1.18e-38) and count as 0"
        self.assertEqual(self.document("explain", FADED, "--no-run")["precision"], [said])
        self.assertIn(f"precision: {said}", lamina("explain", FADED).stdout)
        self.assertEqual(lamina("check", FADED).returncode, 0)
        self.assertEqual(self.document("explain", SMALL, "--no-run")["precision"], [])

    def test_long_chains(self) -> None:
        """Time and memory go with the layers, not with their square."""
        names = ["x", *(f"v{i}" for i in range(3000))]
        nodes = [onnx.helper.make_node(("Relu", "Sigmoid")[i % 2], [names[i]], [names[i + 1]], f"n{i}") for i in range(3000)]
        value = onnx.helper.make_tensor_value_info
        graph = onnx.helper.make_graph(nodes, "g", [value("x", 1, [8])], [value(names[-1], 1, [8])])
        with tempfile.TemporaryDirectory() as folder:
            model = pathlib.Path(folder) / "chain.onnx"
            onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 13)], ir_version=8), model)
            document = self.document("explain", model, "--no-run")
            self.assertEqual(len(document["layers"]), 3000)
            self.assertLess(max(len(json.dumps(layer)) for layer in document["layers"]), 10_000)
            self.assertLess(len(max(lamina("explain", model, "--no-run", "--summary").stdout.splitlines(), key=len)), 1000)

    def test_wrong_use(self) -> None:
        self.refused(2, "explain", SMALL, "--seconds", "-1")
        self.refused(2, "explain", SMALL, "--nodes", "x", says=("--node",))
        self.refused(1, "explain", "none.onnx", says=("none.onnx",))


class Benchmark(Base):
    def test_rows_add_up(self) -> None:
        for model in (SMALL, LARGE):
            for arguments in (["--threads", "1"], ["--threads", "2"]):
                document = self.document("benchmark", *with_inputs(model), "--seconds", "0.2", "-pc", *arguments)
                whole = sum(layer["us"] for layer in document["layers"])
                self.assertAlmostEqual(whole / document["profile"]["us"], 1, places=6)
                self.assertAlmostEqual(whole / (1000 * document["latency_ms"]["mean"]), 1, delta=0.02)
                self.assertEqual(document["layers"][-1]["name"], "(overhead)")
                self.assertGreaterEqual(document["layers"][-1]["us"], 0)
                self.assertEqual(document["profile"]["runs"], document["count"])
                kernels = sum(kernel["us"] for kernel in document["kernels"])
                self.assertAlmostEqual(kernels, whole - document["layers"][-1]["us"], delta=1e-3)

    def test_requests_at_once_are_profiled(self) -> None:
        document = self.document("benchmark", SMALL, "--seconds", "0.1", "-pc", "--requests", "2", "--streams", "2", "--threads", "2")
        self.assertAlmostEqual(sum(layer["us"] for layer in document["layers"]) / document["profile"]["us"], 1, places=6)
        self.assertGreater(document["profile"]["runs"], 2)

    def test_figures_of_a_layer(self) -> None:
        document = self.document("benchmark", LARGE, "--seconds", "0.1", "-pc")
        self.assertGreater(document["machine"]["gflops"], 0)
        speeds = [point["gbs"] for point in document["machine"]["bandwidth"]]
        self.assertEqual(speeds, sorted(speeds, reverse=True))
        for layer in document["layers"][:-1]:
            for key in ("name", "operator", "kernel", "layout", "precision", "us", "share", "flops", "bytes"):
                self.assertIn(key, layer)
            if layer["us"] > 0:
                self.assertAlmostEqual(layer["gflops"], layer["flops"] / layer["us"] / 1000, places=6)
                self.assertIn(layer["limit"]["by"], ("compute", "memory"))
        inspected = json.loads(lamina("inspect", LARGE, "--shape", "input=1,3,224,224", "--json", "-").stdout)
        self.assertGreaterEqual(document["profile"]["flops"], inspected["flops"])

    def test_top(self) -> None:
        done = lamina("benchmark", LARGE, "--seconds", "0.05", "--top", "3")
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = done.stdout.splitlines()
        table = lines[next(i for i, line in enumerate(lines) if line.startswith("layer ")) + 1 :]
        self.assertTrue(table[3].startswith("(others)"), done.stdout)
        self.assertTrue(table[4].startswith("(overhead)"))
        self.assertTrue(table[5].startswith("total, mean of"))
        for bad in ("0", "-1", "x", "1.5"):
            self.refused(2, "benchmark", LARGE, "--top", bad)

    def test_phases_and_memory(self) -> None:
        for model in (SMALL, DYNAMIC):
            document = self.document("benchmark", *with_inputs(model), "--seconds", "0.02")
            phases = document["load_phases_ms"]
            self.assertEqual(sorted(phases), ["first_inference", "optimize", "pack", "plan", "read"])
            self.assertAlmostEqual(sum(phases.values()), document["load_ms"] + document["first_inference_ms"], places=3)
            for name, value in phases.items():
                self.assertGreaterEqual(value, 0, name)
            memory = document["memory"]
            for key in ("now_mb", "packed_weights_mb", "read_weights_mb", "tensors_mb", "tensors_sum_mb", "tensors_live_mb", "model_file_mb",
                        "code_mb", "libraries_mb", "rest_mb"):
                self.assertGreaterEqual(memory[key], 0, key)
            self.assertLessEqual(memory["tensors_live_mb"], memory["tensors_mb"] * 1.0001)
            self.assertLessEqual(memory["now_mb"], document["peak_rss_mb"] * 1.02)


if __name__ == "__main__":
    unittest.main()
