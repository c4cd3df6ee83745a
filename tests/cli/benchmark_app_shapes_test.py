"""lamina benchmark with the command lines of benchmark_app: shapes, batches, layouts and files of inputs."""

import json
import re
import unittest

import numpy as np
from benchmark_app_case import Base
from sample_models import DYNAMIC, FLAT, LARGE, SMALL, STATE


class Shapes(Base):
    def test_shapes(self) -> None:
        done = self.benchmark("-m", DYNAMIC, "-niter", "2", status=1)
        self.assertIn('input "picture" is dynamic: give -data_shape', done.stderr)
        self.benchmark("-m", DYNAMIC, "-niter", "2", "-shape", "[?,1,40,30..60]", status=1)
        self.benchmark("-m", DYNAMIC, "-niter", "2", "-shape", "[?,1,40,30..60]", "-data_shape", "[1,1,40,64]", status=1)
        lines = self.benchmark("-m", DYNAMIC, "-niter", "4", "-shape", "[?,1,40,30..60]", "-data_shape", "picture[1,1,40,56][3,1,40,48]", "-pcseq").stdout.splitlines()
        self.assertIn("[ INFO ] 1. picture: [1,1,40,56]", lines)
        self.assertIn("[ INFO ] 2. picture: [3,1,40,48]", lines)
        self.assertTrue(any("full mode" in line for line in lines))
        self.assertIn("-data_shape has no effect", self.warnings("-niter", "2", "-data_shape", "[1,1,28,28]"))

    def test_fixed_models_are_reshaped(self) -> None:
        lines = self.benchmark("-m", LARGE, "-niter", "2", "-b", "2", "-nireq", "1").stdout.splitlines()
        self.assertTrue(any(re.fullmatch(r"\[ INFO \] Reshaping model: '\w+': \[2,3,\d+,\d+\]", line) for line in lines), lines)
        self.assertIn("[ INFO ] Model batch size: 2", lines)
        self.assertTrue(any(line.startswith("[ INFO ] Reshape model took") for line in lines))
        lines = self.benchmark("-m", LARGE, "-niter", "2", "-shape", "[1..2,3,64,64]", "-data_shape", "[1,3,64,64][2,3,64,64]").stdout.splitlines()
        self.assertEqual(sum("[2,3,64,64]" in line for line in lines if re.match(r"\[ INFO \] \d\. ", line)), 1)
        self.assertIn("Reshape", self.benchmark("-m", SMALL, "-niter", "2", "-b", "2", status=1).stderr)
        self.benchmark("-m", SMALL, "-niter", "2", "-b", "1")

    def refused(self, model: object, *arguments: object, says: str, status: int = 2) -> None:
        done = self.benchmark("-m", model, "-hint", "none", "-niter", "2", *arguments, status=status)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertIn(says, done.stderr)

    def batch(self, *arguments: object) -> int:
        """What the report says of the batch."""
        self.benchmark(*arguments, "-hint", "none", "-report_type", "no_counters", "-json_stats", "-report_folder", self.folder)
        report = json.loads((self.folder / "benchmark_report.json").read_text())
        results = report["execution_results"]
        frames = results["throughput"] * results["total execution time (ms)"] / 1000 / results["total number of iterations"]
        self.assertAlmostEqual(frames, report["configuration_setup"]["batch size"], delta=0.1)
        return report["configuration_setup"]["batch size"]

    def test_shapes_without_dimensions(self) -> None:
        self.refused(DYNAMIC, "-data_shape", "[]", says='input "picture" is')
        np.save(self.folder / "scalar.npy", np.float32(1))
        np.savez(self.folder / "scalar.npz", picture=np.float32(1))
        self.refused(DYNAMIC, "-i", self.folder / "scalar.npy", says="picture", status=1)
        self.refused(DYNAMIC, "--inputs", self.folder / "scalar.npz", says="picture", status=1)

    def test_the_batch_is_what_b_says(self) -> None:
        self.assertEqual(self.batch("-m", FLAT, "-b", "4", "-niter", "20"), 4)
        self.assertEqual(self.batch("-m", DYNAMIC, "-b", "2", "-niter", "2", "-layout", "[?CHW]", "-data_shape", "[1,1,20,20]"), 2)
        lines = self.benchmark("-m", DYNAMIC, "-b", "4", "-niter", "0").stdout.splitlines()
        self.assertIn("[ INFO ] Model batch size: 4", lines)
        for words in (["-m", DYNAMIC, "-shape", "[?,1,40,56]", "-b", "2", "-hint", "none"], [DYNAMIC, "--shape", "?,1,40,56", "--batch", "2"]):
            done = self.benchmark(*words, "-niter", "2")
            self.assertIn("f32[2,1,40,56]", done.stdout + done.stderr)
        self.refused(DYNAMIC, "-shape", "[1..2,1,?,?]", "-data_shape", "[1,1,40,56]", "-b", "3", says="[3,1,40,56] is not a shape that --shape allows: [1..2,1,?,?]", status=1)

    def test_batches_stand_where_layouts_say(self) -> None:
        words = ["-m", STATE, "-b", "3", "-niter", "2", "-layout", "input[N?],state[?N?]"]
        lines = self.benchmark(*words, "-shape", "input[1,4],state[2,1,8]", "-hint", "none").stdout.splitlines()
        self.assertTrue(any("/ [2,3,8]" in line for line in lines), lines)
        self.assertTrue(any("/ [3,4]" in line for line in lines), lines)
        self.assertEqual(self.batch(*words, "-data_shape", "input[1,4],state[2,1,8]"), 3)
        np.savez(self.folder / "in.npz", input=np.zeros((3, 4), np.float32), state=np.zeros((2, 1, 8), np.float32))
        self.assertIn('input "state": 1 row repeated to a batch of 3', self.benchmark(*words, "--inputs", self.folder / "in.npz").stdout)

    def test_shapes_hold_for_files(self) -> None:
        np.save(self.folder / "x.npy", np.zeros((1, 1, 40, 56), np.float32))
        self.benchmark("-m", DYNAMIC, "-niter", "2", "-shape", "[1,1,?,30..60]", "-i", self.folder / "x.npy")
        self.refused(DYNAMIC, "-shape", "[1,1,64..128,64..]", "-i", self.folder / "x.npy", says="[1,1,40,56] is not a shape that --shape allows: [1,1,64..128,64..]", status=1)

    def test_layouts_are_checked(self) -> None:
        for layout, says in (("foo", "O occurs twice"), ("[NCHWX]", "a letter per dimension"), ("[NCH]", "a letter per dimension"), ("[NNNN]", "N occurs twice"),
                             ("[]", "a letter per dimension"), ("x[NCHW]", "an input's name in front"), ("Input3:NCHW", "wanted letters"), ("[NCHW],Input3[NCHW],Input3[NHWC]", "two layouts")):
            self.refused(SMALL, "-layout", layout, says=says)
        for layout in ("[N...]", "[N,C,H,W]", "Input3[n?hw]", "[...C]", "nchw"):
            self.benchmark("-m", SMALL, "-niter", "2", "-layout", layout)
        self.refused(SMALL, "-layout", "[NCHW]", "-imean", "[1,2,3]", says="no input has 3 channels")

    def test_files_go_to_inputs_in_turn(self) -> None:
        state, signal = np.zeros((2, 1, 8), np.float32), np.zeros((1, 4), np.float32)
        for name, value in (("signal", signal), ("state", state)):
            np.save(self.folder / f"{name}.npy", value)
        np.savez(self.folder / "names.npz", input=signal, state=state)
        np.savez(self.folder / "places.npz", in0=signal, in1=state)
        np.savez(self.folder / "others.npz", x=signal)
        for files in ("signal.npy,{}/state.npy", "names.npz", "places.npz"):
            done = self.benchmark("-m", STATE, "-niter", "2", "-i", f"{self.folder}/{files.format(self.folder)}")
            self.assertNotIn("seeded", done.stdout)
        self.refused(STATE, "-i", self.folder / "others.npz", says='there is no input "x"', status=1)

    def test_plans_of_many_shapes_are_kept(self) -> None:
        shapes = "".join(f"[1,1,{8 + n},8]" for n in range(12))
        lines = self.benchmark("-m", DYNAMIC, "-niter", "2", "-data_shape", shapes).stdout.splitlines()
        plans = next(int(line.split()[-1]) for line in lines if "CACHED_PLANS:" in line)
        self.assertGreaterEqual(plans, 12)
        self.assertIn("[ INFO ]   CACHED_PLANS: 3", self.lines("-niter", "2", "--set", "CACHED_PLANS=3"))

    def test_files(self) -> None:
        for name in ("a", "b"):
            np.save(self.folder / f"{name}.npy", np.zeros((1, 1, 28, 28), np.float32))
        a, b = self.folder / "a.npy", self.folder / "b.npy"
        choices: list[list[object]] = [[f"{a},{b}"], [a, b], [self.folder], [f"Input3:{a}", b]]
        for words in choices:
            lines = self.lines("-i", *words, "-niter", "2")
            self.assertIn('[ INFO ] input "Input3": the first 1 of 2 files', lines)
        for word in ("x:random", "x:image_info", "image_info"):
            self.benchmark("-m", SMALL, "-niter", "2", "-i", word, status=1)


if __name__ == "__main__":
    unittest.main()
