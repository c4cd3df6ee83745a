"""Frozen TensorFlow graphs: each operator and whole networks, against numpy, OpenVINO and TensorFlow itself.

OpenVINO and TensorFlow are asked where this interpreter has them.
"""

import argparse
import concurrent.futures
import pathlib
import sys
import tempfile
from collections.abc import Iterator

import numpy as np
import tensorflow_array_cases as of_arrays
import tensorflow_cell_cases as of_cells
import tensorflow_picture_cases as of_pictures
import tensorflow_reference as reference
import tensorflow_segment_cases as of_segments
import tensorflow_unknown_cases as of_unknown
from openvino_cases import use_openvino
from tensorflow_cases import Case
from tensorflow_networks import all_networks
from tensorflow_oracles import difference, has_tensorflow, run_lamina, run_openvino, run_tensorflow


def check(case: Case, core: object, with_tensorflow: bool) -> list[str]:
    wrong = []
    with tempfile.TemporaryDirectory() as text:
        folder = pathlib.Path(text)
        model = folder / "m.pb"
        model.write_bytes(case.graph.bytes())
        got = run_lamina(model, case.feeds, folder)
        if isinstance(got, str):
            return [got]
        names = list(got)
        with np.errstate(all="ignore"):
            wanted = reference.run(case.graph, case.feeds, names)
        for name, value in zip(names, wanted, strict=True):
            if why := difference(got[name], value, case.tolerance):
                wrong.append(f"{name}: {why}")
        if with_tensorflow:
            for name, value in zip(names, run_tensorflow(case.graph, case.feeds, names), strict=False):
                if why := difference(got[name], value, case.tolerance):
                    wrong.append(f"{name} in TensorFlow: {why}")
        if core and case.openvino:
            try:
                theirs = run_openvino(core, model, case.feeds)
            except Exception as error:
                return [*wrong, f"OpenVINO: {' '.join(str(error).split())[-200:]}"]
            for i, value in enumerate(theirs):
                if why := difference(got[names[i]], value, case.tolerance):
                    wrong.append(f"{names[i]} in OpenVINO: {why}")
    return wrong


def all_cases() -> Iterator[Case]:
    for family in (
        of_pictures.convolutions,
        of_pictures.poolings,
        of_pictures.normalizations,
        of_pictures.pictures,
        of_arrays.elementwise,
        of_arrays.reductions,
        of_arrays.shapes,
        of_arrays.arrays,
        of_arrays.strided_slices,
        of_cells.cells,
        of_cells.boxes,
        of_segments.segments,
        of_segments.spectra,
        of_segments.resampled,
        of_unknown.computed,
        of_unknown.unknown_ranks,
        all_networks,
    ):
        yield from family()


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    core = None
    if use_openvino():
        import openvino

        core = openvino.Core()
    else:
        print("OpenVINO is not installed (bench/compare installs it): compared with numpy only")
    cases = [c for c in all_cases() if options.only in c.name]
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for case, wrong in zip(
            cases, pool.map(lambda c: check(c, core, has_tensorflow()), cases), strict=True
        ):
            failed += bool(wrong)
            for why in wrong:
                print(f"{case.name}: {why}")
    print(f"{len(cases)} cases, {failed} wrong")
    return 1 if failed or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
