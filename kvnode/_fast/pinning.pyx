cdef void derive_pinning(Build& b) noexcept nogil:
    pass


cdef void write_pinning(Build& b) noexcept nogil:
    pass


cdef bint numa_mapped(Build& b) noexcept nogil:
    return False


cdef void write_numa_cells(Build& b) noexcept nogil:
    pass


cdef void write_numa_hugepages(Build& b) noexcept nogil:
    pass


cdef void write_numa_backing(Build& b) noexcept nogil:
    pass
