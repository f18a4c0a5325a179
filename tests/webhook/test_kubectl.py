"""What a user of kubectl reads, with the webhooks in a real API server."""

from __future__ import annotations

import asyncio
import copy
import json
import re
import shutil
from typing import Any

import pytest

from kvnode.controller.manager import Manager
from kvnode.kube.client import PatchType
from kvnode.kube.resources import PODS, VIRTUAL_MACHINE_INSTANCES, VIRTUAL_MACHINES
from tests.cluster.cluster import Cluster
from tests.kube.loops import real_time
from tests.kube.support import background
from tests.webhook.ask import vm
from tests.webhook.test_cluster import in_namespace, installed

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed"),
]

TEMPLATE = "spec.template.spec"
BAD = [
    ({"instancetype": {"name": "u1.small"}}, "spec.instancetype: is not supported"),
    ({"preference": {"name": "fedora"}}, "spec.preference: is not supported"),
    ({"runStrategy": None}, "spec.running: or better spec.runStrategy must be set"),
    ({"running": True}, "spec.running: cannot be there together with runStrategy"),
    ({"runStrategy": "always"}, "spec.runStrategy: is 'always': use one of Always,"),
    ({"template": None}, "spec.template: is required"),
    ({"template": {}}, f"{TEMPLATE}.domain.devices: is required"),
    ({"template": "x"}, "spec.template: must be an object"),
    ({"template": {"spec": {"domain": {}}}}, f"{TEMPLATE}.domain.devices: is required"),
    ({"dataVolumeTemplates": [{"spec": {}}]}, "spec.dataVolumeTemplate[0].name: must be given"),
]
BAD_DOMAINS = [
    ({"cpus": {"cores": 2}}, "cpus: is no field of this API: did you mean cpu?"),
    ({"cpu": {"cores": "2"}}, "cpu.cores: must be a whole number"),
    ({"cpu": {"cores": -2}}, "cpu.cores: must be a whole number"),
    ({"memory": {"guest": "64 MB"}}, "memory.guest: '64 MB' is not a quantity"),
    ({"resources": {"requests": {"cpu": "-1"}}}, "resources.requests.cpu: is -1: must not be negative"),
    ({"devices": {"disks": [{"name": "root"}]}}, "devices.disks[0].name: is 'root': must name one of"),
]


async def kubectl(cluster: Cluster, *arguments: str, document: Any = None) -> tuple[int, str]:
    """Exit code, and all that was printed."""
    process = await asyncio.create_subprocess_exec(
        "kubectl",
        f"--kubeconfig={cluster.kubeconfig}",
        f"--cache-dir={cluster.plan.root / 'kubectl-cache'}",
        *arguments,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    out, _ = await process.communicate(None if document is None else json.dumps(document).encode())
    assert process.returncode is not None
    return process.returncode, out.decode()


def changed(spec: dict[str, Any], domain: dict[str, Any]) -> dict[str, Any]:
    made = vm()
    made["spec"] = {name: value for name, value in (made["spec"] | spec).items() if value is not None}
    if domain:
        made["spec"]["template"]["spec"]["domain"] |= domain
    return made


@real_time
async def test_a_bad_machine_has_its_field_named_in_one_line(control_plane: Cluster, namespace: str) -> None:
    cases = [(changed(spec, {}), told) for spec, told in BAD]
    cases += [(changed({}, domain), f"{TEMPLATE}.domain.{told}") for domain, told in BAD_DOMAINS]
    apply = ("apply", "--validate=false", "-n", namespace, "-f", "-")
    async with installed(control_plane, namespace):
        for bad, told in cases:
            code, out = await kubectl(control_plane, *apply, document=in_namespace(bad, namespace))
            assert (code, out.count("\n")) == (1, 1), out
            assert out.startswith('The VirtualMachine "testvm" is invalid: spec.'), out
            # What the CRD's schema finds, the API server says in its own words.
            assert told in out or re.search(rf"{re.escape(told.split(':')[0])}: .*(value|must)", out), out
        code, out = await kubectl(control_plane, *apply, document=in_namespace(vm(), namespace))
        assert (code, out) == (0, "virtualmachine.kubevirt.io/testvm created\n")
        code, out = await kubectl(control_plane, *apply, document=in_namespace(vm(), namespace))
        assert code == 0, out
        await kubectl(control_plane, "delete", "vm", "testvm", "-n", namespace, "--wait=false")


def named(namespace: str, **metadata: str) -> dict[str, Any]:
    made = copy.deepcopy(vm())
    made["metadata"] = {"namespace": namespace, **metadata}
    return made


@real_time
async def test_machines_of_every_name_get_a_pod(control_plane: Cluster, namespace: str) -> None:
    names = [
        "plain",
        "virt-launcher-plain",
        "a.b.c",
        "1.2.3.4",
        "n" * 62 + "-b",
        "n" * 64,
        ".".join(letter * 62 for letter in "wxyz"),
    ]
    async with (
        installed(control_plane, namespace) as it,
        background(Manager(it.controller, namespace=namespace).run()),
    ):
        for name in names:
            await it.user.create(VIRTUAL_MACHINES, named(namespace, name=name))
        generated = await it.user.create(VIRTUAL_MACHINES, named(namespace, generateName="made-"))
        names.append(generated["metadata"]["name"])
        owners: dict[str, str] = {}
        while set(owners) != set(names):
            await asyncio.sleep(0.1)
            pods = await it.user.list_all(PODS, namespace=namespace)
            owners = {one["metadata"]["ownerReferences"][0]["name"]: one["metadata"]["uid"] for one in pods}
        assert len(pods) == len(names)
        await it.user.delete(VIRTUAL_MACHINES, "plain", namespace)
        while "plain" in owners:
            await asyncio.sleep(0.1)
            pods = await it.user.list_all(PODS, namespace=namespace)
            owners = {one["metadata"]["ownerReferences"][0]["name"]: one["metadata"]["uid"] for one in pods}
        assert set(owners) == set(names) - {"plain"}


@real_time
async def test_what_only_the_instance_is_refused_for_is_told_of_the_machine(
    control_plane: Cluster, namespace: str
) -> None:
    async with (
        installed(control_plane, namespace) as it,
        background(Manager(it.controller, namespace=namespace).run()),
    ):
        made = in_namespace(vm(), namespace)
        del made["spec"]["template"]["spec"]["domain"]["memory"]
        await it.user.create(VIRTUAL_MACHINES, made)
        conditions: list[Any] = []
        while not [one for one in conditions if one["type"] == "Failure"]:
            await asyncio.sleep(0.1)
            found = await it.user.get(VIRTUAL_MACHINES, "testvm", namespace)
            conditions = found.get("status", {}).get("conditions") or []
        (failure,) = [one for one in conditions if one["type"] == "Failure"]
        assert failure["reason"] == "FailedCreate"
        assert "spec.domain.memory.guest" in failure["message"]
        patch = {"spec": {"template": {"spec": {"domain": {"memory": {"guest": "64Mi"}}}}}}
        await it.user.patch(VIRTUAL_MACHINES, "testvm", namespace, patch, PatchType.MERGE)
        while not await it.user.list_all(VIRTUAL_MACHINE_INSTANCES, namespace=namespace):
            await asyncio.sleep(0.1)


@real_time
async def test_old_and_new_versions_are_looked_at_alike(control_plane: Cluster, namespace: str) -> None:
    old = {**in_namespace(vm(), namespace), "apiVersion": "kubevirt.io/v1alpha3"}
    bad = copy.deepcopy(old)
    bad["spec"]["runStrategy"] = "Sometimes"
    async with installed(control_plane, namespace) as it:
        code, out = await kubectl(control_plane, "apply", "-f", "-", document=bad)
        assert code == 1
        assert "spec.runStrategy: is 'Sometimes'" in out
        code, out = await kubectl(control_plane, "apply", "-f", "-", document=old)
        assert code == 0, out
        made = await it.user.get(VIRTUAL_MACHINES, "testvm", namespace)
        assert made["spec"]["template"]["spec"]["domain"]["firmware"]["uuid"]
        await it.user.delete(VIRTUAL_MACHINES, "testvm", namespace)
