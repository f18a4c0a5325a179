# How many vCPUs: asked by the CPU, by queues of disks and interfaces, by pinning.

# More vCPUs than any QEMU machine takes; keeps a hostile topology from writing gigabytes of <vcpu/>.
cdef enum:
    MOST_VCPUS = 16384


cdef void derive_topology(Build& b) noexcept nogil:
    """Cores, sockets, threads as pkg/virt-launcher/virtwrap/converter/vcpu/vcpu.go:297 finds them."""
    cdef ResourceList limits, requests
    b.cores = uint_or(b, b.cpu.cores, 0)
    b.sockets = uint_or(b, b.cpu.sockets, 0)
    b.threads = uint_or(b, b.cpu.threads, 0)
    if b.cores == 0 and b.sockets == 0 and b.threads == 0:
        bind(b, b.resources.limits, &limits)
        bind(b, b.resources.requests, &requests)
        b.sockets = <unsigned int>quantity_or(b, limits.cpu if present(limits.cpu) else requests.cpu, 1)
    else:
        b.sockets = b.sockets or 1
    b.cores = b.cores or 1
    b.threads = b.threads or 1
    b.vcpus = vcpu_product(b, b.sockets)
    b.max_vcpus = b.vcpus


cdef uint64_t vcpu_product(Build& b, uint64_t sockets) noexcept nogil:
    cdef uint64_t product = sockets * b.cores  # each is below 2^32
    if product <= MOST_VCPUS and b.threads <= MOST_VCPUS and product * b.threads <= MOST_VCPUS:
        return product * b.threads
    reject(b, b.domain.cpu if present(b.domain.cpu) else b.domain.resources, b"asks for more than 16384 vCPUs")
    return 1
