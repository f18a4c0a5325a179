"""Metadata, caches, turns, links into images, errors: the manager's small parts."""

from __future__ import annotations

import asyncio
import gc
import json
import threading

import pytest

from kvnode.launcher.manager import host as host_module
from kvnode.launcher.manager import image_volumes
from kvnode.launcher.manager.agent_store import AgentStore
from kvnode.launcher.manager.cache import TimedCache
from kvnode.launcher.manager.errors import ManagerError, describe
from kvnode.launcher.manager.host import Host
from kvnode.launcher.manager.instance import Instance
from kvnode.launcher.manager.metadata import MetadataCache
from kvnode.launcher.manager.options import ManagerOptions
from kvnode.virt.connection import Connection
from kvnode.virt.domain_json.errors import DomainFormatError
from kvnode.virt.domain_json.gojson import encode
from kvnode.virt.payloads import guest
from tests.reports import report
from tests.virt.errors import libvirt_error


class TestMetadata:
    def test_changes_are_told_once(self):
        cache, told = MetadataCache(), []
        cache.listen(lambda: told.append(1))
        cache.set_uid("u")
        cache.update("GracePeriod", quietly=True, DeletionGracePeriodSeconds=5)
        assert told == []
        cache.update("GracePeriod", DeletionGracePeriodSeconds=5)
        assert told == [], "nothing changed"
        cache.update("GracePeriod", MarkedForGracefulShutdown=True)
        assert told == [1]
        section = cache.snapshot()["GracePeriod"]
        assert (section["DeletionGracePeriodSeconds"], section["MarkedForGracefulShutdown"]) == (5, True)

    def test_a_section_is_there_once_it_was_written(self):
        cache = MetadataCache()
        assert cache.section("MemoryDump") is None
        assert cache.snapshot()["MemoryDump"] is None
        cache.replace("MemoryDump", FileName="a")
        cache.section("MemoryDump")["FileName"] = "b"
        assert cache.section("MemoryDump")["FileName"] == "a"

    def test_an_unknown_field_is_refused(self):
        with pytest.raises(TypeError):
            MetadataCache().update("GracePeriod", Grace=1)


class TestCache:
    def test_those_who_ask_at_once_wait_for_the_same(self):
        async def body():
            made = []

            async def make():
                await asyncio.sleep(0.01)
                made.append(1)
                return len(made)

            cache = TimedCache(60.0, make)
            assert await asyncio.gather(*(cache.get() for _ in range(20))) == [1] * 20
            assert await cache.get() == 1

        asyncio.run(body())

    def test_errors_are_not_kept_and_values_age(self):
        async def body():
            turns = iter([ValueError("no"), 1, 2])

            async def make():
                value = next(turns)
                if isinstance(value, Exception):
                    raise value
                return value

            cache = TimedCache(0.05, make)
            with pytest.raises(ValueError, match="no"):
                await cache.get()
            assert await cache.get() == 1
            await asyncio.sleep(0.06)
            assert await cache.get() == 2

        asyncio.run(body())

    def test_one_who_goes_does_not_take_the_value_along(self):
        async def body():
            async def make():
                await asyncio.sleep(0.05)
                return 1

            cache = TimedCache(60.0, make)
            first = asyncio.ensure_future(cache.get())
            await asyncio.sleep(0)
            first.cancel()
            assert await cache.get() == 1

        asyncio.run(body())


def make_host():
    return Host(Connection("", lambda *_: None, lambda: None), ManagerOptions("n", "a", "u"), MetadataCache())


class TestTurns:
    def test_one_after_the_other_and_to_the_end(self):
        async def body():
            host, order = make_host(), []

            async def work(name):
                order.append(f"{name} begins")
                await asyncio.sleep(0.01)
                order.append(f"{name} ends")

            first = asyncio.ensure_future(host.exclusively(lambda: work("first")))
            second = asyncio.ensure_future(host.exclusively(lambda: work("second")))
            await asyncio.sleep(0.001)
            first.cancel()  # whoever asked has gone; the work goes on
            await second
            assert order == ["first begins", "first ends", "second begins", "second ends"]
            await host.close()

        asyncio.run(body())

    def test_not_too_many_wait(self, monkeypatch):
        monkeypatch.setattr(host_module, "MOST_WAITING", 2)

        async def body():
            host, gate = make_host(), asyncio.Event()
            waiting = [asyncio.ensure_future(host.exclusively(gate.wait)) for _ in range(5)]  # at once
            await asyncio.sleep(0.01)
            gate.set()
            answers = await asyncio.gather(*waiting, return_exceptions=True)
            assert answers[:2] == [True, True]
            assert {str(answer).partition(" are")[0] for answer in answers[2:]} == {"2 earlier requests"}
            assert await host.exclusively(gate.wait)
            await host.close()

        asyncio.run(body())

    @report("B45")
    def test_a_call_that_hangs_is_told_and_nothing_is_begun_over_it(self):
        async def body():
            host, gate = make_host(), threading.Event()
            host.call_seconds = 0.05

            async def work():
                await host.call(gate.wait, 20)

            with pytest.raises(ManagerError, match=r"did not answer within 0\.05 s"):
                await host.exclusively(work)
            with pytest.raises(ManagerError, match="has not come back"):
                await host.exclusively(work)
            gate.set()
            while not host._stuck.done():
                await asyncio.sleep(0.001)
            host.call_seconds = 60
            await host.exclusively(work)
            await host.close()

        asyncio.run(body())

    def test_a_call_that_fails_after_its_caller_has_gone_is_nobodys_error(self):
        async def body():
            host, gate, told = make_host(), threading.Event(), []
            asyncio.get_running_loop().set_exception_handler(lambda _loop, context: told.append(context))

            def fail():
                gate.wait(20)
                raise ValueError("too late")

            call = asyncio.ensure_future(host.call(fail))
            await asyncio.sleep(0.01)
            call.cancel()
            gate.set()
            await asyncio.gather(call, return_exceptions=True)
            await host.call(lambda: None)
            await asyncio.sleep(0.01)
            gc.collect()
            await host.close()
            assert told == []

        asyncio.run(body())

    def test_an_agent_that_hangs_keeps_nobody_else_waiting(self):
        async def body():
            host, gate = make_host(), threading.Event()
            hanging = [asyncio.ensure_future(host.ask_agent(gate.wait, 300)) for _ in range(5)]
            assert await asyncio.wait_for(host.call(lambda: 1), 60) == 1
            gate.set()
            await asyncio.gather(*hanging)
            await host.close()

        asyncio.run(body())

    @pytest.mark.parametrize(
        ("metadata", "words"),
        [
            ('{"namespace":"n","name":"b"}', "about n/b, and this is the launcher of n/a"),
            ("{}", r"about \?/\?"),
            ('{"namespace":"n","name":"a","uid":"other"}', "UID other"),
        ],
    )
    def test_another_vmi_is_refused(self, metadata, words):
        host = make_host()
        with pytest.raises(ManagerError, match=words):
            host.check(Instance.read(f'{{"metadata":{metadata}}}'.encode()))

    def test_its_own_is_taken(self):
        make_host().check(Instance.read(b'{"metadata":{"namespace":"n","name":"a","uid":"u"}}'))
        make_host().check(Instance.read(b'{"metadata":{"namespace":"n","name":"a"}}'))


class TestErrors:
    def test_libvirts_keep_their_numbers(self):
        error = libvirt_error("Failed\nto do", 38, 10)
        assert describe(error) == "LibvirtError(Code=38, Domain=10, Message='Failed to do')"

    def test_others_are_one_line(self):
        assert describe(ManagerError("a\n b")) == "a b"
        assert describe(ValueError()) == "ValueError"


class TestImageVolumes:
    @pytest.fixture
    def images(self, tmp_path, monkeypatch):
        monkeypatch.setattr(
            image_volumes.paths, "container_disk", lambda index: tmp_path / f"out/disk_{index}.img"
        )
        monkeypatch.setattr(image_volumes.paths, "KERNEL_BOOT", tmp_path / "out/kernel-boot")
        root = tmp_path / "images/disk_0"
        (root / "disk").mkdir(parents=True)
        return root

    def link(self, images, path="", boot=None):
        disk = {"image": "i", **({"path": path} if path else {})}
        domain = {"firmware": {"kernelBoot": {"container": {"image": "k", **boot}}}} if boot else {}
        spec = {"domain": domain, "volumes": [{"name": "v", "containerDisk": disk}]}
        import json  # noqa: PLC0415

        vmi = Instance.read(json.dumps({"spec": spec}).encode())
        image_volumes.link_image_volumes(vmi, images.parent, images.parent / "kernel")
        return images.parent.parent / "out"

    def test_the_one_file_in_disk(self, images):
        (images / "disk/a.qcow2").write_bytes(b"x")
        for _ in range(2):  # a second time changes nothing
            assert (self.link(images) / "disk_0.img").resolve() == images / "disk/a.qcow2"

    @pytest.mark.parametrize("count", [0, 2])
    def test_none_or_several(self, images, count):
        for number in range(count):
            (images / f"disk/{number}").write_bytes(b"")
        with pytest.raises(ManagerError, match=f"must hold one file, holds {count}"):
            self.link(images)

    def test_links_do_not_lead_out_of_the_image(self, images):
        (images / "real").write_bytes(b"")
        (images / "disk/a").symlink_to("../../../../../../real")
        assert (self.link(images) / "disk_0.img").resolve() == images / "real"

    @pytest.mark.parametrize("path", ["/etc/passwd", "../../../etc/passwd", "/escape/passwd"])
    def test_paths_that_mean_the_host(self, images, path):
        (images / "escape").symlink_to("/etc")
        with pytest.raises(ManagerError, match="is not in the image"):
            self.link(images, path)

    def test_links_in_a_ring(self, images):
        (images / "a").symlink_to("b")
        (images / "b").symlink_to("a")
        with pytest.raises(ManagerError, match="too many links"):
            self.link(images, "/a")

    def test_kernels(self, images):
        (images / "disk/a").write_bytes(b"")
        (images.parent / "kernel/boot").mkdir(parents=True)
        (images.parent / "kernel/boot/vmlinuz").write_bytes(b"")
        out = self.link(images, boot={"kernelPath": "/boot/vmlinuz"})
        assert (out / "kernel-boot/vmlinuz").resolve() == images.parent / "kernel/boot/vmlinuz"


class TestAgentStore:
    def test_before_the_agent_told(self):
        assert (
            encode(guest.AGENT_INFO, AgentStore().summary())
            == '{"os":{},"timezone":", 0","fsInfo":{"disks":null}}'
        )

    def test_summaries_are_short_and_lists_are_whole(self):
        store = AgentStore(
            version="8",
            users=[guest.USER.make(userName=f"u{n}") for n in range(12)],
            filesystems=[guest.FILESYSTEM.make(diskName=f"d{n}") for n in range(12)],
            timezone=("CET", 3600),
        )
        summary = store.summary()
        assert (len(summary["userList"]), len(summary["fsInfo"]["disks"])) == (10, 10)
        assert summary["timezone"] == "CET, 3600"
        assert len(store.users) == 12


class TestInstance:
    @pytest.mark.parametrize("name", [None, "", "..", ".", "a/b", "/etc/passwd", "a\0b"])
    @pytest.mark.parametrize(
        "path",
        ["spec.volumes", "spec.networks", "spec.domain.devices.disks", "spec.domain.devices.interfaces"],
    )
    def test_names_that_find_nothing_or_too_much(self, path, name):
        made = [{"name": "good"}, {} if name is None else {"name": name}]
        for part in reversed(path.split(".")):
            made = {part: made}
        with pytest.raises(DomainFormatError) as caught:
            Instance.read(json.dumps(made).encode())
        assert caught.value.path == f"{path}[1].name"
        assert "\n" not in str(caught.value)
