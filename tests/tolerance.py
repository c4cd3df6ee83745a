"""How far results of kernels may be from the reference's: as src/check/difference.h says it, in one place."""

import pathlib
import re

_HEADER = pathlib.Path(__file__).resolve().parent.parent / "src" / "check" / "difference.h"
_FOUND = re.search(r"Tolerance kOfKernels\{([^,}]+), ([^}]+)\};", _HEADER.read_text(encoding="utf-8"))
if not _FOUND:
    raise ValueError(f"{_HEADER}: no kOfKernels, wanted 'Tolerance kOfKernels{{ABSOLUTE, RELATIVE}};'")

ABSOLUTE, RELATIVE = map(float, _FOUND.groups())
