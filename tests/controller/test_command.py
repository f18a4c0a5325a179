"""What ``kvnode controller`` says when it cannot begin."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kvnode.cli import controller, exitcodes

KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u, namespace: kubevirt}}]
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: u, user: {token: t}}]
"""


def run(*arguments: str, home: Path) -> subprocess.CompletedProcess[str]:
    """The command, in a process that knows of no cluster."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("KUBE")}
    return subprocess.run(
        [sys.executable, "-m", "kvnode.cli", "controller", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={**environment, "HOME": str(home)},
    )


def test_without_a_cluster(tmp_path: Path) -> None:
    done = run(home=tmp_path)
    assert done.returncode == exitcodes.FAILED
    assert done.stderr.startswith(f"kvnode: no cluster: {tmp_path}/.kube/config: ")


def test_an_api_server_that_is_not_there(tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text(KUBECONFIG)
    done = run("--kubeconfig", str(file), "--no-leader-elect", home=tmp_path)
    assert done.returncode == exitcodes.FAILED
    assert done.stderr.startswith("kvnode: ")
    assert done.stderr.count("\n") == 1
    assert "127.0.0.1:1" in done.stderr or "127.0.0.1', 1" in done.stderr


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--leader-elect-renew-deadline", "20"),
        ("--leader-elect-retry-period", "10"),
        ("--leader-elect-lease-duration", "nan"),
        ("--leader-elect-lease-duration", "0"),
        ("--client-qps", "0"),
        ("--client-burst", "0"),
    ],
)
def test_values_that_cannot_be(option: str, value: str, tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text(KUBECONFIG)
    done = run("--kubeconfig", str(file), option, value, home=tmp_path)
    assert done.returncode == exitcodes.USAGE
    assert done.stderr.startswith("kvnode: Invalid value for ")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("options", [[], ["--rerun-evicted"]])
def test_options_reach_the_controllers(
    options: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Any] = []

    async def run(*arguments: Any) -> int:
        seen.append(arguments[1])
        return 0

    monkeypatch.setattr(controller, "_run", run)
    monkeypatch.setattr(controller, "log_to_stderr", lambda **_: None)
    file = tmp_path / "config"
    file.write_text(KUBECONFIG)
    named = ["--kubeconfig", str(file), "--launcher-image", "i", "--image-pull-secret", "s", *options]
    done = CliRunner().invoke(controller.command, named, catch_exceptions=False)
    assert done.exit_code == 0
    (settings,) = seen
    assert (settings.launcher.launcher_image, settings.launcher.image_pull_secret) == ("i", "s")
    assert settings.rerun_evicted is bool(options)
