# The input, bound once: the parts of the VMI that more than one section reads, and what follows from them.

cdef void bind_context(Build& b, ContextData& c) noexcept nogil:
    """Binds the converter context; its keys are those of kvnode.ConverterContext."""
    cdef Text arch
    cdef Items it
    bind(b, root(&c.parser.document()), &c.f)
    arch = str_of(b, c.f.architecture)
    # an unknown architecture is converted as amd64, as in pkg/virt-launcher/virtwrap/converter/arch/converter.go:46
    c.arch = ARM64 if same_as(arch, b"arm64") else S390X if same_as(arch, b"s390x") else AMD64
    c.kvm_available = bool_or(b, c.f.kvmAvailable, False)
    c.allow_emulation = bool_or(b, c.f.allowEmulation, False)
    c.free_page_reporting = bool_or(b, c.f.freePageReporting, False)
    c.bochs_for_efi = bool_or(b, c.f.bochsForEFIGuests, False)
    c.serial_console_log = bool_or(b, c.f.serialConsoleLog, False)
    c.pci_numa_aware = bool_or(b, c.f.pciNUMAAwareTopology, False)
    c.balloon_period = uint_or(b, c.f.memBalloonStatsPeriod, 0)
    bind(b, c.f.smbios, &c.smbios)
    bind(b, c.f.efi, &c.efi)
    c.efi_secure_loader = bool_or(b, c.efi.secureLoader, False)
    c.efi_auto_selection = bool_or(b, c.efi.firmwareAutoSelection, False)
    index_object(b, c.block_pvc, c.f.isBlockPVC)
    index_object(b, c.block_dv, c.f.isBlockDV)
    index_object(b, c.disks_info, c.f.disksInfo)
    index_object(b, c.hotplug, c.f.hotplugVolumes)
    index_object(b, c.permanent, c.f.permanentVolumes)
    index_object(b, c.attachment, c.f.domainAttachmentByInterface)
    index_object(b, c.cbt, c.f.applyCBT)
    index_object(b, c.env, c.f.env)
    bind_host_cpus(b, c)
    bind_host_devices(b, c)
    it = items_of(b, c.f.volumesDiscardIgnore)
    while next_item(it):
        c.discard_ignore.put(str_of(b, it.value), it.value, 0)


cdef void index_object(Build& b, Names& names, Value v) noexcept nogil:
    if present(v) and kind(v) != b"{":
        reject(b, v, b"must be an object")
    index_members(names, v)


cdef void begin(Build& b) noexcept nogil:
    """Binds the VMI at b.root and forgets the conversion before."""
    reset(b.w)
    reset(b.qemu)
    b.error.set = False
    if kind(b.root) != b"{":
        reject(b, b.root, b"must be an object: a VirtualMachineInstance")
    bind(b, b.root, &b.vmi)
    bind(b, b.vmi.metadata, &b.meta)
    bind(b, b.vmi.spec, &b.spec)
    bind(b, b.vmi.status, &b.status)
    bind(b, b.spec.domain, &b.domain)
    bind(b, b.domain.devices, &b.devices)
    bind(b, b.domain.cpu, &b.cpu)
    bind(b, b.domain.memory, &b.memory)
    bind(b, b.domain.firmware, &b.firmware)
    bind(b, b.domain.resources, &b.resources)
    bind_all(b, b.devices.disks, b.disks_bound)
    bind_all(b, b.devices.interfaces, b.interfaces_bound)
    b.name = str_of(b, b.meta.name)
    b.name_space = str_of(b, b.meta.namespace_)
    b.uid = str_of(b, b.meta.uid)
    b.use_transitional = bool_or(b, b.devices.useVirtioTransitional, False)
    derive_launch_security(b)
    derive_firmware(b)
    derive_topology(b)
    derive_volumes(b)
    derive_shared_memory(b)
    derive_iothreads(b)
    derive_pci(b)
    derive_pinning(b)


cdef void derive_launch_security(Build& b) noexcept nogil:
    # pkg/util/util.go:54-84
    cdef LaunchSecurity ls
    bind(b, b.domain.launchSecurity, &ls)
    b.sev = present(ls.sev) or present(ls.snp)
    b.tdx = present(ls.tdx)
    b.secure_execution = present(b.domain.launchSecurity) and same_as(str_of(b, b.spec.architecture), b"s390x")
    b.iommu = b.sev or b.secure_execution


cdef void derive_firmware(Build& b) noexcept nogil:
    cdef Bootloader loader
    bind(b, b.firmware.bootloader, &loader)
    b.efi_boot = present(loader.efi)


cdef void derive_volumes(Build& b) noexcept nogil:
    cdef Items it = items_of(b, b.spec.volumes)
    cdef unsigned int index = 0
    b.volumes.clear()
    while next_item(it):
        b.volumes.put(str_of(b, field_of(b, it.value, b"name")), it.value, index)
        index += 1
    it = items_of(b, b.status.volumeStatus)
    b.volume_status.clear()
    while next_item(it):
        b.volume_status.put(str_of(b, field_of(b, it.value, b"name")), it.value, 0)


cdef Value annotation(Build& b, const char* name) noexcept nogil:
    return member(b.meta.annotations, name)


cdef bint has_annotation(Build& b, const char* name) noexcept nogil:
    """Whether it is there, whatever it says."""
    cdef Members it = members(b.meta.annotations)
    while next_member(it):
        if same_as(it.name, name):
            return True
    return False


cdef const char* hypervisor_type(Build& b) noexcept nogil:
    # pkg/virt-launcher/virtwrap/converter/kvm/configurator.go:79
    if b.ctx.kvm_available:
        return b"kvm"
    if not b.ctx.allow_emulation:
        reject_in(b, b.ctx.f.kvmAvailable, b"",
                  b"KVM is not available on this node and software emulation (allowEmulation) is not allowed")
    return b"qemu"


cdef void write_name(Build& b) noexcept nogil:
    """NAMESPACE_NAME, as pkg/virt-launcher/virtwrap/api/schema.go:1530."""
    lit(b.w, b"<name>")
    put_str(b, b.meta.namespace_)
    lit(b.w, b"_")
    put_str(b, b.meta.name)
    lit(b.w, b"</name>")


cdef void write_reboot_policy(Build& b) noexcept nogil:
    # pkg/virt-launcher/virtwrap/converter/compute/reboot_policy.go:30
    cdef Text policy = str_of(b, b.domain.rebootPolicy)
    if same_as(policy, b"Terminate"):
        element(b.w, b"on_reboot", b"destroy")
    elif same_as(policy, b"Reboot"):
        element(b.w, b"on_reboot", b"restart")
