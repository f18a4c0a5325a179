"""Rules on networks, and on how interfaces bind to them (`pkg/network/admitter`)."""

from __future__ import annotations

from kvnode.spec.cause import DUPLICATE, NOT_FOUND, shown
from kvnode.spec.validation.review import Json, Review

_INTERFACES = "domain.devices.interfaces"
_BINDINGS = ("bridge", "masquerade", "sriov", "passtBinding", "binding")
_MASQUERADE_BRIDGE_MAC = "02:00:00:00:00:00"  # pkg/network/link/mac.go:27


def is_pod(network: Json) -> bool:
    """Whether a network is the pod's own."""
    return "pod" in network


def is_multus_default(network: Json) -> bool:
    """Whether a network takes the place of the pod's own."""
    return bool((network.get("multus") or {}).get("default"))


def check_pod_network(review: Review) -> None:
    """One pod network or one default in its place (netsource.go:33)."""
    pods = sum(map(is_pod, review.networks))
    defaults = sum(map(is_multus_default, review.networks))
    if pods > 1:
        review.add(DUPLICATE, "interfaces", f"has {pods} of spec.networks on the pod network: one at most")
    if defaults > 1:
        review.invalid("networks", f"has {defaults} multus networks as default: one at most")
    if pods and defaults:
        review.invalid("networks", "has a pod network and a multus default: keep one of them")


def check_network_sources(review: Review) -> None:
    """Each network has one source (netsource.go:69)."""
    for index, network in enumerate(review.networks):
        sources = [name for name in ("pod", "multus", "resourceClaim") if name in network]
        if len(sources) != 1:
            found = f"has {' and '.join(sources)}" if sources else "has no source"
            review.required(f"networks[{index}]", f"{found}: exactly one of pod, multus, resourceClaim")


def check_multus(review: Review) -> None:
    """A multus network names its definition; the first that does not is reported (netsource.go:102)."""
    for index, network in enumerate(review.networks):
        if "multus" in network and not network["multus"].get("networkName"):
            review.required(f"networks[{index}]", "must have multus.networkName")
            return


def check_states(review: Review) -> None:
    """States of a link: up, down, absent (admit.go:34)."""
    default = next((n for n in review.networks if is_pod(n) or is_multus_default(n)), None)
    for index, interface in enumerate(review.interfaces):
        state = interface.get("state", "")
        path = f"{_INTERFACES}[{index}].state"
        if state not in ("", "up", "down", "absent"):
            review.invalid(path, f"is {shown(state)}: must be up, down or absent")
        if state in ("up", "down") and "sriov" in interface:
            review.invalid(path, f"is {state}: an SR-IOV interface has no such state")
        if state == "absent" and "bridge" not in interface:
            review.invalid(path, "is absent: only a bridge interface can be taken away")
        if state == "absent" and default is not None and default.get("name", "") == interface.get("name", ""):
            review.invalid(path, "is absent: the default network's interface cannot be taken away")


def check_bindings(review: Review) -> None:
    """One binding each, and one that suits the network (binding.go:33-111, passt.go:29)."""
    networks = _by_name(review)
    for index, interface in enumerate(review.interfaces):
        path = f"{_INTERFACES}[{index}]"
        count = sum(name in interface for name in _BINDINGS)
        if count != 1:
            review.invalid(path, f"has {count} bindings: exactly one of {', '.join(_BINDINGS)}")
        pod = is_pod(networks.get(interface.get("name", ""), {}))
        if "masquerade" in interface:
            if not pod:
                review.invalid(f"{path}.name", "is masqueraded, which works on the pod network only")
            if interface.get("macAddress") == _MASQUERADE_BRIDGE_MAC:
                review.invalid(f"{path}.macAddress", "is that of the bridge in the pod: choose another")
        if "bridge" in interface and pod and not review.config.permit_bridge_on_pod_network:
            message = "is a bridge on the pod network, which the cluster does not permit: use masquerade"
            review.invalid(f"{path}.name", message)
        if "passtBinding" in interface:
            if not review.config.gate("PasstBinding"):
                review.invalid(
                    f"{path}.name", "has a passtBinding, which needs the feature gate PasstBinding"
                )
            if not pod:
                review.invalid(f"{path}.name", "has a passtBinding, which works on the pod network only")


def check_discontinued(review: Review) -> None:
    """Bindings that went in v1.3 (discontinued.go:29)."""
    for index, interface in enumerate(review.interfaces):
        for name in ("slirp", "passt", "macvtap"):
            if name in interface:
                hint = "use passtBinding" if name == "passt" else "use masquerade, bridge or a binding plugin"
                review.invalid(f"{_INTERFACES}[{index}].{name}", f"is no longer there: {hint}")


def check_names(review: Review) -> None:
    """Names are unique, and each network has its interface and the other way round (netiface.go:39-105)."""
    network_names = _unique(review, "networks", review.networks)
    interface_names = _unique(review, _INTERFACES, review.interfaces)
    for index, network in enumerate(review.networks):
        name = network.get("name", "")
        if name not in interface_names:
            review.required(f"networks[{index}].name", f"is {shown(name)}: no interface has that name")
    for index, interface in enumerate(review.interfaces):
        name = interface.get("name", "")
        if name not in network_names:
            message = f"is {shown(name)}: must name one of spec.networks"
            review.invalid(f"{_INTERFACES}[{index}].name", message)


def _unique(review: Review, path: str, items: list[Json]) -> set[str]:
    names: set[str] = set()
    for index, item in enumerate(items):
        name = item.get("name", "")
        if name in names:
            review.add(DUPLICATE, f"{path}[{index}].name", f"is {shown(name)} again: names are unique")
        names.add(name)
    return names


def _by_name(review: Review) -> dict[str, Json]:
    return {network.get("name", ""): network for network in review.networks}


def check_claimed_networks(review: Review) -> None:
    """Networks from resource claims (dra.go:38-153)."""
    claimed = [(i, n) for i, n in enumerate(review.networks) if "resourceClaim" in n]
    if not claimed:
        return
    if not review.config.gate("NetworkDevicesWithDRA"):
        message = "has a resourceClaim network, which needs the feature gate NetworkDevicesWithDRA"
        review.invalid("networks", message)
        return
    if any("multus" in network for network in review.networks):
        review.invalid("networks", "has multus and resourceClaim networks: keep to one kind")
        return
    first: dict[tuple[str, str], int] = {}
    for index, network in claimed:
        _check_claimed_network(review, index, network, first)


def _check_claimed_network(
    review: Review, index: int, network: Json, first: dict[tuple[str, str], int]
) -> None:
    name = network.get("name", "")
    interface = next((i for i in review.interfaces if i.get("name", "") == name), None)
    if interface is not None and "sriov" not in interface and "binding" not in interface:
        message = f"must have sriov or a binding plugin on {shown(name)}, a resourceClaim network"
        review.invalid(_INTERFACES, message)
    claim = network["resourceClaim"]
    claim_name, request = claim.get("claimName", ""), claim.get("requestName", "")
    path = f"networks[{index}]"
    if not claim_name:
        review.required(f"{path}.resourceClaim.claimName", "must be given")
    if not request:
        review.required(f"{path}.resourceClaim.requestName", "must be given")
    if not claim_name or not request:
        return
    if claim_name not in {item.get("name") for item in review.spec.get("resourceClaims", [])}:
        message = f"is {shown(claim_name)}: must name one of spec.resourceClaims"
        review.add(NOT_FOUND, f"{path}.resourceClaim.claimName", message)
    if first.setdefault((claim_name, request), index) != index:
        review.add(DUPLICATE, path, "has the claimName and requestName of another network")


RULES = (
    check_pod_network,
    check_network_sources,
    check_multus,
    check_states,
    check_bindings,
    check_discontinued,
    check_names,
    check_claimed_networks,
)
