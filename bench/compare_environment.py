"""The peers' Python environment, .deps/compare: made on first use from compare-requirements.txt."""

import fcntl
import pathlib
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass

HERE = pathlib.Path(__file__).resolve().parent
REQUIREMENTS = HERE / "compare-requirements.txt"
HOME = HERE.parent / ".deps/compare"
COMMON = "all"

# Runs a command; says whether it went well and the last line that it printed.
Run = Callable[[list[str]], tuple[bool, str]]


class SetupError(Exception):
    """What is missing, in a sentence."""


@dataclass(frozen=True)
class Environment:
    """An interpreter and what was installed for it."""

    python: pathlib.Path
    peers: tuple[str, ...]
    missing: dict[str, str]  # peer -> why it could not be had


def groups(text: str) -> dict[str, list[str]]:
    """The requirements by group: a line `# NAME: ...` begins one."""
    found: dict[str, list[str]] = {}
    group: list[str] | None = None
    for line in map(str.strip, text.splitlines()):
        name, colon, _ = line.removeprefix("# ").partition(":")
        if line.startswith("# ") and colon and name.isidentifier():
            group = found.setdefault(name, [])
        elif line and not line.startswith("#"):
            if group is None:
                raise ValueError(f"{line} stands before the first group")
            group.append(line)
    return found


def run(command: list[str]) -> tuple[bool, str]:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    said = [*done.stdout.strip().splitlines(), *done.stderr.strip().splitlines()]
    return done.returncode == 0, said[-1] if said else ""


def provision(peers: Iterable[str], home: pathlib.Path = HOME, run: Run = run) -> Environment:
    """The environment with these peers; one that cannot be installed is left out, with the reason."""
    wanted = groups(REQUIREMENTS.read_text())
    home.mkdir(parents=True, exist_ok=True)
    with (home / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two at once would do the same work twice
        python = home / "bin/python3"
        if not python.exists():
            print(f"making {home}", file=sys.stderr)
            good, said = run([sys.executable, "-m", "venv", str(home)])
            if not good:
                raise SetupError(f"python3 -m venv {home} failed: {said}")
        reason = install(home, COMMON, wanted[COMMON], run)
        if reason:
            raise SetupError(f"the packages of every run could not be installed: {reason}")
        reasons = {peer: install(home, peer, wanted[peer], run) for peer in peers}
    missing = {peer: reason for peer, reason in reasons.items() if reason}
    return Environment(python, tuple(p for p in reasons if p not in missing), missing)


def install(home: pathlib.Path, group: str, lines: list[str], run: Run) -> str:
    """Installs a group unless it is there as it is written; why it could not be, else nothing."""
    stamp = home / f"installed-{group}.txt"
    content = "\n".join(lines)
    if stamp.exists() and stamp.read_text() == content:
        return ""
    print(f"installing {' '.join(lines)}", file=sys.stderr)
    pip = [str(home / "bin/python3"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    good, said = run([*pip, "--no-deps", "--only-binary", ":all:", *lines])
    if good:
        stamp.write_text(content)
        return ""
    return said or "pip failed"
