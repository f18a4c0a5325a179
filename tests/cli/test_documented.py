"""The pages name the options that there are."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import click
import pytest

from kvnode.cli import app

ROOT = Path(__file__).parents[2]
OTHERS = {"--help", "--kubeconfig", "--verbose"}


def options(verb: str) -> set[str]:
    """A verb's long options."""
    command: click.Command = import_module(f"kvnode.cli.{verb}").command
    spelled = [name for one in command.params for name in (*one.opts, *one.secondary_opts)]
    return {name for name in spelled if name.startswith("--")}


def told(page: str, within: str = "") -> set[str]:
    """The long options in a page's code, or in its tables' first column."""
    text = (ROOT / page).read_text(encoding="utf-8")
    if within:
        text = "\n".join(re.findall(rf"^{within}.*$", text, re.MULTILINE))
    return set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", text))


@pytest.mark.parametrize("page", ["README.md", "docs/cli.md", "docs/explain.md"])
def test_what_the_pages_name_is_there(page: str) -> None:
    known = {"--help", "--version"}.union(*(options(verb) for verb in app.VERBS))
    assert told(page) <= known


@pytest.mark.parametrize("verb", ["controller", "webhook"])
def test_a_server_s_options_are_in_its_page(verb: str) -> None:
    listed = told(f"docs/{verb}.md", r"\| `-")
    assert listed <= options(verb)
    assert options(verb) - listed <= OTHERS | {"--leader-elect"}
