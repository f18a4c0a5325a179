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
    where = "/run/kubevirt/container-disks/kernel-boot"
    made = Pod(
        [
            Bind(str(guest.kernel), f"{where}/vmlinuz", read_only=True),
            Bind(str(guest.initrd), f"{where}/initrd.gz", read_only=True),
        ]
    )
    yield made
    made.close()
