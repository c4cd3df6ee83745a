"""bench/fit_costs.py: the constants that made the times are found again."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))
import fit_costs


def rows(call: float, rate: float, bandwidth: float) -> list:
    found = []
    for work, size in ((1e4, 1e6), (1e6, 1e3), (5e5, 1e5), (2e7, 4e6), (3e3, 3e3), (8e6, 2e7)):
        time = call + work / rate + size / bandwidth
        found.append(fit_costs.Row("conv", "Convolution", "brgconv_avx2_f32", "", work, size, 2 * time, time))
    return found


class FitCosts(unittest.TestCase):
    def test_finds_the_constants(self) -> None:
        family = fit_costs.FAMILIES["brgemm_conv"]
        fit = fit_costs.fit(family, rows(0.5, 3e4, 1e4), None)
        self.assertAlmostEqual(fit.call, 0.5)
        self.assertAlmostEqual(fit.rate / 3e4, 1)
        self.assertAlmostEqual(fit.bandwidth / 1e4, 1)
        self.assertAlmostEqual(fit.error, 1)
        self.assertAlmostEqual(fit.error_now, 2)
        self.assertAlmostEqual(fit_costs.fit(family, rows(0.5, 3e4, 1e4), 0.5).rate / 3e4, 1)

    def test_nothing_is_negative(self) -> None:
        fit = fit_costs.fit(fit_costs.FAMILIES["brgemm_conv"], rows(-0.001, 3e4, 1e4), None)
        self.assertGreaterEqual(fit.call, 0)
        self.assertIsNone(fit_costs.fit(fit_costs.FAMILIES["brgemm_conv"], rows(0.5, 3e4, 1e4)[:3], None))

    def test_offers_belong_to_one_family(self) -> None:
        for op, label, wanted in (
            ("Convolution", "brgconv_avx512_core_f32", "brgemm_conv"),
            ("Convolution", "brgconv_1x1_avx2_f32", "brgemm_1x1"),
            ("Convolution", "brdgmm_dw_avx2_f32", "jit_depthwise"),
            ("Convolution", "jit_sse41_f32", "jit_conv"),
            ("Concat", "native_copy", "copy"),
            ("Relu", "native_elementwise_avx2_f32", "vector_light"),
            ("Relu", "jit_avx2_f32", "onednn_pass"),
        ):
            row = fit_costs.Row("conv", op, label, "", 1, 1, 1, 1)
            self.assertEqual([n for n, f in fit_costs.FAMILIES.items() if f.takes(row)], [wanted])


if __name__ == "__main__":
    unittest.main()
