"""Pods with a manager, ended after the test, whatever became of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kvnode.standalone.sandbox import Bind
from tests.conftest import Guest
from tests.launcher.manager.pod import Pod


@pytest.fixture
def pod(guest: Guest) -> Iterator[Pod]:
    """A pod whose VMI can boot the demo guest's kernel."""
    made = Pod(kernel_of(guest))
    yield made
    made.close()


@pytest.fixture
def networked_pod(guest: Guest) -> Iterator[Pod]:
    """The same with a network of its own, which has no link yet."""
    made = Pod(kernel_of(guest), own_network=True, standalone=False)
    yield made
    made.close()


def kernel_of(guest: Guest) -> list[Bind]:
    """The guest's kernel and initrd where a pod's container disk would put them."""
    where = "/run/kubevirt/container-disks/kernel-boot"
    return [
        Bind(str(guest.kernel), f"{where}/vmlinuz", read_only=True),
        Bind(str(guest.initrd), f"{where}/initrd.gz", read_only=True),
    ]
