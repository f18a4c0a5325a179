cdef void write_emulator(Build& b) noexcept nogil:
    pass


cdef void write_memballoon(Build& b) noexcept nogil:
    pass


cdef void write_inputs(Build& b) noexcept nogil:
    pass


cdef void write_small_devices(Build& b) noexcept nogil:
    pass
