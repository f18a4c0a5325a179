# <hostdev>: devices of the host given to the guest. In the order of the reference
# (converter/compute/host_device.go): generic host devices, GPUs, network cards of SR-IOV. Which device of the
# host each gets is found in the context:
#
#     env             of a device plugin: PCI_RESOURCE_VENDOR_COM_NAME=0000:81:00.0,0000:82:00.0
#     resourceClaims  what a DRA driver allocated: claim -> request -> its pciBusID or mdevUUID
#     networkInfo     the PCI address behind each SR-IOV network
#
# Rules: pkg/virt-launcher/virtwrap/device/hostdevice.

cdef void bind_host_devices(Build& b, ContextData& c) noexcept nogil:
    """Indexes the context's claims, and its networks by name: hostdevice/sriov/pcipool_netstatus.go:34."""
    cdef NetworkInfo info
    cdef NetworkInfoInterface interface
    cdef DeviceInfo device
    cdef Items it
    cdef Value address
    index_object(b, c.claims, c.f.resourceClaims)
    bind(b, c.f.networkInfo, &info)
    it = items_of(b, info.interfaces)
    while next_item(it):
        bind(b, it.value, &interface)
        bind(b, interface.deviceInfo, &device)
        address = member(device.pci, b"pci-address")
        if str_of(b, address).size > 0:
            c.sriov.put(str_of(b, interface.network), address, 0)


cdef void write_host_devices(Build& b) noexcept nogil:
    write_generic_devices(b)
    write_gpus(b)
    write_sriov(b)


# --- addresses that device plugins left in the environment --------------------------------------------------

cdef void open_pool(Build& b) noexcept nogil:
    """A kind of device begins: each list of devices and each kind has all addresses again."""
    b.device_cursor.clear()
    b.device_taken.clear()


cdef Text next_address(Build& b, const char* prefix, HostDevice& f, Value* source) noexcept nogil:
    """The next address of the device's resource that no device of this pool has; empty when there is none.

    An address may be listed under several resources: hostdevice/addresspool.go:68. `source`: the variable.
    """
    cdef Text resource = str_of(b, f.deviceName)
    cdef Text all, address
    cdef size_t stop
    cdef size_t at = <size_t>b.device_cursor.index(resource) if b.device_cursor.has(resource) else 0
    source[0] = plugin_variable(b, prefix, resource)
    all = str_of(b, source[0])
    if all.size > 0 and all.data[all.size - 1] == b",":
        all.size -= 1
    while at < all.size:
        stop = at
        while stop < all.size and all.data[stop] != b",":
            stop += 1
        address.data = all.data + at
        address.size = stop - at
        at = stop + 1
        if not b.device_taken.has(address):
            b.device_taken.put(address, source[0], 0)
            b.device_cursor.put(resource, source[0], <unsigned int>at)
            return address
    b.device_cursor.put(resource, source[0], <unsigned int>at)
    address.size = 0
    return address


cdef bint is_claimed(Build& b, HostDevice& f) noexcept nogil:
    """Whether a device comes by a resource claim (DRA) rather than from a plugin: pkg/dra/utils.go:37."""
    return str_of(b, f.deviceName).size == 0 and (present(f.claimName) or present(f.requestName))


cdef void count_devices(Build& b, Value devices, int64_t found) noexcept nogil:
    """Every device of a plugin must have got exactly one address: hostdevice/generic/hostdev.go:90."""
    cdef Items it = items_of(b, devices)
    cdef HostDevice f
    cdef int64_t wanted = 0
    while next_item(it):
        bind(b, it.value, &f)
        wanted += not is_claimed(b, f)
    if wanted > 0 and wanted != found:
        reject_unserved(b, devices)
        reject(b, devices, b"must each have one address in the context's env "
                           b"(PCI_RESOURCE_, MDEV_PCI_RESOURCE_ or USB_RESOURCE_ and the resource's name)")


cdef void reject_unserved(Build& b, Value devices) noexcept nogil:
    """Names the first device for whose resource there are too few addresses, if that is what is wrong."""
    cdef Items it = items_of(b, devices)
    cdef HostDevice f
    cdef Names asked
    cdef Text resource
    cdef unsigned int before
    while next_item(it):
        bind(b, it.value, &f)
        if is_claimed(b, f):
            continue
        resource = str_of(b, f.deviceName)
        before = asked.index(resource) if asked.has(resource) else 0
        asked.put(resource, it.value, before + 1)
        if before >= (count_addresses(b, b"PCI_RESOURCE", resource)
                      + count_addresses(b, b"MDEV_PCI_RESOURCE", resource)
                      + count_addresses(b, b"USB_RESOURCE", resource)):
            reject_in_named(b, it.value, b"deviceName",
                            b"must have an address in the context's env (PCI_RESOURCE_, MDEV_PCI_RESOURCE_ or USB_RESOURCE_"
                            b" and the resource's name), which has too few for", resource)
            return


cdef unsigned int count_addresses(Build& b, const char* prefix, Text resource) noexcept nogil:
    """How many addresses a variable lists; a comma at its end adds none."""
    cdef Text all = str_of(b, plugin_variable(b, prefix, resource))
    cdef unsigned int count = 0
    cdef size_t i
    for i in range(all.size):
        if all.data[i] != b"," and (i == 0 or all.data[i - 1] == b","):
            count += 1
    return count


# --- generic devices and GPUs -------------------------------------------------------------------------------

cdef void write_generic_devices(Build& b) noexcept nogil:
    """All PCI devices, then mediated ones, then USB, then claimed ones: hostdevice/generic/hostdev.go:43."""
    cdef Value devices = b.devices.hostDevices
    cdef int64_t found
    if not present(devices):
        return
    found = write_pci_devices(b, devices, b"hostdevice-")
    found += write_mdev_devices(b, devices, b"hostdevice-", False)
    found += write_usb_devices(b, devices)
    count_devices(b, devices, found)
    write_claimed_devices(b, devices, b"dra-hostdevice-", False)


cdef void write_gpus(Build& b) noexcept nogil:
    """The same without USB; a GPU may have a display: hostdevice/gpu/hostdev.go:43."""
    cdef Value devices = b.devices.gpus
    cdef int64_t found
    if not present(devices):
        return
    found = write_pci_devices(b, devices, b"gpu-")
    found += write_mdev_devices(b, devices, b"gpu-", True)
    count_devices(b, devices, found)
    write_claimed_devices(b, devices, b"dra-gpu-", True)


cdef int64_t write_pci_devices(Build& b, Value devices, const char* prefix) noexcept nogil:
    cdef Items it = items_of(b, devices)
    cdef HostDevice f
    cdef Value source
    cdef Text address
    cdef int64_t found = 0
    open_pool(b)
    while next_item(it):
        bind(b, it.value, &f)
        address = next_address(b, b"PCI_RESOURCE", f, &source)
        if address.size == 0:
            continue
        found += 1
        lit(b.w, b'<hostdev type="pci" managed="no"')
        write_requested_display(b, f)
        lit(b.w, b">")
        write_pci_source(b, source, address)
        put_pci_address(b)
        require_numa_node(b, it.value)
        put_device_alias(b, prefix, f.name)
        lit(b.w, b"</hostdev>")
    return found


cdef int64_t write_mdev_devices(Build& b, Value devices, const char* prefix, bint display) noexcept nogil:
    cdef Items it = items_of(b, devices)
    cdef HostDevice f
    cdef Value source
    cdef Text uuid
    cdef int64_t found = 0
    cdef bint first_shows = display and not any_display(b, devices)
    open_pool(b)
    while next_item(it):
        bind(b, it.value, &f)
        uuid = next_address(b, b"MDEV_PCI_RESOURCE", f, &source)
        if uuid.size > 0:
            write_mdev(b, uuid, source, b"vfio-pci", prefix, f, display, first_shows and found == 0)
            found += 1
    return found


cdef void write_mdev(Build& b, Text uuid, Value source, const char* model, const char* prefix, HostDevice& f,
                     bint display, bint shown) noexcept nogil:
    """A mediated device. `display`: whether its options may give it one; `shown`: it has one without them."""
    lit(b.w, b'<hostdev type="mdev" mode="subsystem" model="')
    lit(b.w, model)
    lit(b.w, b'"')
    if shown:
        lit(b.w, b' display="on" ramfb="on"')
    elif display:
        write_mdev_display(b, f)
    lit(b.w, b'><source><address uuid="')
    b.w.source = source
    put_escaped(b.w, uuid)
    lit(b.w, b'"/></source>')
    put_device_alias(b, prefix, f.name)
    lit(b.w, b"</hostdev>")


cdef int64_t write_usb_devices(Build& b, Value devices) noexcept nogil:
    """A USB device is named by bus and device number, "1:4": hostdevice/hostdev.go:197."""
    cdef Items it = items_of(b, devices)
    cdef HostDevice f
    cdef Value source
    cdef Text address, number
    cdef size_t colon
    cdef int64_t found = 0
    open_pool(b)
    while next_item(it):
        bind(b, it.value, &f)
        address = next_address(b, b"USB_RESOURCE", f, &source)
        if address.size == 0:
            continue
        found += 1
        colon = find_lone_colon(address)
        if colon == address.size:
            reject(b, source, b"must list USB devices as bus:device, such as 1:4,2:5")
            return found
        number.data = address.data
        number.size = colon
        b.w.source = source
        lit(b.w, b'<hostdev type="usb" mode="subsystem"><source><address')
        attr_text(b.w, b"bus", number)
        number.data = address.data + colon + 1
        number.size = address.size - colon - 1
        attr_text(b.w, b"device", number)
        lit(b.w, b"/></source>")
        put_device_alias(b, b"usb-host-", f.name)
        lit(b.w, b"</hostdev>")
    return found


cdef size_t find_lone_colon(Text s) noexcept nogil:
    """Where the only colon is, or the text's size when there is none or more than one."""
    cdef size_t i
    cdef size_t at = s.size
    for i in range(s.size):
        if s.data[i] == b":":
            if at != s.size:
                return s.size
            at = i
    return at


# --- displays of vGPUs: hostdevice/hostdev.go:55-97, 141-180 -----------------------------------------

cdef bint any_display(Build& b, Value devices) noexcept nogil:
    """Whether any device says something about a display; if none does, the first vGPU has one."""
    cdef Items it = items_of(b, devices)
    cdef HostDevice f
    cdef VgpuOptions options
    while next_item(it):
        bind(b, it.value, &f)
        bind(b, f.virtualGPUOptions, &options)
        if present(options.display):
            return True
    return False


cdef void write_requested_display(Build& b, HostDevice& f) noexcept nogil:
    """A PCI device may be a whole GPU: it has a display only where both switches say so."""
    cdef VgpuDisplay display
    bind_display(b, f, &display)
    if bool_or(b, display.enabled, False):
        lit(b.w, b' display="on"')
        if is_framebuffer_on(b, display, False):
            lit(b.w, b' ramfb="on"')


cdef void write_mdev_display(Build& b, HostDevice& f) noexcept nogil:
    """A mediated device with display options has a display unless they say otherwise."""
    cdef VgpuDisplay display
    if bind_display(b, f, &display) and bool_or(b, display.enabled, True):
        lit(b.w, b' display="on"')
        if is_framebuffer_on(b, display, True):
            lit(b.w, b' ramfb="on"')


cdef bint bind_display(Build& b, HostDevice& f, VgpuDisplay* display) noexcept nogil:
    cdef VgpuOptions options
    bind(b, f.virtualGPUOptions, &options)
    bind(b, options.display, display)
    return present(options.display)


cdef bint is_framebuffer_on(Build& b, VgpuDisplay& display, bint otherwise) noexcept nogil:
    cdef FeatureState state
    bind(b, display.ramFB, &state)
    return bool_or(b, state.enabled, otherwise)


# --- devices of resource claims: hostdevice/dra ------------------------------------------------------

cdef void write_claimed_devices(Build& b, Value devices, const char* prefix, bint gpu) noexcept nogil:
    """Devices of a DRA driver. One with an mdevUUID is mediated, though its parent may lend it a pciBusID."""
    cdef Items it = items_of(b, devices)
    cdef HostDevice f
    cdef ClaimedDevice device
    cdef const char* model = b"vfio-pci"
    cdef bint first_shows = gpu and not any_display(b, devices)
    if not gpu and same_as(str_of(b, b.spec.architecture), b"s390x"):
        model = b"vfio-ap"
    while next_item(it):
        bind(b, it.value, &f)
        if not is_claimed(b, f):
            continue
        find_claimed(b, it.value, f.claimName, f.requestName, &device)
        if str_of(b, device.mdevUUID).size > 0:
            write_mdev(b, text(device.mdevUUID), device.mdevUUID, model, prefix, f, gpu, first_shows)
            first_shows = False
        else:
            lit(b.w, b'<hostdev type="pci" managed="no">')
            write_pci_source(b, device.pciBusID, str_of(b, device.pciBusID))
            put_pci_address(b)
            require_numa_node(b, it.value)
            put_device_alias(b, prefix, f.name)
            lit(b.w, b"</hostdev>")


cdef void find_claimed(Build& b, Value at, Value claim, Value request, ClaimedDevice* device) noexcept nogil:
    """What the context knows of a request of a claim; an error when that is no device."""
    bind(b, member_named(b.ctx.claims.get(str_of(b, claim)), str_of(b, request)), device)
    if str_of(b, claim).size == 0:
        reject_in(b, at, b"claimName", b"must name one of spec.resourceClaims")
    elif str_of(b, request).size == 0:
        reject_in(b, at, b"requestName", b"must name a request of the resource claim")
    elif str_of(b, device.mdevUUID).size == 0 and str_of(b, device.pciBusID).size == 0:
        reject_in(b, at, b"claimName",
                  b"has no mdevUUID or pciBusID for this request in the context's resourceClaims")


# --- pieces -------------------------------------------------------------------------------------------------

cdef void write_pci_source(Build& b, Value source, Text address) noexcept nogil:
    """The device's address on the host."""
    lit(b.w, b"<source>")
    put_address_of(b, source, address)
    lit(b.w, b"</source>")


cdef void put_device_alias(Build& b, const char* prefix, Value name) noexcept nogil:
    lit(b.w, b'<alias name="ua-')
    lit(b.w, prefix)
    put_str(b, name)
    lit(b.w, b'"/>')
