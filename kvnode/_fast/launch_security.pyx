# <launchSecurity>: pkg/virt-launcher/virtwrap/converter/compute/launch_security.go.
# On s390x secure execution is iommu="on" on every virtio device, and no element.

cdef void write_launch_security(Build& b) noexcept nogil:
    cdef LaunchSecurity security
    cdef Sev sev
    cdef SevPolicy policy
    if b.ctx.arch != AMD64 or not (b.sev or b.tdx):
        return
    bind(b, b.domain.launchSecurity, &security)
    if present(security.sev):
        bind(b, security.sev, &sev)
        bind(b, sev.policy, &policy)
        start(b.w, b"launchSecurity")
        attr(b.w, b"type", b"sev")
        if str_of(b, sev.dhCert).size:
            element_value(b.w, b"dhCert", sev.dhCert)
        if str_of(b, sev.session).size:
            element_value(b.w, b"session", sev.session)
        # bit 0: no debugging, bit 2: encrypted state; virtwrap/launchsecurity/sev.go:36
        element(b.w, b"policy", b"0x5" if bool_or(b, policy.encryptedState, False) else b"0x1")
        end(b.w, b"launchSecurity")
    elif present(security.snp):
        # bit 16: SMT allowed, bit 17: reserved and always one; virtwrap/launchsecurity/sev.go:49
        lit(b.w, b'<launchSecurity type="sev-snp"><policy>0x30000</policy></launchSecurity>')
    else:
        start(b.w, b"launchSecurity")
        attr(b.w, b"type", b"tdx")
        start(b.w, b"quoteGenerationService")
        attr_str_if(b, b"path", annotation(b, b"kubevirt.io/qgs-socket-path"))
        end(b.w, b"quoteGenerationService")
        end(b.w, b"launchSecurity")
