"""YAML that people write, and YAML that is made to hurt: one line says what is wrong, and soon."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from omnigraph.cluster import commands
from omnigraph.errors import BadRequest
from omnigraph.policy.strict_yaml import DuplicateKey, read_yaml
from tests.clusters.declaring import codes, declare

LAUGHS = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{name}: &{name} [{','.join([f'*{last}'] * 9)}]\n" for last, name in zip("abcdefg", "bcdefgh", strict=True)
)
HOSTILE = {
    "open brackets": ("[" * 100_000, "nested too deeply"),
    "brackets": ("[" * 5000 + "]" * 5000, "nested too deeply"),
    "mappings": ("{a: " * 3000 + "}" * 3000, "nested too deeply"),
    "lines": ("\n".join(" " * depth + "a:" for depth in range(2000)), "nested too deeply"),
    "laughs": (LAUGHS, "more than 100000 values"),
    "itself": ("a: &a [*a]", "refers to itself"),
    "half a character": ('a: "\\ud800"', "not valid YAML"),
    "objects": ("a: !!python/object/apply:os.system ['true']", "could not determine a constructor"),
    "two documents": ("a: 1\n---\nb: 1\n", "another document"),
    "digits": ("a: " + "9" * 5000, "not valid YAML"),
    "control characters": ("a: \x00", "not valid YAML"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_texts(name: str) -> None:
    text, message = HOSTILE[name]
    with pytest.raises(BadRequest) as refused:
        read_yaml(text)
    assert message in refused.value.message
    assert "\n" not in refused.value.message


def test_without_the_parser_in_c() -> None:
    """An installation without libyaml refuses the same texts."""
    script = (
        "import yaml; del yaml.CSafeLoader\n"
        "from omnigraph.errors import BadRequest\n"
        "from omnigraph.policy.strict_yaml import read_yaml\n"
        "for text in ('[' * 20_000, 'a: \"\\\\ud800\"', 'a: 1\\na: 2'):\n"
        "    try: read_yaml(text)\n"
        "    except BadRequest as error: print(error.message)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "not valid YAML: nested too deeply",
        "not valid YAML: a text has an escape that is no character",
        "duplicate key 'a' in line 2",
    ]


def test_double_keys_and_references() -> None:
    assert read_yaml("a: &x { b: 1 }\nc: *x\nd: { <<: *x, e: 2 }") == {
        "a": {"b": 1},
        "c": {"b": 1},
        "d": {"b": 1, "e": 2},
    }
    with pytest.raises(DuplicateKey, match="duplicate key 'b' in line 2"):
        read_yaml("a:\n  { b: 1, b: 2 }")


def test_files_that_are_none(tmp_path: Path) -> None:
    """A pipe and a device have no end; a folder and a link to itself have no content."""
    folder = declare(tmp_path / "c")
    (folder / "team.pg").unlink()
    os.mkfifo(folder / "team.pg")
    (folder / "base.policy.yaml").unlink()
    (folder / "base.policy.yaml").symlink_to("base.policy.yaml")
    (folder / "listing.policy.yaml").unlink()
    (folder / "listing.policy.yaml").mkdir()
    assert codes(commands.validate(folder)) == ["schema_file_missing", "policy_file_missing", "policy_file_missing"]
    (folder / "cluster.yaml").write_text("version: 1\ngraphs: { a: { schema: /dev/zero, queries: [/dev/zero] } }\n")
    assert codes(commands.validate(folder)) == ["schema_file_missing", "query_file_missing"]
