# <qemu:commandline>: pkg/virt-launcher/virtwrap/converter/compute/qemu_cmd.go.

cdef void write_qemu_arguments(Build& b) noexcept nogil:
    write_ignition(b)
    write_firmware_log(b)
    if b.qemu.size == 0:
        return
    lit(b.w, b"<qemu:commandline>")
    put(b.w, b.qemu.data, b.qemu.size)
    lit(b.w, b"</qemu:commandline>")
    if b.qemu.invalid and not b.w.invalid:
        b.w.invalid = True
        b.w.bad = b.qemu.bad


cdef void write_ignition(Build& b) noexcept nogil:
    """The file that the launcher writes the annotation to, handed over as firmware configuration."""
    cdef Text data = text(annotation(b, b"kubevirt.io/ignitiondata"))
    if not contains(data, b"ignition"):
        return
    lit(b.qemu, b'<qemu:arg value="-fw_cfg"/><qemu:arg value="name=opt/com.coreos/config,file=')
    lit(b.qemu, b"/var/run/libvirt/ignition-dir/")
    put_value(b.qemu, b.meta.namespace_)
    lit(b.qemu, b"/")
    put_value(b.qemu, b.meta.name)
    lit(b.qemu, b'/data.ign"/>')


cdef void write_firmware_log(Build& b) noexcept nogil:
    """SeaBIOS' debug port, where the launcher is told to log that much: only PCs have it."""
    if b.ctx.arch != AMD64 or whole_number(text(member(b.ctx.f.env, b"VIRT_LAUNCHER_LOG_VERBOSITY"))) <= 5:
        return
    lit(b.qemu, b'<qemu:arg value="-chardev"/>'
                b'<qemu:arg value="file,id=firmwarelog,path=/var/run/kubevirt-private/QEMUSeaBiosDebugPipe"/>'
                b'<qemu:arg value="-device"/><qemu:arg value="isa-debugcon,iobase=0x402,chardev=firmwarelog"/>')


cdef bint contains(Text text, const char* word) noexcept nogil:
    cdef Text wanted = text_of(word)
    cdef Text here
    cdef size_t i
    here.size = wanted.size
    for i in range(text.size):
        if text.size - i < wanted.size:
            return False
        here.data = text.data + i
        if same(here, wanted):
            return True
    return False


cdef int whole_number(Text digits) noexcept nogil:
    """A small number in decimal, 0 for anything else."""
    cdef int n = 0
    cdef size_t i
    if digits.size > 4:
        return 0
    for i in range(digits.size):
        if digits.data[i] < b"0" or digits.data[i] > b"9":
            return 0
        n = n * 10 + (digits.data[i] - 48)
    return n
