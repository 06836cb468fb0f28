"""Try a wheel as a user would: install it into an empty environment, then run the command and the tour with it.

usage: try_wheel.py FOLDER, which holds one wheel
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]


def main(folder: str) -> None:
    (wheel,) = Path(folder).glob("*.whl")
    with tempfile.TemporaryDirectory(prefix="try-wheel-") as name:
        place = Path(name)
        # Away from the sources, so that nothing but the wheel can be imported.
        shutil.copy(PROJECT / "examples" / "tour.py", place)
        python = place / "venv" / "bin" / "python"
        subprocess.run([sys.executable, "-m", "venv", place / "venv"], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", wheel.resolve()], check=True)
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        for program, argument in ((place / "venv" / "bin" / "omnigraph", "version"), (python, "tour.py")):
            subprocess.run([program, argument], cwd=place, env=environment, check=True, stdout=sys.stderr)
    print(f"dist: {wheel.name} works in an empty environment")


if __name__ == "__main__":
    main(*sys.argv[1:])
