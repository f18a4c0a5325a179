"""``domain_json``: libvirt's XML as the JSON that a launcher sends, bytes included."""

from __future__ import annotations

import json

from kvnode.virt.domain_json import encode_domain, make_metadata, new_domain, read_spec, split_name
from tests.reference.common import Case, Outcome

# Go's marshaller escapes these in strings; the cases' own file does not.
_ESCAPES = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}


def run(case: Case) -> Outcome:
    """Read the XML, give it the recorded state and the VMI's UID, and write it."""
    row = case.data
    spec = read_spec(row["domain_xml"])
    namespace, name = split_name(spec["Name"])
    domain = new_domain(
        namespace,
        name,
        spec=spec,
        status=row["domain"]["Status"],
        metadata=make_metadata(UID=row["vmi"]["metadata"]["uid"]),
    )
    want = json.dumps(row["launcher_domain"], ensure_ascii=False, separators=(",", ":"))
    return Outcome.of(want.translate(_ESCAPES), encode_domain(domain))
