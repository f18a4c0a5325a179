"""What libvirt says of this node's hypervisor: domain capabilities and CPU features.

The files are those that the reference's init container leaves in ``/var/lib/kubevirt-node-labeller``
(``node-labeller/cpu_plugin.go``, ``model.go``).
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from kvnode.agent.errors import AgentError

DOMAIN_CAPABILITIES = "virsh_domcapabilities.xml"
SUPPORTED_FEATURES = "supported_features.xml"
CROSS_ARCHITECTURE = {
    "arm64": "virsh_domcapabilities_aarch64.xml",
    "amd64": "virsh_domcapabilities_x86_64.xml",
}
"""Files that are there when QEMU can emulate the architecture."""

YES, NO = "yes", "no"
HOST_MODEL = "host-model"


@dataclass(frozen=True, slots=True)
class Traits:
    """How an architecture names what its CPUs can do."""

    has_features: bool = False
    """Whether libvirt can compute the features that all CPUs of the node have."""
    has_host_model: bool = False
    has_named_models: bool = False
    default_vendor: str = ""
    feature_policies: tuple[str, ...] = ("require",)
    """Policies of features that the node has; "" where libvirt gives none."""


TRAITS = {
    "amd64": Traits(has_features=True, has_host_model=True, has_named_models=True),
    "s390x": Traits(
        has_features=True,
        has_host_model=True,
        has_named_models=True,
        default_vendor="IBM",
        feature_policies=("require", ""),
    ),
}
"""Of another architecture nothing is known but its machine types."""


@dataclass(slots=True)
class Hypervisor:
    """What a node's hypervisor can do."""

    architecture: str
    features: list[str] = field(default_factory=list)
    usable_models: list[str] = field(default_factory=list)
    known_models: list[str] = field(default_factory=list)
    host_model: str = ""
    host_model_features: list[str] = field(default_factory=list)
    vendor: str = ""
    launch_security: list[str] = field(default_factory=list)
    """Labels' names of the kinds of confidential guests (``sev``, ``sev-es``, ``sev-snp``, ``s390-pv``, ``tdx``)."""
    emulated: list[str] = field(default_factory=list)
    """Other architectures that QEMU emulates here."""

    @property
    def traits(self) -> Traits:
        """How its architecture names things."""
        return TRAITS.get(self.architecture, Traits())


def read_hypervisor(architecture: str, files: dict[str, str]) -> Hypervisor:
    """Read the node's capability files, by name.

    Raises:
        AgentError: one that this architecture needs is missing, is no XML, or lacks what labels are made of.
    """
    found = Hypervisor(architecture)
    if found.traits.has_features:
        root = _parse(files, SUPPORTED_FEATURES)
        found.features = _features(root, found.traits.feature_policies)
    root = _parse(files, DOMAIN_CAPABILITIES)
    for mode in root.iterfind("cpu/mode"):
        if mode.get("name") == HOST_MODEL:
            if not found.traits.has_host_model:
                continue
            _read_host_model(found, mode)
        _read_models(found, mode)
    found.launch_security = list(_launch_security(root))
    found.emulated = [
        other
        for other, name in CROSS_ARCHITECTURE.items()
        if other != architecture and _is_xml(files.get(name))
    ]
    return found


def _parse(files: dict[str, str], name: str) -> ET.Element:
    if name not in files:
        raise AgentError(f"{name}: is missing; the node's capabilities are read from it")
    try:
        return _first_element(files[name])
    except (ET.ParseError, ValueError) as error:
        raise AgentError(f"{name}: is not well-formed XML: {error}") from None


def _first_element(text: str) -> ET.Element:
    """The first element of a command's output; what stands before and behind it is passed over."""
    root: ET.Element | None = None
    for event, element in _events(text[max(text.find("<"), 0) :]):
        if event == "end" and element is root and root is not None:
            return root
        root = element if root is None else root
    raise ValueError("there is no whole element")


def _events(text: str) -> Iterator[tuple[str, ET.Element]]:
    parser: ET.XMLPullParser[Any] = ET.XMLPullParser(("start", "end"))
    parser.feed(text)
    for found in parser.read_events():
        event, element = found[0], found[-1]
        if isinstance(event, str) and isinstance(element, ET.Element):
            yield event, element


def _is_xml(text: str | None) -> bool:
    try:
        return text is not None and _first_element(text) is not None
    except (ET.ParseError, ValueError):
        return False


def _features(element: ET.Element, policies: tuple[str, ...]) -> list[str]:
    found = element.iterfind("feature")
    return [one.get("name", "") for one in found if one.get("policy", "") in policies]


def _read_host_model(found: Hypervisor, mode: ET.Element) -> None:
    vendor = mode.find("vendor")
    found.vendor = (_text(vendor) if vendor is not None else "") or found.traits.default_vendor
    model = mode.find("model")
    if model is None:
        raise AgentError(f"{DOMAIN_CAPABILITIES}: cpu mode host-model must name a model")
    found.host_model = _text(model)
    found.host_model_features = _features(mode, ("require",))


def _read_models(found: Hypervisor, mode: ET.Element) -> None:
    for model in mode.iterfind("model"):
        name, usable = _text(model).strip(), model.get("usable", "")
        if name and usable:
            found.known_models.append(name)
            if usable != NO:
                found.usable_models.append(name)


def _launch_security(root: ET.Element) -> Iterator[str]:
    sev = root.find("features/sev")
    if sev is not None and sev.get("supported") == YES:
        yield "sev"
        if _number(sev, "maxESGuests") > 0:
            yield "sev-es"
            kinds = root.find("features/launchSecurity")
            if kinds is not None and kinds.get("supported") == YES:
                values = [_text(value) for value in kinds.iterfind("enum/value")]
                if "sev-snp" in values:
                    yield "sev-snp"
    for name in ("s390-pv", "tdx"):
        kind = root.find(f"features/{name}")
        if kind is not None and kind.get("supported") == YES:
            yield name


def _number(parent: ET.Element, name: str) -> int:
    child = parent.find(name)
    text = _text(child).strip() if child is not None else ""
    if not text:
        return 0
    if not (text.isascii() and text.isdigit()):
        raise AgentError(
            f"{DOMAIN_CAPABILITIES}: features/{parent.tag}/{name} must be a whole number, not {text}"
        )
    return int(text)


def _text(element: ET.Element) -> str:
    """The element's own text."""
    return (element.text or "") + "".join(child.tail or "" for child in element)
