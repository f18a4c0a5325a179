"""The fields of a VirtualMachineInstance that no domain shows, each with the reason.

Paths are those of `kvnode.spec.model.walk`. An entry holds for everything below its path. All other fields change
the domain: the tests convert VMIs with and without each of them.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["NOT_IN_DOMAIN", "reason"]

_POD = "The pod's: where it is scheduled and how it is run"
_PROBE = "The pod's: Kubernetes probes the guest through the launcher"
_PULL = "The pod's: which image is pulled for the volume's container, and how"
_CLAIM = "The pod's: which claim is mounted or mapped; the domain names the volume"
_OBJECT = "The API server's: the object as stored"
_ISO = "The launcher's: it writes this into the ISO that the domain names"
_DHCP = "The launcher's: its DHCP server gives this to the guest"
_TAG = "The launcher's: written into the metadata of cloud-init's config drive"
_BINDING = "The agent's: the context's domainAttachmentByInterface says what it made of the binding"
_NAT = "The agent's: how the pod's network is set up"
_CONTROLLERS = "The controllers': they decide by it and the domain stays as it is"
_REPORTED = "Reported of the guest, never read for its domain"
_MIGRATION = "The migration's: its progress and where it goes"
_BACKUP = "The backup's: changed blocks are tracked for the volumes that the context's applyCBT names"
_DEFAULTING = "Defaulting's: it gives or leaves out a device, which the domain then shows"
_NOBODY = "Nobody's: taken and stored, and read by nothing in v1.9"

_VOLUME = "spec.volumes[]"
_INTERFACE = "spec.domain.devices.interfaces[]"

NOT_IN_DOMAIN: Mapping[str, str] = {
    # --- the object
    "apiVersion": _OBJECT,
    "kind": _OBJECT,
    "metadata.generateName": _OBJECT,
    "metadata.selfLink": _OBJECT,
    "metadata.resourceVersion": _OBJECT,
    "metadata.generation": _OBJECT,
    "metadata.creationTimestamp": _OBJECT,
    "metadata.deletionTimestamp": _OBJECT,
    "metadata.deletionGracePeriodSeconds": _OBJECT,
    "metadata.ownerReferences": _OBJECT,
    "metadata.finalizers": _OBJECT,
    "metadata.managedFields": _OBJECT,
    "metadata.labels": "The pod's: its labels, for services and policies to find it by",
    # --- the pod
    "spec.priorityClassName": _POD,
    "spec.nodeSelector": _POD,
    "spec.affinity": _POD,
    "spec.schedulerName": _POD,
    "spec.serviceAccountName": _POD,
    "spec.tolerations": _POD,
    "spec.topologySpreadConstraints": _POD,
    "spec.hostname": "The pod's and cloud-init's: the guest's name in DNS and in its metadata",
    "spec.subdomain": "The pod's and cloud-init's: the guest's name in DNS and in its metadata",
    "spec.dnsPolicy": _POD,
    "spec.dnsConfig": _POD,
    "spec.resourceClaims": "The pod's: claims of devices; what the driver gave stands in the context's resourceClaims",
    "spec.livenessProbe": _PROBE,
    "spec.readinessProbe": _PROBE,
    "spec.domain.resources.overcommitGuestOverhead": "The pod's: whether its memory request has the overhead in it",
    "spec.domain.memory.reservedOverhead.addedOverhead": "The pod's: more memory overhead for it to request",
    "spec.domain.memory.reservedOverhead.memLock": "The agent's: whether it raises the limit of locked memory",
    "spec.domain.firmware.kernelBoot.container.image": _PULL,
    "spec.domain.firmware.kernelBoot.container.imagePullSecret": _PULL,
    "spec.domain.firmware.kernelBoot.container.imagePullPolicy": _PULL,
    # --- the launcher
    "spec.terminationGracePeriodSeconds": "The launcher's: how long the guest may take to shut down",
    "spec.accessCredentials": "The launcher's: keys and passwords go into cloud-init or through the guest agent",
    "spec.domain.firmware.bootloader.efi.secureBoot": "The launcher's: it finds the firmware, the context's efi",
    "spec.domain.firmware.bootloader.efi.persistent": "The controllers': a volume is laid where the variables lie",
    "spec.domain.devices.disks[].tag": _TAG,
    f"{_INTERFACE}.tag": _TAG,
    "spec.domain.devices.gpus[].tag": _TAG,
    "spec.domain.devices.hostDevices[].tag": _TAG,
    "spec.domain.devices.logSerialConsole": "The launcher's: it makes the context's serialConsoleLog of it",
    "spec.domain.launchSecurity.sev.attestation": "The launcher's: it serves the paused guest's measurement",
    "spec.domain.devices.disks[].blockSize.matchVolume": (
        "The launcher's: it asks the volume for its block sizes; without them the conversion refuses the disk"
    ),
    "spec.domain.devices.disks[].changedBlockTracking": _BACKUP,
    "spec.domain.cpu.realtime.mask": "The agent's: which vCPU threads it gives a realtime scheduler",
    # --- the network
    f"{_INTERFACE}.bridge": _BINDING,
    f"{_INTERFACE}.masquerade": _BINDING,
    f"{_INTERFACE}.slirp": "Nobody's: a binding that is no more, refused by validation",
    f"{_INTERFACE}.macvtap": "Nobody's: a binding that is no more, refused by validation",
    f"{_INTERFACE}.passt": "Nobody's: a binding that is no more, refused by validation",
    f"{_INTERFACE}.binding.name": "The agent's and the pod's: which plugin and sidecar make the interface",
    f"{_INTERFACE}.ports[].name": "Nobody's: a port's name is for people",
    f"{_INTERFACE}.portRanges": _NAT,
    f"{_INTERFACE}.dhcpOptions": _DHCP,
    "spec.networks[].pod": _NAT,
    "spec.networks[].multus": "The pod's: what Multus plugs in; the domain goes by the network's name",
    # --- devices and features
    "spec.domain.devices.autoattachInputDevice": _DEFAULTING,
    "spec.domain.devices.autoattachPodInterface": _DEFAULTING,
    "spec.domain.devices.autoattachVSOCK": "The controllers': they give out status.VSOCKCID, which brings the device",
    "spec.domain.features.apic.endOfInterrupt": _NOBODY,
    # --- volumes
    "spec.evictionStrategy": _CONTROLLERS,
    "spec.utilityVolumes": "The controllers': volumes for backups and dumps, hotplugged into the pod alone",
    f"{_VOLUME}.hostDisk.type": "The launcher's: whether it makes the file, and how large",
    f"{_VOLUME}.hostDisk.shared": "The migration's: whether it copies the file",
    f"{_VOLUME}.hostDisk.capacity": "The launcher's: whether it makes the file, and how large",
    f"{_VOLUME}.persistentVolumeClaim": _CLAIM,
    f"{_VOLUME}.dataVolume": _CLAIM,
    f"{_VOLUME}.ephemeral": _CLAIM,
    f"{_VOLUME}.memoryDump": _CLAIM,
    f"{_VOLUME}.containerPath": "The pod's: a directory of one of its containers, shared by virtiofs",
    f"{_VOLUME}.containerDisk": _PULL,
    f"{_VOLUME}.emptyDisk.capacity": "The launcher's: how large it makes the image",
    f"{_VOLUME}.cloudInitNoCloud": _ISO,
    f"{_VOLUME}.cloudInitConfigDrive": _ISO,
    f"{_VOLUME}.sysprep": _ISO,
    f"{_VOLUME}.configMap": _ISO,
    f"{_VOLUME}.secret": _ISO,
    f"{_VOLUME}.downwardAPI": _ISO,
    f"{_VOLUME}.serviceAccount": _ISO,
    # --- what is reported
    "status.nodeName": _REPORTED,
    "status.reason": _REPORTED,
    "status.conditions": _REPORTED,
    "status.phase": _REPORTED,
    "status.phaseTransitionTimestamps": _REPORTED,
    "status.guestOSInfo": _REPORTED,
    "status.qosClass": _REPORTED,
    "status.launcherContainerImageVersion": _REPORTED,
    "status.activePods": _REPORTED,
    "status.fsFreezeStatus": _REPORTED,
    "status.virtualMachineRevisionName": _REPORTED,
    "status.selinuxContext": _REPORTED,
    "status.machine": _REPORTED,
    "status.kernelBootStatus": _REPORTED,
    "status.currentCPUTopology": _REPORTED,
    "status.memory": _REPORTED,
    **dict.fromkeys(
        (
            f"status.interfaces[].{name}"
            for name in ("ipAddress", "mac", "ipAddresses", "interfaceName", "queueCount", "linkState")
        ),
        _REPORTED,
    ),
    **dict.fromkeys(
        (
            f"status.volumeStatus[].{name}"
            for name in (
                "phase",
                "reason",
                "message",
                "size",
                "memoryDumpVolume",
                "containerDiskVolume",
            )
        ),
        _REPORTED,
    ),
    "status.volumeStatus[].hotplugVolume": "The controllers': which pod attaches the volume",
    **dict.fromkeys(
        (
            f"status.volumeStatus[].persistentVolumeClaimInfo.{name}"
            for name in ("claimName", "accessModes", "volumeMode", "preallocated")
        ),
        "The launcher's and the controllers': of what kind the claim is",
    ),
    "status.migrationState": _MIGRATION,
    "status.migrationMethod": _MIGRATION,
    "status.migrationTransport": _MIGRATION,
    "status.evacuationNodeName": _MIGRATION,
    "status.migratedVolumes": _MIGRATION,
    "status.changedBlockTracking": _BACKUP,
}
"""Path of a field -> the reason, as a sentence without its full stop; it holds for all below the path."""


def reason(path: str) -> str | None:
    """Why no domain shows a field; None when domains do, or when there is no such entry.

    `path` is one of `kvnode.spec.model.walk`: ``spec.domain.devices.disks[].tag``.
    """
    while path:
        found = NOT_IN_DOMAIN.get(path)
        if found is not None:
            return found
        path = (
            path.removesuffix("[]").removesuffix("{}")
            if path.endswith(("[]", "{}"))
            else path.rpartition(".")[0]
        )
    return None
