"""docs/configuration.md has every key of the table of options, with its values, and every read-only one."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs/configuration.md"


def main() -> None:
    command = Path(os.environ["LAMINA_BUILD"]) / "bin" / "lamina"
    answer = subprocess.run([command, "version", "--properties", "--json", "-"], check=True, capture_output=True, text=True)
    properties = json.loads(answer.stdout)["properties"]
    page = PAGE.read_text()
    rows = re.findall(r"^\| (`[^|]*`) \| ([^|]*) \|", page, re.MULTILINE)
    shown = {key: values for keys, values in rows for key in re.findall(r"`(\w+)`", keys)}
    faults = []
    for key, about in properties.items():
        if about["read_only"]:
            if f"`{key}`" not in page:
                faults.append(f"{key}: not on the page")
        elif key not in shown:
            faults.append(f"{key}: no row")
        else:
            refusal = subprocess.run(
                [command, "version", "--properties", "--set", f"{key}=\x01"], capture_output=True, text=True
            ).stderr
            wanted = re.search(r"wanted (.*)", refusal)
            if wanted and wanted.group(1).strip() != shown[key].strip():
                faults.append(f"{key}: the page says {shown[key]!r}, the table {wanted.group(1)!r}")
    faults += [f"{key}: there is no such key" for key in shown if key not in properties]
    for fault in faults:
        print(fault)
    if faults:
        sys.exit(1)
    print(f"{len(properties)} keys, as the page says")


if __name__ == "__main__":
    main()
