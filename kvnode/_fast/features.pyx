# <features>: pkg/virt-launcher/virtwrap/converter/compute/hypervisor_features.go; what dedicated CPUs add: vcpu/vcpu.go:480.

cdef void write_features(Build& b) noexcept nogil:
    cdef Features features
    cdef bint dedicated = has_dedicated_cpus(b)
    bind(b, b.domain.features, &features)
    start(b.w, b"features")
    if present(b.domain.features):
        write_switch(b, b"acpi", features.acpi, True)
        write_switch(b, b"smm", features.smm, present(features.smm))
        write_switch(b, b"apic", features.apic, present(features.apic))
        write_hyperv(b, features)
        if present(features.pvspinlock):
            write_state(b, b"pvspinlock", features.pvspinlock)
        if b.ctx.arch == AMD64:
            close_tag(b.w)
            lit(b.w, b'<vmport state="off"/>')
    write_kvm(b, features, dedicated)
    if (b.tdx and present(b.domain.features)) or (dedicated and present(b.cpu.realtime)):
        close_tag(b.w)
        lit(b.w, b'<pmu state="off"/>')
    end(b.w, b"features")


cdef bint has_dedicated_cpus(Build& b) noexcept nogil:
    return bool_or(b, b.cpu.dedicatedCpuPlacement, False)


cdef bint is_on(Build& b, Value v) noexcept nogil:
    """A FeatureState is on unless it says otherwise."""
    cdef FeatureState state
    bind(b, v, &state)
    return bool_or(b, state.enabled, True)


cdef void write_switch(Build& b, const char* name, Value v, bint wanted) noexcept nogil:
    """<name/> where it is on, nothing where it is off."""
    if is_on(b, v) and wanted:
        start(b.w, name)
        end(b.w, name)


cdef void write_state(Build& b, const char* name, Value v) noexcept nogil:
    """<name state="on|off"/> where the VMI speaks of it."""
    if not present(v):
        return
    start(b.w, name)
    attr(b.w, b"state", b"on" if is_on(b, v) else b"off")
    end(b.w, name)


cdef void write_kvm(Build& b, Features& features, bint dedicated) noexcept nogil:
    cdef KvmFeature kvm
    # vcpu/vcpu.go:733 asks the VMI for its architecture, not the node
    cdef bint hint = dedicated and same_as(str_of(b, b.spec.architecture), b"amd64")
    if not present(features.kvm) and not hint:
        return
    bind(b, features.kvm, &kvm)
    start(b.w, b"kvm")
    if present(features.kvm):
        start(b.w, b"hidden")
        attr(b.w, b"state", b"on" if bool_or(b, kvm.hidden, False) else b"off")
        end(b.w, b"hidden")
    if hint:
        close_tag(b.w)
        lit(b.w, b'<hint-dedicated state="on"/>')
    end(b.w, b"kvm")


cdef void write_hyperv(Build& b, Features& features) noexcept nogil:
    cdef Hyperv hyperv
    if not present(features.hyperv):
        if present(features.hypervPassthrough) and is_on(b, features.hypervPassthrough):
            close_tag(b.w)
            lit(b.w, b'<hyperv mode="passthrough"/>')
        return
    bind(b, features.hyperv, &hyperv)
    start(b.w, b"hyperv")
    write_state(b, b"relaxed", hyperv.relaxed)
    write_state(b, b"vapic", hyperv.vapic)
    write_spinlocks(b, hyperv.spinlocks)
    write_state(b, b"vpindex", hyperv.vpindex)
    write_state(b, b"runtime", hyperv.runtime)
    write_state(b, b"synic", hyperv.synic)
    write_direct(b, b"stimer", hyperv.synictimer)
    write_state(b, b"reset", hyperv.reset)
    write_vendor_id(b, hyperv.vendorid)
    write_state(b, b"frequencies", hyperv.frequencies)
    write_state(b, b"reenlightenment", hyperv.reenlightenment)
    write_direct(b, b"tlbflush", hyperv.tlbflush)
    write_state(b, b"ipi", hyperv.ipi)
    write_state(b, b"evmcs", hyperv.evmcs)
    end(b.w, b"hyperv")


cdef void write_spinlocks(Build& b, Value v) noexcept nogil:
    cdef HypervFeature feature
    if not present(v):
        return
    bind(b, v, &feature)
    start(b.w, b"spinlocks")
    attr(b.w, b"state", b"on" if bool_or(b, feature.enabled, True) else b"off")
    if present(feature.spinlocks):
        attr_uint(b.w, b"retries", uint_or(b, feature.spinlocks, 0))
    end(b.w, b"spinlocks")


cdef void write_vendor_id(Build& b, Value v) noexcept nogil:
    cdef HypervFeature feature
    if not present(v):
        return
    bind(b, v, &feature)
    start(b.w, b"vendor_id")
    attr(b.w, b"state", b"on" if bool_or(b, feature.enabled, True) else b"off")
    attr_str_if(b, b"value", feature.vendorid)
    end(b.w, b"vendor_id")


cdef void write_direct(Build& b, const char* name, Value v) noexcept nogil:
    """A feature with <direct/> and <extended/> variants of its own."""
    cdef HypervFeature feature
    if not present(v):
        return
    bind(b, v, &feature)
    start(b.w, name)
    attr(b.w, b"state", b"on" if bool_or(b, feature.enabled, True) else b"off")
    write_state(b, b"direct", feature.direct)
    write_state(b, b"extended", feature.extended)
    end(b.w, name)
