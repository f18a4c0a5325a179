# Where PCI devices sit in the guest. Left to libvirt, unless the manifest asks for an address or for the root
# complex.
#
# The root complex (annotation kubevirt.io/placePCIDevicesOnRootComplex: "true") hands out its slots in one
# order (pkg/virt-launcher/virtwrap/converter/pci-placement.go:40): interfaces, host devices of type pci,
# controllers but pcie-root, virtio disks, virtio inputs, watchdog, rng, memballoon. write_domain calls its
# sections in that order, so a device asks for its address while it is written:
#
#     put_pci_address(b)                   a device with no say in its address
#     put_device_address(b, f.pciAddress)  one that may name it; named ones take no slot
#
# Both write an <address/> element or nothing, and close an open start tag first.
#
# Placement by host NUMA node (context pciNUMAAwareTopology) moves a host device onto a bus of its node, for
# which the reference asks the node's sysfs (pkg/util/hardware/hw_utils.go). The context carries no NUMA node
# of a device, so each is of unknown node here. The reference leaves such a device where it is, or refuses it
# if guestMappingPassthrough makes placement strict: require_numa_node is that rule.

cdef enum:
    LAST_ROOT_SLOT = 0x1e  # 0x1f is QEMU's SATA controller


cdef void derive_pci(Build& b) noexcept nogil:
    # s390x has no PCIe topology: pkg/virt-launcher/virtwrap/converter/arch/s390x.go:76
    b.place_on_root = (
        b.ctx.arch != S390X
        and same_as(str_of(b, annotation(b, b"kubevirt.io/placePCIDevicesOnRootComplex")), b"true")
    )
    b.root_slot = 1  # 0 is the host bridge, 1 the VGA device


cdef void put_pci_address(Build& b) noexcept nogil:
    """The next slot of the root complex, when devices are placed there."""
    if not b.place_on_root:
        return
    b.root_slot += 1
    if b.root_slot == 0x1b:  # ICH9's sound device
        b.root_slot += 1
    if b.root_slot > LAST_ROOT_SLOT:
        reject_in(b, b.meta.annotations, b"kubevirt.io/placePCIDevicesOnRootComplex",
                  b"cannot be met: the root complex has 28 free slots, fewer than this VM has PCI devices")
        return
    close_tag(b.w)
    lit(b.w, b'<address type="pci" domain="0x0000" bus="0x00" slot="0x')
    put_hex_byte(b, b.root_slot)
    lit(b.w, b'" function="0x0"/>')


cdef void put_device_address(Build& b, Value wanted) noexcept nogil:
    """The address that the manifest names, as "0000:81:11.1" (pkg/util/hardware/hw_utils.go:37).

    None named: put_pci_address.
    """
    cdef Text s = str_of(b, wanted)
    if s.size == 0:
        put_pci_address(b)
    else:
        put_address_of(b, wanted, s)


cdef void put_address_of(Build& b, Value source, Text s) noexcept nogil:
    """The <address/> that `s` names, which comes from the value `source`."""
    if not is_pci_address(s):
        reject(b, source, b"must be a PCI address such as 0000:81:11.1 (domain:bus:slot.function)")
        return
    close_tag(b.w)
    lit(b.w, b'<address type="pci" domain="0x')
    put(b.w, s.data, 4)
    lit(b.w, b'" bus="0x')
    put(b.w, s.data + 5, 2)
    lit(b.w, b'" slot="0x')
    put(b.w, s.data + 8, 2)
    lit(b.w, b'" function="0x')
    put(b.w, s.data + 11, 1)
    lit(b.w, b'"/>')


cdef bint is_pci_address(Text s) noexcept nogil:
    cdef const char* shape = b"hhhh:hh:hh.o"
    cdef size_t i
    if s.size != 12:
        return False
    for i in range(12):
        if shape[i] == b"h":
            if not is_hex_digit(s.data[i]):
                return False
        elif shape[i] == b"o":
            if not b"0" <= s.data[i] <= b"7":
                return False
        elif s.data[i] != shape[i]:
            return False
    return True


cdef bint is_hex_digit(char c) noexcept nogil:
    return b"0" <= c <= b"9" or b"a" <= c <= b"f" or b"A" <= c <= b"F"


cdef void put_hex_byte(Build& b, int n) noexcept nogil:
    cdef const char* digits = b"0123456789abcdef"
    put(b.w, digits + (n >> 4), 1)
    put(b.w, digits + (n & 15), 1)


cdef void require_numa_node(Build& b, Value device) noexcept nogil:
    """Called for each host device of type pci: strict placement refuses a device whose NUMA node is unknown.

    pkg/virt-launcher/virtwrap/converter/converter.go:1201, pci-placement.go:349.
    """
    cdef Numa numa
    if not b.ctx.pci_numa_aware or b.ctx.arch == S390X or not bool_or(b, b.cpu.dedicatedCpuPlacement, False):
        return
    bind(b, b.cpu.numa, &numa)
    if present(numa.guestMappingPassthrough):
        reject(b, device, b"has no known NUMA node to be placed by, as guestMappingPassthrough asks")
