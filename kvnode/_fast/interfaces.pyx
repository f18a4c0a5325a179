cdef void write_interfaces(Build& b) noexcept nogil:
    pass
