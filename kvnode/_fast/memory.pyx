cdef void write_memory(Build& b) noexcept nogil:
    pass


cdef void write_memory_backing(Build& b) noexcept nogil:
    pass
