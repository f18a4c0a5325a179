# distutils: language = c++
"""VMI to libvirt domain: JSON bytes in, XML bytes out, without the GIL and without a Python object per field.

This file is the frame: it binds the input, calls the sections in order and hands out the result. A section is one file that
reads top to bottom like the XML it writes; they are compiled as one unit. The sections carry the names of the reference's
configurators (pkg/virt-launcher/virtwrap/converter).
"""
cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.string cimport memcpy
from libc.stdint cimport UINT64_MAX, int64_t, uint32_t, uint64_t
from libcpp.unordered_map cimport unordered_map
from libcpp.unordered_set cimport unordered_set
from libcpp.vector cimport vector
from cython.operator cimport dereference

from kvnode._fast.core cimport *

from kvnode.api.errors import ConversionError

include "vmi.pyx"
include "os.pyx"
include "sysinfo.pyx"
include "topology.pyx"
include "cpu.pyx"
include "pinning.pyx"
include "numa.pyx"
include "memory.pyx"
include "iothreads.pyx"
include "features.pyx"
include "clock.pyx"
include "launch_security.pyx"
include "pci.pyx"
include "volumes.pyx"
include "disks.pyx"
include "filesystems.pyx"
include "interfaces.pyx"
include "hostdevs.pyx"
include "sriov.pyx"
include "controllers.pyx"
include "graphics.pyx"
include "console.pyx"
include "devices.pyx"
include "qemu_args.pyx"


cdef void write_domain(Build& b) noexcept nogil:
    """The whole <domain>. A section finds what it needs of those before; devices come in the order of pci.pyx."""
    begin(b)
    lit(b.w, b'<domain type="')
    lit(b.w, hypervisor_type(b))
    lit(b.w, b'" xmlns:qemu="http://libvirt.org/schemas/domain/qemu/1.0">')
    write_name(b)
    write_memory(b)
    write_memory_backing(b)
    write_os(b)
    write_sysinfo(b)
    write_iothreads(b)
    write_cpu(b)
    write_pinning(b)
    write_features(b)
    write_clock(b)
    write_launch_security(b)
    write_reboot_policy(b)
    lit(b.w, b'<metadata><kubevirt xmlns="http://kubevirt.io"/></metadata>')
    lit(b.w, b"<devices>")
    write_emulator(b)
    write_interfaces(b)
    write_host_devices(b)
    write_controllers(b)
    write_graphics(b)
    write_disks(b)
    write_filesystems(b)
    write_inputs(b)
    write_console(b)
    write_small_devices(b)  # watchdog, then rng
    write_memballoon(b)
    lit(b.w, b"</devices>")
    write_qemu_arguments(b)
    lit(b.w, b"</domain>")


@cython.final
cdef class Converter:
    """A converter context, bound once: what the node knows beside the VMI. Immutable, and shared by any number of threads."""
    cdef ContextData data

    def __cinit__(self, bytes context not None):
        """`context`: the mapping of the converter context as JSON.

        Raises ConversionError, its field starting with `context`, when a key has the wrong type.
        """
        cdef Build b
        cdef const char* problem
        cdef const char* json = PyBytes_AS_STRING(context)
        cdef size_t size = <size_t>PyBytes_GET_SIZE(context)
        b.ctx = &self.data
        problem = self.data.parser.parse(json, size)
        if problem != NULL:
            raise ConversionError("context", problem.decode())
        self.data.parser.keep()
        bind_context(b, self.data)
        if b.error.set:
            raise noted_error(b)

    def convert(self, bytes vmi not None):
        """The domain XML of one VMI. `vmi`: JSON, UTF-8. Raises ConversionError."""
        cdef _Workspace work = workspace()
        cdef const char* problem
        cdef const char* json = PyBytes_AS_STRING(vmi)
        cdef size_t size = <size_t>PyBytes_GET_SIZE(vmi)
        work.build.ctx = &self.data
        if size < RELEASE_GIL_FROM:
            problem = convert_one(work.parser, work.build, json, size)
        else:
            with nogil:
                problem = convert_one(work.parser, work.build, json, size)
        try:
            return finish(work, problem)
        finally:
            give_back(work)

    def convert_share(self, list vmis not None, list results not None, counter):
        """Converts chunks of `vmis` into the same places of `results` until `counter`, which threads share, is past them.

        Each item is JSON bytes; its place takes the XML or the ConversionError. The GIL is held only to take a chunk and to make
        room for its results, which are filled without it. Returns how many of its conversions failed.
        """
        cdef _Workspace work = workspace()
        cdef Chunk chunk
        cdef Py_ssize_t first, i
        cdef Py_ssize_t total = len(vmis)
        cdef Py_ssize_t share = max(1, min(<Py_ssize_t>CHUNK, total // 16))  # a few for each thread, the larger the better
        cdef Py_ssize_t failed = 0
        work.build.ctx = &self.data
        while True:
            first = next(counter) * share
            if first >= total:
                break
            chunk.count = min(share, total - first)
            for i in range(chunk.count):
                item = <bytes?>vmis[first + i]
                chunk.json[i] = PyBytes_AS_STRING(item)
                chunk.json_size[i] = <size_t>PyBytes_GET_SIZE(item)
            with nogil:
                convert_chunk(work, chunk)
            if work.batch.failed:
                raise MemoryError("no memory for the domain XML")
            for i in range(chunk.count):
                chunk.room[i] = NULL
                if chunk.good[i]:
                    xml = PyBytes_FromStringAndSize(NULL, <Py_ssize_t>chunk.xml_size[i])
                    chunk.room[i] = PyBytes_AS_STRING(xml)
                    results[first + i] = xml
                else:
                    failed += 1
                    results[first + i] = self.error_again(work, chunk.json[i], chunk.json_size[i])
            with nogil:
                hand_out(work, chunk)
        give_back(work)
        return failed

    cdef object error_again(self, _Workspace work, const char* json, size_t size):
        """The error of an input that has just failed: told by converting it once more, as errors are rare."""
        return error_of(work, convert_one(work.parser, work.build, json, size))


cdef enum:
    CHUNK = 64


cdef struct Chunk:
    Py_ssize_t count
    const char* json[CHUNK]
    size_t json_size[CHUNK]
    bint good[CHUNK]
    size_t xml_size[CHUNK]
    char* room[CHUNK]  # of the results, where there are any


cdef void convert_chunk(_Workspace work, Chunk& chunk) noexcept nogil:
    """Leaves the XML of the inputs, one behind the other, in the workspace's batch."""
    cdef Py_ssize_t i
    cdef const char* problem
    reset(work.batch)
    for i in range(chunk.count):
        problem = convert_one(work.parser, work.build, chunk.json[i], chunk.json_size[i])
        chunk.good[i] = problem == NULL and is_good(work.build)
        chunk.xml_size[i] = work.build.w.size if chunk.good[i] else 0
        if chunk.good[i]:
            put(work.batch, work.build.w.data, work.build.w.size)


cdef void hand_out(_Workspace work, Chunk& chunk) noexcept nogil:
    """Copies each XML to its result: where fresh memory is touched first, which costs as much as the copy."""
    cdef Py_ssize_t i
    cdef const char* xml = work.batch.data
    for i in range(chunk.count):
        if chunk.room[i] != NULL:
            memcpy(chunk.room[i], xml, chunk.xml_size[i])
        xml += chunk.xml_size[i]


# Below this many bytes of input the work is shorter than a change of threads is worth.
cdef size_t RELEASE_GIL_FROM = 16384


@cython.final
cdef class _Workspace:
    """The buffers of a conversion, kept for the next one."""
    cdef Parser parser
    cdef Build build
    cdef Writer batch  # the domains of a share, one behind the other


cdef list spare = []  # workspaces not in use; list.pop and list.append are atomic under the GIL


cdef _Workspace workspace():
    if spare:
        return <_Workspace>spare.pop()
    return _Workspace()


cdef void give_back(_Workspace work):
    # A workspace that a huge VMI has blown up is let go.
    if len(spare) < 16 and work.build.w.room <= 1 << 20 and work.batch.room <= 1 << 20:
        spare.append(work)


cdef const char* convert_one(Parser& parser, Build& b, const char* json, size_t size) noexcept nogil:
    cdef const char* problem
    fetch(b.ctx[0])
    problem = parser.parse(json, size)
    if problem == NULL:
        b.root = root(&parser.document())
        write_domain(b)
    return problem


cdef bint is_good(Build& b) noexcept nogil:
    return not (b.error.set or b.w.failed or b.w.invalid or b.qemu.failed)


cdef bytes finish(_Workspace work, const char* problem):
    if problem == NULL and is_good(work.build):
        return PyBytes_FromStringAndSize(work.build.w.data, work.build.w.size)
    raise error_of(work, problem)


cdef object error_of(_Workspace work, const char* problem):
    """The exception for a conversion that failed; `problem` is the parser's."""
    if problem != NULL:
        return ConversionError("", "the VMI " + problem.decode())
    if work.build.error.set:
        return noted_error(work.build)
    if work.build.w.failed or work.build.qemu.failed:
        return MemoryError("no memory for the domain XML")
    work.build.error.at = work.build.w.bad
    work.build.error.field = b""
    return ConversionError(
        error_field(work.build).decode("utf-8", "replace"),
        "has a character that XML cannot carry (a control character, U+FFFE or U+FFFF)",
    )


cdef object noted_error(Build& b):
    return ConversionError(error_field(b).decode("utf-8", "replace"), error_message(b).decode("utf-8", "replace"))
