cdef void write_launch_security(Build& b) noexcept nogil:
    pass
