cdef void write_clock(Build& b) noexcept nogil:
    pass
