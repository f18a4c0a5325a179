"""The domain: CPU, memory, firmware, clock, features (`core/v1/schema.go`)."""

from __future__ import annotations

from kvnode.spec.model.notation import Types

DOMAIN: Types = {
    "DomainSpec": {
        "resources": "ResourceRequirements",
        "cpu": "CPU",
        "memory": "Memory",
        "machine": "Machine",
        "firmware": "Firmware",
        "clock": "Clock",
        "features": "Features",
        "devices": "Devices!",
        "ioThreadsPolicy": "string",
        "ioThreads": "DiskIOThreads",
        "chassis": "Chassis",
        "launchSecurity": "LaunchSecurity",
        "rebootPolicy": "RebootPolicy",
    },
    "ResourceRequirements": {
        "requests": "{}quantity",
        "limits": "{}quantity",
        "overcommitGuestOverhead": "bool",
    },
    "CPU": {
        "cores": "uint32",
        "sockets": "uint32",
        "maxSockets": "uint32",
        "threads": "uint32",
        "model": "string",
        "features": "[]CPUFeature",
        "dedicatedCpuPlacement": "bool",
        "numa": "NUMA",
        "isolateEmulatorThread": "bool",
        "realtime": "Realtime",
    },
    "CPUFeature": {
        "name": "string!",
        "policy": "string",
    },
    "NUMA": {
        "guestMappingPassthrough": "NUMAGuestMappingPassthrough",
    },
    "NUMAGuestMappingPassthrough": {},
    "Realtime": {
        "mask": "string",
    },
    "Memory": {
        "hugepages": "Hugepages",
        "guest": "quantity",
        "maxGuest": "quantity",
        "reservedOverhead": "ReservedOverhead",
    },
    "Hugepages": {
        "pageSize": "string",
    },
    "ReservedOverhead": {
        "addedOverhead": "quantity",
        "memLock": "MemLockRequirement",
    },
    "Machine": {
        "type": "string",
    },
    "Firmware": {
        "uuid": "string",
        "bootloader": "Bootloader",
        "serial": "string",
        "kernelBoot": "KernelBoot",
        "acpi": "ACPI",
    },
    "Bootloader": {
        "bios": "BIOS",
        "efi": "EFI",
    },
    "BIOS": {
        "useSerial": "bool",
    },
    "EFI": {
        "secureBoot": "bool",
        "persistent": "bool",
    },
    "KernelBoot": {
        "kernelArgs": "string",
        "container": "KernelBootContainer",
    },
    "KernelBootContainer": {
        "image": "string!",
        "imagePullSecret": "string",
        "imagePullPolicy": "PullPolicy",
        "kernelPath": "string",
        "initrdPath": "string",
    },
    "ACPI": {
        "slicNameRef": "string",
        "msdmNameRef": "string",
    },
    "Clock": {
        "utc": "ClockOffsetUTC",
        "timezone": "string",
        "timer": "Timer",
    },
    "ClockOffsetUTC": {
        "offsetSeconds": "int64",
    },
    "Timer": {
        "hpet": "HPETTimer",
        "kvm": "KVMTimer",
        "pit": "PITTimer",
        "rtc": "RTCTimer",
        "hyperv": "HypervTimer",
    },
    "HPETTimer": {
        "tickPolicy": "string",
        "present": "bool",
    },
    "KVMTimer": {
        "present": "bool",
    },
    "PITTimer": {
        "tickPolicy": "string",
        "present": "bool",
    },
    "RTCTimer": {
        "tickPolicy": "string",
        "present": "bool",
        "track": "string",
    },
    "HypervTimer": {
        "present": "bool",
    },
    "Features": {
        "acpi": "FeatureState",
        "apic": "FeatureAPIC",
        "hypervPassthrough": "HyperVPassthrough",
        "hyperv": "FeatureHyperv",
        "smm": "FeatureState",
        "kvm": "FeatureKVM",
        "pvspinlock": "FeatureState",
    },
    "FeatureAPIC": {
        "enabled": "bool",
        "endOfInterrupt": "bool",
    },
    "HyperVPassthrough": {
        "enabled": "bool",
    },
    "FeatureHyperv": {
        "relaxed": "FeatureState",
        "vapic": "FeatureState",
        "spinlocks": "FeatureSpinlocks",
        "vpindex": "FeatureState",
        "runtime": "FeatureState",
        "synic": "FeatureState",
        "synictimer": "SyNICTimer",
        "reset": "FeatureState",
        "vendorid": "FeatureVendorID",
        "frequencies": "FeatureState",
        "reenlightenment": "FeatureState",
        "tlbflush": "TLBFlush",
        "ipi": "FeatureState",
        "evmcs": "FeatureState",
    },
    "FeatureSpinlocks": {
        "enabled": "bool",
        "spinlocks": "uint32",
    },
    "SyNICTimer": {
        "enabled": "bool",
        "direct": "FeatureState",
    },
    "FeatureVendorID": {
        "enabled": "bool",
        "vendorid": "string",
    },
    "TLBFlush": {
        "enabled": "bool",
        "direct": "FeatureState",
        "extended": "FeatureState",
    },
    "FeatureKVM": {
        "hidden": "bool",
    },
    "DiskIOThreads": {
        "supplementalPoolThreadCount": "uint32",
    },
    "Chassis": {
        "manufacturer": "string",
        "version": "string",
        "serial": "string",
        "asset": "string",
        "sku": "string",
    },
    "LaunchSecurity": {
        "sev": "SEV",
        "snp": "SEVSNP",
        "tdx": "TDX",
    },
    "SEV": {
        "policy": "SEVPolicy",
        "attestation": "SEVAttestation",
        "session": "string",
        "dhCert": "string",
    },
    "SEVPolicy": {
        "encryptedState": "bool",
    },
    "SEVAttestation": {},
    "SEVSNP": {},
    "TDX": {},
}
