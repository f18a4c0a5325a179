# <clock>: pkg/virt-launcher/virtwrap/converter/compute/clock.go.

cdef void write_clock(Build& b) noexcept nogil:
    cdef Clock clock
    cdef Timer timers
    cdef TopologyHints hints
    cdef int64_t frequency
    bind(b, b.status.topologyHints, &hints)
    frequency = int_or(b, hints.tscFrequency, 0) if needs_tsc_frequency(b) else 0
    if not present(b.domain.clock) and frequency <= 0:
        return
    bind(b, b.domain.clock, &clock)
    bind(b, clock.timer, &timers)
    start(b.w, b"clock")
    write_offset(b, clock)
    write_timer(b, b"rtc", timers.rtc)
    write_timer(b, b"pit", timers.pit)
    write_timer(b, b"kvmclock", timers.kvm)
    write_timer(b, b"hpet", timers.hpet)
    write_timer(b, b"hypervclock", timers.hyperv)
    if frequency > 0:
        start(b.w, b"timer")
        attr(b.w, b"name", b"tsc")
        attr_uint(b.w, b"frequency", <uint64_t>frequency)
        end(b.w, b"timer")
    end(b.w, b"clock")


cdef void write_offset(Build& b, Clock& clock) noexcept nogil:
    cdef ClockUtc utc
    if present(clock.utc):
        bind(b, clock.utc, &utc)
        attr(b.w, b"offset", b"utc")
        if present(utc.offsetSeconds):
            attr_open(b.w, b"adjustment")
            put_int(b.w, int_or(b, utc.offsetSeconds, 0))
            attr_close(b.w)
        else:
            attr(b.w, b"adjustment", b"reset")
    elif present(clock.timezone):
        attr(b.w, b"offset", b"timezone")
        attr_str_if(b, b"timezone", clock.timezone)


cdef void write_timer(Build& b, const char* name, Value v) noexcept nogil:
    cdef OneTimer timer
    if not present(v):
        return
    bind(b, v, &timer)
    start(b.w, b"timer")
    attr(b.w, b"name", name)
    attr_str_if(b, b"tickpolicy", timer.tickPolicy)
    attr(b.w, b"present", b"yes" if bool_or(b, timer.present, True) else b"no")
    attr_str_if(b, b"track", timer.track)
    end(b.w, b"timer")


cdef bint needs_tsc_frequency(Build& b) noexcept nogil:
    """With invtsc or Hyper-V reenlightenment the guest counts on one TSC frequency.

    pkg/virt-controller/watch/topology/tsc.go:135.
    """
    cdef Items it = items_of(b, b.cpu.features)
    cdef CpuFeature feature
    cdef Features features
    cdef Hyperv hyperv
    cdef FeatureState state
    while next_item(it):
        bind(b, it.value, &feature)
        if same_as(str_of(b, feature.name), b"invtsc") and (
            same_as(str_of(b, feature.policy), b"require") or same_as(str_of(b, feature.policy), b"force")
        ):
            return True
    bind(b, b.domain.features, &features)
    bind(b, features.hyperv, &hyperv)
    bind(b, hyperv.reenlightenment, &state)
    return bool_or(b, state.enabled, False)
