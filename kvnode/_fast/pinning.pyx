cdef void write_pinning(Build& b) noexcept nogil:
    pass
