# <hostdev> for network cards of SR-IOV: pkg/virt-launcher/virtwrap/device/hostdevice/sriov. Other interfaces
# are in interfaces.pyx, which also indexes the networks and the status.

cdef void write_sriov(Build& b) noexcept nogil:
    """Cards whose address Multus reports, then those of resource claims."""
    cdef Items it = items_of(b, b.devices.interfaces)
    cdef const Interface* f
    cdef Network network
    cdef bint any_claimed = False
    cdef size_t i = 0
    open_pool(b)
    while i < b.interfaces_bound.size() and next_item(it):
        f = &b.interfaces_bound[i]
        i += 1
        if not present(f.sriov):
            continue
        bind(b, b.networks.get(str_of(b, f.name)), &network)
        if present(network.resourceClaim):
            any_claimed = True
        elif is_plugged(b, f[0]):
            write_sriov_card(b, it.value, f[0], take_sriov_address(b, it.value, f[0]))
    if any_claimed:
        write_claimed_cards(b)


cdef void write_claimed_cards(Build& b) noexcept nogil:
    cdef Items it = items_of(b, b.devices.interfaces)
    cdef const Interface* f
    cdef Network network
    cdef size_t i = 0
    while i < b.interfaces_bound.size() and next_item(it):
        f = &b.interfaces_bound[i]
        i += 1
        if not present(f.sriov):
            continue
        bind(b, b.networks.get(str_of(b, f.name)), &network)
        if present(network.resourceClaim):
            write_sriov_card(b, it.value, f[0], claimed_card(b, network.resourceClaim))


cdef bint is_plugged(Build& b, const Interface& f) noexcept nogil:
    """Whether Multus has plugged the card into the pod: the context's networkInfo or the status says so.

    A card still to be plugged is left out: sriov/hostdev.go:44.
    """
    cdef InterfaceStatus status
    if b.ctx.sriov.has(text(f.name)):
        return True
    bind(b, b.interface_status.get(text(f.name)), &status)
    return lists_source(str_of(b, status.infoSource), text_of(b"multus-status"))


cdef bint lists_source(Text sources, Text wanted) noexcept nogil:
    """Whether "domain, guest-agent, multus-status" has the one wanted: vmispec/infosource.go:57."""
    cdef size_t at = 0
    cdef size_t stop
    cdef Text one
    while at < sources.size:
        stop = at
        while stop < sources.size and not (
            sources.data[stop] == b"," and stop + 1 < sources.size and sources.data[stop + 1] == b" "
        ):
            stop += 1
        one.data = sources.data + at
        one.size = stop - at
        if same(one, wanted):
            return True
        at = stop + 2
    return False


cdef Value take_sriov_address(Build& b, Value at, const Interface& f) noexcept nogil:
    """The address of the interface's network, given out once: sriov/pcipool_netstatus.go:64."""
    cdef Text name = text(f.name)
    cdef Value address = b.ctx.sriov.get(name)
    if not present(address):
        reject_in(b, at, b"sriov", b"needs its network's PCI address in the context's networkInfo")
    elif b.device_taken.has(name):
        reject_in(b, at, b"name", b"must be unique: another interface has the PCI address of this network")
    b.device_taken.put(name, address, 0)
    return address


cdef Value claimed_card(Build& b, Value at) noexcept nogil:
    cdef ResourceClaim claim
    cdef ClaimedDevice device
    bind(b, at, &claim)
    find_claimed(b, at, claim.claimName, claim.requestName, &device)
    if str_of(b, device.pciBusID).size == 0:
        reject_in(b, at, b"claimName", b"must be a PCI device: resourceClaims has no pciBusID for it")
    return device.pciBusID


cdef void write_sriov_card(Build& b, Value at, const Interface& f, Value address) noexcept nogil:
    lit(b.w, b'<hostdev type="pci" managed="no">')
    write_pci_source(b, address, str_of(b, address))
    put_boot(b, f.bootOrder)
    put_device_address(b, f.pciAddress)
    require_numa_node(b, at)
    put_device_alias(b, b"sriov-", f.name)
    lit(b.w, b"</hostdev>")
