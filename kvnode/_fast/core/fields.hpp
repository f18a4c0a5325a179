// The fields of the API that the conversion reads, a struct an object: staging/src/kubevirt.io/api/core/v1/{types,schema}.go.
//
// This is the one list of them. A member that is not named here is passed over by the parser's walk; a trailing underscore
// stands for a field whose name is a word of C++.
#pragma once
#include "table.hpp"

namespace kv {

// --- the object ---------------------------------------------------------------------------------------------------
KV_FIELDS(Vmi, metadata, spec, status);
KV_FIELDS(Metadata, name, namespace_, uid, annotations, labels);
KV_FIELDS(Spec, architecture, domain, networks, startStrategy, terminationGracePeriodSeconds, volumes);
KV_FIELDS(Status, VSOCKCID, currentCPUTopology, interfaces, memory, runtimeUser, topologyHints, volumeStatus);
KV_FIELDS(TopologyHints, tscFrequency);
KV_FIELDS(VolumeStatus, name, target, phase, persistentVolumeClaimInfo, hotplugVolume);
KV_FIELDS(InterfaceStatus, name, podInterfaceName, infoSource);
KV_FIELDS(ClaimInfo, filesystemOverhead, capacity, requests);
KV_FIELDS(ClaimSize, storage);

// --- domain -------------------------------------------------------------------------------------------------------
KV_FIELDS(Domain, chassis, clock, cpu, devices, features, firmware, ioThreads, ioThreadsPolicy, launchSecurity, machine, memory,
          rebootPolicy, resources);
KV_FIELDS(Resources, requests, limits);
KV_FIELDS(ResourceList, cpu, memory);
KV_FIELDS(Cpu, cores, sockets, maxSockets, threads, model, features, dedicatedCpuPlacement, numa, isolateEmulatorThread, realtime);
KV_FIELDS(CpuFeature, name, policy);
KV_FIELDS(Numa, guestMappingPassthrough);
KV_FIELDS(Realtime, mask);
KV_FIELDS(CpuTopology, cores, sockets, threads);
KV_FIELDS(Memory, guest, maxGuest, hugepages, reservedOverhead);
KV_FIELDS(ReservedOverhead, addedOverhead, memLock);
KV_FIELDS(Hugepages, pageSize);
KV_FIELDS(Machine, type);
KV_FIELDS(Firmware, uuid, serial, bootloader, kernelBoot, acpi);
KV_FIELDS(Bootloader, bios, efi);
KV_FIELDS(Bios, useSerial);
KV_FIELDS(Efi, secureBoot, persistent);
KV_FIELDS(KernelBoot, kernelArgs, container);
KV_FIELDS(KernelBootContainer, image, kernelPath, initrdPath);
KV_FIELDS(Acpi, slicNameRef, msdmNameRef);
KV_FIELDS(Chassis, manufacturer, version, serial, asset, sku);
KV_FIELDS(LaunchSecurity, sev, snp, tdx);
KV_FIELDS(Sev, policy, attestation, session, dhCert);
KV_FIELDS(SevPolicy, encryptedState);
KV_FIELDS(IoThreads, supplementalPoolThreadCount);

// --- clock and features -------------------------------------------------------------------------------------------
KV_FIELDS(Clock, utc, timezone, timer);
KV_FIELDS(ClockUtc, offsetSeconds);
KV_FIELDS(Timer, hpet, kvm, pit, rtc, hyperv);
KV_FIELDS(OneTimer, tickPolicy, present, track);
KV_FIELDS(Features, acpi, apic, hypervPassthrough, hyperv, smm, kvm, pvspinlock);
KV_FIELDS(FeatureState, enabled, endOfInterrupt);
KV_FIELDS(Hyperv, relaxed, vapic, spinlocks, vpindex, runtime, synic, synictimer, reset, vendorid, frequencies, reenlightenment,
          tlbflush, ipi, evmcs);
KV_FIELDS(HypervFeature, enabled, spinlocks, vendorid, direct, extended);
KV_FIELDS(KvmFeature, hidden);

// --- devices ------------------------------------------------------------------------------------------------------
KV_FIELDS(Devices, autoattachGraphicsDevice, autoattachMemBalloon, autoattachPodInterface, autoattachSerialConsole, autoattachVSOCK,
          blockMultiQueue, clientPassthrough, disableHotplug, disks, downwardMetrics, filesystems, gpus, hostDevices, inputs,
          interfaces, logSerialConsole, networkInterfaceMultiqueue, panicDevices, rng, sound, tpm, useVirtioTransitional, video,
          watchdog);
KV_FIELDS(Disk, name, disk, lun, cdrom, bootOrder, serial, dedicatedIOThread, cache, io, tag, blockSize, shareable, errorPolicy,
          changedBlockTracking);
KV_FIELDS(DiskTarget, bus, readonly, pciAddress, reservation, tray);
KV_FIELDS(BlockSize, custom, matchVolume);
KV_FIELDS(MatchVolume, enabled);
KV_FIELDS(CustomBlockSize, logical, physical, discardGranularity);
KV_FIELDS(Interface, name, model, bridge, slirp, masquerade, sriov, macvtap, passt, passtBinding, binding, ports, portRanges,
          macAddress, bootOrder, pciAddress, dhcpOptions, tag, acpiIndex, state);
KV_FIELDS(Port, name, protocol, port);
KV_FIELDS(PortRange, protocol, start, end);
KV_FIELDS(PluginBinding, name);
KV_FIELDS(Input, bus, type, name);
KV_FIELDS(Watchdog, name, i6300esb, diag288);
KV_FIELDS(WatchdogModel, action);
KV_FIELDS(Sound, name, model);
KV_FIELDS(Tpm, enabled, persistent);
KV_FIELDS(Video, type);
KV_FIELDS(PanicDevice, model);
KV_FIELDS(Filesystem, name, virtiofs);
KV_FIELDS(HostDevice, name, deviceName, claimName, requestName, tag, virtualGPUOptions);
KV_FIELDS(VgpuOptions, display);
KV_FIELDS(VgpuDisplay, enabled, ramFB);

// --- networks and volumes -----------------------------------------------------------------------------------------
KV_FIELDS(Network, name, pod, multus, resourceClaim);
KV_FIELDS(Multus, networkName, default_);
KV_FIELDS(ResourceClaim, claimName, requestName);
KV_FIELDS(Volume, name, hostDisk, persistentVolumeClaim, cloudInitNoCloud, cloudInitConfigDrive, sysprep, containerDisk, ephemeral,
          emptyDisk, dataVolume, configMap, secret, downwardAPI, serviceAccount, downwardMetrics, memoryDump, containerPath);
KV_FIELDS(HostDisk, path, type, capacity, shared);

// --- what the node knows: the converter context -------------------------------------------------------------------
KV_FIELDS(Context, architecture, kvmAvailable, allowEmulation, cpuSet, topology, isBlockPVC, isBlockDV, disksInfo, hotplugVolumes,
          permanentVolumes, smbios, efi, memBalloonStatsPeriod, freePageReporting, bochsForEFIGuests, serialConsoleLog,
          volumesDiscardIgnore, pciNUMAAwareTopology, domainAttachmentByInterface, env, networkInfo, applyCBT,
          resourceClaims);
KV_FIELDS(Smbios, manufacturer, product, version, sku, family);
KV_FIELDS(EfiPaths, code, vars, secureLoader, firmwareAutoSelection);
KV_FIELDS(HostTopology, numa_cells);
KV_FIELDS(HostCell, id, memory, pages, distances, cpus);
KV_FIELDS(HostCpu, id, siblings);
KV_FIELDS(HostDistance, id, value);
KV_FIELDS(HostPages, count, unit, size);
KV_FIELDS(HostMemory, amount, unit);
KV_FIELDS(DiskInfo, format, backingFile, actualSize, virtualSize);
KV_FIELDS(NetworkInfo, interfaces);
KV_FIELDS(NetworkInfoInterface, network, deviceInfo);
KV_FIELDS(DeviceInfo, pci);
KV_FIELDS(ClaimedDevice, mdevUUID, pciBusID);

}  // namespace kv
