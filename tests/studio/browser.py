"""A real Chromium for the tests, without root: one that is on the path, else the one of an npm package.

Everything is kept in `.tmp` of the checkout. `CanNotBuild` says in one line what is missing.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
from build_studio import CanNotBuild, build, find_node, install_packages  # noqa: E402

HERE = Path(__file__).resolve().parent
UNPACKED = ROOT / ".tmp" / "studio-browser"
AXE = HERE / "node_modules" / "axe-core" / "axe.min.js"
#: No network, no sandbox (the tests run as root), WebGL in software.
ARGUMENTS = [
    "--no-sandbox",
    "--no-zygote",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--ignore-gpu-blocklist",
    "--use-gl=angle",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--font-render-hinting=none",
]

__all__ = ["ARGUMENTS", "AXE", "CanNotBuild", "chromium", "studio_built"]


@contextmanager
def _alone() -> Iterator[None]:
    """Only one process at a time installs and builds."""
    (ROOT / ".tmp").mkdir(exist_ok=True)
    with (ROOT / ".tmp" / "studio.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def studio_built() -> Path:
    """The folder of the built page."""
    with _alone():
        return build(quiet=True)


def chromium() -> tuple[str, dict[str, str]]:
    """The path of a Chromium and the environment it runs in; also installs axe, which the tests use in it."""
    with _alone():
        node = find_node()
        install_packages(node, HERE)
        for name in ("chromium", "chromium-browser", "google-chrome"):
            found = shutil.which(name)
            if found is not None:
                return found, dict(os.environ)
        place = UNPACKED / "chromium"
        environment = {**os.environ, "LD_LIBRARY_PATH": f"{UNPACKED / 'al2023' / 'lib'}:{UNPACKED}"}
        if not place.is_file():
            _unpack(node)
        if _missing(place, environment):
            _unpack(node, "libraries")
            lacking = _missing(place, environment)
            if lacking:
                raise CanNotBuild(f"Chromium lacks {', '.join(lacking)}; install Debian's chromium")
        return str(place), environment


def _unpack(node: Path, *what: str) -> None:
    UNPACKED.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, "TMPDIR": str(UNPACKED)}
    command = [str(node), str(HERE / "unpack.mjs"), *what]
    done = subprocess.run(command, cwd=HERE, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        raise CanNotBuild(f"Chromium could not be unpacked: {done.stderr.strip().splitlines()[-1:]}")


def _missing(place: Path, environment: dict[str, str]) -> list[str]:
    """The libraries that the program links and this machine does not have."""
    told = subprocess.run(["ldd", str(place)], env=environment, capture_output=True, text=True).stdout
    return [line.split()[0] for line in told.splitlines() if "not found" in line]
