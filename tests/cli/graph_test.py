"""lamina graph: pictures are well-formed, complete, and the same every time; wrong command lines are refused."""

import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest
import xml.etree.ElementTree as xml

import onnx
from sample_models import ALL, CONTROL_FLOW, DYNAMIC, LARGE, SMALL

TOOL = os.environ["LAMINA_TOOL"]
SVG = "{http://www.w3.org/2000/svg}"


# y = Relu(x + s), s = x + s
KEPT = """<net name="kept" version="11"><layers>
<layer id="0" name="x" type="Parameter" version="opset1"><data shape="1,4" element_type="f32"/><output><port id="0"/></output></layer>
<layer id="1" name="read" type="ReadValue" version="opset6"><data variable_id="s" variable_type="f32" variable_shape="1,4"/><output><port id="0"/></output></layer>
<layer id="2" name="add" type="Add" version="opset1"><input><port id="0"/><port id="1"/></input><output><port id="2"/></output></layer>
<layer id="3" name="assign" type="Assign" version="opset6"><data variable_id="s"/><input><port id="0"/></input><output><port id="1"/></output></layer>
<layer id="4" name="relu" type="ReLU" version="opset1"><input><port id="0"/></input><output><port id="1"/></output></layer>
<layer id="5" name="out" type="Result" version="opset1"><input><port id="0"/></input></layer>
</layers><edges>
<edge from-layer="0" from-port="0" to-layer="2" to-port="0"/><edge from-layer="1" from-port="0" to-layer="2" to-port="1"/>
<edge from-layer="2" from-port="2" to-layer="3" to-port="0"/><edge from-layer="2" from-port="2" to-layer="4" to-port="0"/>
<edge from-layer="4" from-port="1" to-layer="5" to-port="0"/>
</edges></net>"""


def lamina(*arguments: object, cwd: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run([TOOL, *map(str, arguments)], check=False, capture_output=True, text=True, errors="replace", timeout=120, cwd=cwd)


def titles(svg: pathlib.Path, inner: bool = True) -> list[str]:
    """Tooltips of the nodes, those in bodies of others included."""
    root = xml.parse(svg).getroot()
    nodes = [g for g in root.iter(f"{SVG}g") if g.get("class") == "n"]
    return [g.find(f"{SVG}title").text or "" for g in nodes if inner or "_" not in g.get("id")]


class Base(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name)

    def draw(self, name: str, *arguments: object) -> pathlib.Path:
        done = lamina("graph", *arguments, "-o", self.path / name)
        self.assertEqual(done.returncode, 0, f"{arguments}: {done.stderr}")
        self.assertEqual(done.stdout, "")
        return self.path / name

    def refused(self, status: int, *arguments: object, says: tuple[str, ...] = ()) -> None:
        done = lamina("graph", *arguments)
        self.assertEqual(done.returncode, status, f"{arguments}: {done.stdout}{done.stderr}")
        lines = [line for line in done.stderr.strip().splitlines() if "seeded random values" not in line]
        self.assertEqual(len(lines), 1, f"{arguments}: {done.stderr}")
        for part in says:
            self.assertIn(part, lines[0])


class Pictures(Base):
    def test_stages(self) -> None:
        counts = {}
        for stage in ("original", "optimized", "runtime"):
            svg = self.draw(f"{stage}.svg", SMALL, "--stage", stage)
            root = xml.parse(svg).getroot()
            self.assertEqual(root.tag, f"{SVG}svg")
            self.assertFalse(list(root.iter(f"{SVG}script")))
            self.assertNotRegex(svg.read_text(), r"(href|src|@import)\s*=?\s*[\"']?https?:")  # nothing from outside
            counts[stage] = len(titles(svg))
        self.assertGreater(counts["original"], counts["optimized"])

    def test_the_default_is_optimized(self) -> None:
        self.assertEqual(self.draw("a.svg", LARGE).read_bytes(), self.draw("b.svg", LARGE, "--stage", "optimized").read_bytes())

    def test_original_and_optimized_are_the_same_every_time(self) -> None:
        for model in (SMALL, LARGE, CONTROL_FLOW):
            for arguments in (["--stage", "original"], ["--stage", "optimized"], ["--compare"]):
                for ending in ("svg", "dot", "html"):
                    first = self.draw(f"first.{ending}", model, *arguments)
                    second = self.draw(f"second.{ending}", model, *arguments)
                    self.assertEqual(first.read_bytes(), second.read_bytes(), f"{model} {arguments} {ending}")

    def test_the_original_is_the_file_s_own(self) -> None:
        # Gemm, Clip and HardSwish are read as several operators or as others.
        nodes = [
            onnx.helper.make_node("Gemm", ["x", "w", "b"], ["g"], "dense", alpha=0.5, beta=2.0),
            onnx.helper.make_node("HardSwish", ["g"], ["h"], "swish"),
            onnx.helper.make_node("Clip", ["h", "low", "high"], ["c"], "clip"),
            onnx.helper.make_node("Split", ["c"], ["s1", "s2"], "split", axis=1),
            onnx.helper.make_node("Mul", ["s1", "s2"], ["y"], "product"),
        ]
        weights = [onnx.helper.make_tensor(name, 1, dims, [0.5] * size) for name, dims, size in (("w", [4, 6], 24), ("b", [6], 6), ("low", [], 1), ("high", [], 1))]
        ports = [onnx.helper.make_tensor_value_info(name, 1, dims) for name, dims in (("x", [2, 4]), ("y", [2, 3]))]
        graph = onnx.helper.make_graph(nodes, "g", ports[:1], ports[1:], weights)
        onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 14)], ir_version=8), self.path / "own.onnx")
        for arguments in (["--stage", "original"], ["--compare"]):
            root = xml.parse(self.draw("own.svg", self.path / "own.onnx", *arguments)).getroot()
            boxes = [(g.get("data-op"), g.get("data-name")) for g in root.iter(f"{SVG}g") if g.get("class") == "n" and g.get("id").startswith("n")]
            for node in nodes:
                self.assertEqual(boxes.count((node.op_type, node.name)), 1, boxes)
            self.assertEqual(len(boxes), len(nodes) + 2)

    def test_every_layer_is_in_the_original(self) -> None:
        for model in (SMALL, LARGE):
            file = onnx.load(model)
            known = {name.name for name in file.graph.initializer}
            root = xml.parse(self.draw("o.svg", model, "--stage", "original")).getroot()
            boxes = [(g.get("data-op"), g.get("data-name")) for g in root.iter(f"{SVG}g") if g.get("class") == "n"]
            for node in file.graph.node:
                if node.op_type == "Constant" or all(name in known for name in node.input):
                    continue  # constants are not drawn
                self.assertEqual(boxes.count((node.op_type, node.name)), 1, node.name)

    def test_the_slowest_steps_are_listed(self) -> None:
        page = self.draw("t.html", LARGE, "--stage", "runtime").read_text()
        rows = re.findall(r'<div data-n="(n\d+)" title="[^"]*"><b style="width:([0-9.]+)%">', page)
        self.assertEqual(len(rows), 10)
        widths = [float(width) for _, width in rows]
        self.assertEqual(widths[0], 100)
        self.assertEqual(widths, sorted(widths, reverse=True))
        for node, _ in rows:
            self.assertIn(f'id="{node}"', page)
        self.assertIn('class="b"', page)
        self.assertNotIn('<details id="top"', self.draw("o.html", LARGE).read_text())

    def test_tooltips_say_all(self) -> None:
        text = next(t for t in titles(self.draw("o.svg", SMALL)) if t.startswith("Convolution"))
        for part in ("strides = [1,1]", "groups = 1", "layer of the file: ", "input 0: ", "output 0: ", "(constant)", "then Relu"):
            self.assertIn(part, text)

    def test_runtime_shows_kernels_and_times(self) -> None:
        svg = self.draw("r.svg", SMALL, "--stage", "runtime", "--seconds", "0.02", "--threads", "1")
        text = next(t for t in titles(svg) if t.startswith("Convolution"))
        for part in ("kernel: ", "layout: ", "precision: f32", "time: ", "GFLOP/s", "estimated: "):
            self.assertIn(part, text)
        self.assertIn("share of the time", svg.read_text())

    def test_comparison_has_both_in_matching_colours(self) -> None:
        svg = self.draw("c.svg", SMALL, "--compare")
        root = xml.parse(svg).getroot()
        ids = [g.get("id") for g in root.iter(f"{SVG}g") if g.get("class") == "n"]
        self.assertEqual({i[0] for i in ids}, {"n", "o"})
        self.assertEqual(len(ids), len(set(ids)))
        words = [t.text for t in root.iter(f"{SVG}text")]
        for word in ("original", "optimized", "#1", "\u2192 #1", "removed"):
            self.assertIn(word, words)
        self.assertIn("fuse-linear", svg.read_text())  # what the rules did is in the tooltips

    def test_lines_meet_nodes_that_are_there(self) -> None:
        root = xml.parse(self.draw("l.svg", LARGE)).getroot()
        ids = {g.get("id") for g in root.iter(f"{SVG}g") if g.get("class") == "n"}
        lines = [p for p in root.iter(f"{SVG}path") if p.get("data-f")]
        self.assertGreater(len(lines), 50)
        for line in lines:
            self.assertIn(line.get("data-f"), ids)
            self.assertIn(line.get("data-t"), ids)

    def test_lines_past_many_ranks_are_one(self) -> None:
        names = [f"r{i}" for i in range(300)]
        nodes = [onnx.helper.make_node("Relu", ["x"], [name]) for name in names] + [onnx.helper.make_node("Sum", names, ["y"])]
        value = onnx.helper.make_tensor_value_info
        graph = onnx.helper.make_graph(nodes, "g", [value("x", 1, [8])], [value("y", 1, [8])])
        onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 13)], ir_version=8), self.path / "wide.onnx")
        svg = self.draw("wide.svg", self.path / "wide.onnx", "--stage", "original").read_text()
        self.assertLess(max(len(path) for path in re.findall(r' d="[^"]*"', svg)), 1000)

    def test_bodies_are_drawn(self) -> None:
        text = self.draw("b.svg", CONTROL_FLOW, "--stage", "original").read_text()
        self.assertIn("then: 1 node", text)

    def test_large_bodies_are_counted(self) -> None:
        make, value = onnx.helper.make_node, onnx.helper.make_tensor_value_info
        names = ["x", *(f"r{i}" for i in range(99)), "then"]
        chain = [make("Abs", [a], [b]) for a, b in zip(names, names[1:], strict=False)]
        sides = {
            "then_branch": onnx.helper.make_graph(chain, "t", [], [value("then", 1, [8])]),
            "else_branch": onnx.helper.make_graph([make("Neg", ["x"], ["else"])], "e", [], [value("else", 1, [8])]),
        }
        inputs = [value("x", 1, [8]), value("c", onnx.TensorProto.BOOL, [])]
        graph = onnx.helper.make_graph([make("If", ["c"], ["y"], **sides)], "g", inputs, [value("y", 1, [8])])
        onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 13)], ir_version=8), self.path / "if.onnx")
        text = self.draw("if.svg", self.path / "if.onnx", "--stage", "original").read_text()
        self.assertIn("then: 100 nodes, not drawn", text)
        self.assertIn("else: 1 node", text)

    def test_columns(self) -> None:
        def width(*arguments: object) -> float:
            return float(xml.parse(self.draw("w.svg", LARGE, *arguments)).getroot().get("width"))

        self.assertLess(width("--columns", "1"), width("--columns", "3"))

    def test_shape(self) -> None:
        model = DYNAMIC
        name = json.loads(lamina("inspect", model, "--json", "-").stdout)["inputs"][0]["name"]
        text = self.draw("s.svg", model, "--shape", f"{name}=1,1,20,30").read_text()
        self.assertIn("1\u00d71\u00d720\u00d730", text)
        self.refused(1, model, "--shape", f"{name}=1,7,20,30", "-o", self.path / "x.svg", says=(name,))
        self.refused(1, model, "--shape", "nobody=1", "-o", self.path / "x.svg", says=("nobody",))

    def test_disabled_rules_leave_nodes(self) -> None:
        fewer = len(titles(self.draw("a.svg", LARGE), inner=False))
        more = len(titles(self.draw("b.svg", LARGE, "--disable", "fuse-conv-simple"), inner=False))
        all_ = len(titles(self.draw("c.svg", LARGE, "--disable", "all"), inner=False))
        self.assertLess(fewer, more)
        self.assertLessEqual(more, all_)

    def test_dot(self) -> None:
        text = self.draw("d.dot", LARGE, "--stage", "original").read_text()
        self.assertTrue(text.startswith("digraph"))
        self.assertEqual(text.count("{"), text.count("}"))
        nodes = set(re.findall(r"^  (\w+) \[label=", text, re.MULTILINE))
        edges = re.findall(r"^  (\w+) -> (\w+) \[", text, re.MULTILINE)
        self.assertEqual(len(nodes), len(titles(self.draw("d.svg", LARGE, "--stage", "original"))))
        for a, b in edges:
            self.assertLessEqual({a, b}, nodes)

    def test_html_is_one_file(self) -> None:
        text = self.draw("h.html", SMALL).read_text()
        self.assertTrue(text.startswith("<!DOCTYPE html>"))
        for part in ("<svg", "<script>", 'id="search"', 'id="panel"', "</html>"):
            self.assertIn(part, text)
        self.assertNotRegex(text, r"(href|src)\s*=\s*[\"']")
        svg = text[text.index("<svg") : text.index("</svg>") + len("</svg>")]
        xml.fromstring(svg)

    def test_the_optimized_stage_is_what_is_compiled(self) -> None:
        """Variables are inputs and results there, and patterns of --exempt are checked, as explain does."""
        model = self.path / "kept.xml"
        model.write_text(KEPT)
        (self.path / "kept.bin").write_bytes(b"")
        text = self.draw("v.svg", model).read_text()
        self.assertIn("2 of 4 nodes left", text)
        self.assertNotIn("Assign", text)
        for verb in (["graph", "-o", self.path / "w.svg"], ["explain", "--no-run"]):
            done = lamina(*verb, model, "--exempt", "nosuch")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn('exempt "nosuch": matches the name of no node', done.stderr)

    def test_all_models(self) -> None:
        for model in ALL:
            for arguments in (["--stage", "original"], ["--compare"]):
                with self.subTest(model=model.name, arguments=arguments):
                    xml.parse(self.draw("m.svg", model, *arguments))


class WrongUse(Base):
    def test_command_line(self) -> None:
        self.refused(2, SMALL, says=("--output",))
        self.refused(2, SMALL, "-o", self.path / "x.png", says=(".svg", ".html", ".dot"))
        self.refused(2, SMALL, "-o", self.path / "svg", says=(".svg",))
        for arguments in (["--stage", "final"], ["--columns", "-1"], ["--columns", "x"], ["--seconds", "-1"], ["--stage", "runtime", "--compare"],
                          ["--disable", "fuse-nothing"], ["--threads", "-1"], ["--shape", "x"], ["--colour", "red"], ["--json", "-"]):
            self.refused(2, SMALL, "-o", self.path / "x.svg", *arguments)
        self.refused(2, SMALL, "-o", self.path / "x.svg", "--disable", "fuse-conv-simpel", says=("fuse-conv-simple",))
        self.refused(2, SMALL, "-o", self.path / "x.svg", "--stag", "original", says=("--stage",))
        self.assertEqual(list(self.path.iterdir()), [])

    def test_files(self) -> None:
        self.refused(1, self.path / "none.onnx", "-o", self.path / "x.svg", says=("none.onnx",))
        self.refused(1, SMALL, "-o", self.path / "no" / "folder" / "x.svg", says=("x.svg",))
        (self.path / "text.onnx").write_text("this is no model")
        self.refused(1, self.path / "text.onnx", "-o", self.path / "x.svg", says=("text.onnx",))
        self.assertEqual([p.name for p in self.path.iterdir()], ["text.onnx"])

    def test_a_picture_that_fails_leaves_the_old_one(self) -> None:
        svg = self.draw("x.svg", SMALL)
        before = svg.read_bytes()
        self.refused(2, SMALL, "-o", svg, "--disable", "fuse-nothing")
        self.assertEqual(svg.read_bytes(), before)

    def test_help(self) -> None:
        text = lamina("graph", "--help").stdout
        self.assertIn("Example:", text)
        example = text[text.index("Example:") :].splitlines()[1].split()
        self.assertEqual(example[:2], ["lamina", "graph"])
        words = [str(SMALL) if w == "model.onnx" else w for w in example[1:]]
        self.assertEqual(lamina(*words, cwd=str(self.path)).returncode, 0)
        self.assertEqual([p.name for p in self.path.iterdir()], ["model.svg"])


class OddNames(Base):
    def test_names_that_are_no_text(self) -> None:
        """Names of nodes and values with markup, quotes and bytes that are no UTF-8."""
        data = SMALL.read_bytes()
        # Same lengths, so that the file stays what it is.
        odd = data.replace(b"Convolution28", b'<a&">\xff\xfe\x01\n\\{}b').replace(b"Input3", b"\xc3(]]>\x80")
        self.assertNotEqual(odd, data)
        model = self.path / "odd.onnx"
        model.write_bytes(odd)
        for stage in ("original", "optimized", "runtime"):
            for ending in ("svg", "html", "dot"):
                picture = self.draw(f"odd.{ending}", model, "--stage", stage, *(["--seconds", "0.01"] if stage == "runtime" else []))
                text = picture.read_bytes().decode("utf-8")  # is UTF-8
                if ending == "svg":
                    xml.parse(picture)
                    self.assertIn("&lt;a&amp;", text)
        done = lamina("explain", model, "--no-run", "--json", "-")
        self.assertEqual(done.returncode, 0, done.stderr)
        json.loads(done.stdout)


if __name__ == "__main__":
    unittest.main()
