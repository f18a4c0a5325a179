"""Rules on networks, interfaces and resource claims."""

from __future__ import annotations

from typing import Any

import pytest

from tests.spec.validation.build import MULTUS, devices, found, interface, merged

INTERFACES = "domain.devices.interfaces"
FIRST = f"{INTERFACES}[0]"
POD = {"name": "default", "pod": {}}


def attached(binding: dict[str, Any], **network: Any) -> dict[str, Any]:
    """One interface of one binding on one network."""
    return {
        **devices(interfaces=[{"name": "default", **binding}]),
        "networks": [{"name": "default", **network}],
    }


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param(attached({"bridge": {}}, pod={}), [], id="bridge"),
        pytest.param(attached({"binding": {"name": "mine"}}, pod={}), [], id="plugin"),
        pytest.param(attached({"sriov": {}}, multus={"networkName": "n"}), [], id="sriov"),
        pytest.param(attached({}, pod={}), [FIRST], id="no binding"),
        pytest.param(attached({"bridge": {}, "masquerade": {}}, pod={}), [FIRST], id="two bindings"),
        pytest.param(
            attached({"masquerade": {}}, multus={"networkName": "n"}), [f"{FIRST}.name"], id="masquerade"
        ),
        pytest.param(
            attached({"passtBinding": {}}, multus={"networkName": "n"}), [f"{FIRST}.name"], id="passt"
        ),
        pytest.param(
            attached({"masquerade": {}, "macAddress": "02:00:00:00:00:00"}, pod={}),
            [f"{FIRST}.macAddress"],
            id="MAC of the bridge",
        ),
        pytest.param(attached({"slirp": {}}, pod={}), [FIRST, f"{FIRST}.slirp"], id="slirp is gone"),
        pytest.param(
            attached({"macvtap": {}, "bridge": {}}, pod={}), [f"{FIRST}.macvtap"], id="macvtap is gone"
        ),
        pytest.param(attached({"bridge": {}}), ["networks[0]"], id="no source"),
        pytest.param(
            attached({"bridge": {}}, pod={}, multus={"networkName": "n"}), ["networks[0]"], id="two sources"
        ),
        pytest.param(attached({"bridge": {}}, multus={"networkName": ""}), ["networks[0]"], id="no name"),
        pytest.param({"networks": [POD, MULTUS]}, ["networks[1].name"], id="network without interface"),
        pytest.param({"networks": []}, [f"{FIRST}.name"] * 2, id="interface without network"),
        pytest.param({"networks": [POD, POD]}, ["interfaces", "networks[1].name"], id="network twice"),
    ],
)
def test_bindings(spec: dict[str, Any], expected: list[str]) -> None:
    assert found(spec) == expected


def test_what_the_cluster_permits() -> None:
    bridge = attached({"bridge": {}}, pod={})
    assert found(bridge, network={"permitBridgeInterfaceOnPodNetwork": False}) == [f"{FIRST}.name"]
    assert found(attached({"passtBinding": {}}, pod={}), off=("PasstBinding",)) == [f"{FIRST}.name"]


def test_an_interface_twice() -> None:
    twice = devices(interfaces=[{"name": "default", "masquerade": {}}] * 2)
    assert found(twice) == [f"{INTERFACES}[1].name"]


def test_one_default_network() -> None:
    def default(name: str) -> dict[str, Any]:
        return {"name": name, "multus": {"networkName": name, "default": True}}

    two = {
        **devices(interfaces=[{"name": "a", "bridge": {}}, {"name": "b", "bridge": {}}]),
        "networks": [default("a"), default("b")],
    }
    assert found(two) == ["networks"]
    with_pod = merged(two, {"networks": [{"name": "a", "pod": {}}, default("b")]})
    assert found(with_pod) == ["networks"]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({"model": "e1000"}, [], id="model"),
        pytest.param({"model": "ne2000"}, ["model"], id="unknown model"),
        pytest.param({"macAddress": "02-00-00-12-34-56"}, [], id="MAC with dashes"),
        pytest.param({"macAddress": "0200.0012.3456"}, [], id="MAC with dots"),
        pytest.param({"macAddress": "02:00:00:12:34"}, ["macAddress"], id="short MAC"),
        pytest.param({"macAddress": "02:00:00:12:34:56:78:9a"}, ["macAddress"], id="long MAC"),
        pytest.param({"macAddress": "02:00-00:12:34:56"}, ["macAddress"], id="mixed MAC"),
        pytest.param({"pciAddress": "0000:81:00.8"}, ["pciAddress"], id="PCI function"),
        pytest.param({"state": "down"}, [], id="down"),
        pytest.param({"state": "asleep"}, ["state"], id="unknown state"),
        pytest.param({"state": "absent"}, ["state", "state"], id="absent, masqueraded, default"),
        pytest.param(
            {"ports": [{"port": 80}, {"port": 53, "protocol": "UDP", "name": "dns"}]}, [], id="ports"
        ),
        pytest.param({"ports": [{"port": 0}]}, ["ports[0].port"], id="port 0"),
        pytest.param({"ports": [{"port": 65536}]}, ["ports[0].port"], id="port 65536"),
        pytest.param({"ports": [{"port": 1, "protocol": "SCTP"}]}, ["ports[0].protocol"], id="protocol"),
        pytest.param(
            {"ports": [{"port": 1, "name": "a"}, {"port": 2, "name": "a"}]},
            ["ports[1].name"],
            id="name twice",
        ),
        pytest.param({"ports": [{"port": 1, "name": "22"}]}, ["ports[0].name"], id="name without letter"),
        pytest.param({"ports": [{"port": 1, "name": "a--b"}]}, ["ports[0].name"], id="name with two dashes"),
        pytest.param({"dhcpOptions": {"ntpServers": ["192.0.2.1"]}}, [], id="time server"),
        pytest.param(
            {"dhcpOptions": {"ntpServers": ["192.0.2.1", "fe80::1"]}},
            ["dhcpOptions.ntpServers[1]"],
            id="time server by IPv6",
        ),
        pytest.param({"portRanges": []}, ["name"], id="port ranges without their gate"),
    ],
)
def test_interface(fields: dict[str, Any], expected: list[str]) -> None:
    assert found(interface(**fields)) == [f"{FIRST}.{field}" for field in expected]


def test_links_of_sriov_have_no_state() -> None:
    spec = attached({"sriov": {}, "state": "up"}, multus={"networkName": "n"})
    assert found(spec) == [f"{FIRST}.state"]


def test_private_dhcp_options_are_reported_on_the_spec() -> None:
    def options(*numbers: int) -> dict[str, Any]:
        return interface(dhcpOptions={"privateOptions": [{"option": n, "value": "x"} for n in numbers]})

    assert found(options(224, 254)) == []
    assert found(options(223)) == ["spec"]
    assert found(options(240, 240)) == ["spec"]


def ports(*ranges: tuple[str, int, int], **fields: Any) -> list[str]:
    spec = interface(portRanges=[{"protocol": p, "start": a, "end": b} for p, a, b in ranges], **fields)
    return [field.removeprefix(f"{FIRST}.") for field in found(spec, gates=("PortRangesSpec",))]


def test_port_ranges() -> None:
    assert ports(("TCP", 1, 10), ("UDP", 5, 20), ("TCP", 11, 12)) == []
    assert ports(("TCP", 1, 10), ("TCP", 10, 20)) == ["portRanges"]
    assert ports(("ICMP", 1, 2), ("TCP", 0, 2), ("TCP", 1, 65536), ("TCP", 3, 2)) == [
        "portRanges[0].protocol",
        "portRanges[1].start",
        "portRanges[2].end",
        "portRanges[3].start",
    ]
    assert ports(*[("TCP", n, n) for n in range(1, 12)]) == ["portRanges"]
    assert ports(("TCP", 1, 2), ports=[{"port": 1}]) == ["name"]


CLAIM = {"name": "c", "resourceClaimName": "claim"}
REQUEST = {"claimName": "c", "requestName": "r"}


@pytest.mark.parametrize(
    ("claims", "expected"),
    [
        pytest.param([CLAIM], [], id="valid"),
        pytest.param([{"name": "", "resourceClaimName": "a"}], ["[0].name"], id="no name"),
        pytest.param([CLAIM, CLAIM], ["[1].name"], id="name twice"),
        pytest.param([{"name": "C", "resourceClaimName": "a"}], ["[0].name"], id="no label"),
        pytest.param([{"name": "c"}], ["[0]"], id="no origin"),
        pytest.param([{**CLAIM, "resourceClaimTemplateName": "t"}], ["[0]"], id="two origins"),
        pytest.param([{"name": "c", "resourceClaimName": "_"}], ["[0].resourceClaimName"], id="claim's name"),
    ],
)
def test_resource_claims(claims: list[Any], expected: list[str]) -> None:
    assert found({"resourceClaims": claims}) == [f"resourceClaims{field}" for field in expected]


@pytest.mark.parametrize(
    ("gpus", "expected"),
    [
        pytest.param([{"name": "g", "deviceName": "nvidia.example/a"}], [], id="plugin device"),
        pytest.param([{"name": "g", **REQUEST}], [], id="claimed device"),
        pytest.param([{"name": "g"}], ["gpus"], id="neither"),
        pytest.param([{"name": "g", "deviceName": "a", **REQUEST}], ["gpus"], id="both"),
        pytest.param([{"name": "g", "deviceName": "a"}, {"name": "h", **REQUEST}], ["gpus"], id="mixed"),
        pytest.param([{"name": "g", "claimName": "c"}], ["gpus[0].requestName"], id="no request"),
        pytest.param([{"name": "g", "requestName": "r"}], ["gpus[0].claimName"], id="no claim"),
        pytest.param([{"name": "g", **REQUEST}, {"name": "h", **REQUEST}], ["gpus[1]"], id="twice"),
    ],
)
def test_claimed_gpus(gpus: list[Any], expected: list[str]) -> None:
    spec = {**devices(gpus=gpus), "resourceClaims": [CLAIM]}
    assert found(spec) == [f"domain.devices.{field}" for field in expected]


def test_claims_of_devices_are_listed_and_used_once() -> None:
    gpu = {"name": "g", **REQUEST}
    assert found(devices(gpus=[gpu])) == ["resourceClaims"]
    both = {**devices(gpus=[gpu], hostDevices=[{"name": "h", **REQUEST}]), "resourceClaims": [CLAIM]}
    assert found(both, gates=("HostDevices",)) == ["domain.devices.hostDevices[0]"]
    assert found({**devices(gpus=[gpu]), "resourceClaims": [CLAIM]}, off=("GPUsWithDRA",)) == [
        "domain.devices.gpus"
    ]


def test_claimed_networks() -> None:
    gates = ("NetworkDevicesWithDRA",)
    spec = {**attached({"sriov": {}}, resourceClaim=REQUEST), "resourceClaims": [CLAIM]}
    assert found(spec) == ["networks"]
    assert found(spec, gates=gates) == []
    assert found({**spec, "resourceClaims": []}, gates=gates) == ["networks[0].resourceClaim.claimName"]
    bridged = {**attached({"bridge": {}}, resourceClaim=REQUEST), "resourceClaims": [CLAIM]}
    assert found(bridged, gates=gates) == [INTERFACES]
    nameless = {**attached({"sriov": {}}, resourceClaim={}), "resourceClaims": [CLAIM]}
    assert found(nameless, gates=gates) == [
        "networks[0].resourceClaim.claimName",
        "networks[0].resourceClaim.requestName",
    ]
