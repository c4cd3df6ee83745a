"""lamina explain --report: a page about what was rewritten, complete in itself, the same every time, and small."""

import html.parser
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

import onnx
from onnx import TensorProto, helper
from sample_models import CONTROL_FLOW, DYNAMIC, LARGE, SMALL, with_inputs

TOOL = os.environ["LAMINA_TOOL"]
VOID = {"meta", "br", "link", "input"}


def lamina(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [TOOL, *map(str, arguments)],
        check=False,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=120,
    )


class Page(html.parser.HTMLParser):
    """Elements must be closed in their order; ids and links are noted."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.tags: list[str] = []
        self.feed(text)
        assert not self.open, self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.ids += [value or "" for name, value in attrs if name == "id"]
        self.links += [value or "" for name, value in attrs if name == "href"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open[-1] == tag, (self.open, tag)
        self.open.pop()


class ReportTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name)

    def report(self, model: pathlib.Path, *arguments: object, name: str = "page.html") -> str:
        done = lamina(
            "explain", *with_inputs(model), "--no-run", "--quiet", "--report", self.path / name, *arguments
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        return (self.path / name).read_text(encoding="utf-8")

    def test_pages_are_sound_and_the_same_every_time(self) -> None:
        for model in (SMALL, LARGE, DYNAMIC, CONTROL_FLOW):
            with self.subTest(model=model.name):
                page = self.report(model)
                read = Page(page)
                self.assertEqual(len(read.ids), len(set(read.ids)))
                for link in read.links:
                    self.assertIn(link.removeprefix("#"), read.ids)
                self.assertNotIn("script", read.tags)
                self.assertIsNone(re.search(r"https?://|\bsrc=|@import", page))
                self.assertLess(len(page), 5_000_000)
                self.assertEqual(page, self.report(model, name="again.html"))

    def test_shows_what_was_done(self) -> None:
        page = self.report(SMALL)
        for part in (
            "multiply-adds",
            "fuse-conv-simple",
            "fold-constants",
            "layers of the file: ",
            "before",
            "after",
            SMALL.name,
        ):
            self.assertIn(part, page)
        self.assertNotIn("exempt", page)

    def test_names_what_was_asked_to_stay(self) -> None:
        page = self.report(SMALL, "--exempt", "ReLU32,nobody.*", "--disable", "fold-constants")
        for part in (
            "exempt by &quot;ReLU32&quot;",
            "ReLU32",
            "exempt &quot;nobody.*&quot;: matches the name of no node",
            "switched off: fold-constants",
            "is exempt",
        ):
            self.assertIn(part, page.replace('"', "&quot;"))
        self.assertNotIn('id="fold-constants"', page)
        done = lamina("explain", SMALL, "--no-run", "--exempt", "ReLU32", "--node", "ReLU32")
        self.assertIn("exempt: no rule changes it", done.stdout)

    def test_bodies_of_control_flow(self) -> None:
        self.assertIn("</html>", self.report(CONTROL_FLOW))

    def test_unused_inputs(self) -> None:
        inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in ("x", "y", "z")]
        outputs = [
            helper.make_tensor_value_info(name, kind, [size])
            for name, kind, size in (("a", TensorProto.FLOAT, 2), ("s", TensorProto.INT64, 1))
        ]
        nodes = [helper.make_node("Relu", ["x"], ["a"]), helper.make_node("Shape", ["z"], ["s"])]
        graph = helper.make_graph(nodes, "unused", inputs, outputs)
        model = self.path / "unused.onnx"
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), model)
        page = self.report(model)
        said = lamina("inspect", model).stdout
        for part in ('input "y" is not used', 'of input "z" only the shape is used'):
            self.assertIn(part.replace('"', "&quot;"), page)
            self.assertIn(f"unused: {part}", said)

    def test_optimize_tells_what_went_into_the_file(self) -> None:
        xml, page = self.path / "small.xml", self.path / "small.html"
        words = "--finegrain_fusing", "ReLU32,nobody"
        done = lamina("optimize", SMALL, "-o", xml, "--report", page, *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(xml.exists())
        text = page.read_text(encoding="utf-8")
        Page(text)
        exempt = "exempt by &quot;ReLU32&quot;, left as they are: ReLU32"
        for part in (SMALL.name, "multiply-adds", exempt, "fold-constants"):
            self.assertIn(part, text)
        self.assertNotIn("(?s", text)
        self.assertEqual(text.count("nobody"), 1)
        self.assertNotIn("fuse-conv-simple", text)  # a file cannot hold what it makes

    def test_a_page_has_the_name_of_one(self) -> None:
        for verb in (["explain", SMALL], ["optimize", SMALL, "-o", self.path / "a.xml"]):
            done = lamina(*verb, "--report", self.path / "a.onnx")
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn("wanted a name that ends with .html", done.stderr)
            self.assertEqual(list(self.path.iterdir()), [])

    def test_nothing_is_half_written(self) -> None:
        done = lamina("explain", SMALL, "--no-run", "--report", self.path / "no" / "page.html")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)
        self.assertIn("page.html", done.stderr)


if __name__ == "__main__":
    unittest.main()
