# Host NUMA cells handed through to the guest, where cpu.numa.guestMappingPassthrough asks for it: a guest
# cell for each host cell that vCPUs are pinned to, backed by huge pages of that cell.
# pkg/virt-launcher/virtwrap/converter/vcpu/vcpu.go:622.

cdef bint wants_host_numa(Build& b) noexcept nogil:
    cdef Numa numa
    bind(b, b.cpu.numa, &numa)
    return present(numa.guestMappingPassthrough)


cdef bint numa_mapped(Build& b) noexcept nogil:
    """Whether the guest has cells of the host: then write_numa_cells takes the place of other cells."""
    return b.guest_numa.mapped


cdef void map_guest_numa(Build& b) noexcept nogil:
    """Sorts the pinned vCPUs by host cell, and shares the guest's memory among the cells in whole pages."""
    b.guest_numa.mapped = True
    sort_vcpus_by_cell(b)
    if not b.error.set:
        share_memory(b)


cdef void sort_vcpus_by_cell(Build& b) noexcept nogil:
    cdef size_t count = b.ctx.cpus.cell_id.size()
    cdef size_t i, vcpu
    cdef uint32_t cell, taken
    b.guest_numa.cells = 0
    b.guest_numa.start.assign(count + 1, 0)
    b.guest_numa.vcpus.assign(b.vcpu_pins.size(), 0)
    for vcpu in range(b.vcpu_pins.size()):
        cell = cell_of_cpu(b, b.vcpu_pins[vcpu])
        if b.error.set:
            return
        b.guest_numa.start[cell] += 1
    taken = 0
    for i in range(count + 1):  # from how many to where they end
        taken += b.guest_numa.start[i]
        if b.guest_numa.start[i] > 0:
            b.guest_numa.cells += 1
        b.guest_numa.start[i] = taken
    vcpu = b.vcpu_pins.size()
    while vcpu > 0:  # from the last, so that each end becomes a start
        vcpu -= 1
        cell = cell_of_cpu(b, b.vcpu_pins[vcpu])
        b.guest_numa.start[cell] -= 1
        b.guest_numa.vcpus[b.guest_numa.start[cell]] = <uint32_t>vcpu


cdef uint32_t cell_of_cpu(Build& b, uint32_t cpu) noexcept nogil:
    cdef unordered_map[uint32_t, uint32_t].const_iterator found = b.ctx.cpus.cell_of.const_find(cpu)
    if found != b.ctx.cpus.cell_of.const_end():
        return dereference(found).second
    reject(b, b.ctx.f.topology, b"names a CPU among siblings that no NUMA cell lists")
    return 0


cdef void share_memory(Build& b) noexcept nogil:
    cdef Hugepages hugepages
    cdef uint64_t size = memory_or(b, guest_memory(b), 0)
    cdef uint64_t page, pages
    bind(b, b.memory.hugepages, &hugepages)
    if not present(b.domain.memory):
        reject_in(b, b.spec.domain, b"memory", b"must have hugepages, which guestMappingPassthrough takes")
        return
    if not present(b.memory.hugepages):
        reject_in(b, b.domain.memory, b"hugepages", b"must be set: guestMappingPassthrough takes huge pages")
        return
    page = memory_or(b, hugepages.pageSize, 0)
    if page == 0:
        reject_in(b, b.memory.hugepages, b"pageSize", b"must be a size such as 2Mi or 1Gi")
        return
    pages = size // page
    if size % page != 0:
        reject_in(b, b.domain.memory, b"guest", b"must be a multiple of memory.hugepages.pageSize")
    elif pages < b.guest_numa.cells:
        reject_in(b, b.domain.memory, b"guest",
                  b"must hold at least one huge page for each NUMA cell that vCPUs are pinned to")
    b.guest_numa.page_bytes = page
    b.guest_numa.pages = pages // b.guest_numa.cells
    b.guest_numa.larger = pages % b.guest_numa.cells


cdef void write_numa_cells(Build& b) noexcept nogil:
    """<numa>, inside <cpu>."""
    cdef size_t i
    cdef uint64_t pages
    cdef uint32_t cell = 0
    if b.error.set:
        return
    start(b.w, b"numa")
    close_tag(b.w)
    for i in range(b.ctx.cpus.cell_id.size()):
        if b.guest_numa.start[i] == b.guest_numa.start[i + 1]:
            continue
        lit(b.w, b'<cell id="')
        put_uint(b.w, cell)
        lit(b.w, b'" cpus="')
        put_cpus(b, b.guest_numa.vcpus, b.guest_numa.start[i], b.guest_numa.start[i + 1])
        lit(b.w, b'" memory="')
        pages = b.guest_numa.pages + (1 if cell < b.guest_numa.larger else 0)
        put_uint(b.w, pages * b.guest_numa.page_bytes)
        lit(b.w, b'" unit="b"/>')
        cell += 1
    end(b.w, b"numa")


cdef void write_numatune(Build& b) noexcept nogil:
    """<numatune>: each guest cell's memory comes from its host cell."""
    cdef size_t i
    cdef uint32_t cell = 0
    if not b.guest_numa.mapped or b.error.set:
        return
    lit(b.w, b'<numatune><memory mode="strict" nodeset="')
    for i in range(b.ctx.cpus.cell_id.size()):
        if b.guest_numa.start[i] != b.guest_numa.start[i + 1]:
            if cell > 0:
                lit(b.w, b",")
            put_uint(b.w, b.ctx.cpus.cell_id[i])
            cell += 1
    lit(b.w, b'"/>')
    cell = 0
    for i in range(b.ctx.cpus.cell_id.size()):
        if b.guest_numa.start[i] != b.guest_numa.start[i + 1]:
            lit(b.w, b'<memnode cellid="')
            put_uint(b.w, cell)
            lit(b.w, b'" mode="strict" nodeset="')
            put_uint(b.w, b.ctx.cpus.cell_id[i])
            lit(b.w, b'"/>')
            cell += 1
    lit(b.w, b"</numatune>")


cdef void write_numa_hugepages(Build& b) noexcept nogil:
    """The <page/> of each guest cell, inside <hugepages>."""
    cdef uint32_t cell
    if not b.guest_numa.mapped:
        return
    close_tag(b.w)
    for cell in range(b.guest_numa.cells):
        lit(b.w, b'<page size="')
        put_uint(b.w, b.guest_numa.page_bytes)
        lit(b.w, b'" unit="b" nodeset="')
        put_uint(b.w, cell)
        lit(b.w, b'"/>')


cdef void write_numa_backing(Build& b) noexcept nogil:
    """Memory taken at the start, and not merged under a realtime guest; inside <memoryBacking>."""
    if not b.guest_numa.mapped:
        return
    close_tag(b.w)
    lit(b.w, b'<allocation mode="immediate"/>')
    if present(b.cpu.realtime):
        lit(b.w, b"<nosharepages/>")
