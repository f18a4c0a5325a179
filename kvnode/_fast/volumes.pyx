# Where a disk's data is: what a volume of the VMI is inside the launcher's pod.
# pkg/virt-launcher/virtwrap/converter/converter.go:567 (plugged from the start) and :619 (hotplugged)

# What stands between `before` and `after` in the path of an image.
cdef enum Middle:
    MIDDLE_VOLUME  # the volume's name
    MIDDLE_VMI     # namespace/name
    MIDDLE_FILE    # the volume's name, then the file's name
    MIDDLE_INDEX   # the volume's place among the volumes
    MIDDLE_NOTHING


cdef struct Image:
    const char* before  # NULL: no image
    const char* after
    Middle middle
    bint block          # a block device, not a file
    Text file           # for MIDDLE_FILE


cdef struct DiskSource:
    Value volume        # its name
    uint64_t index      # its place among the volumes
    Image image
    const char* format  # raw or qcow2
    bint named          # the source carries the volume's name
    bint discards       # discard="unmap", whatever the kind of disk
    bint own_driver     # the driver's other settings do not apply: downward metrics
    Value bitmaps       # changed block tracking: the path of the qcow2 file over the image
    Image backing
    Value backing_format  # absent: raw


cdef void find_source(Build& b, Value name, Value volume, bint hotplug, DiskSource* s) noexcept nogil:
    """What the volume is. `volume` absent: a CD-ROM drive without a disc."""
    cdef Volume v
    begin_source(s, name)
    if not present(volume):
        s.format = b"raw"
        s.image.block = s.discards = True
        return
    bind(b, volume, &v)
    if hotplug:
        find_hotplug_source(b, volume, v, s)
    elif present(v.containerDisk):
        find_container_disk(b, s)
    elif present(v.cloudInitNoCloud):
        set_image(s, b"raw", b"/var/run/libvirt/cloud-init-dir/", b"/noCloud.iso", MIDDLE_VMI)
    elif present(v.cloudInitConfigDrive):
        set_image(s, b"raw", b"/var/run/libvirt/cloud-init-dir/", b"/configdrive.iso", MIDDLE_VMI)
    elif present(v.sysprep):
        set_image(s, b"raw", b"/var/run/kubevirt-private/sysprep-disks/", b".iso", MIDDLE_VOLUME)
    elif present(v.hostDisk):
        find_host_disk(b, v.hostDisk, s)
    elif present(v.persistentVolumeClaim):
        find_claim(b, b.ctx.block_pvc.get(text(name)), s)
    elif present(v.dataVolume):
        find_claim(b, b.ctx.block_dv.get(text(name)), s)
    elif present(v.ephemeral):
        set_image(s, b"qcow2", b"/var/run/kubevirt-ephemeral-disks/disk-data/", b"/disk.qcow2", MIDDLE_VOLUME)
        s.discards = True
        set_claim(&s.backing, bool_or(b, b.ctx.block_pvc.get(text(name)), False))
    elif present(v.emptyDisk):
        set_image(s, b"qcow2", b"/var/run/libvirt/empty-disks/", b".qcow2", MIDDLE_VOLUME)
        s.discards = True
    else:
        find_config_source(b, volume, v, s)


cdef void begin_source(DiskSource* s, Value name) noexcept nogil:
    cdef Value none
    cdef Text nothing
    s.volume = name
    s.named = s.discards = s.own_driver = False
    s.bitmaps = s.backing_format = none
    s.image.file = s.backing.file = nothing
    s.image.block = s.backing.block = False
    s.backing.before = NULL
    set_image(s, b"", NULL, NULL, MIDDLE_NOTHING)


cdef void find_config_source(Build& b, Value volume, Volume& v, DiskSource* s) noexcept nogil:
    """Objects of the cluster as ISO images: pkg/config/config.go:54."""
    if present(v.configMap):
        set_image(s, b"raw", b"/var/run/kubevirt-private/config-map-disks/", b".iso", MIDDLE_VOLUME)
    elif present(v.secret):
        set_image(s, b"raw", b"/var/run/kubevirt-private/secret-disks/", b".iso", MIDDLE_VOLUME)
    elif present(v.downwardAPI):
        set_image(s, b"raw", b"/var/run/kubevirt-private/downwardapi-disks/", b".iso", MIDDLE_VOLUME)
    elif present(v.serviceAccount):
        set_image(s, b"raw", b"/var/run/kubevirt-private/service-account-disk/service-account.iso", b"",
                  MIDDLE_NOTHING)
    elif present(v.downwardMetrics):
        set_image(s, b"raw", b"/var/run/kubevirt-private/downwardapi-disks/vhostmd0", b"", MIDDLE_NOTHING)
        s.own_driver = True
    else:
        reject(b, volume, b"has no source that a disk can be made of")


cdef void find_container_disk(Build& b, DiskSource* s) noexcept nogil:
    cdef DiskInfo info
    cdef Value known = b.ctx.disks_info.get(text(s.volume))
    set_image(s, b"qcow2", b"/var/run/kubevirt-ephemeral-disks/disk-data/", b"/disk.qcow2", MIDDLE_VOLUME)
    s.discards = True
    if not present(known):
        reject_named(b, s.volume, b"is a container disk of which context.disksInfo must tell the format:",
                     text(s.volume))
    bind(b, known, &info)
    s.backing_format = info.format
    # pkg/container-disk/container-disk.go:104
    s.index = <uint64_t>b.volumes.index(text(s.volume))
    s.backing.before = b"/var/run/kubevirt/container-disks/disk_"
    s.backing.after = b".img"
    s.backing.middle = MIDDLE_INDEX


cdef void find_host_disk(Build& b, Value host_disk, DiskSource* s) noexcept nogil:
    """The directory of the disk is mounted at the volume's: pkg/host-disk/host-disk.go:208."""
    cdef HostDisk disk
    bind(b, host_disk, &disk)
    set_image(s, b"raw", b"/var/run/kubevirt-private/vmi-disks/", b"", MIDDLE_FILE)
    s.image.file = base_name(str_of(b, disk.path))
    s.bitmaps = b.ctx.cbt.get(text(s.volume))
    if present(s.bitmaps):  # even with an empty path
        str_of(b, s.bitmaps)
        s.format = b"qcow2"


cdef Text base_name(Text path) noexcept nogil:
    """What follows the last slash, trailing ones apart; empty for "", "/" and "."."""
    cdef Text name
    cdef size_t end = path.size
    cdef size_t start
    while end > 0 and path.data[end - 1] == b"/":
        end -= 1
    start = end
    while start > 0 and path.data[start - 1] != b"/":
        start -= 1
    name.data = path.data + start
    name.size = end - start
    if same_as(name, b"."):
        name.size = 0
    return name


cdef void find_claim(Build& b, Value block, DiskSource* s) noexcept nogil:
    s.named = bool_or(b, block, False)
    set_claim(&s.image, s.named)
    find_claim_format(b, s)


cdef void find_claim_format(Build& b, DiskSource* s) noexcept nogil:
    cdef Value path = b.ctx.cbt.get(text(s.volume))
    s.format = b"raw"
    s.discards = not b.ctx.discard_ignore.has(text(s.volume))
    if str_of(b, path).size:
        s.bitmaps = path
        s.format = b"qcow2"


cdef void find_hotplug_source(Build& b, Value volume, Volume& v, DiskSource* s) noexcept nogil:
    cdef bint block
    # the node's agent gives claims as host disks
    if present(v.hostDisk) or present(v.persistentVolumeClaim):
        block = bool_or(b, b.ctx.block_pvc.get(text(s.volume)), False)
    elif present(v.dataVolume):
        block = bool_or(b, b.ctx.block_dv.get(text(s.volume)), False)
    else:
        reject(b, volume, b"is hotplugged, so it must be a persistentVolumeClaim or a dataVolume")
        return
    set_image(s, b"raw", b"/var/run/kubevirt/hotplug-disks/", b"" if block else b".img", MIDDLE_VOLUME)
    s.image.block = block
    find_claim_format(b, s)


cdef void set_image(DiskSource* s, const char* format, const char* before, const char* after,
                    Middle middle) noexcept nogil:
    s.format = format
    s.image.before = before
    s.image.after = after
    s.image.middle = middle


cdef void set_claim(Image* image, bint block) noexcept nogil:
    """A claim's device or image: pkg/storage/volumepath."""
    image.before = b"/dev/" if block else b"/var/run/kubevirt-private/vmi-disks/"
    image.after = b"" if block else b"/disk.img"
    image.middle = MIDDLE_VOLUME
    image.block = block


# --- writing it

cdef void write_source(Build& b, DiskSource& s, bint reservation) noexcept nogil:
    if s.image.before == NULL and not reservation:
        return
    start(b.w, b"source")
    if present(s.bitmaps):
        attr_value(b.w, b"file", s.bitmaps)
    else:
        attr_image(b, s, s.image)
    if s.named:
        attr_value(b.w, b"name", s.volume)
    if reservation:
        close_tag(b.w)
        lit(b.w, b'<reservations managed="no" migration="yes"><source type="unix" ')
        lit(b.w, b'path="/var/run/kubevirt/daemons/pr/pr-helper.sock" mode="client"/></reservations>')
    if present(s.bitmaps):
        start(b.w, b"dataStore")
        attr(b.w, b"type", image_type(s.image))
        close_tag(b.w)
        lit(b.w, b'<format type="raw"/><source')
        attr_image(b, s, s.image)
        lit(b.w, b"/></dataStore>")
    end(b.w, b"source")


cdef void write_backing_store(Build& b, DiskSource& s) noexcept nogil:
    if s.backing.before == NULL:
        return
    start(b.w, b"backingStore")
    attr(b.w, b"type", image_type(s.backing))
    close_tag(b.w)
    lit(b.w, b"<format")
    if s.backing.middle == MIDDLE_INDEX:
        attr_str_if(b, b"type", s.backing_format)
    else:
        attr(b.w, b"type", b"raw")
    lit(b.w, b"/><source")
    attr_image(b, s, s.backing)
    if s.backing.block:
        attr_value(b.w, b"name", s.volume)
    lit(b.w, b"/></backingStore>")


cdef const char* source_type(DiskSource& s) noexcept nogil:
    if present(s.bitmaps):
        return b"file"
    return image_type(s.image)


cdef const char* image_type(Image& image) noexcept nogil:
    return b"block" if image.block else b"file"


cdef void attr_image(Build& b, DiskSource& s, Image& image) noexcept nogil:
    """file="..." or dev="..."."""
    if image.before == NULL:
        return
    attr_open(b.w, b"dev" if image.block else b"file")
    lit(b.w, image.before)
    if image.middle == MIDDLE_VMI:
        put_value(b.w, b.meta.namespace_)
        lit(b.w, b"/")
        put_value(b.w, b.meta.name)
    elif image.middle == MIDDLE_INDEX:
        put_uint(b.w, s.index)
    elif image.middle != MIDDLE_NOTHING:
        put_value(b.w, s.volume)
        if image.file.size:
            lit(b.w, b"/")
            put_escaped(b.w, image.file)
    lit(b.w, image.after)
    attr_close(b.w)
