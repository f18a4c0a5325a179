cdef void write_host_devices(Build& b) noexcept nogil:
    pass
