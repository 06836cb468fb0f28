"""Create the virtual environment and install OmniGraph into it; says in one line what is missing.

usage: setup_venv.py VENV [EXTRA]
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

NEEDED = (3, 11)


def fail(message: str) -> None:
    print(f"setup: {message}", file=sys.stderr)
    sys.exit(1)


def main(venv: str, extra: str | None = None) -> None:
    if sys.version_info < NEEDED:
        found = ".".join(map(str, sys.version_info[:3]))
        fail(
            f"Python {NEEDED[0]}.{NEEDED[1]} or newer is needed, found {found}; run `make PYTHON=/path/to/python3.11 …`"
        )
    for module in ("venv", "ensurepip"):
        if importlib.util.find_spec(module) is None:
            fail(f"this Python has no `{module}` module; install it (on Debian: the package python3-venv)")
    python = Path(venv) / "bin" / "python"
    if not python.exists():
        print(f"setup: creating {venv}")
        subprocess.run([sys.executable, "-m", "venv", venv], check=True)
    target = f".[{extra}]" if extra else "."
    print(f"setup: installing omnigraph{f' with the {extra} extras' if extra else ''} (the first time takes a minute)")
    result = subprocess.run(
        [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--editable", target],
        capture_output=True,
        text=True,
    )
    if result.returncode != 0:
        lines = [line for line in result.stderr.splitlines() if line.strip()]
        reason = next((line for line in lines if line.startswith("ERROR")), lines[-1] if lines else "pip failed")
        fail(f"pip could not install the packages: {reason}")
    if extra is not None and "test" in extra.split(","):
        fetched = subprocess.run([python, "-m", "omnigraph", "embed", "--fetch-local"], capture_output=True, text=True)
        if fetched.returncode != 0:
            print(f"setup: tests of the local embedding model will be skipped: {fetched.stderr.strip()}")


if __name__ == "__main__":
    main(*sys.argv[1:])
