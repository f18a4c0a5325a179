"""Volumes of the pod, and where compute finds them."""

from __future__ import annotations

from typing import Any

import pytest

from kvnode.api.errors import FieldError
from kvnode.spec.pod import Claim, ClaimNotFoundError, Surroundings, claim_names
from tests.spec.pod.helpers import compute, gates, instance, named, pod

PRIVATE = "/var/run/kubevirt-private"


def mounts(vmi: dict[str, Any], volume: str, **arguments: Any) -> list[dict[str, Any]]:
    """Where compute has a volume."""
    return [m for m in compute(vmi, **arguments)["volumeMounts"] if m["name"] == volume]


def volume(vmi: dict[str, Any], name: str, **arguments: Any) -> dict[str, Any]:
    return named(pod(vmi, **arguments)["spec"]["volumes"], name)


def names(vmi: dict[str, Any], **arguments: Any) -> set[str]:
    return {volume["name"] for volume in pod(vmi, **arguments)["spec"]["volumes"]}


# --- claims -----------------------------------------------------------------------------------------

ON_CLAIMS = [
    {"persistentVolumeClaim": {"claimName": "c"}},
    {"dataVolume": {"name": "c"}},
    {"ephemeral": {"persistentVolumeClaim": {"claimName": "c"}}},
]


@pytest.mark.parametrize("source", ON_CLAIMS)
def test_a_block_device_and_a_file_system(source: dict[str, Any]) -> None:
    vmi = instance(volumes=[{"name": "d", **source}])
    as_block = compute(vmi, pvcs={"c": True})
    assert as_block["volumeDevices"] == [{"name": "d", "devicePath": "/dev/d"}]
    assert "d" not in {mount["name"] for mount in as_block["volumeMounts"]}
    for claims in ({"c": False}, {"c": Claim(block=False)}, None):
        assert mounts(vmi, "d", pvcs=claims) == [{"name": "d", "mountPath": f"{PRIVATE}/vmi-disks/d"}]
        assert volume(vmi, "d", pvcs=claims) == {"name": "d", "persistentVolumeClaim": {"claimName": "c"}}


@pytest.mark.parametrize(
    ("source", "field"),
    [
        (ON_CLAIMS[0], "persistentVolumeClaim.claimName"),
        (ON_CLAIMS[1], "dataVolume.name"),
        (ON_CLAIMS[2], "ephemeral.persistentVolumeClaim.claimName"),
    ],
)
def test_a_claim_must_be_there(source: dict[str, Any], field: str) -> None:
    with pytest.raises(ClaimNotFoundError, match="no PersistentVolumeClaim 'c'") as caught:
        pod(instance(volumes=[{"name": "d", **source}]), pvcs={"other": False})
    assert caught.value.field == f"spec.volumes[0].{field}"
    assert caught.value.claim == "c"


def test_a_claim_may_be_read_only() -> None:
    vmi = instance(volumes=[{"name": "d", "persistentVolumeClaim": {"claimName": "c", "readOnly": True}}])
    assert volume(vmi, "d")["persistentVolumeClaim"] == {"claimName": "c", "readOnly": True}


def test_shared_file_systems_are_told_to_the_launcher() -> None:
    vmi = instance(volumes=[{"name": n, "persistentVolumeClaim": {"claimName": n}} for n in "abc"])
    claims = {
        "a": Claim(block=False, shared=True),
        "b": Claim(block=False),
        "c": Claim(block=False, shared=True),
    }
    paths = named(compute(vmi, pvcs=claims)["env"], "SHARED_FILESYSTEM_PATHS")["value"]
    assert paths == f"{PRIVATE}/vmi-disks/a:{PRIVATE}/vmi-disks/c"


@pytest.mark.parametrize(
    ("source", "status"),
    [
        ({"persistentVolumeClaim": {"claimName": "c", "hotpluggable": True}}, {}),
        ({"dataVolume": {"name": "c", "hotpluggable": True}}, {}),
        ({"dataVolume": {"name": "c"}}, {"volumeStatus": [{"name": "d", "hotplugVolume": {}}]}),
    ],
)
def test_hotplugged_volumes_are_left_to_a_pod_of_their_own(
    source: dict[str, Any], status: dict[str, Any]
) -> None:
    vmi = instance(volumes=[{"name": "d", **source}], status=status)
    assert "d" not in names(vmi, pvcs={})


def test_claims_of_a_vm() -> None:
    volumes = [{"name": str(i), **source} for i, source in enumerate(ON_CLAIMS)]
    assert claim_names(instance(volumes=[*volumes, {"name": "e", "emptyDisk": {"capacity": "1"}}])) == ["c"]


# --- other sources ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "directory"),
    [("/data/d.img", "/data"), ("/d.img", "/"), ("//a//b/d.img", "/a/b"), ("/a/../b/d.img", "/b")],
)
def test_a_host_disk_is_its_directory(path: str, directory: str) -> None:
    vmi = instance(volumes=[{"name": "d", "hostDisk": {"path": path, "type": "DiskOrCreate"}}])
    assert volume(vmi, "d")["hostPath"] == {"path": directory, "type": "DirectoryOrCreate"}
    assert mounts(vmi, "d") == [{"name": "d", "mountPath": f"{PRIVATE}/vmi-disks/d"}]


@pytest.mark.parametrize(
    ("source", "made", "directory"),
    [
        (
            {"secret": {"secretName": "s", "optional": True}},
            {"secret": {"secretName": "s", "optional": True}},
            "secret",
        ),
        ({"configMap": {"name": "m", "volumeLabel": "X"}}, {"configMap": {"name": "m"}}, "config-map"),
        (
            {"downwardAPI": {"fields": [{"path": "l", "fieldRef": {"fieldPath": "metadata.labels"}}]}},
            {"downwardAPI": {"items": [{"path": "l", "fieldRef": {"fieldPath": "metadata.labels"}}]}},
            "downwardapi",
        ),
    ],
)
def test_configuration_is_mounted_where_a_disk_shows_it(
    source: dict[str, Any], made: dict[str, Any], directory: str
) -> None:
    unused = instance(volumes=[{"name": "v", **source}])
    assert volume(unused, "v") == {"name": "v", **made}
    assert mounts(unused, "v") == []
    used = instance(volumes=[{"name": "v", **source}], devices={"disks": [{"name": "v"}]})
    assert mounts(used, "v") == [{"name": "v", "mountPath": f"{PRIVATE}/{directory}/v", "readOnly": True}]


@pytest.mark.parametrize("kind", ["cloudInitNoCloud", "cloudInitConfigDrive"])
def test_cloud_init_secrets_in_either_spelling(kind: str) -> None:
    vmi = instance(
        volumes=[{"name": "ci", kind: {"secretRef": {"name": "u"}, "networkDataSecretRef": {"name": "n"}}}]
    )
    assert volume(vmi, "ci-udata")["secret"] == {"secretName": "u"}
    assert volume(vmi, "ci-ndata")["secret"] == {"secretName": "n"}
    for suffix, keys in (("udata", ["userdata", "userData"]), ("ndata", ["networkdata", "networkData"])):
        found = mounts(vmi, f"ci-{suffix}")
        assert [m["subPath"] for m in found] == keys
        assert [m["mountPath"] for m in found] == [f"{PRIVATE}/secret/ci/{key}" for key in keys]
        assert all(m["readOnly"] for m in found)


@pytest.mark.parametrize(
    ("sysprep", "made"),
    [
        ({"secret": {"name": "s"}}, {"secret": {"secretName": "s"}}),
        ({"configMap": {"name": "m"}}, {"configMap": {"name": "m"}}),
    ],
)
def test_sysprep(sysprep: dict[str, Any], made: dict[str, Any]) -> None:
    vmi = instance(volumes=[{"name": "sp", "sysprep": sysprep}])
    assert volume(vmi, "sp") == {"name": "sp", **made}
    assert mounts(vmi, "sp") == [{"name": "sp", "mountPath": f"{PRIVATE}/sysprep/sp", "readOnly": True}]


def test_access_credentials() -> None:
    credentials = [
        {"sshPublicKey": {"source": {"secret": {"secretName": "keys"}}, "propagationMethod": {}}},
        {"userPassword": {"source": {"secret": {"secretName": "words"}}, "propagationMethod": {}}},
        {"userPassword": {"source": {}, "propagationMethod": {}}},
    ]
    vmi = instance(accessCredentials=credentials)
    assert {n for n in names(vmi) if n.endswith("-access-cred")} == {"keys-access-cred", "words-access-cred"}
    assert mounts(vmi, "keys-access-cred")[0]["mountPath"] == f"{PRIVATE}/secret/keys-access-cred"


def test_downward_metrics_lie_in_memory() -> None:
    vmi = instance(volumes=[{"name": "m", "downwardMetrics": {}}])
    assert volume(vmi, "m")["emptyDir"] == {"medium": "Memory", "sizeLimit": "1Mi"}
    assert mounts(vmi, "m")[0]["mountPath"] == f"{PRIVATE}/downwardmetric-disk"


def test_hugepages_hotplug_and_plugins() -> None:
    vmi = instance(memory={"hugepages": {"pageSize": "2Mi"}}, devices={"disableHotplug": True})
    assert mounts(vmi, "hugepages")[0]["mountPath"] == "/dev/hugepages"
    assert mounts(vmi, "hugetblfs-dir")[0]["mountPath"] == "/dev/hugepages/libvirt/qemu"
    assert mounts(vmi, "hotplug-disks") == []
    (hotplug,) = mounts(instance(), "hotplug-disks")
    assert hotplug["mountPropagation"] == "HostToContainer"
    spec = pod(instance(), gates("Plugins"))["spec"]
    assert (
        named(spec["containers"][0]["volumeMounts"], "kubevirt-plugin-sockets")["mountPath"]
        == "/var/run/kubevirt-plugin"
    )


# --- state that outlives the pod --------------------------------------------------------------------

STORED = Surroundings(backend_storage_claim="state")
TPM = {"devices": {"tpm": {"persistent": True}}}
EFI = {"firmware": {"bootloader": {"efi": {"persistent": True}}}}
CBT = {"status": {"changedBlockTracking": {"state": "Initializing"}}}


@pytest.mark.parametrize(
    ("spec", "paths"),
    [
        (TPM, {"swtpm": "libvirt/qemu/swtpm", "swtpm-localca": "var/lib/swtpm-localca"}),
        (EFI, {"nvram": "libvirt/qemu/nvram"}),
        (CBT, {"cbt": "libvirt/qemu/cbt"}),
    ],
)
def test_state_is_mounted_where_libvirt_keeps_it(spec: dict[str, Any], paths: dict[str, str]) -> None:
    vmi = instance(**spec)
    assert volume(vmi, "vm-state", surroundings=STORED)["persistentVolumeClaim"] == {"claimName": "state"}
    found = {m["subPath"]: m["mountPath"] for m in mounts(vmi, "vm-state", surroundings=STORED)}
    assert found.pop("meta") == "/run/kubevirt-private/backend-storage-meta"
    assert found == {sub: f"{PRIVATE}/{path}" for sub, path in paths.items()}
    assert {"private-libvirt", "private-libvirt-qemu"} <= names(vmi, surroundings=STORED)


def test_state_of_root() -> None:
    vmi = instance(**TPM, **EFI, status={"runtimeUser": 0, "changedBlockTracking": {"state": "Enabled"}})
    found = {m["subPath"]: m["mountPath"] for m in mounts(vmi, "vm-state", surroundings=STORED)}
    assert found["swtpm"] == "/var/lib/libvirt/swtpm"
    assert found["swtpm-localca"] == "/var/lib/swtpm-localca"
    assert found["nvram"] == "/var/lib/libvirt/qemu/nvram"
    assert found["cbt"] == "/var/lib/libvirt/qemu/cbt"
    assert "private-libvirt" not in names(vmi, surroundings=STORED)


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        (TPM, "spec.domain.devices.tpm.persistent"),
        (EFI, "spec.domain.firmware.bootloader.efi.persistent"),
        (CBT, "status.changedBlockTracking.state"),
    ],
)
def test_state_needs_a_claim(spec: dict[str, Any], field: str) -> None:
    with pytest.raises(FieldError, match="needs a claim") as caught:
        pod(instance(**spec))
    assert caught.value.field == field


def test_a_tpm_that_is_off_keeps_nothing() -> None:
    assert "vm-state" not in names(instance(devices={"tpm": {"enabled": False, "persistent": True}}))
