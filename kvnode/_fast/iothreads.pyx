cdef void write_iothreads(Build& b) noexcept nogil:
    pass
