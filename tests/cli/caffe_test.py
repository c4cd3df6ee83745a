"""Every verb opens a Caffe network, by either of its files."""

import json
import pathlib
import sys
import unittest

import numpy as np
from command_case import Base, lamina

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "models"))

from caffe_networks import mobilenet


class Caffe(Base):
    def setUp(self) -> None:
        super().setUp()
        network, _ = mobilenet()
        self.text, self.blobs = self.path / "net.prototxt", self.path / "net.caffemodel"
        self.text.write_text(network.prototxt())
        self.blobs.write_bytes(network.caffemodel())

    def done(self, *arguments: object) -> str:
        done = lamina(*arguments)
        self.assertEqual(done.returncode, 0, f"{arguments}: {done.stderr}")
        return done.stdout

    def test_every_verb_opens_it(self) -> None:
        for model in (self.text, self.blobs):
            self.assertIn("Caffe", self.done("inspect", model))
            self.assertIn("prob", self.done("run", model))
            self.assertIn("clean", self.done("check", model))
            self.done("benchmark", model, "--iterations", "1")
            self.assertIn("conv1", self.done("explain", model, "--node", "conv1"))
            self.done("graph", model, "-o", self.path / "graph.svg")
            self.done("compile", model, "-o", self.path / "net.lamina")
            self.assertIn("prob", self.done("run", self.path / "net.lamina"))

    def test_layers_of_the_file_are_known_by_name(self) -> None:
        self.assertIn("Scale", self.done("explain", self.text, "--node", "scale_conv1"))

    def test_other_names_of_the_second_file(self) -> None:
        other = self.path / "weights.bin"
        self.blobs.rename(other)
        self.refused(1, "run", self.text, says=("needs weights", "net.caffemodel"))
        self.done("run", self.text, "--weights", other)
        self.done("run", other, "--weights", self.text)
        self.refused(1, "run", self.text, "--weights", self.path / "none", says=("no such file",))

    def test_other_sizes(self) -> None:
        document = json.loads(self.done("inspect", self.text, "--shape", "data=2,3,96,64", "--json", "-"))
        self.assertEqual(document["inputs"][0]["shape"], [2, 3, 96, 64])
        out = self.path / "out.npz"
        self.done("run", self.text, "--shape", "data=2,3,64,64", "--output", out)
        self.assertEqual(np.load(out)["prob"].shape, (2, 10, 1, 1))
        self.done("benchmark", self.text, "--shape", "data=2,3,64,64", "--iterations", "1")

    def test_layers_are_listed(self) -> None:
        self.assertIn("InnerProduct", self.done("ops", "--format", "caffe").splitlines())

    def test_what_is_not_supported(self) -> None:
        self.text.write_text(
            'input: "x" input_shape { dim: 1 } layer { name: "n" type: "Unheard" bottom: "x" top: "y" }'
        )
        self.assertIn("unsupported: Unheard", self.done("inspect", self.text))
        self.refused(1, "run", self.text, says=("Unheard",))


if __name__ == "__main__":
    unittest.main()
