"""What a launcher is told beside the VMI (``pkg/virt-handler/options.go``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kvnode.agent.vmi import Vmi, interfaces
from kvnode.rpc.cmd_v1_pb2 import ClusterConfig as ClusterSettings
from kvnode.rpc.cmd_v1_pb2 import SMBios, Topology, VirtualMachineOptions
from kvnode.spec.config import ClusterConfig


def virtual_machine_options(
    vmi: Vmi, config: ClusterConfig, topology: Topology, preallocated: Sequence[str]
) -> VirtualMachineOptions:
    """The options of SyncVirtualMachine; ``preallocated`` are volumes whose storage must not shrink."""
    smbios = config.smbios
    return VirtualMachineOptions(
        VirtualMachineSMBios=SMBios(
            family=smbios.get("family", ""),
            product=smbios.get("product", ""),
            manufacturer=smbios.get("manufacturer", ""),
            sku=smbios.get("sku", ""),
            version=smbios.get("version", ""),
        ),
        MemBalloonStatsPeriod=config.mem_balloon_stats_period,
        PreallocatedVolumes=preallocated,
        topology=topology,
        clusterConfig=ClusterSettings(
            FreePageReportingDisabled=config.disable_free_page_reporting,
            BochsDisplayForEFIGuests=config.gate("BochsDisplayForEFIGuests"),
            SerialConsoleLogDisabled=config.disable_serial_console_log,
            PCINUMAAwareTopologyEnabled=config.gate("PCINUMAAwareTopology"),
            VGPULiveMigrationEnabled=config.gate("VGPULiveMigration"),
            GraceIOVirtualizationEnabled=config.gate("GraceIOVirtualization"),
        ),
        interfaceDomainAttachment=domain_attachments(vmi, config.network_bindings),
    )


def domain_attachments(vmi: Vmi, plugins: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """How each interface that this node prepares is attached to the domain, by name."""
    found: dict[str, str] = {}
    for interface in interfaces(vmi):
        name = str(interface.get("name") or "")
        if interface.get("masquerade") is not None or interface.get("bridge") is not None:
            found[name] = "tap"
        elif (binding := interface.get("binding")) is not None:
            kind = plugins.get(str(binding.get("name") or ""), {}).get("domainAttachmentType")
            if kind:
                found[name] = "tap" if kind == "managedTap" else str(kind)
    return found
