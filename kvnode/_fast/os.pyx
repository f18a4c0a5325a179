cdef void write_os(Build& b) noexcept nogil:
    pass
