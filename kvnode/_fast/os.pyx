# <os>: pkg/virt-launcher/virtwrap/converter/compute/os.go.

cdef void write_os(Build& b) noexcept nogil:
    cdef Machine machine
    cdef bint auto_firmware = b.efi_boot and present(b.ctx.f.efi) and b.ctx.efi_auto_selection
    bind(b, b.domain.machine, &machine)
    start(b.w, b"os")
    if auto_firmware:
        attr(b.w, b"firmware", b"efi")
        close_tag(b.w)
        lit(b.w, b'<firmware><feature enabled="yes" name="secure-boot"/>'
                 b'<feature enabled="yes" name="enrolled-keys"/></firmware>')
    start(b.w, b"type")
    attr(b.w, b"arch", b"aarch64" if b.ctx.arch == ARM64 else b"s390x" if b.ctx.arch == S390X else b"x86_64")
    if str_of(b, machine.type).size:
        attr_value(b.w, b"machine", machine.type)
    else:
        # pkg/virt-launcher/virtwrap/api/defaults.go:30
        attr(b.w, b"machine", b"virt" if b.ctx.arch == ARM64 else b"s390-ccw-virtio" if b.ctx.arch == S390X else b"q35")
    close_tag(b.w)
    lit(b.w, b"hvm")
    end(b.w, b"type")
    if b.ctx.arch != S390X:
        lit(b.w, b'<smbios mode="sysinfo"/>')
    if b.efi_boot and present(b.ctx.f.efi):
        write_efi(b)
    write_bios(b)
    write_kernel_boot(b)
    write_acpi_tables(b)
    if same_as(str_of(b, b.spec.startStrategy), b"Paused"):
        # time to enter the firmware's menu once the guest is let go
        lit(b.w, b'<bootmenu enable="yes" timeout="10000"/>')
    end(b.w, b"os")


cdef void write_efi(Build& b) noexcept nogil:
    """The firmware image and its variables. SNP and TDX guests boot a firmware without variables."""
    cdef LaunchSecurity security
    cdef bint stateless
    if b.ctx.efi_auto_selection:
        # arm64 keeps its variables in a varstore that libvirt picks itself
        if not same_as(str_of(b, b.spec.architecture), b"arm64"):
            start(b.w, b"nvram")
            attr(b.w, b"format", b"raw")
            close_tag(b.w)
            put_nvram_path(b)
            end(b.w, b"nvram")
        return
    bind(b, b.domain.launchSecurity, &security)
    stateless = present(security.snp) or b.tdx
    start(b.w, b"loader")
    attr(b.w, b"readonly", b"yes")
    attr(b.w, b"secure", b"yes" if b.ctx.efi_secure_loader else b"no")
    attr(b.w, b"type", b"rom" if stateless else b"pflash")
    close_tag(b.w)
    put_str(b, b.ctx.efi.code)
    end(b.w, b"loader")
    if not stateless:
        start(b.w, b"nvram")
        attr_str_if(b, b"template", b.ctx.efi.vars)
        close_tag(b.w)
        put_nvram_path(b)
        end(b.w, b"nvram")


cdef void put_nvram_path(Build& b) noexcept nogil:
    # pkg/util/util.go:211; who is not root: pkg/vmitrait/vmitrait.go:26
    if uint_up_to(b, b.status.runtimeUser, 0, UINT64_MAX) != 0 or has_annotation(b, b"kubevirt.io/nonroot"):
        lit(b.w, b"/var/run/kubevirt-private/libvirt/qemu/nvram/")
    else:
        lit(b.w, b"/var/lib/libvirt/qemu/nvram/")
    put_str(b, b.meta.name)
    lit(b.w, b"_VARS.fd")


cdef void write_bios(Build& b) noexcept nogil:
    cdef Bootloader loader
    cdef Bios bios
    bind(b, b.firmware.bootloader, &loader)
    bind(b, loader.bios, &bios)
    if bool_or(b, bios.useSerial, False):
        lit(b.w, b'<bios useserial="yes"/>')


cdef void write_kernel_boot(Build& b) noexcept nogil:
    cdef KernelBoot boot
    cdef KernelBootContainer container
    bind(b, b.firmware.kernelBoot, &boot)
    bind(b, boot.container, &container)
    write_boot_artifact(b, b"kernel", container.kernelPath)
    write_boot_artifact(b, b"initrd", container.initrdPath)
    if str_of(b, boot.kernelArgs).size:
        element_value(b.w, b"cmdline", boot.kernelArgs)


cdef void write_boot_artifact(Build& b, const char* name, Value path) noexcept nogil:
    """The last part of the path, in the folder that the kernel-boot container fills: pkg/container-disk/container-disk.go:112."""
    cdef Text base = last_part(str_of(b, path))
    if str_of(b, path).size == 0:
        return
    if base.size == 0 or same_as(base, b".") or same_as(base, b".."):
        reject(b, path, b"must be the absolute path of a file")
    start(b.w, name)
    close_tag(b.w)
    lit(b.w, b"/var/run/kubevirt/container-disks/kernel-boot/")
    b.w.source = path
    put_escaped(b.w, base)
    end(b.w, name)


cdef Text last_part(Text path) noexcept nogil:
    cdef Text part
    cdef size_t begin_at
    while path.size > 0 and path.data[path.size - 1] == b"/":
        path.size -= 1
    begin_at = path.size
    while begin_at > 0 and path.data[begin_at - 1] != b"/":
        begin_at -= 1
    part.data = path.data + begin_at
    part.size = path.size - begin_at
    return part


cdef void write_acpi_tables(Build& b) noexcept nogil:
    cdef Acpi acpi
    if not present(b.firmware.acpi):
        return
    bind(b, b.firmware.acpi, &acpi)
    if str_of(b, acpi.slicNameRef).size == 0 and str_of(b, acpi.msdmNameRef).size == 0:
        reject(b, b.firmware.acpi, b"must name a volume in slicNameRef, msdmNameRef or both")
    start(b.w, b"acpi")
    write_acpi_table(b, b"slic", acpi.slicNameRef)
    write_acpi_table(b, b"msdm", acpi.msdmNameRef)
    end(b.w, b"acpi")


cdef void write_acpi_table(Build& b, const char* table, Value volume_name) noexcept nogil:
    cdef Value found
    cdef Volume volume
    cdef Text name = str_of(b, volume_name)
    if name.size == 0:
        return
    found = b.volumes.get(name)
    if not present(found):
        reject_named(b, volume_name, b"must name a volume of spec.volumes; there is none called", name)
    bind(b, found, &volume)
    if present(found) and not present(volume.secret):
        reject(b, volume_name, b"must name a volume with a secret as its source")
    start(b.w, b"table")
    attr(b.w, b"type", table)
    close_tag(b.w)
    lit(b.w, b"/var/run/kubevirt-private/secret/")
    put_str(b, volume_name)
    lit(b.w, b"/")
    lit(b.w, table)
    lit(b.w, b".bin")
    end(b.w, b"table")
