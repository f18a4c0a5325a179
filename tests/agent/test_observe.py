"""Metrics, health and the page."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from html.parser import HTMLParser
from typing import Any

import aiohttp
import pytest

from kvnode.agent.observe import page
from kvnode.agent.observe.domainstats import samples
from kvnode.agent.observe.exposition import Exposition
from kvnode.agent.observe.samples import Seen
from kvnode.agent.observe.server import State, Web, expose
from kvnode.memory.report import MemoryReport, ProcessMemory
from tests.kube.loops import real_time, until
from tests.kube.support import background

MIB = 1 << 20
QEMU = ProcessMemory("qemu", 7, "qemu-kvm", 30 * MIB, 20 * MIB, 40 * MIB, 10 * MIB, ("qemu",), "over")
REPORT = MemoryReport(
    namespace="default",
    name="vm<1>",
    domain_type="kvm",
    guest_size=64 * MIB,
    guest_resident=32 * MIB,
    guest_backing="memfd",
    processes=(QEMU,),
    page_tables=MIB,
    page_tables_share=2 * MIB,
    overhead_used=21 * MIB,
    overhead_requested=12 * MIB,
    headroom=-9 * MIB,
    verdict="over",
    unassigned=(),
)
STATS: dict[str, Any] = {
    "Cpu": {"TimeSet": True, "Time": 1_500_000_000, "UserSet": False, "User": 9},
    "Memory": {"RSSSet": True, "RSS": 2},
    "Vcpu": [{"StateSet": True, "State": 1, "TimeSet": True, "Time": 10**9, "WaitSet": True, "Wait": 0}],
    "Net": [
        {
            "NameSet": True,
            "Name": "tap0",
            "AliasSet": True,
            "Alias": "ua-default",
            "RxBytesSet": True,
            "RxBytes": 5,
        }
    ],
    "Block": [{"NameSet": True, "Name": "vda", "Alias": "ua-disk", "RdTimesSet": True, "RdTimes": 10**9}],
}
SEEN = Seen("default/vm<1>", "Running", "Running", STATS, REPORT)


class Looker:
    """Sees one VM, whose CPU time grows by a second a look."""

    def __init__(self) -> None:
        self.looks = 0

    async def look(self) -> list[Seen]:
        self.looks += 1
        stats = {**STATS, "Cpu": {"TimeSet": True, "Time": self.looks * 10**9}}
        return [Seen(SEEN.key, SEEN.phase, SEEN.state, stats, REPORT)]


def state(*, ready: bool = True) -> State:
    return State("node01", lambda: ready, lambda: ["12:00 default/vm: <Started>"], lambda: 3)


@asynccontextmanager
async def serving(*, ready: bool = True) -> AsyncIterator[str]:
    web = Web(Looker(), state(ready=ready))  # type: ignore[arg-type]
    async with background(web.run("127.0.0.1", 0)):
        await until(lambda: web.port)
        yield f"http://127.0.0.1:{web.port}"


def test_samples_in_base_units_and_only_what_was_measured() -> None:
    found = {(metric.name, *labels.values()): value for metric, value, labels in samples(STATS)}
    assert found == {
        ("cpu_usage_seconds_total",): 1.5,
        ("memory_resident_bytes",): 2048.0,
        ("vcpu_seconds_total", "0", "running"): 1.0,
        ("vcpu_wait_seconds_total", "0"): 0.0,
        ("network_receive_bytes_total", "ua-default"): 5.0,
        ("storage_read_times_seconds_total", "ua-disk"): 1.0,
    }


@pytest.mark.parametrize(
    "stats", [{}, {"Cpu": 3, "Vcpu": [1], "Net": {}, "Memory": {"RSSSet": True, "RSS": "x"}}]
)
def test_a_launcher_may_answer_nonsense(stats: dict[str, Any]) -> None:
    assert list(samples(stats)) == []


def test_the_text_format() -> None:
    found = Exposition()
    found.add("b_total", "counter", "Bs.", 2.0, {"name": 'a"\\\nb'})
    found.add("a", "gauge", "As.", 0.5, {})
    found.add("b_total", "counter", "Bs.", 3.0, {"name": "c"})
    assert str(found) == (
        "# HELP a As.\n# TYPE a gauge\na 0.5\n"
        "# HELP b_total Bs.\n# TYPE b_total counter\n"
        'b_total{name="a\\"\\\\\\nb"} 2\nb_total{name="c"} 3\n'
    )


def test_metrics_carry_the_vm_and_what_its_processes_use() -> None:
    lines = str(expose([SEEN], state())).splitlines()
    vm = 'name="vm<1>",namespace="default",node="node01"'
    assert f"kubevirt_vmi_memory_resident_bytes{{{vm}}} 2048" in lines
    assert f"kubevirt_vmi_memory_overhead_headroom_bytes{{{vm}}} {-9 * MIB}" in lines
    asked = f'kubevirt_vmi_process_requested_bytes{{{vm},pid="7",role="qemu"}} {10 * MIB}'
    assert asked in lines
    assert "kubevirt_virt_handler_ready_status 1" in lines
    assert 'kubevirt_workqueue_depth{name="virt-handler-vm"} 3' in lines


class Reader(HTMLParser):
    """What a browser without scripts shows."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_page_shows_machines_and_escapes_what_they_are_called() -> None:
    read = Reader(page.render("node01", [SEEN], {SEEN.key: 0.5}, ["<script>alert(1)</script>"], ready=True))
    assert "script" not in read.tags
    for text in (
        "default/vm<1>",
        "Phase Running, domain Running, CPU 50%",
        "qemu (7)",
        "20.0 MiB",
        "<script>",
    ):
        assert text in read.text
    assert read.tags.count("meter") == 4


def test_the_page_of_a_node_without_machines() -> None:
    assert "No virtual machines" in page.render("node01", [], {}, [], ready=False)


@real_time
async def test_what_is_served() -> None:
    async with serving() as url, aiohttp.ClientSession() as session:
        for path, text in (("/healthz", "ok"), ("/readyz", "ok"), ("/metrics", "# TYPE"), ("/", "CPU -")):
            async with session.get(url + path) as answer:
                assert answer.status == 200
                assert text in await answer.text()
        await asyncio.sleep(0.05)
        async with session.get(url) as answer:
            assert "CPU -" not in await answer.text()
            assert answer.headers["Content-Security-Policy"].startswith("default-src 'none'")
        async with session.get(url + "/nothing") as answer:
            assert answer.status == 404


@real_time
async def test_an_agent_that_is_not_ready_says_so() -> None:
    async with (
        serving(ready=False) as url,
        aiohttp.ClientSession() as session,
        session.get(url + "/readyz") as answer,
    ):
        assert answer.status == 503
