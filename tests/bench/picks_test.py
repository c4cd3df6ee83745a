"""bench/picks: which choices are wrong, and when there are too many of them."""

import contextlib
import importlib.machinery
import importlib.util
import io
import pathlib
import sys
import unittest

BENCH = pathlib.Path(__file__).resolve().parents[2] / "bench"
sys.path.insert(0, str(BENCH))
loader = importlib.machinery.SourceFileLoader("picks", str(BENCH / "picks"))
spec = importlib.util.spec_from_loader("picks", loader)
assert spec
picks = importlib.util.module_from_spec(spec)
sys.modules["picks"] = picks
loader.exec_module(picks)


def row(problem: str, label: str, cost: float, microseconds: float, layout: str = "plain") -> picks.Row:
    return picks.Row(problem, "MatMul", label, layout, cost, {}, microseconds)


class Picks(unittest.TestCase):
    def test_compares_within_layouts(self) -> None:
        found = picks.picks_of(
            [
                row("a", "one", 2, 30),
                row("a", "two", 3, 20),
                row("a", "other", 1, 5, "channels_last"),
                row("b", "alone", 1, 1),
            ]
        )
        self.assertEqual([(p.chosen.label, p.fastest.label, p.ratio) for p in found], [("one", "two", 1.5)])

    def said(self, rows: list) -> tuple[bool, str]:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            good = picks.report("avx2", picks.picks_of(rows), 5)
        return good, out.getvalue()

    def test_judges(self) -> None:
        right = [row(str(i), name, c, c) for i in range(19) for name, c in (("one", 10), ("two", 30))]
        small = [row("small", "one", 1, 19), row("small", "two", 2, 10)]
        good, text = self.said(right + small)
        self.assertTrue(good)
        self.assertIn("19 of 20 choices (95.0 %)", text)
        self.assertIn("one 19.0 us (estimated 1.0), two 10.0 us", text)
        large = [row("large", "one", 1, 50), row("large", "two", 2, 30)]
        self.assertFalse(self.said(right + large)[0])
        self.assertFalse(self.said(right[:10] + small)[0])


if __name__ == "__main__":
    unittest.main()
