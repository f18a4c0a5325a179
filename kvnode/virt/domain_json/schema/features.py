"""``<features>`` and ``<clock>``."""

from __future__ import annotations

from kvnode.virt.domain_json.scalars import UINT32
from kvnode.virt.domain_json.shape import many, optional, struct, text

FEATURE_ENABLED = struct()
FEATURE_STATE = struct(
    text("State", "@state"),
)
FEATURE_SPINLOCKS = struct(
    text("State", "@state"),
    optional("Retries", "@retries", UINT32),
)
SYNIC_TIMER = struct(
    optional("Direct", "direct", FEATURE_STATE),
    text("State", "@state"),
)
FEATURE_VENDOR_ID = struct(
    text("State", "@state"),
    text("Value", "@value"),
)
TLB_FLUSH = struct(
    optional("Direct", "direct", FEATURE_STATE),
    optional("Extended", "extended", FEATURE_STATE),
    text("State", "@state"),
)
FEATURE_HYPERV = struct(
    text("Mode", "@mode"),
    optional("Relaxed", "relaxed", FEATURE_STATE),
    optional("VAPIC", "vapic", FEATURE_STATE),
    optional("Spinlocks", "spinlocks", FEATURE_SPINLOCKS),
    optional("VPIndex", "vpindex", FEATURE_STATE),
    optional("Runtime", "runtime", FEATURE_STATE),
    optional("SyNIC", "synic", FEATURE_STATE),
    optional("SyNICTimer", "stimer", SYNIC_TIMER),
    optional("Reset", "reset", FEATURE_STATE),
    optional("VendorID", "vendor_id", FEATURE_VENDOR_ID),
    optional("Frequencies", "frequencies", FEATURE_STATE),
    optional("Reenlightenment", "reenlightenment", FEATURE_STATE),
    optional("TLBFlush", "tlbflush", TLB_FLUSH),
    optional("IPI", "ipi", FEATURE_STATE),
    optional("EVMCS", "evmcs", FEATURE_STATE),
)
FEATURE_KVM = struct(
    optional("Hidden", "hidden", FEATURE_STATE),
    optional("HintDedicated", "hint-dedicated", FEATURE_STATE),
)
FEATURE_PV_SPINLOCK = struct(
    text("State", "@state"),
)
FEATURES = struct(
    optional("ACPI", "acpi", FEATURE_ENABLED),
    optional("APIC", "apic", FEATURE_ENABLED),
    optional("Hyperv", "hyperv", FEATURE_HYPERV),
    optional("SMM", "smm", FEATURE_ENABLED),
    optional("KVM", "kvm", FEATURE_KVM),
    optional("PVSpinlock", "pvspinlock", FEATURE_PV_SPINLOCK),
    optional("PMU", "pmu", FEATURE_STATE),
    optional("VMPort", "vmport", FEATURE_STATE),
)
TIMER = struct(
    text("Name", "@name"),
    text("TickPolicy", "@tickpolicy"),
    text("Present", "@present"),
    text("Track", "@track"),
    text("Frequency", "@frequency"),
)
CLOCK = struct(
    text("Offset", "@offset"),
    text("Timezone", "@timezone"),
    text("Adjustment", "@adjustment"),
    many("Timer", "timer", TIMER),
)
