cdef void derive_pinning(Build& b) noexcept nogil:
    pass


cdef void write_pinning(Build& b) noexcept nogil:
    pass


cdef void write_numa_cells(Build& b) noexcept nogil:
    pass
