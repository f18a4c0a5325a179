"""Rules on other devices, on security, scheduling and the rest of the spec, and on metadata."""

from __future__ import annotations

from typing import Any

import pytest

from kvnode.spec.validation import validate
from tests.spec.validation.build import devices, domain, found, interface, merged, vmi, volume

EFI = domain(firmware={"bootloader": {"efi": {"secureBoot": False}}})


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({"architecture": "riscv64"}, ["architecture"], id="architecture"),
        pytest.param({"hostname": "web-1"}, [], id="host name"),
        pytest.param({"hostname": "web.example"}, ["hostname"], id="host name with dot"),
        pytest.param({"hostname": "a" * 64}, ["hostname"], id="long host name"),
        pytest.param({"subdomain": "web.example"}, [], id="subdomain"),
        pytest.param({"subdomain": "web..example"}, ["subdomain"], id="subdomain with two dots"),
        pytest.param({"serviceAccountName": "Robot"}, ["serviceAccountName"], id="service account"),
        pytest.param({"startStrategy": "Paused"}, [], id="paused"),
        pytest.param({"startStrategy": "Slow"}, ["startStrategy"], id="start strategy"),
        pytest.param(
            {"startStrategy": "Paused", "livenessProbe": {"guestAgentPing": {}}},
            ["startStrategy"],
            id="probed",
        ),
        pytest.param({"evictionStrategy": "Run"}, ["evictionStrategy"], id="eviction strategy"),
        pytest.param(domain(ioThreadsPolicy="many"), ["domain.ioThreadsPolicy"], id="I/O threads"),
        pytest.param(domain(ioThreadsPolicy="supplementalPool"), ["domain.ioThreads.count"], id="empty pool"),
        pytest.param(
            domain(ioThreadsPolicy="supplementalPool", ioThreads={"supplementalPoolThreadCount": 1}),
            [],
            id="pool",
        ),
        pytest.param({"readinessProbe": {}}, ["readinessProbe"], id="no handler"),
        pytest.param(
            {"livenessProbe": {"exec": {}, "guestAgentPing": {}}}, ["livenessProbe"], id="two handlers"
        ),
        pytest.param({"livenessProbe": {"tcpSocket": {"port": "http"}}}, [], id="probe on the pod network"),
        pytest.param({"dnsPolicy": "None"}, ["dnsConfig"], id="no DNS"),
        pytest.param({"dnsPolicy": "None", "dnsConfig": {}}, ["nameservers"], id="no name server"),
        pytest.param({"dnsConfig": {"nameservers": ["ns"]}}, ["nameservers"], id="name of a name server"),
        pytest.param({"dnsConfig": {"nameservers": ["::1"] * 4}}, ["nameservers"], id="four name servers"),
        pytest.param({"dnsConfig": {"searches": ["a"] * 7}}, ["searchDomains"], id="seven searches"),
        pytest.param({"dnsConfig": {"searches": ["a" * 63] * 5}}, ["searchDomains"], id="long searches"),
        pytest.param({"dnsConfig": {"searches": ["_"]}}, ["searchDomains"], id="search is no name"),
        pytest.param({"dnsConfig": {"options": [{"value": "1"}]}}, ["options"], id="nameless option"),
    ],
)
def test_spec(spec: dict[str, Any], expected: list[str]) -> None:
    assert found(spec) == expected


def test_probes_over_the_network_need_the_pods() -> None:
    probe = {"livenessProbe": {"httpGet": {"port": 80}}}
    unplugged = {**devices(interfaces=[]), "networks": []}
    assert found({**probe, **unplugged}) == ["livenessProbe.httpGet"]
    assert found({"livenessProbe": {"exec": {"command": ["true"]}}, **unplugged}) == []


def test_one_service_account() -> None:
    spec = merged({"serviceAccountName": "a"}, volume(serviceAccount={"serviceAccountName": "b"}))
    assert found(spec) == ["serviceAccountName"]
    assert found({**spec, "serviceAccountName": "b"}) == []


def test_metadata() -> None:
    labels = {"kubevirt.io/nodeName": "n", "kubevirt.io/domain": "d"}
    assert [c.field for c in validate(vmi(labels=labels), "amd64")] == ["metadata.labels"]
    for name, gate in (
        ("hooks.kubevirt.io/hookSidecars", "Sidecar"),
        ("kubevirt.io/ignitiondata", "ExperimentalIgnitionSupport"),
    ):
        document = vmi(annotations={name: "x"})
        assert [c.field for c in validate(document, "amd64")] == ["metadata.annotations"]
        assert validate(document, "amd64", {"developerConfiguration": {"featureGates": [gate]}}) == []


@pytest.mark.parametrize(
    ("section", "expected"),
    [
        pytest.param({"inputs": [{"name": "t", "type": "tablet", "bus": "usb"}]}, [], id="tablet"),
        pytest.param(
            {"inputs": [{"name": "t", "type": "mouse"}]}, ["domain.devices.inputs[0].type"], id="mouse"
        ),
        pytest.param(
            {"inputs": [{"name": "t", "type": "tablet", "bus": "ps2"}]},
            ["domain.devices.inputs[0].bus"],
            id="ps2",
        ),
        pytest.param({"sound": {"name": "s", "model": "ac97"}}, [], id="sound"),
        pytest.param({"sound": {"name": "", "model": "sb16"}}, ["Sound", "Sound"], id="sound of no kind"),
        pytest.param({"video": {"type": "bochs"}}, [], id="video"),
        pytest.param({"video": {"type": "qxl"}}, ["domain.devices.video.type"], id="unknown video"),
        pytest.param(
            {"video": {"type": "vga"}, "autoattachGraphicsDevice": False}, ["video"], id="video unplugged"
        ),
        pytest.param({"watchdog": {"name": "w", "i6300esb": {}}}, [], id="watchdog"),
        pytest.param({"watchdog": {"name": "w"}}, ["domain.devices.watchdog"], id="watchdog of no kind"),
        pytest.param({"panicDevices": [{}, {"model": "isa"}]}, [], id="panic"),
        pytest.param(
            {"panicDevices": [{"model": "x"}]}, ["domain.devices.panicDevices[0].model"], id="unknown panic"
        ),
        pytest.param({"autoattachVSOCK": True}, ["domain.devices.autoattachVSOCK"], id="vsock gate"),
        pytest.param({"downwardMetrics": {}}, ["domain.devices.downwardMetrics"], id="metrics gate"),
        pytest.param({"hostDevices": []}, ["HostDevices"], id="host devices gate"),
        pytest.param(
            {"gpus": [{"name": n, "deviceName": "a", "virtualGPUOptions": {"display": {}}} for n in "ab"]},
            ["GPUs"],
            id="two boot displays",
        ),
        pytest.param(
            {
                "gpus": [
                    {"name": "a", "deviceName": "a", "virtualGPUOptions": {"display": {}}},
                    {"name": "b", "deviceName": "a", "virtualGPUOptions": {"display": {"enabled": False}}},
                    {"name": "c", "deviceName": "a", "virtualGPUOptions": {"display": {"ramFB": {}}}},
                ]
            },
            [],
            id="one boot display of three",
        ),
    ],
)
def test_devices(section: dict[str, Any], expected: list[str]) -> None:
    assert found(devices(**section)) == expected


@pytest.mark.parametrize(
    ("architecture", "section", "expected"),
    [
        ("arm64", {"sound": {"name": "s"}}, ["domain.devices.sound"]),
        ("arm64", {"video": {"type": "vga"}}, ["domain.devices.video.type"]),
        ("arm64", {"watchdog": {"name": "w", "i6300esb": {}}}, ["domain.devices.watchdog"]),
        ("s390x", {"watchdog": {"name": "w", "diag288": {}}}, []),
        ("s390x", {"watchdog": {"name": "w", "i6300esb": {}}}, ["domain.devices.watchdog"]),
        ("s390x", {"video": {"type": "ramfb"}}, ["domain.devices.video.type"]),
        ("s390x", {"panicDevices": [{}]}, ["domain.devices.panicDevices"]),
    ],
)
def test_devices_by_architecture(architecture: str, section: dict[str, Any], expected: list[str]) -> None:
    assert found(devices(**section), architecture) == expected


def test_reboot_policy_gate() -> None:
    assert found(domain(rebootPolicy="Terminate")) == []
    assert found(domain(rebootPolicy="Terminate"), off=("RebootPolicy",)) == ["domain.rebootPolicy"]


def security(kind: str, **more: Any) -> dict[str, Any]:
    return domain(launchSecurity={kind: {}}, **more)


@pytest.mark.parametrize(
    ("spec", "count"),
    [
        pytest.param(merged(security("sev"), EFI), 0, id="sev"),
        pytest.param(security("sev"), 1, id="sev by BIOS"),
        pytest.param(
            merged(merged(security("sev"), EFI), interface(bootOrder=1)), 1, id="boots from network"
        ),
        pytest.param(merged(domain(launchSecurity={"sev": {"attestation": {}}}), EFI), 1, id="not paused"),
        pytest.param(
            {**merged(domain(launchSecurity={"sev": {"attestation": {}}}), EFI), "startStrategy": "Paused"},
            0,
            id="attested",
        ),
        pytest.param(
            security("snp", firmware={"bootloader": {"efi": {"persistent": True, "secureBoot": False}}}),
            1,
            id="snp keeps variables",
        ),
        pytest.param(
            security("snp", features={"smm": {}}, firmware={"bootloader": {"efi": {}}}),
            1,
            id="snp, secure boot",
        ),
        pytest.param(domain(launchSecurity={}), 1, id="none"),
        pytest.param(domain(launchSecurity={"sev": {}, "snp": {}}), 1, id="two"),
        pytest.param(merged(security("tdx"), EFI), 1, id="tdx without its gate"),
    ],
)
def test_launch_security(spec: dict[str, Any], count: int) -> None:
    assert found(spec) == ["launchSecurity"] * count


def test_tdx_is_without_smm() -> None:
    gates = ("WorkloadEncryptionTDX",)
    secure = security("tdx", firmware={"bootloader": {"efi": {}}})
    assert found(secure, gates=gates) == []
    assert found(merged(secure, domain(features={"smm": {}})), gates=gates) == ["launchSecurity"]


def test_launch_security_by_architecture() -> None:
    assert found(security("sev"), "arm64") == ["architecture"]
    assert found(domain(launchSecurity={}), "s390x") == []


SECRET = {"secret": {"secretName": "s"}}
KEY = "accessCredentials[0].sshPublicKey"


@pytest.mark.parametrize(
    ("credential", "expected"),
    [
        pytest.param({}, [""], id="no kind"),
        pytest.param(
            {"userPassword": {"source": SECRET, "propagationMethod": {"qemuGuestAgent": {}}}},
            [],
            id="password",
        ),
        pytest.param(
            {"userPassword": {"source": {}, "propagationMethod": {}}},
            [".userPassword.source", ".userPassword.propagationMethod"],
            id="empty password",
        ),
        pytest.param(
            {"sshPublicKey": {"source": SECRET, "propagationMethod": {"noCloud": {}}}},
            [".sshPublicKey.propagationMethod"],
            id="no cloud-init volume",
        ),
        pytest.param(
            {"sshPublicKey": {"source": SECRET, "propagationMethod": {"qemuGuestAgent": {"users": []}}}},
            [".sshPublicKey.propagationMethod.qemuGuestAgent.users"],
            id="no user",
        ),
    ],
)
def test_access_credentials(credential: dict[str, Any], expected: list[str]) -> None:
    assert found({"accessCredentials": [credential]}) == [
        f"accessCredentials[0]{field}" for field in expected
    ]


def test_a_key_by_cloud_init() -> None:
    key = {"sshPublicKey": {"source": SECRET, "propagationMethod": {"noCloud": {}}}}
    source = volume(cloudInitNoCloud={"userData": "#cloud-config"})
    assert found({"accessCredentials": [key], **source}) == []


REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def node(**expression: Any) -> dict[str, Any]:
    terms = [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"], **expression}]}]
    return {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}}}


TERM = f"nodeAffinity.{REQUIRED}.nodeSelectorTerms"


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param(node(), [], id="valid"),
        pytest.param(node(values=[]), [f"{TERM}[0].matchExpressions[0].values"], id="no value"),
        pytest.param(node(operator="Exists"), [f"{TERM}[0].matchExpressions[0].values"], id="needless value"),
        pytest.param(
            node(operator="Gt", values=["1", "2"]), [f"{TERM}[0].matchExpressions[0].values"], id="Gt"
        ),
        pytest.param(node(key="a/b/c"), [f"{TERM}[0].matchExpressions[0].key"], id="key"),
        pytest.param(
            {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": []}}}}, [TERM], id="no term"
        ),
        pytest.param(
            {"affinity": {"nodeAffinity": {PREFERRED: [{"weight": 0, "preference": {}}]}}},
            [f"nodeAffinity.{PREFERRED}[0].weight"],
            id="weight",
        ),
        pytest.param(
            {"affinity": {"podAffinity": {REQUIRED: [{"topologyKey": "", "namespaces": ["A"]}]}}},
            [f"podAffinity.{REQUIRED}[0].namespace", f"podAffinity.{REQUIRED}[0].topologyKey"],
            id="pod term",
        ),
        pytest.param(
            {
                "affinity": {
                    "podAntiAffinity": {
                        PREFERRED: [
                            {
                                "weight": 1,
                                "podAffinityTerm": {
                                    "topologyKey": "k",
                                    "labelSelector": {"matchLabels": {"a": "b c"}},
                                },
                            }
                        ]
                    }
                }
            },
            [f"podAntiAffinity.{PREFERRED}[0].podAffinityTerm.labelSelector.matchLabels"],
            id="selector",
        ),
    ],
)
def test_affinity(spec: dict[str, Any], expected: list[str]) -> None:
    assert found(spec) == expected


def test_affinity_to_fields() -> None:
    def term(**expression: Any) -> list[str]:
        fields = [{"key": "metadata.name", "operator": "In", "values": ["node-1"], **expression}]
        required = {"nodeSelectorTerms": [{"matchFields": fields}]}
        prefix = f"{TERM}[0].matchFields[0]."
        got = found({"affinity": {"nodeAffinity": {REQUIRED: required}}})
        return [field.removeprefix(prefix) for field in got]

    assert term() == []
    assert term(values=["_"]) == ["values[0]"]
    assert term(key="metadata.namespace") == ["key"]
    assert term(operator="Exists") == ["operator"]
    assert term(values=["a", "b"]) == ["values"]


def test_spread() -> None:
    constraint = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
    path = "topologySpreadConstraints"
    assert found({path: [constraint, {**constraint, "topologyKey": "host"}]}) == []
    assert found({path: [{**constraint, "maxSkew": 0, "topologyKey": "a b"}]}) == [
        f"{path}[0].maxSkew",
        f"{path}[0].topologyKey",
    ]
    assert found({path: [constraint, constraint]}) == [f"{path}[0].{{topologyKey, whenUnsatisfiable}}"]


GRACE = {"pciHostDevices": [{"pciVendorSelector": "10de:2342", "resourceName": "nvidia.example/gh200"}]}
ANY = {"pciHostDevices": [{"pciVendorSelector": "10DE:*", "resourceName": "nvidia.example/gh200"}]}
GPU = devices(gpus=[{"name": "g", "deviceName": "nvidia.example/gh200"}])
NAME = "domain.devices.gpus[0].deviceName"


def test_grace_gpus() -> None:
    gates = ("GraceIOVirtualization",)
    every = (*gates, "PCINUMAAwareTopology", "IOMMUFD")
    pinned = merged(GPU, domain(cpu={"dedicatedCpuPlacement": True, "cores": 1}))
    assert found(GPU, permittedHostDevices=GRACE) == [NAME]
    assert found(pinned, "arm64", every, permittedHostDevices=GRACE) == []
    assert found(GPU, "amd64", gates, permittedHostDevices=GRACE) == [
        "architecture",
        "domain.machine.type",
        "domain.cpu.dedicatedCpuPlacement",
        "domain.devices",
        "domain.devices",
    ]
    assert found(GPU, "amd64", permittedHostDevices=ANY) == []
    assert found(GPU, "amd64", gates, permittedHostDevices=ANY) == [NAME]


def test_grace_gpus_and_annotations() -> None:
    config = {"permittedHostDevices": GRACE}
    document = vmi(GPU, annotations={"kubevirt.io/disablePCIHole64": "true"})
    fields = [cause.field for cause in validate(document, "arm64", config)]
    assert fields == ["metadata.annotations[kubevirt.io/disablePCIHole64]", f"spec.{NAME}"]
