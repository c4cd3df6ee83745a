"""bench/fit_costs.py: the constants that made the times are found again."""

import pathlib
import random
import sys
import unittest

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))
import fit_costs
from measured import Measured, Row

TRUE = {"conv": [0.5, 1 / 3e4, 1 / 1e4], "row": [0.0, 1 / 700, 0.0], "again": [0.9, 0.0, 0.0]}
NOW = {"conv": [0.2, 1 / 9e4, 1 / 5e5], "row": [0.0, 1 / 100, 0.0], "again": [3.0, 0.0, 0.0], "rare": [1.0, 0.25, 0.0]}


def estimate(parts: dict, units: dict) -> float:
    return sum(c * u for name, part in parts.items() for c, u in zip(part, units[name], strict=True))


def measured(times: dict, noise: float = 0) -> Measured:
    """Offers of one, two or three families; the machine makes twice as many calls as the table's."""
    dice = random.Random(5)
    rows = []
    for i in range(60):
        parts = {"conv": [1.0, 10 ** dice.uniform(3, 7), 10 ** dice.uniform(3, 6)]}
        if i % 2:
            parts["row"] = [0.0, 10 ** dice.uniform(2, 5), 0.0]
        if i % 3 == 0:
            parts["again"] = [float(dice.randint(1, 50)), 0.0, 0.0]
        time = estimate(parts, times) * (1 + noise * dice.uniform(-1, 1))
        rows.append(Row(f"problem {i}", "Convolution", "label", "plain", estimate(parts, NOW), parts, time))
    table = {name: {"us": us, "base_us": [2 * us[0], us[1], us[2]]} for name, us in NOW.items()}
    return Measured(rows, table)


class FitCosts(unittest.TestCase):
    def near(self, found: fit_costs.Fit, wanted: dict, share: float) -> None:
        for name, units in wanted.items():
            for got, unit in zip(found.units[name], units, strict=True):
                self.assertLessEqual(abs(got - unit), share * unit, (name, found.units))

    def test_finds_the_constants(self) -> None:
        found = fit_costs.fit(measured(TRUE))
        self.near(found, TRUE, 0.03)
        self.assertNotIn("rare", found.units)
        for row, us in found.rows:
            self.assertLess(abs(us / row.microseconds - 1), 0.02)

    def test_noise_and_a_wrong_row_do_not_matter_much(self) -> None:
        m = measured(TRUE, 0.03)
        m.rows[7].microseconds *= 20
        found = fit_costs.fit(m)
        self.near(found, {"row": TRUE["row"], "again": TRUE["again"]}, 0.1)
        left = fit_costs.residuals({"avx2": found})
        self.assertEqual(left[0]["problem"], "problem 7")
        self.assertAlmostEqual(left[0]["ratio"], 0.05, delta=0.01)

    def test_instruction_sets_are_apart(self) -> None:
        faster = {name: [u / f for u, f in zip(us, (1, 3, 1.5), strict=True)] for name, us in TRUE.items()}
        self.near(fit_costs.fit(measured(faster)), faster, 0.03)

    def test_nothing_is_negative(self) -> None:
        odd = {**TRUE, "conv": [-0.2, 1 / 3e4, 1 / 1e4]}
        found = fit_costs.fit(measured(odd))
        self.assertEqual(found.units["conv"][0], 0)
        a = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, -1.0], [1.0, 1.0, 0.5]])
        self.assertTrue(np.allclose(fit_costs.least_squares(a, a @ [2, 0, 1]), [2, 0, 1]))
        self.assertTrue((fit_costs.least_squares(a, a @ [-1, 2, -3]) >= 0).all())

    def test_prints_as_the_table_has_them(self) -> None:
        m = measured(TRUE)
        self.assertEqual(fit_costs.constants("conv", m, None), "{0.4, 90000, 500000}")
        self.assertEqual(fit_costs.constants("again", m, None), "{6, 0, 0}")
        found = fit_costs.fit(m)
        found.units["conv"] = TRUE["conv"]
        self.assertEqual(fit_costs.constants("conv", m, found), "{1, 30000, 10000}")
        self.assertEqual(fit_costs.constants("rare", m, found), "{2, 4, 0}")


if __name__ == "__main__":
    unittest.main()
