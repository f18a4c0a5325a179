cdef void write_controllers(Build& b) noexcept nogil:
    pass
