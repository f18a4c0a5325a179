# <serial>, <console>, <channel>: pkg/virt-launcher/virtwrap/converter/compute/{console,channels}.go.

cdef void write_console(Build& b) noexcept nogil:
    if bool_or(b, b.devices.autoattachSerialConsole, True):
        lit(b.w, b'<serial type="unix"><target port="0"/><source mode="bind" path="')
        put_private_path(b, b"virt-serial0")
        lit(b.w, b'"/>')
        if b.ctx.serial_console_log:
            lit(b.w, b'<log file="')
            put_private_path(b, b"virt-serial0-log")
            lit(b.w, b'" append="on"/>')
        lit(b.w, b'</serial><console type="pty"><target type="serial" port="0"/></console>')
    # the socket's path is libvirt's to choose
    lit(b.w, b'<channel type="unix"><target name="org.qemu.guest_agent.0" type="virtio"/></channel>')
    if present(b.devices.downwardMetrics):
        lit(b.w, b'<channel type="unix">'
                 b'<source mode="bind" path="/var/run/kubevirt-private/downwardmetrics-channel/downwardmetrics.sock"/>'
                 b'<target type="virtio" name="org.github.vhostmd.1"/></channel>')
