"""The layers are kept by machine: an import that goes up, or a package that the page does not name, fails here."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "omnigraph"

#: From the bottom up. A layer may import itself and what is below it; siblings on one line may not import each other.
LAYERS: list[set[str]] = [
    {"errors", "shown"},
    {"failpoints", "ids", "watching"},
    {"language", "storage"},
    {"commit", "drawing", "policy", "values"},
    {"embedding", "spark"},
    {"query", "validation"},
    {"query_spark", "algorithms"},
    {"export"},
    {"changes"},
    {"evolution", "maintenance", "mutation"},
    {"load"},
    {"merge"},
    {"graph"},
    {"cluster", "wire"},
    {"client"},
    {"mcp"},
    {"server"},
    {"integrations"},
    {"cli", "notebook"},
    {"__main__"},
]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}
#: The package's own front door loads the graph layer lazily and may name any layer.
FRONT_DOOR = SOURCE / "__init__.py"


def layer_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imports_of(path: Path) -> list[tuple[int, str]]:
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: imports are absolute here"
            if node.module == "omnigraph":
                found += [(node.lineno, f"omnigraph.{alias.name}") for alias in node.names]
            else:
                found.append((node.lineno, node.module or ""))
    return found


MODULES = sorted(path for path in SOURCE.rglob("*.py") if path != FRONT_DOOR)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_go_down(path: Path) -> None:
    layer = layer_of(path)
    for line, name in imports_of(path):
        if not name.startswith("omnigraph."):
            continue
        target = name.split(".")[1]
        if target == "__version__":
            continue
        allowed = target == layer or LEVEL[target] < LEVEL[layer]
        assert allowed, f"{path.relative_to(ROOT)}:{line}: {layer} must not import {target}"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_the_language_is_pure(path: Path) -> None:
    if layer_of(path) != "language":
        return
    forbidden = {
        "lance",
        "pyarrow",
        "obstore",
        "pyspark",
        "os",
        "pathlib",
        "io",
        "subprocess",
        "socket",
        "shutil",
        "tempfile",
    }
    used = {name.split(".")[0] for _, name in imports_of(path)}
    assert not used & forbidden


def test_every_package_is_on_the_page() -> None:
    page = (ROOT / "ARCHITECTURE.md").read_text()
    packages = {layer_of(path) for path in MODULES} - {"__main__"}
    assert packages <= set(LEVEL), "a new package needs a layer"
    missing = [name for name in packages if f"omnigraph.{name}" not in page]
    assert not missing


def test_every_commit_module_is_on_the_page() -> None:
    page = (SOURCE / "commit" / "PROTOCOL.md").read_text()
    modules = {path.stem for path in (SOURCE / "commit").glob("*.py")} - {"__init__", "context", "schema_files"}
    assert not [name for name in modules if f"`commit/{name}`" not in page]


def test_every_package_has_a_page() -> None:
    """What it is for, its files, its rules, what needs care."""
    folders = sorted({path.parent for path in SOURCE.glob("*/__init__.py")})
    assert not [folder.name for folder in folders if not (folder / "README.md").is_file()]


NAMED = re.compile(r"`((?:[a-z_0-9]+/)+[a-z_0-9]+)(?:\.py|\.[A-Za-z_]+)*`")


@pytest.mark.parametrize("page", ["ARCHITECTURE.md", "docs/glossary.md"])
def test_files_that_a_page_names_are_there(page: str) -> None:
    """A file of a package that is named as `package/file` or `package/file.function`."""
    packages = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    named = {name for name in NAMED.findall((ROOT / page).read_text()) if name.split("/")[0] in packages}
    missing = [name for name in named if not (SOURCE / name).is_dir() and not (SOURCE / f"{name}.py").is_file()]
    assert sorted(missing) == []


def test_public_names_are_sorted_and_real() -> None:
    import omnigraph

    assert omnigraph.__all__ == sorted(omnigraph.__all__)
    for name in omnigraph.__all__:
        assert getattr(omnigraph, name) is not None
