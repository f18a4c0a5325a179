"""Interfaces in the status, and networks to set up."""

from __future__ import annotations

from kvnode.agent.interfaces import GUEST_ONLY_LIMIT, interface_statuses
from kvnode.agent.networks import has_unplugged_sriov, networks_to_change, networks_to_start
from tests.agent.build import domain, vmi

MAC = "02:00:00:00:00:01"


class Pod:
    def __init__(self, **addresses):
        self._addresses = addresses

    def pod_addresses(self, _vmi, network):
        return self._addresses.get(network, [])


def one_interface(binding="masquerade", **status):
    return vmi(
        spec={
            "networks": [{"name": "default", "pod": {}}],
            "domain": {"devices": {"interfaces": [{"name": "default", binding: {}}]}},
        },
        status=status,
    )


def with_agent(*told):
    about = domain(Devices={"Interfaces": [{"MAC": {"MAC": MAC}, "Alias": {"Name": "default"}}]})
    about.raw["Status"]["Interfaces"] = list(told)
    return about


def test_without_a_domain_it_stays():
    before = [{"name": "default", "infoSource": "multus-status"}]
    assert interface_statuses(one_interface(interfaces=before), None, Pod()) == before


def test_what_an_ended_guest_had_stays():
    """Not its address behind masquerade, which is all that the domain knows when the pod's is forgotten."""
    before = [{"name": "default", "infoSource": "domain, guest-agent", "ipAddress": "10.244.0.5"}]
    ended = with_agent({"Mac": MAC, "IPs": ["10.0.2.2"], "InterfaceName": "eth0"})
    ended.raw["Status"]["Status"] = "Shutoff"
    assert interface_statuses(one_interface(interfaces=before), ended, Pod()) == before


def test_behind_masquerade_the_pods_addresses_count():
    about = with_agent({"Mac": MAC, "IPs": ["10.0.2.2", "fe80::1"], "InterfaceName": "eth0"})
    (found,) = interface_statuses(one_interface(), about, Pod(default=["10.244.0.5", "fd10::5"]))
    assert found["ipAddress"] == "10.244.0.5"
    assert found["ipAddresses"] == ["10.244.0.5"]  # the guest has no IPv6 that could be reached
    assert found["infoSource"] == "domain, guest-agent"


def test_a_guest_without_pod_addresses_tells_its_own():
    about = with_agent(
        {"Mac": MAC, "IPs": ["192.168.1.5", "rubbish", "fe80::1%eth0"], "InterfaceName": "eth0"}
    )
    (found,) = interface_statuses(one_interface("bridge"), about, Pod())
    assert found["ipAddresses"] == ["192.168.1.5"]


def test_a_guest_cannot_fill_the_status():
    told = [{"Mac": f"02:00:00:00:01:{n:02x}", "IPs": [], "InterfaceName": f"veth{n}"} for n in range(50)]
    found = interface_statuses(one_interface(), with_agent(*told), Pod())
    assert len(found) == 1 + GUEST_ONLY_LIMIT


def test_the_pods_network_comes_first_and_is_not_lost():
    one = one_interface(interfaces=[{"name": "default", "podInterfaceName": "eth0"}])
    about = domain(Devices={"Interfaces": [{"MAC": {"MAC": MAC}, "Alias": {"Name": "net1"}}]})
    found = interface_statuses(one, about, Pod())
    assert [item["name"] for item in found] == ["default", "net1"]
    assert found[0]["podInterfaceName"] == "eth0"


def test_an_sriov_device_is_an_interface():
    one = vmi(spec={"domain": {"devices": {"interfaces": [{"name": "sr", "sriov": {}, "macAddress": MAC}]}}})
    devices = [{"Alias": {"Name": "sriov-sr"}}, {"Alias": {"Name": "gpu-x"}}, {}]
    found = interface_statuses(one, domain(Devices={"HostDevices": devices}), Pod())
    assert found == [{"name": "sr", "mac": MAC, "infoSource": "domain"}]


def test_what_multus_told_is_not_lost():
    before = [
        {"name": "default", "infoSource": "multus-status"},
        {"name": "gone", "infoSource": "multus-status"},
    ]
    found = interface_statuses(one_interface(interfaces=before), domain(), Pod())
    assert found == [{"name": "default", "infoSource": "multus-status"}]


class TestNetworks:
    def changing(self, state, source, binding="bridge"):
        return vmi(
            spec={
                "networks": [{"name": "net1", "multus": {"networkName": "n"}}],
                "domain": {"devices": {"interfaces": [{"name": "net1", binding: {}, "state": state}]}},
            },
            status={"interfaces": [{"name": "net1", "infoSource": source}]},
        )

    def test_absent_ones_are_not_started(self):
        assert networks_to_start(self.changing("absent", "")) == []
        assert [net["name"] for net in networks_to_start(self.changing("", ""))] == ["net1"]

    def test_plugged_when_in_the_pod_alone(self):
        assert [net["name"] for net in networks_to_change(self.changing("", "multus-status"))] == ["net1"]
        assert networks_to_change(self.changing("", "domain, multus-status")) == []

    def test_unplugged_when_out_of_the_domain(self):
        assert [net["name"] for net in networks_to_change(self.changing("absent", "multus-status"))] == [
            "net1"
        ]
        assert networks_to_change(self.changing("absent", "domain")) == []

    def test_sriov_devices_that_are_not_in_the_domain(self):
        assert has_unplugged_sriov(self.changing("", "multus-status", "sriov"))
        assert not has_unplugged_sriov(self.changing("", "domain, multus-status", "sriov"))
        assert not has_unplugged_sriov(self.changing("", "multus-status"))
