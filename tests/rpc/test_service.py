"""Services read off the messages' descriptors."""

from __future__ import annotations

import pytest

from kvnode.rpc import cmd_v1_pb2, deviceplugin_v1beta1_pb2
from kvnode.rpc.cmd import CMD, CMD_INFO
from kvnode.rpc.memory import MEMORY
from kvnode.rpc.notify import NOTIFY, NOTIFY_INFO
from kvnode.rpc.service import Service


def test_a_methods_path_and_messages():
    sync = CMD.methods["SyncVirtualMachine"]
    assert sync.path == "/kubevirt.cmd.v1.Cmd/SyncVirtualMachine"
    assert sync.request is cmd_v1_pb2.VMIRequest
    assert sync.response is cmd_v1_pb2.Response
    assert not sync.streams


@pytest.mark.parametrize(
    ("service", "name", "methods"),
    [
        (CMD, "kubevirt.cmd.v1.Cmd", 36),
        (CMD_INFO, "kubevirt.cmd.info.CmdInfo", 1),
        (NOTIFY, "kubevirt.notify.v1.Notify", 2),
        (NOTIFY_INFO, "kubevirt.notify.info.NotifyInfo", 1),
        (MEMORY, "kvnode.memory.v1.Memory", 1),
    ],
)
def test_services(service, name, methods):
    assert service.name == name
    assert len(service.methods) == methods


def test_the_events_path_is_spelled_with_a_small_s():
    assert "/kubevirt.notify.v1.Notify/HandleK8sEvent" in {m.path for m in NOTIFY.methods.values()}


def test_the_kubelets_list_and_watch_streams():
    plugin = Service.of(deviceplugin_v1beta1_pb2.DESCRIPTOR, "DevicePlugin")
    assert [m.name for m in plugin.methods.values() if m.streams] == ["ListAndWatch"]
    assert plugin.methods["Allocate"].path == "/v1beta1.DevicePlugin/Allocate"


def test_a_handler_of_no_method_is_refused():
    async def handler(request, context): ...

    with pytest.raises(ValueError, match="has no method Pong"):
        CMD.bind({"Pong": handler})
