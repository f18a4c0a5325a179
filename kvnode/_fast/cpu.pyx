cdef void write_cpu(Build& b) noexcept nogil:
    pass
