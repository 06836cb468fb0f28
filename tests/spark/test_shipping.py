"""This package as an archive: all of its modules, importable from there, the same bytes each time."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from pathlib import Path

from omnigraph.spark.shipping import write_archive


def test_a_python_without_the_package_imports_it_from_the_archive(tmp_path: Path) -> None:
    archive = write_archive(tmp_path / "one.zip")
    assert archive.read_bytes() == write_archive(tmp_path / "two.zip").read_bytes()
    base = Path(sys.base_prefix, "bin", f"python3.{sys.version_info[1]}")
    program = """
import omnigraph.load.tasks, omnigraph.query_spark.frame, pyspark_omnigraph
assert "one.zip" in omnigraph.__file__, omnigraph.__file__
print(omnigraph.__version__)
"""
    path = f"{archive}:{sysconfig.get_path('purelib')}"
    done = subprocess.run(
        [base, "-c", program], env={"PYTHONPATH": path}, capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    from omnigraph import __version__

    assert done.stdout.strip() == __version__
