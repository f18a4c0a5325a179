# <cputune>: guest CPUs, I/O threads and the emulator on host CPUs of their own, where
# cpu.dedicatedCpuPlacement asks for it. pkg/virt-launcher/virtwrap/converter/vcpu/vcpu.go; what
# guestMappingPassthrough makes of the pins is in numa.pyx.

cdef void bind_host_cpus(Build& b, ContextData& c) noexcept nogil:
    """The pod's CPUs as cores of NUMA cells: vcpu/vcpu.go:149. A CPU without siblings is a core."""
    cdef Items it = items_of(b, c.f.cpuSet)
    cdef Items cells
    cdef HostTopology topology
    cdef HostCell cell
    cdef unordered_set[uint32_t] owned, seen
    cdef uint32_t cpu
    while next_item(it):
        cpu = <uint32_t>uint_or(b, it.value, 0)
        c.cpus.set.push_back(cpu)
        owned.insert(cpu)
    bind(b, c.f.topology, &topology)
    cells = items_of(b, topology.numa_cells)
    while next_item(cells):
        bind(b, cells.value, &cell)
        bind_host_cell(b, c.cpus, cell, owned, seen)
        c.cpus.cell_id.push_back(<uint32_t>uint_or(b, cell.id, 0))
        c.cpus.cell_end.push_back(<uint32_t>c.cpus.core_end.size())


cdef void bind_host_cell(
    Build& b, HostCpus& host, HostCell& cell, unordered_set[uint32_t]& owned, unordered_set[uint32_t]& seen
) noexcept nogil:
    cdef Items it = items_of(b, cell.cpus)
    cdef Items siblings
    cdef HostCpu entry
    cdef uint32_t cpu, thread
    cdef bint alone
    while next_item(it):
        bind(b, it.value, &entry)
        cpu = <uint32_t>uint_or(b, entry.id, 0)
        host.cell_of[cpu] = <uint32_t>host.cell_end.size()
        if seen.count(cpu):
            continue
        siblings = items_of(b, entry.siblings)
        alone = True
        while next_item(siblings):
            alone = False
            thread = <uint32_t>uint_or(b, siblings.value, 0)
            seen.insert(thread)
            if owned.count(thread):
                host.threads.push_back(thread)
        if alone:
            seen.insert(cpu)
            if owned.count(cpu):
                host.threads.push_back(cpu)
        host.core_end.push_back(<uint32_t>host.threads.size())


cdef void derive_pinning(Build& b) noexcept nogil:
    """Pins every vCPU that is on from the start to a host CPU of its own: vcpu/vcpu.go:475."""
    cdef uint64_t sockets = b.sockets
    cdef uint64_t most = uint_or(b, b.cpu.maxSockets, 0)
    cdef uint64_t missing
    cdef bint strict = wants_host_numa(b)
    b.vcpu_pins.clear()
    b.guest_numa.mapped = False
    b.dedicated_cpus = bool_or(b, b.cpu.dedicatedCpuPlacement, False)
    if not b.dedicated_cpus:
        return
    if most != 0 and most < sockets and b.ctx.arch != ARM64:
        sockets = most  # as many as <topology> has
    b.cpu_pool.reset(b.ctx.cpus, b.threads)
    missing = b.cpu_pool.fit(sockets * b.cores, not strict, b.vcpu_pins)
    if missing == 0:
        if strict:
            map_guest_numa(b)
    elif strict and b.ctx.cpus.set.size() >= sockets * b.cores * b.threads:
        reject_in(b, b.domain.cpu, b"numa",
                  b"cannot map the host's NUMA cells: a guest core would have threads on two of them; "
                  b"give the VM whole host cores, or drop guestMappingPassthrough")
    else:
        reject_in(b, b.domain.cpu, b"dedicatedCpuPlacement",
                  b"needs more host CPUs: the context's cpuSet and topology have none for some vCPUs")


cdef void write_pinning(Build& b) noexcept nogil:
    """<cputune> and <numatune>. I/O threads of the supplemental pool take CPUs before the emulator does."""
    cdef uint64_t pool_threads
    if not b.dedicated_cpus or b.error.set:
        return
    pool_threads = b.io_threads if b.io_thread_pool else 0
    b.io_thread_pins.clear()
    b.emulator_pins.clear()
    take_cpus_of_pool(b, pool_threads)
    take_cpus_of_emulator(b, pool_threads)
    lit(b.w, b"<cputune>")
    write_vcpu_pins(b)
    if pool_threads > 0:
        write_pool_pins(b)
    elif b.has_io_threads:
        write_io_thread_pins(b)
    if not b.emulator_pins.empty():
        lit(b.w, b'<emulatorpin cpuset="')
        put_cpus(b, b.emulator_pins, 0, b.emulator_pins.size())
        lit(b.w, b'"/>')
    lit(b.w, b"</cputune>")
    write_numatune(b)


cdef void take_cpus_of_pool(Build& b, uint64_t count) noexcept nogil:
    while b.io_thread_pins.size() < count:
        if not b.cpu_pool.one(b.io_thread_pins):
            reject_in(b, b.domain.ioThreads, b"supplementalPoolThreadCount",
                      b"needs more host CPUs: the vCPUs leave none of cpuSet for some I/O threads")
            return


cdef void take_cpus_of_emulator(Build& b, uint64_t pool_threads) noexcept nogil:
    """One CPU with isolateEmulatorThread, two where an annotation wants an even total: vcpu/vcpu.go:449."""
    cdef uint64_t wanted = 1
    if not bool_or(b, b.cpu.isolateEmulatorThread, False):
        return
    if (
        (b.vcpus + pool_threads) % 2 == 0
        and present(annotation(b, b"alpha.kubevirt.io/EmulatorThreadCompleteToEvenParity"))
    ):
        wanted = 2
    while b.emulator_pins.size() < wanted:
        if not b.cpu_pool.one(b.emulator_pins):
            reject_in(b, b.domain.cpu, b"isolateEmulatorThread",
                      b"needs more host CPUs: vCPUs and I/O threads leave none of cpuSet for the emulator")
            return


cdef void write_vcpu_pins(Build& b) noexcept nogil:
    cdef size_t i
    for i in range(b.vcpu_pins.size()):
        lit(b.w, b'<vcpupin vcpu="')
        put_uint(b.w, i)
        lit(b.w, b'" cpuset="')
        put_uint(b.w, b.vcpu_pins[i])
        lit(b.w, b'"/>')


cdef void write_pool_pins(Build& b) noexcept nogil:
    cdef size_t i
    for i in range(b.io_thread_pins.size()):
        open_io_thread_pin(b, i + 1)
        put_uint(b.w, b.io_thread_pins[i])
        lit(b.w, b'"/>')


cdef void write_io_thread_pins(Build& b) noexcept nogil:
    """Other I/O threads have no CPUs of their own but share the emulator's or vCPUs': vcpu/vcpu.go:403."""
    cdef uint64_t thread, size
    cdef uint64_t start = 0
    if b.io_threads == 0:
        reject(b, b.domain.ioThreadsPolicy, b"leaves no I/O thread to pin: add a disk, or drop the policy")
        return
    if not b.emulator_pins.empty():
        open_io_thread_pin(b, 1)
        put_cpus(b, b.emulator_pins, 0, b.emulator_pins.size())
        lit(b.w, b'"/>')
        return
    if b.ctx.cpus.set.size() < b.vcpus:
        reject_in(b, b.domain.cpu, b"dedicatedCpuPlacement",
                  b"needs as many host CPUs in the context's cpuSet as there are vCPUs")
        return
    for thread in range(1, b.io_threads + 1):
        open_io_thread_pin(b, thread)
        if b.io_threads >= b.vcpus:
            put_uint(b.w, b.ctx.cpus.set[thread % b.vcpus])
        else:  # neighbouring CPUs, the first threads one more where they do not divide evenly
            size = b.vcpus // b.io_threads + (1 if thread <= b.vcpus % b.io_threads else 0)
            put_cpus(b, b.ctx.cpus.set, start, start + size)
            start += size
        lit(b.w, b'"/>')


cdef void open_io_thread_pin(Build& b, uint64_t thread) noexcept nogil:
    lit(b.w, b'<iothreadpin iothread="')
    put_uint(b.w, thread)
    lit(b.w, b'" cpuset="')


cdef void put_cpus(Build& b, const vector[uint32_t]& cpus, size_t start, size_t stop) noexcept nogil:
    """Numbers with commas between: 2,3,14."""
    cdef size_t i
    for i in range(start, stop):
        if i > start:
            lit(b.w, b",")
        put_uint(b.w, cpus[i])
