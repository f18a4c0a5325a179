"""What the documents say of commands, targets and exit codes is what there is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kvnode.cli import exitcodes
from kvnode.cli.app import VERBS

ROOT = Path(__file__).parents[2]


def targets() -> set[str]:
    return set(re.findall(r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text(), re.MULTILINE))


def test_the_readme_tells_of_every_target_and_of_no_other() -> None:
    table = (ROOT / "README.md").read_text().partition("## Make targets")[2].partition("\n## ")[0]
    told = {
        name
        for cell in re.findall(r"^\| (`.*?`) \|", table, re.MULTILINE)
        for name in re.findall("`(.*?)`", cell)
    }
    assert {name.removeprefix("make ") for name in told} == targets()


def test_the_commands_page_tells_of_every_verb() -> None:
    told = re.findall(r"^\| `([a-z]+)` \|", (ROOT / "docs/cli.md").read_text(), re.MULTILINE)
    assert sorted(told) == sorted(VERBS)


def test_the_commands_page_tells_of_every_exit_code() -> None:
    told = re.findall(r"^\| (\d+) \|", (ROOT / "docs/cli.md").read_text(), re.MULTILINE)
    codes = [value for name, value in vars(exitcodes).items() if name.isupper()]
    assert sorted(map(int, told)) == sorted(codes)


@pytest.mark.parametrize("path", sorted(p.relative_to(ROOT).as_posix() for p in ROOT.glob("docs/*.md")))
def test_links_lead_somewhere(path: str) -> None:
    page = ROOT / path
    links = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text())
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_the_readme_s_links_lead_somewhere() -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)", (ROOT / "README.md").read_text())
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_debian_packages_are_listed_once() -> None:
    lines = (ROOT / "tools/setup/debian-packages.txt").read_text().splitlines()
    entries = [line.split() for line in lines if line and not line.startswith("#")]
    names = [entry[0] for entry in entries]
    assert len(set(names)) == len(names)
    assert {release for entry in entries for release in entry[1:]} <= {"bookworm", "trixie"}
