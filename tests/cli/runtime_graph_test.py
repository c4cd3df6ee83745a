"""lamina benchmark --runtime-graph: what ran, in the form of OpenVINO's execution graphs."""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest
import xml.etree.ElementTree as ET

from sample_models import ALL, CONTROL_FLOW, DYNAMIC, LARGE, SMALL, with_inputs

TOOL = os.environ["LAMINA_TOOL"]
# What OpenVINO writes for every layer.
KEYS = {"execOrder", "execTimeMcs", "layerType", "originalLayersNames", "outputLayouts", "outputPrecisions", "primitiveType", "runtimePrecision"}


def lamina(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([TOOL, *map(str, arguments)], check=False, capture_output=True, text=True, timeout=300)


def data(layer: ET.Element) -> dict[str, str]:
    return dict(layer.find("data").attrib)


def ports(layer: ET.Element, which: str) -> dict[str, list[str]]:
    return {p.get("id"): [d.text for d in p.findall("dim")] for p in layer.findall(f"{which}/port")}


class RuntimeGraph(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name)

    def write(self, model: pathlib.Path, *arguments: object) -> ET.Element:
        file = self.path / "run.xml"
        done = lamina("benchmark", *with_inputs(model), "--runtime-graph", file, "--iterations", "3", "--quiet", *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return ET.parse(file).getroot()

    def test_graphs_are_whole(self) -> None:
        for model in ALL:
            with self.subTest(model=model.name):
                net = self.write(model)
                self.assertEqual((net.tag, net.get("version")), ("net", "11"))
                layers = {layer.get("id"): layer for layer in net.findall("layers/layer")}
                self.assertEqual(len(layers), len(net.findall("layers/layer")))
                read = set()
                for edge in net.findall("edges/edge"):
                    a, b = layers[edge.get("from-layer")], layers[edge.get("to-layer")]
                    self.assertLess(int(a.get("id")), int(b.get("id")))
                    self.assertIn(edge.get("from-port"), ports(a, "output"))
                    self.assertIn(edge.get("to-port"), ports(b, "input"))
                    read.add((b.get("id"), edge.get("to-port")))
                self.assertEqual(len(read), len(net.findall("edges/edge")))
                for layer in layers.values():
                    self.assertLessEqual(KEYS, set(data(layer)))
                    self.assertEqual(data(layer)["layerType"], layer.get("type"))
                    outputs = ports(layer, "output")
                    self.assertFalse(set(outputs) & set(ports(layer, "input")))
                    for port in ports(layer, "input"):
                        self.assertIn((layer.get("id"), port), read)
                    if layer.get("type") != "Output":
                        self.assertEqual(len(data(layer)["outputLayouts"].split(",")), max(1, len(outputs)))
                orders = [int(data(layer)["execOrder"]) for layer in layers.values()]
                self.assertEqual(orders, sorted(set(orders)))

    def test_layers_of_the_file(self) -> None:
        for model in (SMALL, LARGE):
            net = self.write(model)
            fates = json.loads(lamina("explain", *with_inputs(model), "--no-run", "--json", "-").stdout)["layers"]
            names = [data(layer)["originalLayersNames"].split(",") for layer in net.findall("layers/layer")]
            for fate in fates:
                if fate["fate"] == "fused":
                    self.assertTrue(any(n[0] == fate["into"] and fate["name"] in n for n in names), fate)
                elif fate["fate"] == "runs":
                    self.assertTrue(any(n[0] == fate["name"] for n in names), fate)

    def test_a_small_network(self) -> None:
        net = self.write(SMALL)
        layers = {layer.get("name"): layer for layer in net.findall("layers/layer")}
        of_type = {kind: [layer for layer in layers.values() if layer.get("type") == kind] for kind in ("Input", "Output", "Convolution", "MaxPool")}
        self.assertEqual({kind: len(found) for kind, found in of_type.items()}, {"Input": 1, "Output": 1, "Convolution": 2, "MaxPool": 2})
        self.assertEqual(of_type["Input"][0].get("name"), "Input3")
        self.assertEqual(data(of_type["Input"][0])["execTimeMcs"], "not_executed")
        self.assertEqual(data(of_type["Input"][0])["shape"], "1,1,28,28")
        convolution = data(of_type["Convolution"][0])
        self.assertEqual(convolution["originalLayersNames"], "Convolution28,Plus30,ReLU32")
        self.assertEqual(convolution["runtimePrecision"], "f32")
        self.assertIn(convolution["outputLayouts"], ("abcd", "acdb"))
        self.assertGreaterEqual(int(convolution["execTimeMcs"]), 0)
        self.assertGreater(int(convolution["execTimeNs"]), 0)
        self.assertEqual(ports(of_type["Convolution"][0], "output"), {"1": ["1", "8", "28", "28"]})
        info = {e.tag: e.get("value") for e in net.find("rt_info")}
        self.assertEqual(info["inferences"], "3")
        times = sum(int(data(layer).get("execTimeNs", "0")) for layer in layers.values())
        self.assertLess(times, 1000 * float(info["execTimeMcs"]) * 1.01)

    def test_reasons(self) -> None:
        layers = self.write(SMALL, "--exempt", "ReLU32").findall("layers/layer")
        alone = next(data(layer) for layer in layers if data(layer)["originalLayersNames"] == "ReLU32")
        self.assertIn("exempt", alone["notFusedBecause"])

    def test_other_spellings(self) -> None:
        file = self.path / "app.xml"
        done = lamina("benchmark", "-m", SMALL, "-exec_graph_path", file, "-niter", "2", "-d", "CPU")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(ET.parse(file).getroot().tag, "net")
        self.assertEqual(lamina("benchmark", "-m", SMALL, f"-exec_graph_path={self.path}/b.xml", "-niter", "2", "-nireq", "2").returncode, 0)
        self.assertEqual(ET.parse(self.path / "b.xml").getroot().tag, "net")

    def test_shapes_found_while_running(self) -> None:
        # Plans of parts whose shapes are known late follow each other.
        self.assertTrue(self.write(CONTROL_FLOW).findall("edges/edge"))

    def test_shapes_that_take_turns(self) -> None:
        # Each has layers of its own; with times that are means over all inferences they add up to one.
        file = self.path / "turns.xml"
        done = lamina("benchmark", "-m", DYNAMIC, "-niter", "8", "-nireq", "1", "-data_shape", "[1,1,40,56][1,1,40,48]", "-pc", "-exec_graph_path", file)
        self.assertEqual(done.returncode, 0, done.stderr)
        net = ET.parse(file).getroot()
        self.assertEqual(sorted(data(layer)["shape"] for layer in net.findall("layers/layer") if layer.get("type") == "Input"), ["1,1,40,48", "1,1,40,56"])
        self.assertEqual(sum(layer.get("type") == "Output" for layer in net.findall("layers/layer")), 2)

    def test_wrong_use(self) -> None:
        for status, arguments in ((1, ["--runtime-graph", self.path / "no" / "folder.xml"]), (2, ["--runtime-graph", self.path / "x.xml", "--interactive"])):
            done = lamina("benchmark", SMALL, "--iterations", "1", "--quiet", *arguments)
            self.assertEqual(done.returncode, status, done.stderr)
            self.assertEqual(len(done.stderr.strip().splitlines()), 1)
        self.assertEqual(list(self.path.iterdir()), [])

    def test_odd_names(self) -> None:
        model = self.path / "odd.onnx"
        model.write_bytes(SMALL.read_bytes().replace(b"Convolution28", b'<a&">\xff\xfe\x01\n\\{}b').replace(b"Input3", b"\xc3(]]>\x80"))
        names = [layer.get("name") for layer in self.write(model).findall("layers/layer")]
        self.assertTrue(any(name.startswith('<a&">') for name in names), names)


if __name__ == "__main__":
    unittest.main()
