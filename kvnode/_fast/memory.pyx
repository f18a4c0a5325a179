# <memory>, <maxMemory>, <memoryBacking>: pkg/virt-launcher/virtwrap/converter/compute/memory.go, converter.go:1000-1040.

cdef Value guest_memory(Build& b) noexcept nogil:
    """The quantity that says how much memory the guest has: vcpu/vcpu.go:602."""
    cdef ResourceList requests, limits
    if present(b.memory.guest):
        return b.memory.guest
    bind(b, b.resources.requests, &requests)
    bind(b, b.resources.limits, &limits)
    return requests.memory if present(requests.memory) else limits.memory


cdef void write_memory(Build& b) noexcept nogil:
    cdef Value guest = guest_memory(b)
    cdef uint64_t size
    if present(b.memory.maxGuest) and not (
        present(b.memory.guest) and same_quantity(b, b.memory.guest, b.memory.maxGuest)
    ):
        if not present(b.memory.guest):
            reject_in(b, b.domain.memory, b"guest", b"must be set where memory.maxGuest is")
        lit(b.w, b'<maxMemory unit="b" slots="0">')
        put_uint(b.w, memory_or(b, b.memory.maxGuest, 0))
        lit(b.w, b"</maxMemory>")
    size = memory_or(b, guest, 0)
    lit(b.w, b'<memory unit="b">')
    put_uint(b.w, size)
    lit(b.w, b"</memory>")


cdef void derive_shared_memory(Build& b) noexcept nogil:
    """virtiofs and the passt binding map the guest's memory from other processes."""
    cdef Items it = items_of(b, b.devices.filesystems)
    cdef size_t i
    b.shared_memory = False
    while next_item(it):
        b.shared_memory |= present(field_of(b, it.value, b"virtiofs"))
    for i in range(b.interfaces_bound.size()):
        b.shared_memory |= present(b.interfaces_bound[i].passtBinding)


cdef bint wants_memfd(Build& b) noexcept nogil:
    """Whether guest memory comes from a memfd, which needs a NUMA cell to hang on."""
    return b.shared_memory or (
        present(b.memory.hugepages) and not same_as(text(annotation(b, b"kubevirt.io/memfd")), b"false")
    )


cdef void write_memory_backing(Build& b) noexcept nogil:
    if not b.shared_memory and not present(b.memory.hugepages):
        return
    start(b.w, b"memoryBacking")
    if present(b.memory.hugepages):
        start(b.w, b"hugepages")
        write_numa_hugepages(b)
        end(b.w, b"hugepages")
    if wants_memfd(b):
        close_tag(b.w)
        lit(b.w, b'<source type="memfd"/>')
    if b.shared_memory:
        close_tag(b.w)
        lit(b.w, b'<access mode="shared"/>')
    write_numa_backing(b)
    end(b.w, b"memoryBacking")
