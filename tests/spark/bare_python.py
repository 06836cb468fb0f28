"""A Python for workers that has every dependency of this package, and finds no package of ours."""

from __future__ import annotations

import shlex
import sys
import sysconfig
from pathlib import Path


def bare_python(folder: Path) -> Path:
    """A program in a folder that runs such a Python.

    A path that is only named is not looked through for packages in development, of which this one is.
    """
    base = Path(sys.base_prefix, "bin", f"python3.{sys.version_info[1]}")
    packages = shlex.quote(sysconfig.get_path("purelib"))
    program = folder / "python"
    program.write_text(f'#!/bin/sh\nPYTHONPATH="$PYTHONPATH":{packages} exec {shlex.quote(str(base))} "$@"\n')
    program.chmod(0o755)
    return program
