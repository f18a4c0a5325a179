cdef void write_features(Build& b) noexcept nogil:
    pass
