"""The build backend: setuptools, with Studio built before a wheel is made, so that `pip install .` needs nothing but Python.

Where the page can not be built (no Node for this platform, no npm registry) the wheel is made without it, and one line says so.
With OMNIGRAPH_WITHOUT_STUDIO=1 nobody tries. Editable installations do not wait for it: `make demo` and the tests build it when
they need it.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from setuptools import build_meta
from setuptools.build_meta import *  # noqa: F403

#: Set in the environment to make a wheel without the page.
WITHOUT = "OMNIGRAPH_WITHOUT_STUDIO"

sys.path.insert(0, str(Path(__file__).resolve().parent))


def get_requires_for_build_wheel(config_settings: Any = None) -> list[str]:
    """What setuptools needs, and Node unless there is one."""
    from build_studio import NODE_PACKAGE, is_up_to_date, machine_node

    needed: list[str] = build_meta.get_requires_for_build_wheel(config_settings)
    if os.environ.get(WITHOUT) or is_up_to_date() or machine_node() is not None:
        return needed
    return [*needed, NODE_PACKAGE]


def build_wheel(wheel_directory: str, config_settings: Any = None, metadata_directory: str | None = None) -> str:
    """A wheel with the page in it."""
    from build_studio import CanNotBuild, build

    try:
        if not os.environ.get(WITHOUT):
            build(quiet=True)
    except CanNotBuild as problem:
        print(f"studio: the wheel has no web page: {problem}", file=sys.stderr)
    name: str = build_meta.build_wheel(wheel_directory, config_settings, metadata_directory)
    return name
