cdef void write_disks(Build& b) noexcept nogil:
    pass
