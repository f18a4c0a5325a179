"""What is measured of a guest, and dumps of its memory."""

from __future__ import annotations

import asyncio

import pytest

from kvnode.launcher.manager.errors import ManagerError
from kvnode.launcher.manager.memory import ram_blocks
from kvnode.launcher.manager.memory_dump import MemoryDumper
from kvnode.launcher.manager.statistics import domain_stats
from kvnode.launcher.manager.xml import parse
from kvnode.virt.domain_json.gojson import encode
from kvnode.virt.payloads.stats import DOMAIN_STATS
from tests.launcher.manager.domains import Domain, run


class TestDump:
    @pytest.mark.parametrize("path", ["", "relative", "/a/../b", "/"])
    def test_paths(self, path):
        async def body(host):
            MemoryDumper(host).start(path)

        with pytest.raises(ManagerError, match="dumpPath must be an absolute path"):
            run(Domain(), body)

    def test_older_dumps_go_and_the_end_is_told(self, tmp_path):
        (tmp_path / "x.memory.dump").write_bytes(b"old")
        (tmp_path / "kept").write_bytes(b"")
        domain = Domain()

        async def body(host):
            dumper = MemoryDumper(host)
            for _ in range(3):  # asked for again and again, as an agent does
                dumper.start(str(tmp_path / "new.memory.dump"))
                await asyncio.sleep(0)
            while not host.metadata.section("MemoryDump")["Completed"]:
                await asyncio.sleep(0.001)
            dumper.start(str(tmp_path / "new.memory.dump"))
            return host.metadata.section("MemoryDump")

        section = run(domain, body)
        assert (section["FileName"], section["Failed"]) == ("new.memory.dump", False)
        assert section["EndTimestamp"] >= section["StartTimestamp"]
        assert [call[0] for call in domain.calls] == ["coreDumpWithFormat"]
        assert [entry.name for entry in tmp_path.iterdir()] == ["kept"]


MEASURED = {
    "cpu.time": 7,
    "cpu.user": 3,
    "balloon.current": 1024,
    "vcpu.maximum": 2,
    "vcpu.0.state": 1,
    "vcpu.0.time": 5,
    "net.count": 1,
    "net.0.name": "tap0",
    "net.0.rx.bytes": 9,
    "block.count": 1,
    "block.0.name": "vda",
    "block.0.rd.reqs": 4,
    "block.0.backingIndex": 1,
}


class TestStatistics:
    def test_what_libvirt_gave_is_marked(self):
        made = domain_stats("n_a", "uuid", MEASURED, {"rss": 8, "actual": 6}, [(True, False)])
        assert (made["Cpu"]["TimeSet"], made["Cpu"]["Time"], made["Cpu"]["SystemSet"]) == (True, 7, False)
        memory = made["Memory"]
        assert (memory["RSS"], memory["ActualBalloon"], memory["Total"]) == (8, 6, 1024)
        assert (memory["TotalSet"], memory["UnusedSet"]) == (True, False)
        assert [(one["StateSet"], one["Time"]) for one in made["Vcpu"]] == [(True, 5), (False, 0)]
        assert (made["Net"][0]["Name"], made["Net"][0]["RxBytes"]) == ("tap0", 9)
        assert (made["Block"][0]["RdReqs"], made["Block"][0]["BackingIndex"]) == (4, 1)
        assert made["CPUMap"] == [[True, False]]
        assert '"CPUMapSet":true' in encode(DOMAIN_STATS, made)


@pytest.mark.parametrize(
    ("xml", "blocks"),
    [
        ("<domain><memory unit='MiB'>2</memory></domain>", (2 << 20,)),
        (
            (
                "<domain><memory unit='KiB'>4</memory><cpu><numa>"
                "<cell memory='1'/><cell memory='3' unit='KiB'/></numa></cpu></domain>"
            ),
            (1024, 3072),
        ),
        (
            (
                "<domain><memory>6</memory><devices><memory model='virtio-mem'><target><size>2</size></target></memory>"
                "</devices></domain>"
            ),
            (4096, 2048),
        ),
    ],
)
def test_ram(xml, blocks):
    assert ram_blocks(parse(xml)) == blocks
