"""Makes networks; runs in the environment of bench/compare, which has onnx and ONNX Runtime.

networks.py FOLDER NAME...   (bench/networks starts it; trained models lie in the folder already)
"""

import pathlib
import sys

import network_builders
import numpy as np
import onnx
from network_list import BUILT, CLASSICS, TRAINED, Input
from network_weights import settle

SEEDED = [*CLASSICS, *BUILT]


def classic(name: str) -> onnx.ModelProto:
    folder = pathlib.Path(onnx.__file__).parent / "backend/test/data/light"
    for file in (folder / f"light_{name}.onnx", folder / f"light_bvlc_{name}.onnx"):
        if file.exists():
            return onnx.load(file)
    raise SystemExit(f"the onnx package has no {name} in {folder}")


def values(i: Input, rng: np.random.Generator) -> np.ndarray:
    if i.kind.startswith("int"):
        return rng.integers(int(i.low), int(i.high), i.shape, endpoint=True).astype(i.kind)
    return rng.uniform(i.low, i.high, i.shape).astype(i.kind)


def make(folder: pathlib.Path, name: str) -> None:
    target = folder / f"{name}.onnx"
    if name in TRAINED:
        rng = np.random.default_rng(0)
        feeds = {f"in{k}": values(i, rng) for k, i in enumerate(TRAINED[name].inputs)}
    else:
        build = getattr(network_builders, name) if name in BUILT else lambda: classic(name)
        model, feeds = settle(build(), SEEDED.index(name))
        onnx.save(model, target)
    np.savez(target.with_suffix(".npz"), **feeds)
    print(f"{target}: {target.stat().st_size / 1e6:.1f} MB", flush=True)


if __name__ == "__main__":
    for word in sys.argv[2:]:
        make(pathlib.Path(sys.argv[1]), word)
