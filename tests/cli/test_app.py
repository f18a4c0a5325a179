"""The group: help, versions, completion, and every way that a command can end."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

from kvnode import __version__
from kvnode.cli import app, exitcodes
from kvnode.cli.errors import CliError, JoinedError, one_line
from tests.cli.conftest import Kvnode


def run(
    *arguments: str, stdin: bytes = b"", env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    """The command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "kvnode.cli", *arguments],
        input=stdin,
        capture_output=True,
        check=False,
        timeout=60,
        env={**os.environ, **(env or {})},
    )


def test_version(kvnode: Kvnode) -> None:
    assert kvnode("--version").out == f"kvnode {__version__}\n"


def test_help_lists_every_verb(kvnode: Kvnode) -> None:
    out = kvnode("--help").out
    assert all(f"  {verb} " in out for verb in app.VERBS)


@pytest.mark.parametrize("verb", app.VERBS)
def test_every_verb_has_help_with_an_example(kvnode: Kvnode, verb: str) -> None:
    result = kvnode(verb, "--help")
    assert result.code == 0
    assert "  Example:\n" in result.out
    assert f"kvnode {verb}" in result.out.split("Example:")[1]


def test_help_loads_no_verb() -> None:
    code = "import sys; from kvnode.cli.app import run; run(['--help']); sys.exit('kvnode.cli.up' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize(
    ("arguments", "start", "end"),
    [
        (["fly"], "kvnode: No such command 'fly'", "(see `kvnode --help`)"),
        (["ps", "--colour"], "kvnode: No such option", "(see `kvnode ps --help`)"),
        (["completion"], "kvnode: Missing argument '{bash|zsh|fish}'", "(see `kvnode completion --help`)"),
        (["ps", "-o", "xml"], "kvnode: Invalid value for '-o'", "(see `kvnode ps --help`)"),
    ],
)
def test_usage_errors_are_one_line(kvnode: Kvnode, arguments: list[str], start: str, end: str) -> None:
    result = kvnode(*arguments)
    assert result.code == exitcodes.USAGE
    (line,) = result.lines
    assert line.startswith(start)
    assert line.endswith(end)


def test_no_verb_shows_the_help(kvnode: Kvnode) -> None:
    result = kvnode()
    assert (result.code, result.out) == (exitcodes.USAGE, "")
    assert result.lines[0] == "Usage: kvnode [OPTIONS] COMMAND [ARGS]..."


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        ("convert - <&-", exitcodes.FAILED, "kvnode: <stdin>: no VirtualMachineInstance"),
        ("completion bash >&-", exitcodes.OK, ""),
        ("fly 2>&-", exitcodes.USAGE, ""),
    ],
)
def test_a_closed_standard_stream_is_an_empty_one(arguments: str, code: int, text: str) -> None:
    done = subprocess.run(
        ["/bin/sh", "-c", f'"$0" -m kvnode.cli {arguments}', sys.executable],
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (code, b"")
    assert done.stderr.decode().startswith(text)
    assert done.stderr.count(b"\n") == bool(text)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_call_kvnode(shell: str) -> None:
    done = run("completion", shell)
    assert done.returncode == 0
    assert b"_KVNODE_COMPLETE=" in done.stdout


def test_completion_completes() -> None:
    env = {"_KVNODE_COMPLETE": "bash_complete", "COMP_WORDS": "kvnode over", "COMP_CWORD": "1"}
    code = "import sys; sys.argv[0] = 'kvnode'; from kvnode.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **env}, capture_output=True, text=True, check=False
    )
    assert done.stdout == "plain,overhead\n"


def test_a_closed_pipe_is_no_error() -> None:
    code = "import sys; from kvnode.cli.app import run; sys.exit(run(['defaults', *['examples/vm-demo.yaml'] * 300]))"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(60) == 0


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> object:
    """A verb that raises what it is given."""

    def prepare(error: BaseException) -> None:
        @click.command("ps")
        def command() -> None:
            raise error

        monkeypatch.setattr(app.Verbs, "get_command", lambda *_: command)

    return prepare


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (CliError("is odd", source="a.yaml", field="spec.x", code=4), 4, "kvnode: a.yaml: spec.x: is odd"),
        (CliError("two\nlines \x1b[2J"), 1, "kvnode: two lines \\x1b[2J"),
        (PermissionError(13, "Permission denied", "/x"), 1, "kvnode: /x: Permission denied"),
        (
            ModuleNotFoundError("No module named 'libvirt'", name="libvirt"),
            5,
            "kvnode: the Python package libvirt is missing: pip install 'kvnode[node]'",
        ),
        (ZeroDivisionError("oh"), 70, "kvnode: internal error, please report it: ZeroDivisionError: oh"),
    ],
)
def test_errors_become_a_line_and_a_code(
    kvnode: Kvnode, failing: object, error: Exception, code: int, line: str
) -> None:
    failing(error)  # type: ignore[operator]
    result = kvnode("ps")
    assert (result.code, result.lines) == (code, [line])


def test_interrupts_end_quietly(kvnode: Kvnode, failing: object) -> None:
    failing(KeyboardInterrupt())  # type: ignore[operator]
    result = kvnode("ps")
    assert (result.code, result.err.strip()) == (exitcodes.INTERRUPTED, "")


def test_a_traceback_on_request(kvnode: Kvnode, failing: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KVNODE_TRACEBACK", "1")
    failing(ZeroDivisionError("oh"))  # type: ignore[operator]
    with pytest.raises(ZeroDivisionError):
        kvnode("ps")


def test_several_errors_are_a_line_each() -> None:
    joined = JoinedError([CliError("one", field="a", code=3), CliError("two", field="b")])
    assert (joined.line(), joined.code) == ("a: one\nkvnode: b: two", 3)


def test_one_line_keeps_readable_text() -> None:
    assert one_line("größe ≥ 1") == "größe ≥ 1"
    assert one_line("a\tb\r\nc\x00") == "a b c\\x00"


@pytest.mark.parametrize("verb", ["controller", "agent", "webhook"])
def test_without_a_cluster_it_says_how_to_name_one(
    kvnode: Kvnode, verb: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NODE_NAME", "node01")
    (line,) = kvnode(verb).lines
    assert line.startswith(f"kvnode: no cluster: {tmp_path}/.kube/config: ")
    assert line.endswith(": give --kubeconfig, or set KUBECONFIG")


@pytest.mark.parametrize("verb", ["top", "stop"])
def test_names_that_may_be_left_out_are_shown_so(kvnode: Kvnode, verb: str) -> None:
    assert f"Usage: kvnode {verb} [OPTIONS] [NAME]...\n" in kvnode(verb, "--help").out
