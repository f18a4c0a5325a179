# How many I/O threads the domain has, and which of them serves a disk.
# pkg/virt-launcher/virtwrap/converter/iothreads/iothreads.go

# Bounds what a pool's size, a number of the manifest, makes the domain grow to: virtio disks list the pool.
cdef enum:
    MOST_POOL_ENTRIES = 1 << 20


cdef void write_iothreads(Build& b) noexcept nogil:
    if b.io_threads != 0:
        element_uint(b.w, b"iothreads", b.io_threads)


cdef void survey_disks(Build& b) noexcept nogil:
    """One walk for all that is asked of the disks as a whole."""
    cdef const Disk* disk
    cdef Value target
    cdef Text bus
    cdef bint dedicated
    cdef size_t i
    b.disks = b.disks_bound.size()
    b.dedicated_disks = b.shared_virtio_disks = 0
    b.scsi_disk = b.dedicated_scsi_disk = b.usb_disk = False
    for i in range(b.disks_bound.size()):
        disk = &b.disks_bound[i]
        dedicated = bool_or(b, disk.dedicatedIOThread, False)
        target = disk.lun if present(disk.lun) else disk.disk if present(disk.disk) else disk.cdrom
        bus = text(member(target, b"bus"))
        b.dedicated_disks += dedicated
        if same_as(bus, b"virtio"):
            b.shared_virtio_disks += not dedicated
        elif same_as(bus, b"scsi"):
            b.scsi_disk = True
            if dedicated:
                b.dedicated_scsi_disk = True
        elif same_as(bus, b"usb") and present(disk.disk):
            b.usb_disk = True


cdef void derive_iothreads(Build& b) noexcept nogil:
    # iothreads.go:43
    cdef IoThreads pool
    cdef Text policy = str_of(b, b.domain.ioThreadsPolicy)
    cdef uint64_t most
    survey_disks(b)
    b.has_io_threads = present(b.domain.ioThreadsPolicy) or b.dedicated_disks != 0
    b.io_thread_pool = same_as(policy, b"supplementalPool")
    b.io_threads = b.auto_threads = 0
    if b.io_thread_pool:
        bind(b, b.domain.ioThreads, &pool)
        b.io_threads = pool_size(b, pool.supplementalPoolThreadCount)
    elif b.has_io_threads:
        # Disks without a thread of their own share what the limit leaves, one thread at the least.
        most = io_thread_limit(b, policy)
        b.auto_threads = b.disks - b.dedicated_disks
        if b.disks > most:
            b.auto_threads = most - b.dedicated_disks if most > b.dedicated_disks else 1
        b.io_threads = b.auto_threads + b.dedicated_disks
    b.next_auto_thread = 1
    b.next_dedicated_thread = b.auto_threads + 1


cdef uint64_t pool_size(Build& b, Value count) noexcept nogil:
    cdef uint64_t size
    if not present(count):
        reject_in(b, b.domain.ioThreads if present(b.domain.ioThreads) else b.spec.domain,
                  b"supplementalPoolThreadCount" if present(b.domain.ioThreads) else b"ioThreads",
                  b"is missing: ioThreadsPolicy supplementalPool needs the number of threads of the pool")
        return 1
    size = uint_or(b, count, 0)
    if size * (b.disks or 1) > MOST_POOL_ENTRIES:
        reject(b, count, b"makes too large a pool of I/O threads for this many disks")
        return 1
    return size


cdef uint64_t io_thread_limit(Build& b, Text policy) noexcept nogil:
    # iothreads.go:74
    cdef ResourceList requests, limits
    cdef int64_t cpus
    if not same_as(policy, b"auto"):
        return 1 if same_as(policy, b"shared") or not present(b.domain.ioThreadsPolicy) else 0
    if bool_or(b, b.cpu.dedicatedCpuPlacement, False) and bool_or(b, b.cpu.isolateEmulatorThread, False):
        return 1  # they run beside the emulator on its own CPU
    bind(b, b.resources.requests, &requests)
    bind(b, b.resources.limits, &limits)
    cpus = quantity_or(b, requests.cpu if present(requests.cpu) else limits.cpu, 1)
    if cpus < 0:
        return 0
    return 2 * <uint64_t>cpus


cdef void attr_iothread(Build& b, bint dedicated) noexcept nogil:
    """The iothread attribute of a virtio disk's driver: converter.go:948. A pool has elements instead."""
    if not b.has_io_threads or b.io_thread_pool:
        return
    if dedicated:
        attr_uint(b.w, b"iothread", b.next_dedicated_thread)
        b.next_dedicated_thread += 1
    else:
        attr_uint(b.w, b"iothread", b.next_auto_thread)
        b.next_auto_thread = b.next_auto_thread + 1 if b.next_auto_thread < b.auto_threads else 1


cdef void write_thread_pool(Build& b) noexcept nogil:
    # iothreads.go:99
    cdef uint64_t thread = 1
    if not b.io_thread_pool:
        return
    start(b.w, b"iothreads")
    while thread <= b.io_threads:
        start(b.w, b"iothread")
        attr_uint(b.w, b"id", thread)
        end(b.w, b"iothread")
        thread += 1
    end(b.w, b"iothreads")
