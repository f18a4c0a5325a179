cdef void write_console(Build& b) noexcept nogil:
    pass
