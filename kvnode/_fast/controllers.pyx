# Controllers: USB, SCSI, the PCIe root with its hole closed, virtio-serial.
# pkg/virt-launcher/virtwrap/converter/compute/controllers.go

cdef void write_controllers(Build& b) noexcept nogil:
    lit(b.w, b'<controller type="usb" index="0" model="')
    lit(b.w, b"qemu-xhci" if needs_usb(b) else b"none")
    lit(b.w, b'">')
    put_pci_address(b)
    lit(b.w, b"</controller>")
    if b.scsi_disk or not bool_or(b, b.devices.disableHotplug, False):
        write_scsi_controller(b)
    if b.ctx.arch == AMD64 and is_true(str_of(b, annotation(b, b"kubevirt.io/disablePCIHole64"))):
        lit(b.w, b'<controller type="pci" index="0" model="pcie-root">')
        lit(b.w, b'<pcihole64 unit="KiB">0</pcihole64></controller>')
    if bool_or(b, b.devices.autoattachSerialConsole, True):
        start(b.w, b"controller")
        lit(b.w, b' type="virtio-serial" index="0"')
        attr(b.w, b"model", virtio_model(b, b.use_transitional))
        write_iommu_driver(b)
        put_pci_address(b)
        end(b.w, b"controller")


cdef bint needs_usb(Build& b) noexcept nogil:
    """pkg/virt-launcher/virtwrap/converter/arch/{amd64,arm64,s390x}.go, IsUSBNeeded.

    A USB device among hostDevices shows only in the device plugin's environment, and the reference's answers
    do not count it: such a VM needs another reason for its controller.
    """
    if b.ctx.arch != AMD64:
        return b.ctx.arch == ARM64
    return b.usb_disk or present(b.devices.clientPassthrough) or has_usb_input(b)


cdef bint has_usb_input(Build& b) noexcept nogil:
    cdef Items it = items_of(b, b.devices.inputs)
    cdef Input device
    cdef Text bus
    while next_item(it):
        bind(b, it.value, &device)
        bus = str_of(b, device.bus)
        if bus.size == 0 or same_as(bus, b"usb"):
            return True
    return False


cdef bint is_true(Text s) noexcept nogil:
    """"true" in any case."""
    cdef const char* word = b"true"
    cdef size_t i
    if s.size != 4:
        return False
    for i in range(4):
        if (s.data[i] | 0x20) != word[i]:
            return False
    return True


cdef void write_scsi_controller(Build& b) noexcept nogil:
    # controllers.go:202: the queues and the thread are for disks that ask for a thread of their own
    cdef bint threaded = b.auto_threads != 0 and b.dedicated_scsi_disk
    cdef const char* model = virtio_model(b, b.use_transitional)
    if b.ctx.arch == S390X:
        model = b"virtio-scsi"
    start(b.w, b"controller")
    lit(b.w, b' type="scsi" index="0"')
    attr(b.w, b"model", model)
    if threaded:
        start(b.w, b"driver")
        # the one after those of the virtio disks, which go round the shared threads
        attr_uint(b.w, b"iothread", b.shared_virtio_disks % b.auto_threads + 1)
        attr_uint(b.w, b"queues", b.vcpus)
        if b.iommu:
            attr(b.w, b"iommu", b"on")
        end(b.w, b"driver")
    else:
        write_iommu_driver(b)
    put_pci_address(b)
    end(b.w, b"controller")
