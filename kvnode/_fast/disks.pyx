# <disk>: a device of the guest (disk, LUN or CD-ROM drive) and the volume of its name behind it.
# pkg/virt-launcher/virtwrap/converter/converter.go:94 (device), :1137 (all disks)

cdef struct DiskParts:
    const Disk* f
    DiskTarget target
    DeviceName name
    DiskSource source
    bint plain, lun, cdrom  # at most one
    Text bus
    bint virtio, scsi
    bint ready              # part of the domain already


cdef void write_disks(Build& b) noexcept nogil:
    cdef Items it = items_of(b, b.devices.disks)
    cdef size_t i = 0
    keep_device_names(b)
    while i < b.disks_bound.size() and next_item(it):
        write_disk(b, it.value, &b.disks_bound[i])
        i += 1


cdef void write_disk(Build& b, Value v, const Disk* f) noexcept nogil:
    cdef DiskParts d
    cdef size_t mark = b.w.size
    d.f = f
    find_disk(b, v, &d)
    start(b.w, b"disk")
    if d.plain or d.lun or d.cdrom:
        attr(b.w, b"device", b"disk" if d.plain else b"lun" if d.lun else b"cdrom")
    attr(b.w, b"type", source_type(d.source))
    if (d.plain and d.virtio) or d.source.own_driver:
        attr(b.w, b"model", virtio_model(b, b.use_transitional))
    write_source(b, d.source, d.lun and reserved(b, d))
    write_target(b, d)
    write_driver(b, d)
    write_disk_flags(b, d)
    write_backing_store(b, d.source)
    write_block_io(b, d)
    if d.plain or d.lun:
        write_claim_size(b, d)
    close_tag(b.w)
    put_alias(b, d.f.name)
    put_boot(b, d.f.bootOrder)
    write_disk_address(b, d)
    end(b.w, b"disk")
    if not d.ready:  # only checked, and counted in names and I/O threads
        b.w.size = mark


cdef void find_disk(Build& b, Value v, DiskParts* d) noexcept nogil:
    cdef Text name
    name = str_of(b, d.f.name)
    d.plain = present(d.f.disk)
    d.lun = not d.plain and present(d.f.lun)
    d.cdrom = not d.plain and not d.lun and present(d.f.cdrom)
    bind(b, d.f.disk if d.plain else d.f.lun if d.lun else d.f.cdrom, &d.target)
    d.bus = str_of(b, d.target.bus)
    d.virtio = same_as(d.bus, b"virtio")
    d.scsi = same_as(d.bus, b"scsi")
    if d.plain or d.lun or d.cdrom:
        d.name = names_of_bus(b, d.bus).name(name)
    d.ready = is_ready(b, name)
    if not b.volumes.has(name):
        if not present(d.f.cdrom):
            reject(b, d.f.name if present(d.f.name) else v, b"needs a volume of this name in spec.volumes")
        d.ready = True
    find_source(b, d.f.name, b.volumes.get(name), b.ctx.hotplug.has(name), &d.source)


cdef bint is_ready(Build& b, Text name) noexcept nogil:
    """Whether the volume is there to be attached. Without a word on permanent volumes, all are."""
    cdef VolumeStatus status
    if b.ctx.permanent.size() == 0 or b.ctx.permanent.has(name):
        return True
    bind(b, b.ctx.hotplug.get(name), &status)
    return same_as(str_of(b, status.phase), b"MountedToPod") or same_as(str_of(b, status.phase), b"Ready")


cdef bint reserved(Build& b, DiskParts& d) noexcept nogil:
    """A LUN with SCSI reservations of its own. (The downward metrics have a source of their own.)"""
    return bool_or(b, d.target.reservation, False) and not d.source.own_driver


# --- device names

cdef const char* bus_prefix(Text bus) noexcept nogil:
    # converter.go:1270
    if same_as(bus, b"virtio"):
        return b"vd"
    return b"sd" if same_as(bus, b"sata") or same_as(bus, b"scsi") or same_as(bus, b"usb") else b""


cdef DeviceNames* names_of_bus(Build& b, Text bus) noexcept nogil:
    cdef const char* prefix = bus_prefix(bus)
    return &b.virtio_names if prefix[0] == b"v" else &b.scsi_names if prefix[0] == b"s" else &b.other_names


cdef void keep_device_names(Build& b) noexcept nogil:
    """Names that disks have by their volumes' status are theirs, whatever the order of the disks."""
    cdef const Disk* disk
    cdef VolumeStatus status
    cdef Value target
    cdef Text bus
    cdef size_t i
    b.virtio_names.clear()
    b.scsi_names.clear()
    b.other_names.clear()
    if b.volume_status.size() == 0:
        return
    for i in range(b.disks_bound.size()):
        disk = &b.disks_bound[i]
        bind(b, b.volume_status.get(text(disk.name)), &status)
        target = disk.disk if present(disk.disk) else disk.lun if present(disk.lun) else disk.cdrom
        if present(target) and str_of(b, status.target).size:
            bus = text(member(target, b"bus"))
            names_of_bus(b, bus).keep(text(disk.name), status.target, text_of(bus_prefix(bus)))


cdef void write_target(Build& b, DiskParts& d) noexcept nogil:
    start(b.w, b"target")
    attr_str_if(b, b"bus", d.target.bus)
    if (d.plain or d.lun or d.cdrom) and not d.name.none:
        attr_open(b.w, b"dev")
        if present(d.name.given):
            put_value(b.w, d.name.given)
        else:
            lit(b.w, bus_prefix(d.bus))
            put_letters(b.w, d.name.number)
        attr_close(b.w)
    if d.cdrom:
        attr_str_if(b, b"tray", d.target.tray)
    end(b.w, b"target")


# --- driver

cdef void write_driver(Build& b, DiskParts& d) noexcept nogil:
    lit(b.w, b'<driver name="qemu"')
    b.w.in_tag = True
    attr(b.w, b"type", d.source.format)
    attr_text(b.w, b"error_policy", error_policy(b, d.f.errorPolicy))
    if not d.source.own_driver:
        write_driver_settings(b, d)
    if d.virtio:
        attr_iothread(b, bool_or(b, d.f.dedicatedIOThread, False))
        write_thread_pool(b)
    end(b.w, b"driver")


cdef void write_driver_settings(Build& b, DiskParts& d) noexcept nogil:
    cdef Text cache = str_of(b, d.f.cache)
    if d.plain and bool_or(b, d.f.shareable, False):
        # the host's cache would hide one guest's writes from the other
        if cache.size and not same_as(cache, b"none"):
            reject(b, d.f.cache, b"must be none, or left out: the disk is shareable")
        attr(b.w, b"cache", b"none")
    else:
        attr_str_if(b, b"cache", d.f.cache)
    attr_str_if(b, b"io", d.f.io)
    if d.source.discards or ((d.plain or d.lun) and not b.ctx.discard_ignore.has(text(d.f.name))):
        attr(b.w, b"discard", b"unmap")
    if d.virtio:
        if bool_or(b, b.devices.blockMultiQueue, False):
            attr_uint(b.w, b"queues", b.vcpus)
        if b.iommu:
            attr(b.w, b"iommu", b"on")


cdef Text error_policy(Build& b, Value policy) noexcept nogil:
    # converter.go:193
    cdef Text s = str_of(b, policy)
    if not present(policy):
        return text_of(b"stop")
    if not (same_as(s, b"stop") or same_as(s, b"ignore") or same_as(s, b"report") or same_as(s, b"enospace")):
        reject(b, policy, b"must be stop, ignore, report or enospace")
    return s


# --- the rest

cdef void write_disk_flags(Build& b, DiskParts& d) noexcept nogil:
    close_tag(b.w)
    if bool_or(b, d.target.readonly, d.cdrom) or d.source.own_driver:
        lit(b.w, b"<readonly/>")
    if not d.plain:
        return
    if bool_or(b, d.f.shareable, False):
        lit(b.w, b"<shareable/>")
    if str_of(b, d.f.serial).size:
        element_value(b.w, b"serial", d.f.serial)


cdef void write_block_io(Build& b, DiskParts& d) noexcept nogil:
    # converter.go:252
    cdef BlockSize size
    cdef CustomBlockSize custom
    cdef MatchVolume match
    cdef uint64_t logical, physical
    if not present(d.f.blockSize):
        return
    bind(b, d.f.blockSize, &size)
    if not present(size.custom):
        bind(b, size.matchVolume, &match)
        if present(size.matchVolume) and bool_or(b, match.enabled, True):
            # the reference asks the device or the file system below the image
            reject(b, size.matchVolume, b"is not known to the conversion: give the sizes as blockSize.custom")
        return
    bind(b, size.custom, &custom)
    logical = uint_or(b, custom.logical, 0)
    physical = uint_or(b, custom.physical, 0)
    if b.ctx.arch == S390X and (logical > 4096 or physical > 4096):
        reject(b, custom.logical if logical > 4096 else custom.physical, b"must be 4096 at most on s390x")
    start(b.w, b"blockio")
    if logical:
        attr_uint(b.w, b"logical_block_size", logical)
    if physical:
        attr_uint(b.w, b"physical_block_size", physical)
    if present(custom.discardGranularity):
        attr_uint(b.w, b"discard_granularity", uint_or(b, custom.discardGranularity, 0))
    end(b.w, b"blockio")


cdef void write_claim_size(Build& b, DiskParts& d) noexcept nogil:
    """For the launcher, which grows disks with their claims; not libvirt's."""
    cdef VolumeStatus status
    cdef ClaimInfo claim
    cdef ClaimSize requested, capacity
    if b.volume_status.size() == 0:
        return
    bind(b, b.volume_status.get(text(d.f.name)), &status)
    bind(b, status.persistentVolumeClaimInfo, &claim)
    close_tag(b.w)
    if present(claim.filesystemOverhead):
        element_value(b.w, b"filesystemOverhead", claim.filesystemOverhead)
    # pkg/storage/types/pvc.go:296
    bind(b, claim.requests, &requested)
    bind(b, claim.capacity, &capacity)
    if present(requested.storage) and present(capacity.storage):
        start(b.w, b"capacity")
        close_tag(b.w)
        put_int(b.w, min(quantity_or(b, requested.storage, 0), quantity_or(b, capacity.storage, 0)))
        end(b.w, b"capacity")


cdef void write_disk_address(Build& b, DiskParts& d) noexcept nogil:
    cdef Value wanted
    if d.plain and str_of(b, d.target.pciAddress).size:
        wanted = d.target.pciAddress
        if not d.virtio:
            reject(b, wanted, b"needs bus virtio: other disks have no PCI address of their own")
    if d.virtio and d.ready:
        put_device_address(b, wanted)
    elif d.scsi and not d.cdrom:
        # the one SCSI controller, of index 0
        close_tag(b.w)
        lit(b.w, b'<address type="drive" controller="0" bus="0" unit="')
        put_uint(b.w, d.name.number)
        lit(b.w, b'"/>')
