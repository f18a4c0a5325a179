cdef void write_graphics(Build& b) noexcept nogil:
    pass
