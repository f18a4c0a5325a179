# <sysinfo>: pkg/virt-launcher/virtwrap/converter/compute/sysinfo.go.

cdef void write_sysinfo(Build& b) noexcept nogil:
    lit(b.w, b'<sysinfo type="smbios"><system>')
    if present(b.domain.firmware):
        write_entry(b, b"uuid", b.firmware.uuid)
        if str_of(b, b.firmware.serial).size:
            write_entry(b, b"serial", b.firmware.serial)
    if present(b.ctx.f.smbios):
        write_entry(b, b"manufacturer", b.ctx.smbios.manufacturer)
        write_entry(b, b"family", b.ctx.smbios.family)
        write_entry(b, b"product", b.ctx.smbios.product)
        write_entry(b, b"sku", b.ctx.smbios.sku)
        write_entry(b, b"version", b.ctx.smbios.version)
    lit(b.w, b"</system>")
    write_chassis(b)
    lit(b.w, b"</sysinfo>")


cdef void write_chassis(Build& b) noexcept nogil:
    cdef Chassis chassis
    if not present(b.domain.chassis):
        return
    bind(b, b.domain.chassis, &chassis)
    lit(b.w, b"<chassis>")
    write_entry(b, b"manufacturer", chassis.manufacturer)
    write_entry(b, b"version", chassis.version)
    write_entry(b, b"serial", chassis.serial)
    write_entry(b, b"asset", chassis.asset)
    write_entry(b, b"sku", chassis.sku)
    lit(b.w, b"</chassis>")


cdef void write_entry(Build& b, const char* name, Value v) noexcept nogil:
    lit(b.w, b'<entry name="')
    lit(b.w, name)
    lit(b.w, b'">')
    put_str(b, v)
    lit(b.w, b"</entry>")
