"""Rules on devices other than disks and interfaces."""

from __future__ import annotations

from kvnode.spec.cause import shown
from kvnode.spec.validation.review import Json, Review

_VIDEO_TYPES = {
    "amd64": ("vga", "cirrus", "virtio", "ramfb", "bochs"),
    "arm64": ("virtio", "ramfb"),
    "s390x": ("virtio",),
}
_WATCHDOGS = {"amd64": ("i6300esb", "diag288"), "s390x": ("diag288", "i6300esb")}
_PANIC_MODELS = ("hyperv", "isa", "pvpanic")


def check_inputs(review: Review) -> None:
    """Inputs are tablets on virtio or USB (vmi-create-admitter.go:380)."""
    for index, device in enumerate(review.devices.get("inputs", [])):
        bus, type_ = device.get("bus", ""), device.get("type", "")
        path = f"domain.devices.inputs[{index}]"
        if bus not in ("", "virtio", "usb"):
            review.invalid(f"{path}.bus", f"is {shown(bus)}: must be virtio or usb")
        if type_ != "tablet":
            review.invalid(f"{path}.type", f"is {shown(type_)}: must be tablet")


def check_sound(review: Review) -> None:
    """Sound cards (vmi-create-admitter.go:565; path without domain.devices)."""
    sound = review.devices.get("sound")
    if sound is None:
        return
    model = sound.get("model", "")
    if model not in ("", "ich9", "ac97"):
        review.invalid("Sound", f"has the model {shown(model)}: must be ich9 or ac97")
    if not sound.get("name"):
        review.invalid("Sound", "must have a name")


def check_video(review: Review) -> None:
    """A video model is one of the architecture's, and needs a graphics device.

    vmi-create-admitter.go:2056 (path without domain.devices); amd64.go:43, arm64.go:48, s390x.go:40.
    """
    video = review.devices.get("video")
    if video is None:
        return
    if review.devices.get("autoattachGraphicsDevice") is False:
        review.invalid("video", "cannot be set while domain.devices.autoattachGraphicsDevice is false")
    types = _VIDEO_TYPES.get(review.architecture)
    model = video.get("type", "")
    if types and model not in types:
        message = f"is {shown(model)}: must be one of {', '.join(types)} on {review.architecture}"
        review.not_supported("domain.devices.video.type", message)


def check_watchdog(review: Review) -> None:
    """Each architecture has one model of watchdog, arm64 none (amd64.go:60, arm64.go:123, s390x.go:57)."""
    watchdog = review.devices.get("watchdog")
    if watchdog is None:
        return
    path = "domain.devices.watchdog"
    if review.architecture == "arm64":
        review.not_supported(path, "is not there on arm64: remove it")
        return
    allowed, other = _WATCHDOGS.get(review.architecture, ("", ""))
    if allowed and (allowed not in watchdog or other in watchdog):
        review.not_supported(path, f"must be {allowed}, and nothing else, on {review.architecture}")


def check_sound_arm64(review: Review) -> None:
    """No sound on arm64 (arm64.go:133)."""
    if review.architecture == "arm64" and "sound" in review.devices:
        review.not_supported("domain.devices.sound", "is not there on arm64: remove it")


def check_panic_devices(review: Review) -> None:
    """Panic devices by architecture and model (vmi-create-admitter.go:2076-2115)."""
    devices = review.devices.get("panicDevices", [])
    if devices and review.architecture == "s390x":
        review.invalid("domain.devices.panicDevices", "cannot be chosen on s390x: remove them")
    for index, device in enumerate(devices):
        model = device.get("model")
        if model is not None and model not in _PANIC_MODELS:
            path = f"domain.devices.panicDevices[{index}].model"
            review.invalid(path, f"is {shown(model)}: must be one of {', '.join(_PANIC_MODELS)}")


def check_vgpu_displays(review: Review) -> None:
    """One mediated device at most shows a boot display (vmi-create-admitter.go:530; path as there)."""
    if sum(_has_ramfb(gpu) for gpu in review.devices.get("gpus", [])) > 1:
        review.invalid("GPUs", "may have one display with ramFB at most, in all domain.devices.gpus")


def _has_ramfb(gpu: Json) -> bool:
    display = (gpu.get("virtualGPUOptions") or {}).get("display")
    if display is None or display.get("enabled", True) is False:
        return False
    return "ramFB" not in display or display["ramFB"].get("enabled") is True


def check_gates(review: Review) -> None:
    """Devices that a feature gate guards.

    vmi-create-admitter.go:250 (virtiofs), :273 (downward metrics), :552 (host devices), :2004 (vsock).
    """
    gate = review.config.gate
    if review.devices.get("hostDevices") is not None and not gate("HostDevices"):
        review.invalid("HostDevices", "of domain.devices need the feature gate HostDevices")
    if review.devices.get("autoattachVSOCK") and not gate("VSOCK"):
        review.invalid("domain.devices.autoattachVSOCK", "needs the feature gate VSOCK")
    if "downwardMetrics" in review.devices and not gate("DownwardMetrics"):
        review.invalid("domain.devices.downwardMetrics", "needs the feature gate DownwardMetrics")
    if gate("EnableVirtioFsStorageVolumes"):
        return
    storage = {v.get("name") for v in review.volumes if "persistentVolumeClaim" in v or "dataVolume" in v}
    if any(fs.get("name") in storage for fs in review.devices.get("filesystems", [])):
        message = (
            "of a PersistentVolumeClaim or DataVolume need the feature gate EnableVirtioFsStorageVolumes"
        )
        review.invalid("domain.devices.filesystems", message)


RULES = (
    check_inputs,
    check_sound,
    check_sound_arm64,
    check_video,
    check_watchdog,
    check_panic_devices,
    check_vgpu_displays,
    check_gates,
)
