# <interface>: network cards that QEMU emulates, pkg/virt-launcher/virtwrap/converter/network/configurator.go.
# Those of SR-IOV are host devices (hostdevs.pyx).

# A tap device takes no more queues: converter/network/virtio-queues.go:30.
cdef enum:
    MOST_QUEUES = 256


cdef void write_interfaces(Build& b) noexcept nogil:
    cdef Items it = items_of(b, b.devices.interfaces)
    cdef const Interface* f
    cdef size_t i = 0
    if not present(b.devices.interfaces):
        return
    index_networks(b)
    index_interface_status(b)
    while i < b.interfaces_bound.size() and next_item(it):
        f = &b.interfaces_bound[i]
        i += 1
        if same_as(str_of(b, f.state), b"absent"):  # unplugged, or about to be
            continue
        if not b.networks.has(str_of(b, f.name)):
            reject_in(b, it.value, b"name", b"must be the name of one of spec.networks")
        if present(f.sriov) or (present(f.binding) and not is_tap(b, f[0])):
            continue  # a host device, or another process's business
        write_interface(b, it.value, f[0])


cdef void index_networks(Build& b) noexcept nogil:
    cdef Items it = items_of(b, b.spec.networks)
    b.networks.clear()
    while next_item(it):
        b.networks.put(str_of(b, field_of(b, it.value, b"name")), it.value, 0)


cdef void index_interface_status(Build& b) noexcept nogil:
    """status.interfaces by name, the first of equal names: pkg/network/vmispec/interface.go:102."""
    cdef Items it = items_of(b, b.status.interfaces)
    cdef Text name
    b.interface_status.clear()
    while next_item(it):
        name = str_of(b, field_of(b, it.value, b"name"))
        if not b.interface_status.has(name):
            b.interface_status.put(name, it.value, 0)


cdef bint is_tap(Build& b, const Interface& f) noexcept nogil:
    """Whether the network set-up left a tap device for this interface, as for bridge and masquerade."""
    return same_as(str_of(b, b.ctx.attachment.get(text(f.name))), b"tap")


cdef void write_interface(Build& b, Value at, const Interface& f) noexcept nogil:
    cdef bint tap = is_tap(b, f)
    cdef bint passt = not tap and present(f.passtBinding)
    start(b.w, b"interface")
    if tap:
        attr(b.w, b"type", b"ethernet")
    elif passt:
        attr(b.w, b"type", b"vhostuser")
    put_device_address(b, f.pciAddress)
    if passt:
        write_passt_source(b, at, f)
    write_nic_model(b, f)
    if str_of(b, f.macAddress).size > 0:
        start(b.w, b"mac")
        attr_str(b, b"address", f.macAddress)
        end(b.w, b"mac")
    if tap:
        put_boot(b, f.bootOrder)
        if same_as(text(f.state), b"down"):
            start(b.w, b"link")
            attr(b.w, b"state", b"down")
            end(b.w, b"link")
    close_tag(b.w)
    put_alias(b, f.name)
    write_nic_driver(b, f)
    # no option ROM where nothing boots from it; s390x has none: converter/arch/s390x.go:54
    if tap and b.ctx.arch != S390X and (b.iommu or not present(f.bootOrder)):
        lit(b.w, b'<rom enabled="no"/>')
    if int_or(b, f.acpiIndex, 0) > 0:
        start(b.w, b"acpi")
        attr_uint(b.w, b"index", uint_or(b, f.acpiIndex, 0))
        end(b.w, b"acpi")
    if passt:
        lit(b.w, b'<backend type="passt" logFile="/var/run/kubevirt/passt.log"/>')
        write_port_forward(b, f)
    end(b.w, b"interface")


cdef bint is_virtio_nic(Build& b, const Interface& f) noexcept nogil:
    cdef Text model = str_of(b, f.model)
    return model.size == 0 or same_as(model, b"virtio")


cdef void write_nic_model(Build& b, const Interface& f) noexcept nogil:
    start(b.w, b"model")
    if is_virtio_nic(b, f):
        attr(b.w, b"type", virtio_model(b, b.use_transitional))
    else:
        attr_str(b, b"type", f.model)
    end(b.w, b"model")


cdef void write_nic_driver(Build& b, const Interface& f) noexcept nogil:
    """vhost, where the card has several queues or its guest's memory is encrypted: configurator.go:213."""
    cdef bint multiqueue = bool_or(b, b.devices.networkInterfaceMultiqueue, False)
    if not is_virtio_nic(b, f) or not (multiqueue or b.iommu):
        return
    start(b.w, b"driver")
    attr(b.w, b"name", b"vhost")
    if multiqueue:
        attr_uint(b.w, b"queues", b.vcpus if b.vcpus < MOST_QUEUES else MOST_QUEUES)
    if b.iommu:
        attr(b.w, b"iommu", b"on")
    end(b.w, b"driver")


# --- passt: converter/network/passt.go ----------------------------------------------------------------------

cdef void write_passt_source(Build& b, Value at, const Interface& f) noexcept nogil:
    """passt binds to the pod's network device, which the network set-up reports in the status."""
    cdef InterfaceStatus status
    bind(b, b.interface_status.get(text(f.name)), &status)
    if str_of(b, status.podInterfaceName).size == 0:
        reject_in(b, at, b"passtBinding",
                  b"needs podInterfaceName in the entry of status.interfaces with this interface's name")
        return
    start(b.w, b"source")
    attr_str(b, b"dev", status.podInterfaceName)
    end(b.w, b"source")


cdef void write_port_forward(Build& b, const Interface& f) noexcept nogil:
    """All ports, or those that the interface lists. Behind an Istio proxy all but the proxy's own."""
    cdef bint istio = equals_ignoring_case(str_of(b, annotation(b, b"sidecar.istio.io/inject")), b"true")
    cdef uint64_t tcp = count_ports(b, f, b"tcp")
    cdef uint64_t udp = count_ports(b, f, b"udp")
    if not istio and tcp == 0 and udp == 0:
        lit(b.w, b'<portForward proto="tcp"/><portForward proto="udp"/>')
        return
    if istio or tcp > 0:
        lit(b.w, b'<portForward proto="tcp">')
        if istio:
            write_istio_ports(b)
        write_ports(b, f, b"tcp")
        lit(b.w, b"</portForward>")
    if udp > 0:
        lit(b.w, b'<portForward proto="udp">')
        write_ports(b, f, b"udp")
        lit(b.w, b"</portForward>")


cdef void write_istio_ports(Build& b) noexcept nogil:
    """Ports of the Envoy proxy: pkg/network/istio/ports.go:36."""
    cdef uint64_t[10] ports = [15000, 15001, 15004, 15006, 15008, 15009, 15020, 15021, 15053, 15090]
    cdef int i
    for i in range(10):
        lit(b.w, b'<range start="')
        put_uint(b.w, ports[i])
        lit(b.w, b'" exclude="yes"/>')


cdef bint is_port_of(Build& b, Port& port, const char* protocol) noexcept nogil:
    """TCP is the default. Negative ports and other protocols are passed over: passt.go:55."""
    cdef Text name = str_of(b, port.protocol)
    if int_or(b, port.port, 0) < 0:
        return False
    return equals_ignoring_case(name, protocol) or (name.size == 0 and protocol[0] == b"t")


cdef uint64_t count_ports(Build& b, const Interface& f, const char* protocol) noexcept nogil:
    cdef Items it = items_of(b, f.ports)
    cdef Port port
    cdef uint64_t count = 0
    while next_item(it):
        bind(b, it.value, &port)
        count += is_port_of(b, port, protocol)
    return count


cdef void write_ports(Build& b, const Interface& f, const char* protocol) noexcept nogil:
    cdef Items it = items_of(b, f.ports)
    cdef Port port
    while next_item(it):
        bind(b, it.value, &port)
        if is_port_of(b, port, protocol):
            lit(b.w, b'<range start="')
            put_uint(b.w, uint_or(b, port.port, 0))
            lit(b.w, b'"/>')


cdef bint equals_ignoring_case(Text s, const char* lower) noexcept nogil:
    cdef size_t i
    for i in range(s.size):
        if lower[i] == 0 or (s.data[i] | 0x20 if b"A" <= s.data[i] <= b"Z" else s.data[i]) != lower[i]:
            return False
    return lower[s.size] == 0
