"""What KVM itself says of its Hyper-V features (``linux/kvm.h``)."""

from __future__ import annotations

import fcntl
import logging
import os
import struct
from pathlib import Path

from kvnode.agent.labels.hyperv import capabilities

logger = logging.getLogger(__name__)

_GET_MSR_INDEX_LIST, _CHECK_EXTENSION = 0xC004AE02, 0xAE03
_MOST_MSRS = 4096


def hyperv_features(device: Path) -> tuple[str, ...]:
    """Names of the features; none where there is no KVM or it is not x86's."""
    try:
        kvm = os.open(device, os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        logger.info("%s: cannot be opened: %s: no Hyper-V features are known", device, error.strerror)
        return ()
    try:
        return tuple(capabilities(msrs(kvm), lambda number: fcntl.ioctl(kvm, _CHECK_EXTENSION, number)))
    except OSError as error:
        logger.info("%s: cannot be asked: %s: no Hyper-V features are known", device, error.strerror)
        return ()
    finally:
        os.close(kvm)


def msrs(kvm: int) -> set[int]:
    """Model-specific registers that KVM knows, of an open ``/dev/kvm``; raises OSError."""
    buffer = bytearray(4 + 4 * _MOST_MSRS)
    struct.pack_into("=I", buffer, 0, _MOST_MSRS)
    fcntl.ioctl(kvm, _GET_MSR_INDEX_LIST, buffer)
    (count,) = struct.unpack_from("=I", buffer)
    return set(struct.unpack_from(f"={min(count, _MOST_MSRS)}I", buffer, 4))
