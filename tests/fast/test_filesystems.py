"""Shared directories."""

from __future__ import annotations

from tests.fast.helpers import canonical, devices, domain, xml


def test_a_shared_directory_is_served_at_its_socket() -> None:
    (fs,) = domain(devices(filesystems=[{"name": "fs0", "virtiofs": {}}])).findall("devices/filesystem")
    assert canonical(fs) == xml(
        """<filesystem type="mount" accessMode="passthrough">
             <driver type="virtiofs" queue="1024"/>
             <source socket="/var/run/kubevirt/virtiofs-containers/fs0.sock"/>
             <target dir="fs0"/>
           </filesystem>"""
    )


def test_others_are_passed_over() -> None:
    assert domain(devices(filesystems=[{"name": "fs0"}])).findall("devices/filesystem") == []
