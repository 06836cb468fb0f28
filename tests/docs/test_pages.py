"""Every code block of the README and of the pages for users is run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from omnigraph.wire.failures import CODES
from tests.clusters.test_diagnostics import EITHER, ERRORS, WARNINGS
from tests.docs.page import FILES, RUN, Block, Reader, blocks, pieces, table_lines

ROOT = Path(__file__).resolve().parents[2]
#: Pages that describe and have nothing to run.
REFERENCE = {"cli.md", "format.md", "glossary.md", "lance-facts.md", "reference.md", "scaling.md", "why.md"}
PAGES = [ROOT / "README.md", *sorted(path for path in (ROOT / "docs").glob("*.md") if path.name not in REFERENCE)]


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "work").mkdir()
    monkeypatch.setenv("OMNIGRAPH_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.delenv("OMNIGRAPH_PROFILE", raising=False)
    monkeypatch.chdir(tmp_path / "work")


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_a_page_can_be_followed(path: Path) -> None:
    reader = Reader()
    found = pieces(path.read_text())
    assert found
    for block in found:
        if isinstance(block, Block):
            assert block.language in RUN or (block.language in FILES and block.name), f"{path.name}:{block.line}"
        try:
            reader.follow(block)
        except Exception as error:
            error.add_note(f"at {path.name}:{block.line}")
            raise


@pytest.mark.parametrize("name", ["coming-from-cypher.md", "coming-from-sql.md"])
def test_tables_of_other_languages_are_run(name: str) -> None:
    assert len(table_lines((ROOT / "docs" / name).read_text())) >= 40


def test_every_code_of_an_error_is_documented() -> None:
    """Old codes have a line of the table, those from T25 on a section with an example."""
    source = "\n".join(path.read_text() for path in (ROOT / "src" / "omnigraph" / "language").rglob("*.py"))
    codes = set(re.findall(r'"(T[0-9]+)"', source))
    page = (ROOT / "docs" / "errors.md").read_text()
    old = {code for code in codes if int(code[1:]) < 25}
    listed = {
        code for line in page.splitlines() if line.startswith("| T") for code in re.findall(r"T[0-9]+", line[:12])
    }
    assert listed == old
    sections = dict(re.findall(r"^## (T[0-9]+)\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL))
    assert sections.keys() == codes - old
    assert [code for code, text in sections.items() if f"type error: {code}: " not in text or "^" not in text] == []


def test_every_other_code_has_an_entry() -> None:
    """Codes of the linter and of HTTP on the page of errors; those of schema changes on the page of the command line."""
    sources = {path: path.read_text() for path in (ROOT / "src" / "omnigraph").rglob("*.py")}
    page = (ROOT / "docs" / "errors.md").read_text()
    lint = {code for text in sources.values() for code in re.findall(r'"([LQ][0-9]{3})"', text)}
    assert len(lint) == 4
    assert [code for code in sorted(lint) if f"| {code} |" not in page] == []
    for status, code in CODES.items():
        [entry] = [line for line in page.splitlines() if line.startswith(f"| `{code}` |")]
        assert str(status) in entry
    steps = {code for text in sources.values() for code in re.findall(r'"(OG-[A-Z]+-[0-9]+)"', text)}
    assert steps
    commands = (ROOT / "docs" / "cli.md").read_text()
    assert [code for code in sorted(steps) if code not in commands] == []


def test_every_diagnostic_of_a_cluster_has_an_entry() -> None:
    section = (ROOT / "docs" / "clusters.md").read_text().partition("## Diagnostics\n")[2]
    listed = [
        code
        for line in section.splitlines()
        if line.startswith("| `")
        for code in re.findall(r"`([a-z_]+)`", line.partition(" | ")[0])
    ]
    assert sorted(listed) == sorted({*ERRORS, *WARNINGS, *EITHER})


def test_every_fence_is_seen() -> None:
    """A fence with another form, such as an indented one, would be a block that nobody runs."""
    for path in PAGES:
        text = path.read_text()
        assert text.count("```") == 2 * len(blocks(text)), path.name


def test_the_environment_is_documented() -> None:
    """Every variable that the code reads stands on the page, and no other."""
    source = "\n".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    read = set(re.findall(r"\bOMNIGRAPH_[A-Z_]+", source)) - {"OMNIGRAPH_COMPLETE"}
    page = set(re.findall(r"\bOMNIGRAPH_[A-Z_]+", (ROOT / "docs" / "configuration.md").read_text()))
    assert page == read


def test_every_page_is_in_the_site() -> None:
    listed = set(re.findall(r"^ +- (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE))
    assert listed == {path.name for path in (ROOT / "docs").glob("*.md")}
