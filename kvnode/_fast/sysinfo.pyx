cdef void write_sysinfo(Build& b) noexcept nogil:
    pass
