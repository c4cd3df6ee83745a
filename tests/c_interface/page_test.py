"""The programs on docs/c-api.md, as they stand there, compile without a warning and run."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from header import ROOT, library_path

PAGE = ROOT / "docs/c-api.md"
MODEL = Path(os.environ["LAMINA_DEPS"]) / "models/ch_ppocr_mobile_v2.0_cls_infer.onnx"
PIECE = re.compile(r"^<!-- run -->\n```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PRINTED = {"c": r"[0-9.e-]+ [0-9.e-]+\n", "python": "ONNX\n"}


def command(kind, code, folder):
    if kind == "python":
        (folder / "program.py").write_text(code)
        return [sys.executable, "program.py"]
    (folder / "program.c").write_text(code)
    flags = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", f"-I{ROOT / 'include'}"]
    subprocess.run(
        ["gcc", *flags, "program.c", f"-L{library_path().parent}", "-llamina", "-o", "program"], cwd=folder, check=True
    )
    return ["./program"]


def main():
    if os.environ.get("LAMINA_SANITIZE"):
        print("skipped: a sanitized library needs a sanitized program")
        sys.exit(77)
    text = PAGE.read_text()
    pieces = PIECE.findall(text)
    if {kind for kind, _ in pieces} != set(PRINTED) or len(re.findall(r"^```\w+$", text, re.MULTILINE)) != len(pieces):
        sys.exit(f"{PAGE.name}: wanted a program in each of {', '.join(PRINTED)}, and no other pieces")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copy(MODEL, folder / "model.onnx")
        env = os.environ | {"LD_LIBRARY_PATH": str(library_path().parent)}
        for kind, code in pieces:
            done = subprocess.run(command(kind, code, folder), cwd=folder, env=env, capture_output=True, text=True)
            if done.returncode != 0 or not re.fullmatch(PRINTED[kind], done.stdout):
                sys.exit(f"the {kind} program ended with {done.returncode}: {done.stdout}{done.stderr}")
    print(f"{len(pieces)} programs, as they stand on the page")


if __name__ == "__main__":
    main()
