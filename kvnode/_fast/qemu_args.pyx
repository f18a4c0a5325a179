cdef void write_qemu_arguments(Build& b) noexcept nogil:
    pass
