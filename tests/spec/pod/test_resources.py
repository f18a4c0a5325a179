"""Memory, disk space and devices that compute requests."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvnode.api.errors import FieldError
from kvnode.api.quantity import Quantity
from kvnode.spec.overhead import memory_overhead
from kvnode.spec.pod import LauncherSettings, Surroundings
from tests.spec.pod.helpers import GIB, MIB, compute, gates, instance

ONE_CPU = {"cores": 1, "sockets": 1, "threads": 1}


def memory(
    vmi: dict[str, Any], config: dict[str, Any] | None = None, **arguments: Any
) -> tuple[int, int | None]:
    """Request and limit in bytes."""
    resources = compute(vmi, config, **arguments)["resources"]
    limit = resources["limits"].get("memory")
    return Quantity(resources["requests"]["memory"]).value, None if limit is None else Quantity(limit).value


# --- situations that users reported -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("safe", "requested", "overhead"),
    [
        (False, {}, 281018368),
        (False, {"requests": {"memory": "64Gi"}}, 281018368 + 134217728),
        (True, {}, 281018368 + 134217728),
    ],
)
def test_page_tables_of_a_large_guest(safe: bool, requested: dict[str, Any], overhead: int) -> None:
    """They are counted for the request alone, unless asked for."""
    vmi = instance(cpu=ONE_CPU, memory={"guest": "64Gi"}, resources=requested)
    settings = LauncherSettings(guest_page_tables=safe)
    assert memory(vmi, settings=settings) == (64 * GIB + overhead, None)


@pytest.mark.parametrize(("requests", "extra"), [({}, 0), ({"memory": "4Gi"}, 8 * MIB + 1)])
def test_dedicated_cpus_make_the_pod_guaranteed(requests: dict[str, str], extra: int) -> None:
    cpu = {"cores": 4, "dedicatedCpuPlacement": True}
    vmi = instance(cpu=cpu, memory={"guest": "4Gi"}, resources={"requests": requests})
    resources = compute(vmi)["resources"]
    assert resources["requests"]["cpu"] == resources["limits"]["cpu"] == "4"
    assert memory(vmi) == (4294967296 + 411041792 + extra,) * 2


@pytest.mark.parametrize("overcommit", [100, 130, 150])
def test_hugepages_are_never_overcommitted(overcommit: int) -> None:
    """The guest needs every page, and a part of it is no multiple of a page."""
    vmi = instance(cpu=ONE_CPU, memory={"guest": "3Gi", "hugepages": {"pageSize": "2Mi"}})
    resources = compute(vmi, gates(memoryOvercommit=overcommit))["resources"]
    assert resources["requests"]["hugepages-2Mi"] == resources["limits"]["hugepages-2Mi"] == "3Gi"
    assert resources["requests"]["memory"] == "268Mi"
    assert "memory" not in resources["limits"]


# --- memory -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("overcommit", "base"), [(100, 2 * GIB), (150, 2 * GIB * 100 // 150), (200, GIB)])
def test_guest_memory_is_requested_less_what_is_overcommitted(overcommit: int, base: int) -> None:
    vmi = instance(cpu=ONE_CPU, memory={"guest": "2Gi"})
    assert memory(vmi, gates(memoryOvercommit=overcommit)) == (base + 268 * MIB, None)


def test_a_limit_is_requested_where_nothing_else_is() -> None:
    vmi = instance(cpu=ONE_CPU, memory={"guest": "1Gi"}, resources={"limits": {"memory": "2Gi"}})
    assert memory(vmi) == (2 * GIB + 268 * MIB,) * 2


def test_overhead_that_is_not_to_be_requested_still_raises_the_limit() -> None:
    resources = {
        "requests": {"memory": "1000k"},
        "limits": {"memory": "2000k"},
        "overcommitGuestOverhead": True,
    }
    vmi = instance(cpu=ONE_CPU, resources=resources)
    assert memory(vmi) == (1000 * 1000, 2000 * 1000 + 268 * MIB + 1953)


def test_what_exceeds_the_guest_stays_ordinary_memory() -> None:
    vmi = instance(
        cpu=ONE_CPU,
        memory={"guest": "2Gi", "hugepages": {"pageSize": "1Gi"}},
        resources={"requests": {"memory": "3Gi"}, "limits": {"memory": "4Gi"}},
    )
    overhead = memory_overhead(vmi, "amd64")
    resources = compute(vmi)["resources"]
    assert resources["requests"]["hugepages-1Gi"] == resources["limits"]["hugepages-1Gi"] == "2Gi"
    assert memory(vmi) == (GIB + overhead, 2 * GIB + overhead)


def test_a_request_below_the_guest_is_all_that_comes_in_hugepages() -> None:
    vmi = instance(
        memory={"guest": "2Gi", "hugepages": {"pageSize": "2Mi"}}, resources={"requests": {"memory": "1Gi"}}
    )
    assert compute(vmi)["resources"]["requests"]["hugepages-2Mi"] == "1Gi"


def test_one_hugepage_where_no_memory_is_named() -> None:
    vmi = instance(memory={"hugepages": {"pageSize": "1Gi"}})
    assert compute(vmi)["resources"]["requests"]["hugepages-1Gi"] == "1Gi"


def test_amounts_keep_their_family_of_units() -> None:
    requests = {"memory": "2048M"}
    assert compute(instance(resources={"requests": requests}))["resources"]["requests"]["memory"].isdigit()
    assert compute(instance(memory={"guest": "2Gi"}))["resources"]["requests"]["memory"] == "2316Mi"


@pytest.mark.parametrize(("ratio", "limit"), [(1.0, 1292 * MIB), (2.0, 2584 * MIB), (1.5, 1938 * MIB)])
def test_a_quota_of_memory_limits(ratio: float, limit: int) -> None:
    vmi = instance(cpu=ONE_CPU, memory={"guest": "1Gi"})
    surroundings = Surroundings(auto_memory_limit_ratio=ratio)
    assert memory(vmi, surroundings=surroundings) == (GIB + 268 * MIB, limit)


def test_a_quota_leaves_a_limit_alone() -> None:
    vmi = instance(cpu=ONE_CPU, resources={"limits": {"memory": "1Gi"}})
    surroundings = Surroundings(auto_memory_limit_ratio=9.0)
    assert memory(vmi, surroundings=surroundings) == memory(vmi)


@given(st.integers(1, 2**40), st.sampled_from(["", "k", "Ki"]))
def test_the_overhead_is_on_top_to_the_byte(count: int, suffix: str) -> None:
    vmi = instance(resources={"requests": {"memory": f"{count}{suffix}"}})
    assert memory(vmi) == (Quantity(f"{count}{suffix}").value + memory_overhead(vmi, "amd64"), None)


# --- disk space -------------------------------------------------------------------------------------


def test_ephemeral_storage_is_added() -> None:
    own = {"requests": {"ephemeral-storage": "1G"}, "limits": {"ephemeral-storage": "2G"}}
    resources = compute(instance(resources=own))["resources"]
    assert resources["requests"]["ephemeral-storage"] == "1050M"
    assert resources["limits"]["ephemeral-storage"] == "2050M"
    plain = compute(instance())["resources"]
    assert plain["requests"]["ephemeral-storage"] == "50M"
    assert "ephemeral-storage" not in plain["limits"]


# --- devices ----------------------------------------------------------------------------------------

PERMITTED = {
    "permittedHostDevices": {"pciHostDevices": [{"resourceName": "v/a"}], "usb": [{"resourceName": "v/u"}]}
}


def devices(vmi: dict[str, Any], config: dict[str, Any] | None = None, **arguments: Any) -> dict[str, str]:
    limits: dict[str, str] = compute(vmi, config, **arguments)["resources"]["limits"]
    return limits


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({}, {"tun", "kvm"}),
        ({"autoattachPodInterface": False}, {"kvm"}),
        ({"autoattachPodInterface": False, "interfaces": [{"name": "a"}]}, {"tun", "vhost-net", "kvm"}),
        ({"interfaces": [{"name": "a", "model": "e1000"}]}, {"tun", "kvm"}),
        ({"autoattachVSOCK": True}, {"tun", "kvm", "vhost-vsock"}),
    ],
)
def test_devices_of_the_node(given: dict[str, Any], wanted: set[str]) -> None:
    assert devices(instance(devices=given)) == {f"devices.kubevirt.io/{name}": "1" for name in wanted}


def test_emulation_needs_neither_kvm_nor_vhost() -> None:
    vmi = instance(devices={"interfaces": [{"name": "a"}]})
    assert devices(vmi, gates(useEmulation=True)) == {"devices.kubevirt.io/tun": "1"}


def test_host_devices_are_counted() -> None:
    vmi = instance(
        devices={
            "gpus": [{"name": "g", "deviceName": "v/a"}, {"name": "h", "deviceName": "v/a"}],
            "hostDevices": [{"name": "u", "deviceName": "v/u"}],
        }
    )
    for kind in ("requests", "limits"):
        amounts = compute(vmi, PERMITTED)["resources"][kind]
        assert (amounts["v/a"], amounts["v/u"]) == ("2", "1")


def test_what_the_vm_asks_for_itself_wins() -> None:
    vmi = instance(
        devices={"gpus": [{"name": "g", "deviceName": "v/a"}]}, resources={"requests": {"v/a": "7"}}
    )
    resources = compute(vmi)["resources"]
    assert (resources["requests"]["v/a"], resources["limits"]["v/a"]) == ("7", "1")


def test_a_device_must_be_permitted() -> None:
    vmi = instance(
        devices={"hostDevices": [{"name": "ok", "deviceName": "v/u"}, {"name": "x", "deviceName": "v/x"}]}
    )
    with pytest.raises(FieldError, match="'v/x' is not among the permittedHostDevices") as caught:
        compute(vmi, PERMITTED)
    assert caught.value.field == "spec.domain.devices.hostDevices[1].deviceName"
    assert devices(vmi)["v/x"] == "1", "without the section, nothing is refused"


def test_claims_of_dynamic_allocation() -> None:
    vmi = instance(
        devices={"gpus": [{"name": "g", "claimName": "c", "requestName": "r"}]},
        resourceClaims=[{"name": "c", "resourceClaimName": "real"}],
    )
    assert compute(vmi, PERMITTED)["resources"]["claims"] == [{"name": "c", "request": "r"}]
    with pytest.raises(FieldError):
        compute(vmi, {**PERMITTED, **gates(off=("GPUsWithDRA",))})


@pytest.mark.parametrize(
    ("security", "device"), [({"sev": {}}, "sev"), ({"snp": {}}, "sev"), ({"tdx": {}}, "tdx")]
)
def test_confidential_guests(security: dict[str, Any], device: str) -> None:
    assert devices(instance(launchSecurity=security))[f"devices.kubevirt.io/{device}"] == "1"


def test_reservations_need_the_helper() -> None:
    vmi = instance(devices={"disks": [{"name": "d", "lun": {"reservation": True}}]})
    assert devices(vmi)["devices.kubevirt.io/pr-helper"] == "1"


def test_networks_bring_resources_where_nothing_injects_them() -> None:
    networks = [{"name": "a", "multus": {"networkName": "n"}}, {"name": "b", "multus": {"networkName": "m"}}]
    vmi = instance(networks=networks)
    surroundings = Surroundings(network_resources={"a": "v/nic"})
    off = gates(off=("ExternalNetResourceInjection",))
    assert devices(vmi, off, surroundings=surroundings)["v/nic"] == "1"
    assert "v/nic" not in devices(vmi, surroundings=surroundings)
