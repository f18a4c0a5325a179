cdef void write_filesystems(Build& b) noexcept nogil:
    """Shared directories, each served by a virtiofsd at a socket of its own.

    pkg/virt-launcher/virtwrap/converter/storage/virtiofs.go:35
    """
    cdef Items it = items_of(b, b.devices.filesystems)
    cdef Filesystem fs
    while next_item(it):
        bind(b, it.value, &fs)
        if not present(fs.virtiofs):
            continue
        lit(b.w, b'<filesystem type="mount" accessMode="passthrough"><driver type="virtiofs" queue="1024"/>')
        lit(b.w, b'<source socket="/var/run/kubevirt/virtiofs-containers/')
        put_str(b, fs.name)
        lit(b.w, b'.sock"/><target dir="')
        put_str(b, fs.name)
        lit(b.w, b'"/></filesystem>')
