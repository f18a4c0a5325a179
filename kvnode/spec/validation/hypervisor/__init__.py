"""What KubeVirt's rules allow and libvirt, QEMU or the API server then refuse, or do otherwise than asked.

Each rule says which program refuses. What is said of libvirt and QEMU was tried with libvirt 9.0 and QEMU 7.2;
where newer versions differ, the rule names them.
"""

from __future__ import annotations

from kvnode.spec.validation.hypervisor import devices, disks, domain, instance, pairs

RULES = (*instance.RULES, *domain.RULES, *devices.RULES, *disks.RULES, *pairs.RULES)

__all__ = ["RULES"]
