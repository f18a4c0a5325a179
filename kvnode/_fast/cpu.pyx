# <vcpu>, <vcpus>, <cpu>: pkg/virt-launcher/virtwrap/converter/compute/cpu.go.

cdef void write_cpu(Build& b) noexcept nogil:
    cdef uint64_t sockets = b.sockets
    cdef uint64_t most = uint_or(b, b.cpu.maxSockets, 0)
    if most != 0 and b.ctx.arch != ARM64:  # arm64 cannot plug vCPUs: converter/arch/arm64.go:42
        sockets = most
        b.max_vcpus = vcpu_product(b, sockets)
        write_vcpus(b)
    lit(b.w, b'<vcpu placement="static">')
    put_uint(b.w, b.max_vcpus)
    lit(b.w, b"</vcpu>")

    start(b.w, b"cpu")
    write_cpu_model(b)
    write_cpu_features(b)
    start(b.w, b"topology")
    attr_uint(b.w, b"sockets", sockets)
    attr_uint(b.w, b"cores", b.cores)
    attr_uint(b.w, b"threads", b.threads)
    end(b.w, b"topology")
    if numa_mapped(b):
        write_numa_cells(b)
    elif wants_memfd(b):
        write_memfd_cell(b)
    end(b.w, b"cpu")


cdef void write_vcpus(Build& b) noexcept nogil:
    """Every vCPU up to the most: those asked for are on, all but the first socket's can be unplugged."""
    cdef uint64_t i
    cdef uint64_t fixed = b.cores * b.threads
    lit(b.w, b"<vcpus>")
    for i in range(b.max_vcpus):
        lit(b.w, b'<vcpu id="')
        put_uint(b.w, i)
        lit(b.w, b'" enabled="yes"' if i < b.vcpus else b'" enabled="no"')
        lit(b.w, b' hotpluggable="yes"/>' if i >= fixed else b' hotpluggable="no"/>')
    lit(b.w, b"</vcpus>")


cdef bint is_host_model(Text model) noexcept nogil:
    return same_as(model, b"host-model") or same_as(model, b"host-passthrough")


cdef void write_cpu_model(Build& b) noexcept nogil:
    cdef Text model = str_of(b, b.cpu.model)
    if model.size == 0:
        attr(b.w, b"mode", b"host-model")
    elif is_host_model(model):
        attr_value(b.w, b"mode", b.cpu.model)
    else:
        attr(b.w, b"mode", b"custom")
        element_value(b.w, b"model", b.cpu.model)


cdef void write_cpu_features(Build& b) noexcept nogil:
    cdef Items it = items_of(b, b.cpu.features)
    cdef CpuFeature feature
    cdef bint mpx_named = False
    while next_item(it):
        bind(b, it.value, &feature)
        mpx_named |= same_as(str_of(b, feature.name), b"mpx")
        start(b.w, b"feature")
        attr_str(b, b"name", feature.name)
        attr_str_if(b, b"policy", feature.policy)
        end(b.w, b"feature")
    # QEMU has dropped mpx, but libvirt's named models still ask for it: compute/cpu.go:91
    if (
        present(b.domain.cpu) and b.ctx.arch == AMD64 and not mpx_named
        and not is_host_model(str_of(b, b.cpu.model))
    ):
        start(b.w, b"feature")
        attr(b.w, b"name", b"mpx")
        attr(b.w, b"policy", b"disable")
        end(b.w, b"feature")


cdef void write_memfd_cell(Build& b) noexcept nogil:
    """One NUMA cell with all vCPUs and all memory: libvirt takes a memfd only for cells."""
    cdef int64_t size = quantity_or(b, guest_memory(b), 0)
    start(b.w, b"numa")
    start(b.w, b"cell")
    attr(b.w, b"id", b"0")
    attr_open(b.w, b"cpus")
    lit(b.w, b"0-")
    put_uint(b.w, b.max_vcpus - 1)
    attr_close(b.w)
    attr_uint(b.w, b"memory", <uint64_t>size // 1024 if size > 0 else 0)
    attr(b.w, b"unit", b"KiB")
    end(b.w, b"cell")
    end(b.w, b"numa")
