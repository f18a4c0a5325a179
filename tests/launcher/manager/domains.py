"""A domain, and a host that has it, which do nothing but note what is asked of them."""

from __future__ import annotations

import asyncio
import json

import libvirt

from kvnode.launcher.manager.host import Host
from kvnode.launcher.manager.instance import Instance
from kvnode.launcher.manager.metadata import MetadataCache
from kvnode.launcher.manager.options import ManagerOptions
from kvnode.virt.connection import Connection


class Domain:
    """A domain that notes what is asked of it."""

    def __init__(self, state=libvirt.VIR_DOMAIN_RUNNING, reason=0, features="<acpi/>", fails=None):
        self.calls = []
        self._state = state, reason
        self._xml = f"<domain><features>{features}</features></domain>"
        self._fails = fails or {}

    def state(self):
        return list(self._state)

    def isActive(self):  # noqa: N802
        return True

    def XMLDesc(self, _flags):  # noqa: N802
        return self._xml

    def __getattr__(self, name):
        def call(*arguments):
            self.calls.append((name, *arguments))
            errors = self._fails.get(name)
            if errors:
                raise errors.pop(0)

        return call


class FakeHost(Host):
    """A host with that domain, or none."""

    def __init__(self, domain, **options):
        connection = Connection("", lambda *_: None, lambda: None)
        super().__init__(connection, ManagerOptions("n", "a", **options), MetadataCache())
        self.found = domain

    def lookup(self):
        return self.found


def vmi(**more):
    return Instance.read(
        json.dumps({"metadata": {"namespace": "n", "name": "a", "uid": "u"}, **more}).encode()
    )


def run(domain, body, **options):
    async def whole():
        host = FakeHost(domain, **options)
        try:
            return await body(host)
        finally:
            await host.close()

    return asyncio.run(whole())
