"""Resource claims, out of the files that kubelet puts into a pod."""

from __future__ import annotations

import json

import pytest

from kvnode.launcher.manager.errors import ManagerError
from kvnode.launcher.manager.instance import Instance
from kvnode.launcher.resource_claims import allocated

KNOWN = "metadata.resource.k8s.io/v1alpha1"


def vmi(*claims):
    return Instance.read(json.dumps({"spec": {"resourceClaims": list(claims)}}).encode())


def metadata(*devices, request="gpu", version=KNOWN):
    attributes = [
        {"driver": "d", "attributes": {name: {"string": value} for name, value in device.items()}}
        for device in devices
    ]
    return json.dumps({"apiVersion": version, "requests": [{"name": request, "devices": attributes}]})


@pytest.fixture
def put(tmp_path):
    def write(text, where="resourceclaims/real/gpu", name="d-metadata.json"):
        directory = tmp_path / where
        directory.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(text)
        return tmp_path

    return write


DIRECT = {"name": "c", "resourceClaimName": "real"}
PCI = {"resource.kubernetes.io/pciBusID": "0000:81:00.0"}


def test_a_claim_by_name_and_one_of_a_template(put):
    put(metadata(PCI))
    directory = put(metadata({"mdevUUID": "u", "other": "x"}), "resourceclaimtemplates/t/gpu")
    made = allocated(vmi(DIRECT, {"name": "t", "resourceClaimTemplateName": "x"}), directory)
    assert made == {"c": {"gpu": {"pciBusID": "0000:81:00.0"}}, "t": {"gpu": {"mdevUUID": "u"}}}


def test_later_versions_are_passed_over(put):
    directory = put(
        metadata({"mdevUUID": "new"}, version="metadata.resource.k8s.io/v9") + "\n" + metadata(PCI)
    )
    assert allocated(vmi(DIRECT), directory)["c"]["gpu"] == {"pciBusID": "0000:81:00.0"}


@pytest.mark.parametrize(
    "claim", [{"name": "../x"}, {"name": "c", "resourceClaimName": ".."}, {"name": "none"}, {}]
)
def test_claims_without_files(put, claim):
    put(metadata(PCI), "x/gpu")
    assert allocated(vmi(claim), put(metadata(PCI))) == {}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "cannot be read"),
        ("", "no metadata of a version"),
        ("[]", "no metadata of a version"),
        (metadata(version="v"), "no metadata of a version"),
        (metadata(PCI, PCI), "must have one device, has 2"),
        (metadata(), "must have one device, has 0"),
        (metadata(PCI, request="other"), "do not name request gpu"),
        ("[" * 100_000, "cannot be read"),
    ],
)
def test_files_that_are_not_what_they_should_be(put, text, words):
    with pytest.raises(ManagerError, match=words):
        allocated(vmi(DIRECT), put(text))


def test_two_drivers_of_a_request(put):
    put(metadata(PCI))
    with pytest.raises(ManagerError, match="one driver must have allocated it, not 2"):
        allocated(vmi(DIRECT), put(metadata(PCI), name="e-metadata.json"))
