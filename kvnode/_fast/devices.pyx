# The small devices, each as its file of pkg/virt-launcher/virtwrap/converter/compute has it.

cdef void write_emulator(Build& b) noexcept nogil:
    """No <emulator>: libvirt finds QEMU. (Cross-architecture emulation, which names one, is not supported.)"""


cdef void write_memballoon(Build& b) noexcept nogil:
    # balloon.go:52
    if not bool_or(b, b.devices.autoattachMemBalloon, True):
        start(b.w, b"memballoon")
        attr(b.w, b"model", b"none")
        put_pci_address(b)
        end(b.w, b"memballoon")
        return
    start(b.w, b"memballoon")
    attr(b.w, b"model", virtio_model(b, b.use_transitional))
    attr(b.w, b"freePageReporting", b"on" if b.ctx.free_page_reporting else b"off")
    if b.ctx.balloon_period != 0:
        start(b.w, b"stats")
        attr_uint(b.w, b"period", b.ctx.balloon_period)
        end(b.w, b"stats")
    write_iommu_driver(b)
    put_pci_address(b)
    end(b.w, b"memballoon")


cdef void write_iommu_driver(Build& b) noexcept nogil:
    """Guests with encrypted memory reach virtio devices through an IOMMU."""
    if b.iommu:
        close_tag(b.w)
        lit(b.w, b'<driver iommu="on"/>')


cdef void write_inputs(Build& b) noexcept nogil:
    # input_device.go:37
    cdef Items it = items_of(b, b.devices.inputs)
    cdef bint tablet = False
    while next_item(it):
        tablet |= write_input(b, it.value)
    if not bool_or(b, b.devices.autoattachGraphicsDevice, True):
        return
    # a display without a PS/2 keyboard needs one, and on arm64 a pointer
    if b.ctx.arch == ARM64:
        if not tablet:
            lit(b.w, b'<input type="tablet" bus="usb"/>')
        lit(b.w, b'<input type="keyboard" bus="usb"/>')
    elif b.ctx.arch == S390X:
        lit(b.w, b'<input type="keyboard" bus="virtio"/>')


cdef bint write_input(Build& b, Value v) noexcept nogil:
    """Returns whether it is a tablet, the one type there is."""
    cdef Input device
    cdef bint tablet, virtio
    bind(b, v, &device)
    virtio = same_as(str_of(b, device.bus), b"virtio")
    if not virtio and str_of(b, device.bus).size and not same_as(str_of(b, device.bus), b"usb"):
        reject(b, device.bus, b"must be virtio or usb")
    tablet = same_as(str_of(b, device.type), b"tablet")
    if not tablet:
        reject_in(b, v, b"type", b"must be tablet")
    start(b.w, b"input")
    attr(b.w, b"type", b"tablet")
    attr(b.w, b"bus", b"virtio" if virtio else b"usb")
    if virtio:
        attr(b.w, b"model", b"virtio")
    close_tag(b.w)
    put_alias(b, device.name)
    if virtio:
        put_pci_address(b)
    end(b.w, b"input")
    return tablet


cdef void write_small_devices(Build& b) noexcept nogil:
    write_tpm(b)
    write_vsock(b)
    write_sound(b)
    write_watchdog(b)  # before rng: the order in which pci.pyx hands out slots
    write_rng(b)
    write_panic_devices(b)
    write_usb_redirection(b)


cdef void write_tpm(Build& b) noexcept nogil:
    # tpm.go:31
    cdef Tpm tpm
    bind(b, b.devices.tpm, &tpm)
    if not present(b.devices.tpm) or not bool_or(b, tpm.enabled, True):
        return
    if bool_or(b, tpm.persistent, False):
        lit(b.w, b'<tpm model="tpm-crb"><backend type="emulator" version="2.0" persistent_state="yes"/></tpm>')
    else:
        lit(b.w, b'<tpm model="tpm-tis"><backend type="emulator" version="2.0"/></tpm>')


cdef void write_vsock(Build& b) noexcept nogil:
    # vsock.go:30; the CID is given out by the controller, autoattachVSOCK alone brings no device
    if not present(b.status.VSOCKCID):
        return
    lit(b.w, b'<vsock model="virtio-non-transitional"><cid auto="no" address="')
    put_uint(b.w, uint_or(b, b.status.VSOCKCID, 0))
    lit(b.w, b'"/></vsock>')


cdef void write_rng(Build& b) noexcept nogil:
    # rng.go:46
    if not present(b.devices.rng):
        return
    start(b.w, b"rng")
    attr(b.w, b"model", virtio_model(b, b.use_transitional))
    close_tag(b.w)
    lit(b.w, b'<backend model="random">/dev/urandom</backend>')
    write_iommu_driver(b)
    put_pci_address(b)
    end(b.w, b"rng")


cdef void write_sound(Build& b) noexcept nogil:
    # sound.go:30
    cdef Sound sound
    cdef bint ac97
    if not present(b.devices.sound):
        return
    bind(b, b.devices.sound, &sound)
    ac97 = same_as(str_of(b, sound.model), b"ac97")
    if not ac97 and str_of(b, sound.model).size and not same_as(str_of(b, sound.model), b"ich9"):
        reject(b, sound.model, b"must be ich9 or ac97")
    start(b.w, b"sound")
    attr(b.w, b"model", b"ac97" if ac97 else b"ich9")
    close_tag(b.w)
    put_alias(b, sound.name)
    end(b.w, b"sound")


cdef void write_watchdog(Build& b) noexcept nogil:
    # watchdog.go:38
    cdef Watchdog watchdog
    cdef WatchdogModel model
    if not present(b.devices.watchdog):
        return
    bind(b, b.devices.watchdog, &watchdog)
    if b.ctx.arch == ARM64:
        reject(b, b.devices.watchdog, b"is not supported on arm64")
    if b.ctx.arch == S390X:
        if not present(watchdog.diag288):
            reject_in(b, b.devices.watchdog, b"diag288", b"must be set: it is the watchdog of s390x")
        bind(b, watchdog.diag288, &model)
    else:
        if not present(watchdog.i6300esb):
            reject_in(b, b.devices.watchdog, b"i6300esb", b"must be set: it is the watchdog of amd64")
        bind(b, watchdog.i6300esb, &model)
    start(b.w, b"watchdog")
    attr(b.w, b"model", b"diag288" if b.ctx.arch == S390X else b"i6300esb")
    attr_str_if(b, b"action", model.action)
    close_tag(b.w)
    put_alias(b, watchdog.name)
    put_pci_address(b)
    end(b.w, b"watchdog")


cdef void write_panic_devices(Build& b) noexcept nogil:
    cdef Items it = items_of(b, b.devices.panicDevices)
    cdef PanicDevice panic
    while next_item(it):
        bind(b, it.value, &panic)
        start(b.w, b"panic")
        attr_str_if(b, b"model", panic.model)
        end(b.w, b"panic")


cdef void write_usb_redirection(Build& b) noexcept nogil:
    # usb_redir.go:33: as many as a client may pass through
    cdef unsigned int i
    if not present(b.devices.clientPassthrough):
        return
    for i in range(4):
        lit(b.w, b'<redirdev type="unix" bus="usb"><source mode="bind" path="')
        put_private_path(b, b"virt-usbredir-")
        put_uint(b.w, i)
        lit(b.w, b'"/></redirdev>')
