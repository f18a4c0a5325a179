# The C++ core as Cython sees it: kvnode/_fast/core/*.hpp. What a section uses is named; the C++ compiler holds the two together.
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libcpp cimport bool
from libcpp.string cimport string
from libcpp.unordered_map cimport unordered_map
from libcpp.vector cimport vector


cdef extern from "tape.hpp" namespace "kv" nogil:
    struct Text:
        const char* data
        size_t size

    struct Document:
        pass

    struct Value:
        const uint64_t* at
        const Document* doc

    struct Items:
        Value value

    struct Members:
        Text name
        Value value

    Text text_of(const char* s)
    bool same(Text a, Text b)
    bool same_as "kv::same"(Text a, const char* b)
    char kind(Value v)
    bool present(Value v)
    Text text(Value v)
    Value root(const Document* doc)
    bool next_item "kv::next"(Items& it)
    Members members(Value v)
    bool next_member "kv::next"(Members& it)
    Value member(Value v, const char* name)
    Value member_named "kv::member"(Value v, Text name)


cdef extern from "names.hpp" namespace "kv" nogil:
    cppclass Names:
        void clear()
        void put(Text name, Value value, unsigned int index)
        bool has(Text name)
        Value get(Text name)
        int64_t index(Text name)
        size_t size()

    void index_members(Names& names, Value object)


cdef extern from "writer.hpp" namespace "kv" nogil:
    cppclass Writer:
        Writer()
        char* data
        size_t size, room
        bool in_tag
        bool failed
        bool invalid
        Value bad
        Value source

    void reset(Writer& w)
    # constants, as they stand
    void lit(Writer& w, const char* s)
    void put(Writer& w, const char* s, size_t n)
    void put_uint(Writer& w, uint64_t n)
    void put_int(Writer& w, int64_t n)
    # text of the manifest, escaped
    void put_escaped(Writer& w, Text s)
    void put_value(Writer& w, Value v)
    # elements
    void start(Writer& w, const char* name)
    void end(Writer& w, const char* name)
    void close_tag(Writer& w)
    void element(Writer& w, const char* name, const char* literal)
    void element_value "kv::element"(Writer& w, const char* name, Value v)
    void element_uint(Writer& w, const char* name, uint64_t n)
    # attributes
    void attr(Writer& w, const char* name, const char* literal)
    void attr_value "kv::attr"(Writer& w, const char* name, Value v)
    void attr_text(Writer& w, const char* name, Text s)
    void attr_uint(Writer& w, const char* name, uint64_t n)
    void attr_open(Writer& w, const char* name)
    void attr_close(Writer& w)


cdef extern from "device_names.hpp" namespace "kv" nogil:
    struct DeviceName:
        Value given
        unsigned int number
        bool none

    cppclass DeviceNames:
        void clear()
        void keep(Text disk, Value name, Text prefix)
        DeviceName name(Text disk)

    void put_letters(Writer& w, unsigned int number)


cdef extern from "parse.hpp" namespace "kv" nogil:
    cppclass Parser:
        const char* parse(const char* json, size_t size)
        const Document& document()
        void keep() except +


cdef extern from "fields.hpp" namespace "kv" nogil:
    struct Vmi:
        Value metadata, spec, status
    struct Metadata:
        Value name, namespace_, uid, annotations
    struct Spec:
        Value architecture, domain, networks, startStrategy, volumes
    struct Status:
        Value VSOCKCID, runtimeUser, topologyHints, volumeStatus, interfaces
    struct InterfaceStatus:
        Value name, podInterfaceName, infoSource
    struct TopologyHints:
        Value tscFrequency
    struct VolumeStatus:
        Value name, target, phase, persistentVolumeClaimInfo
    struct ClaimInfo:
        Value filesystemOverhead, capacity, requests
    struct ClaimSize:
        Value storage

    struct Domain:
        Value chassis, clock, cpu, devices, features, firmware, ioThreads, ioThreadsPolicy, launchSecurity, machine
        Value memory, rebootPolicy, resources
    struct Resources:
        Value requests, limits
    struct ResourceList:
        Value cpu, memory
    struct Cpu:
        Value cores, sockets, maxSockets, threads, model, features, dedicatedCpuPlacement, numa, isolateEmulatorThread, realtime
    struct CpuFeature:
        Value name, policy
    struct Numa:
        Value guestMappingPassthrough
    struct Memory:
        Value guest, maxGuest, hugepages
    struct Hugepages:
        Value pageSize
    struct Machine:
        Value type
    struct Firmware:
        Value uuid, serial, bootloader, kernelBoot, acpi
    struct Bootloader:
        Value bios, efi
    struct Bios:
        Value useSerial
    struct KernelBoot:
        Value kernelArgs, container
    struct KernelBootContainer:
        Value image, kernelPath, initrdPath
    struct Acpi:
        Value slicNameRef, msdmNameRef
    struct Chassis:
        Value manufacturer, version, serial, asset, sku
    struct LaunchSecurity:
        Value sev, snp, tdx
    struct Sev:
        Value policy, session, dhCert
    struct SevPolicy:
        Value encryptedState
    struct IoThreads:
        Value supplementalPoolThreadCount

    struct Clock:
        Value utc, timezone, timer
    struct ClockUtc:
        Value offsetSeconds
    struct Timer:
        Value hpet, kvm, pit, rtc, hyperv
    struct OneTimer:
        Value tickPolicy, present, track
    struct Features:
        Value acpi, apic, hypervPassthrough, hyperv, smm, kvm, pvspinlock
    struct FeatureState:
        Value enabled
    struct Hyperv:
        Value relaxed, vapic, spinlocks, vpindex, runtime, synic, synictimer, reset, vendorid, frequencies, reenlightenment
        Value tlbflush, ipi, evmcs
    struct HypervFeature:
        Value enabled, spinlocks, vendorid, direct, extended
    struct KvmFeature:
        Value hidden

    struct Devices:
        Value autoattachGraphicsDevice, autoattachMemBalloon, autoattachSerialConsole, blockMultiQueue, clientPassthrough
        Value disableHotplug, disks, downwardMetrics, filesystems, gpus, hostDevices, inputs, interfaces
        Value networkInterfaceMultiqueue, panicDevices, rng, sound, tpm, useVirtioTransitional, video, watchdog
    struct Disk:
        Value name, disk, lun, cdrom, bootOrder, serial, dedicatedIOThread, cache, io, blockSize, shareable, errorPolicy
    struct DiskTarget:
        Value bus, readonly, pciAddress, reservation, tray
    struct BlockSize:
        Value custom, matchVolume
    struct MatchVolume:
        Value enabled
    struct CustomBlockSize:
        Value logical, physical, discardGranularity
    struct Interface:
        Value name, model, sriov, passtBinding, binding, ports, macAddress, bootOrder, pciAddress, acpiIndex, state
    struct Port:
        Value name, protocol, port
    struct Input:
        Value bus, type, name
    struct Watchdog:
        Value name, i6300esb, diag288
    struct WatchdogModel:
        Value action
    struct Sound:
        Value name, model
    struct Tpm:
        Value enabled, persistent
    struct Video:
        Value type
    struct PanicDevice:
        Value model
    struct Filesystem:
        Value name, virtiofs
    struct HostDevice:
        Value name, deviceName, claimName, requestName, virtualGPUOptions
    struct VgpuOptions:
        Value display
    struct VgpuDisplay:
        Value enabled, ramFB

    struct Network:
        Value name, resourceClaim
    struct Multus:
        Value networkName, default_
    struct ResourceClaim:
        Value claimName, requestName
    struct Volume:
        Value name, hostDisk, persistentVolumeClaim, cloudInitNoCloud, cloudInitConfigDrive, sysprep, containerDisk, ephemeral
        Value emptyDisk, dataVolume, configMap, secret, downwardAPI, serviceAccount, downwardMetrics
    struct HostDisk:
        Value path

    struct Context:
        Value architecture, kvmAvailable, allowEmulation, cpuSet, topology, isBlockPVC, isBlockDV, disksInfo, hotplugVolumes
        Value permanentVolumes, smbios, efi, memBalloonStatsPeriod, freePageReporting, bochsForEFIGuests, serialConsoleLog
        Value volumesDiscardIgnore, pciNUMAAwareTopology, domainAttachmentByInterface, env, networkInfo, applyCBT
        Value resourceClaims
    struct Smbios:
        Value manufacturer, product, version, sku, family
    struct EfiPaths:
        Value code, vars, secureLoader, firmwareAutoSelection
    struct HostTopology:
        Value numa_cells
    struct HostCell:
        Value id, memory, pages, cpus
    struct HostCpu:
        Value id, siblings
    struct DiskInfo:
        Value format
    struct NetworkInfo:
        Value interfaces
    struct NetworkInfoInterface:
        Value network, deviceInfo
    struct DeviceInfo:
        Value pci
    struct ClaimedDevice:
        Value mdevUUID, pciBusID


cdef extern from "cpus.hpp" namespace "kv" nogil:
    cppclass HostCpus:
        vector[uint32_t] set, threads, core_end, cell_end, cell_id
        unordered_map[uint32_t, uint32_t] cell_of

    cppclass CpuPool:
        void reset(const HostCpus& host, uint64_t threads_per_core)
        uint64_t fit(uint64_t cores, bool may_cross_cells, vector[uint32_t]& out)
        bool one(vector[uint32_t]& out)

    cppclass GuestNuma:
        bool mapped
        uint32_t cells
        vector[uint32_t] vcpus, start
        uint64_t page_bytes, pages, larger


cdef extern from "build.hpp" namespace "kv" nogil:
    enum Arch:
        AMD64 "kv::kAmd64"
        ARM64 "kv::kArm64"
        S390X "kv::kS390x"

    cppclass ContextData:
        ContextData() except +
        Parser parser
        Context f
        Smbios smbios
        EfiPaths efi
        Names block_pvc, block_dv, disks_info, hotplug, permanent, attachment, cbt, discard_ignore, env
        Arch arch
        bool kvm_available, allow_emulation, free_page_reporting, bochs_for_efi
        bool serial_console_log, pci_numa_aware, efi_secure_loader, efi_auto_selection
        uint64_t balloon_period
        HostCpus cpus
        Names sriov, claims

    void fetch(const ContextData& context)

    struct Error:
        bool set
        Value at
        const char* field
        const char* what

    cppclass Build:
        Build() except +
        const ContextData* ctx
        Writer w, qemu
        Value root
        Vmi vmi
        Metadata meta
        Spec spec
        Status status
        Domain domain
        Devices devices
        Cpu cpu
        Memory memory
        Firmware firmware
        Resources resources
        vector[Disk] disks_bound
        vector[Interface] interfaces_bound
        Names volumes, volume_status
        Text name, name_space, uid
        bool use_transitional, sev, tdx, secure_execution, iommu, efi_boot, shared_memory
        uint64_t cores, sockets, threads, vcpus, max_vcpus
        bool dedicated_cpus
        vector[uint32_t] vcpu_pins, io_thread_pins, emulator_pins
        CpuPool cpu_pool
        GuestNuma guest_numa
        Names networks, interface_status, device_cursor, device_taken
        uint64_t io_threads, auto_threads
        bool has_io_threads
        bool place_on_root
        int root_slot
        uint64_t disks, dedicated_disks, shared_virtio_disks
        bool scsi_disk, dedicated_scsi_disk, usb_disk, io_thread_pool
        uint64_t next_dedicated_thread, next_auto_thread
        DeviceNames virtio_names, scsi_names, other_names
        Error error

    # errors are noted, the first one counts
    void reject(Build& b, Value at, const char* what)
    void reject_named "kv::reject"(Build& b, Value at, const char* what, Text detail)
    void reject_in(Build& b, Value at, const char* field, const char* what)
    void reject_in_named "kv::reject_in"(Build& b, Value at, const char* field, const char* what, Text detail)
    # typed reads: absent gives the default
    uint64_t uint_or(Build& b, Value v, uint64_t otherwise)
    uint64_t uint_up_to "kv::uint_or"(Build& b, Value v, uint64_t otherwise, uint64_t most)
    int64_t int_or(Build& b, Value v, int64_t otherwise)
    bool bool_or(Build& b, Value v, bool otherwise)
    Text str_of "kv::str"(Build& b, Value v)
    Items items_of(Build& b, Value v)
    void bind[T](Build& b, Value v, T* out)
    void bind_all[T](Build& b, Value list, vector[T]& out)
    Value field_of(Build& b, Value v, const char* name)
    int64_t quantity_or(Build& b, Value v, int64_t otherwise)
    uint64_t memory_or(Build& b, Value v, uint64_t otherwise)
    bool same_quantity(Build& b, Value one, Value other)
    # values of the manifest, their type checked
    void attr_str(Build& b, const char* name, Value v)
    void attr_str_if(Build& b, const char* name, Value v)
    void put_str(Build& b, Value v)
    void put_alias(Build& b, Value name)
    void put_boot(Build& b, Value order)

    # a device plugin's variable in context.env; absent when there is none
    Value plugin_variable(Build& b, const char* prefix, Text resource)

    const char* virtio_model(const Build& b, bool transitional)
    string error_field(const Build& b)
    string error_message(const Build& b)
