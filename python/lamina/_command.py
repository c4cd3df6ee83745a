"""The command `lamina`, as an entry point: the program is in the package."""

import os
import sys
from pathlib import Path
from typing import NoReturn


def main() -> NoReturn:
    """Becomes the program, with the same arguments."""
    program = Path(__file__).parent / "bin" / "lamina"
    try:
        os.execv(program, ["lamina", *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"lamina: {program}: {error.strerror}; this package was built without the command")
