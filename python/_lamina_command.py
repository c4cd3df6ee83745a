"""The command `lamina`, as an entry point: the program is in the package. This module is outside of it, so that the
command does not wait for the package to be imported."""

import os
import sys
from pathlib import Path
from typing import NoReturn


def main() -> NoReturn:
    """Becomes the program, with the same arguments."""
    program = Path(__file__).parent / "lamina" / "bin" / "lamina"
    try:
        os.execv(program, ["lamina", *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"lamina: {program}: {error.strerror}")
