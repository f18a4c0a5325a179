"""``kvnode explain`` says where each line comes from, for people and for programs."""

from __future__ import annotations

import io
import json
import xml.etree.ElementTree as ET
from typing import Any

import pytest
import rich.console
import yaml

from kvnode.cli import exitcodes, output
from tests.cli.conftest import Kvnode

VM = """
apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata: {name: web, namespace: prod}
spec:
  runStrategy: Always
  template:
    spec:
      domain:
        cpu: {cores: 3}
        memory: {guest: 64Mi}
        firmware: {uuid: 5d307ca9-b3ef-428c-8861-06e72d69f223}
        devices:
          rng: {}
          disks: [{name: root, disk: {bus: virtio}, cache: writethrough}]
      volumes: [{name: root, containerDisk: {image: 'registry/x:1'}}]
"""


def row(text: str, start: str) -> tuple[str, str]:
    """The XML and the reason of the row that begins with some XML."""
    (line,) = [line for line in text.splitlines() if line.strip().startswith(start)]
    left, _, right = line.strip().partition("  ")
    return left, right.strip()


@pytest.mark.parametrize(
    ("start", "xml", "reason"),
    [
        (
            "<memory",
            '<memory unit="b">67108864</memory>',
            "spec.template.spec.domain.memory.guest = 64Mi",
        ),
        ("<name", "<name>prod_web</name>", "metadata.name = web, metadata.namespace = prod"),
        ("<rng", '<rng model="virtio-non-transitional">', "spec.template.spec.domain.devices.rng"),
        ("cores=", 'cores="3"', "spec.template.spec.domain.cpu.cores = 3"),
        ("<domain", None, "context.kvmAvailable = true"),
        (
            "<graphics",
            '<graphics type="vnc">',
            "spec.template.spec.domain.devices.autoattachGraphicsDevice is not set",
        ),
        ("<metadata", "<metadata>", "always"),
        ("</devices", "</devices>", ""),
    ],
)
def test_line_by_line(kvnode: Kvnode, start: str, xml: str | None, reason: str) -> None:
    result = kvnode("explain", "-", stdin=VM)
    assert (result.code, result.err) == (0, "")
    left, right = row(result.out, start)
    assert xml in (None, left)
    assert right == reason


def test_defaults_are_called_so(kvnode: Kvnode) -> None:
    _, reason = row(kvnode("explain", "-", stdin=VM).out, "machine=")
    assert reason == "spec.template.spec.domain.machine.type = q35 (default)"


def test_the_left_column_is_the_domain(kvnode: Kvnode) -> None:
    text = kvnode("explain", "-", stdin=VM).out
    reasons = ("  spec.", "  context.", "  metadata.", "  status.", "  always")
    left = []
    for line in text.splitlines():
        cut = min((at for at in (line.find(reason, 1) for reason in reasons) if at > 0), default=len(line))
        left.append(line[:cut])
    made, plain = "\n".join(left), kvnode("convert", "-", stdin=VM).out
    assert ET.canonicalize(made, strip_text=True) == ET.canonicalize(plain, strip_text=True)


def test_reasons_stand_in_one_column(kvnode: Kvnode) -> None:
    lines = kvnode("explain", "-", stdin=VM).out.splitlines()
    assert len({line.rindex("always") for line in lines if line.endswith("always")}) == 1


def described(kvnode: Kvnode, *arguments: str) -> list[dict[str, Any]]:
    result = kvnode("explain", "-", "-o", "json", *arguments, stdin=VM)
    assert result.code == 0
    (machine,) = json.loads(result.out)
    assert (machine["source"], machine["namespace"], machine["name"]) == ("<stdin>", "prod", "web")
    lines: list[dict[str, Any]] = machine["lines"]
    return lines


def test_json(kvnode: Kvnode) -> None:
    lines = {line["path"]: line for line in described(kvnode)}
    assert lines["cpu/topology/@cores"]["sources"] == [
        {"kind": "spec", "path": "spec.template.spec.domain.cpu.cores", "value": 3}
    ]
    assert lines["os/type/@machine"]["sources"][0]["kind"] == "default"
    assert lines["name/text()"]["sources"][0]["path"] == "metadata.name"


def test_yaml_says_the_same(kvnode: Kvnode) -> None:
    result = kvnode("explain", "-", "-o", "yaml", stdin=VM)
    assert yaml.safe_load(result.out)[0]["lines"] == described(kvnode)


def test_chosen_lines(kvnode: Kvnode) -> None:
    chosen = described(kvnode, "--path", "**/@cache", "--path", "cpu/topology")
    assert [line["path"] for line in chosen] == [
        "cpu/topology",
        "cpu/topology/@sockets",
        "cpu/topology/@cores",
        "cpu/topology/@threads",
        "devices/disk/driver/@cache",
    ]
    text = kvnode("explain", "-", "--path", "**/@cache", stdin=VM).out
    field = "spec.template.spec.domain.devices.disks[0].cache"
    assert text == f"devices/disk/driver/@cache = writethrough  {field} = writethrough\n"


def test_the_nodes_context(kvnode: Kvnode, tmp_path: Any) -> None:
    file = tmp_path / "context.yaml"
    file.write_text("memBalloonStatsPeriod: 7\n")
    out = kvnode("explain", "-", "--context", str(file), stdin=VM).out
    assert row(out, "<stats") == ('<stats period="7"/>', "context.memBalloonStatsPeriod = 7")


def test_several_machines_are_told_apart(kvnode: Kvnode) -> None:
    out = kvnode("explain", "-", stdin=f"{VM}---\n{VM.replace('web', 'db')}").out
    heads = [line for line in out.splitlines() if line.startswith("#")]
    assert heads == ["# <stdin>, document 1: prod/web", "# <stdin>, document 2: prod/db"]


def test_raw_instances_have_no_defaults(kvnode: Kvnode) -> None:
    raw = {"metadata": {"name": "a"}, "spec": {"domain": {"memory": {"guest": "64Mi"}, "devices": {}}}}
    out = kvnode("explain", "--raw", "-", stdin=json.dumps(raw)).out
    assert "(default)" not in out
    assert "spec.domain.memory.guest = 64Mi" in out


def test_what_is_refused(kvnode: Kvnode) -> None:
    result = kvnode("explain", "-", stdin=VM.replace("bus: virtio", "bus: floppy"))
    assert result.code == exitcodes.FAILED
    assert result.out == ""
    assert result.lines[0].startswith(
        "kvnode: <stdin>: spec.template.spec.domain.devices.disks[0].disk.bus: "
    )


def test_hostile_values_stay_on_their_line(kvnode: Kvnode) -> None:
    text = VM.replace("uuid: 5d307ca9-b3ef-428c-8861-06e72d69f223", r'serial: "a\u0085\u2028b<c>"')
    out = kvnode("explain", "-", stdin=text).out
    assert "\u2028" not in out
    assert "a" in row(out, '<entry name="serial">')[0]
    assert "&lt;c&gt;" in out


def test_colours_on_a_terminal(kvnode: Kvnode, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    real = rich.console.Console

    def console(**options: Any) -> rich.console.Console:
        return real(file=screen, force_terminal=True, width=60, color_system="standard", **options)

    monkeypatch.setattr(rich.console, "Console", console)
    monkeypatch.setattr(output, "is_terminal", lambda: True)
    kvnode("explain", "-", stdin=VM)
    assert "\x1b[32mspec.template.spec.domain.cpu.cores = 3\x1b[0m" in screen.getvalue()
    assert "\x1b[36mcontext.kvmAvailable = true\x1b[0m" in screen.getvalue()
