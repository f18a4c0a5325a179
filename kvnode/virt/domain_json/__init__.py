"""A domain as launcher and node agent exchange it: libvirt's XML read into the JSON of KubeVirt's ``Domain``.

Field names, their order and what is written when nothing is set are those of the Go structures
(``pkg/virt-launcher/virtwrap/api/schema.go``), so that the bytes are the reference's. Values are plain
mappings under the Go names; the tables in ``schema/`` say which there are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kvnode.virt.domain_json.errors import DomainFormatError
from kvnode.virt.domain_json.from_xml import read_xml
from kvnode.virt.domain_json.gojson import decode, encode
from kvnode.virt.domain_json.schema.domain import DOMAIN, DOMAIN_SPEC
from kvnode.virt.domain_json.schema.metadata import KUBE_VIRT_METADATA
from kvnode.virt.domain_json.schema.objectmeta import OBJECT_META
from kvnode.virt.domain_json.schema.status import DOMAIN_STATUS

__all__ = [
    "DomainFormatError",
    "decode_domain",
    "encode_domain",
    "make_metadata",
    "make_status",
    "new_domain",
    "read_spec",
    "split_name",
]

#: ``kind`` and ``apiVersion`` of every domain that a launcher sends.
KIND, API_VERSION = "Domain", "1.2.2"


def read_spec(xml: str | bytes) -> dict[str, Any]:
    """Read libvirt's domain XML into a ``Spec``.

    Namespaced parts (``qemu:commandline``) are passed over, as the reference does.

    Raises:
        DomainFormatError: it is no domain XML, or a number in it is none.
    """
    return read_xml(DOMAIN_SPEC, xml, "domain")


def make_status(**fields: Any) -> dict[str, Any]:
    """A ``Status`` with these fields set (``Status``, ``Reason``, ``Interfaces``, ``OSInfo``,
    ``FSFreezeStatus``, ``GuestPanicInfo``, ``PanicCount``); raises TypeError for another.
    """
    return DOMAIN_STATUS.make(**fields)


def make_metadata(**fields: Any) -> dict[str, Any]:
    """KubeVirt's metadata with these fields set (``UID``, ``GracePeriod``, ``Migration``, ``Backup``,
    ``AccessCredential``, ``MemoryDump``); raises TypeError for another.
    """
    return KUBE_VIRT_METADATA.make(**fields)


def new_domain(
    namespace: str,
    name: str,
    *,
    spec: Mapping[str, Any] | None = None,
    status: Mapping[str, Any] | None = None,
    metadata: Mapping[str, Any] | None = None,
    uid: str = "",
    deletion_timestamp: str | None = None,
) -> dict[str, Any]:
    """A domain as a launcher sends it.

    ``metadata`` takes the place of what the XML had: the launcher's own record is the newer one. ``uid`` and
    ``deletion_timestamp`` (RFC 3339) go into ObjectMeta.
    """
    meta = OBJECT_META.make(name=name, namespace=namespace, uid=uid, deletionTimestamp=deletion_timestamp)
    full = dict(spec) if spec is not None else DOMAIN_SPEC.zero()
    if metadata is not None:
        full["Metadata"] = {"KubeVirt": dict(metadata)}
    return DOMAIN.make(
        kind=KIND,
        apiVersion=API_VERSION,
        ObjectMeta=meta,
        Spec=full,
        Status=dict(status) if status is not None else DOMAIN_STATUS.zero(),
    )


def encode_domain(domain: Mapping[str, Any]) -> str:
    """The domain's JSON, byte for byte as the reference's marshaller gives it."""
    return encode(DOMAIN, domain)


def decode_domain(data: bytes | str) -> dict[str, Any]:
    """Read a domain's JSON, as strictly and as leniently as the reference.

    Raises:
        DomainFormatError: it is no JSON, or a value is of the wrong kind.
    """
    return decode(DOMAIN, data)


def split_name(domain: str) -> tuple[str, str]:
    """Namespace and name of the VMI that a libvirt domain is for: parted at the first underscore.

    Raises:
        ValueError: there is none.
    """
    namespace, underscore, name = domain.partition("_")
    if not underscore:
        raise ValueError(f"domain {domain}: the name must be NAMESPACE_NAME")
    return namespace, name
