# <graphics>, <video>: pkg/virt-launcher/virtwrap/converter/compute/graphics.go.

cdef void write_graphics(Build& b) noexcept nogil:
    if not bool_or(b, b.devices.autoattachGraphicsDevice, True):
        return
    lit(b.w, b'<graphics type="vnc"><listen type="socket" socket="')
    put_private_path(b, b"virt-vnc")
    lit(b.w, b'"/></graphics>')
    write_video(b)


cdef void write_video(Build& b) noexcept nogil:
    cdef Video video
    lit(b.w, b"<video>")
    start(b.w, b"model")
    if present(b.devices.video):
        bind(b, b.devices.video, &video)
        attr_str_if(b, b"type", video.type)
        lit(b.w, b' heads="1" vram="16384"')
    elif b.ctx.arch != AMD64:
        lit(b.w, b' type="virtio" heads="1"')
    elif b.ctx.bochs_for_efi and b.efi_boot:
        lit(b.w, b' type="bochs" heads="1"')
    else:
        lit(b.w, b' type="vga" heads="1" vram="16384"')
    end(b.w, b"model")
    lit(b.w, b"</video>")


cdef void put_private_path(Build& b, const char* name) noexcept nogil:
    """A file of this VMI's in the launcher pod."""
    lit(b.w, b"/var/run/kubevirt-private/")
    put_str(b, b.meta.uid)
    lit(b.w, b"/")
    lit(b.w, name)
