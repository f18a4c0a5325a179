"""Setting a pod's network up (``pkg/network/setup/netpod/netpod.go:150-263``).

A network is set up once: pending, started, finished. Found started by a later pass, it was left half done by an agent
that died, and cannot be trusted: its VMI fails.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from kvnode.net import desired, masquerade, names
from kvnode.net.apply import Changes
from kvnode.net.cache import Cache, Progress, Progresses
from kvnode.net.desired import Request, is_absent
from kvnode.net.discover import discover
from kvnode.net.driver import Driver
from kvnode.net.errors import CriticalNetError, NetError
from kvnode.net.state import Status

logger = logging.getLogger(__name__)


class Namespace(Protocol):
    """A pod's network namespace."""

    def run(self, work: Callable[[Driver], None]) -> None:
        """Do something in it; raises NetError."""


def setup(request: Request, cache: Cache, progresses: Progresses, namespace: Namespace) -> None:
    """Set up the networks that are not yet, and take down those that are to be unplugged.

    Does nothing when there is nothing to do. Raises NetError when it may be tried again, CriticalNetError when
    not; what was changed until then is changed back. What is set up and cannot be recorded stays, and is not
    done again: the record is what is tried again.
    """
    pending: list[Mapping[str, Any]] = []
    begun: list[Mapping[str, Any]] = []
    for network in request.networks:
        name = str(network.get("name"))
        interface = request.interface(name)
        if interface is None:
            raise NetError(f"spec.networks: {name!r} has no interface of its name")
        if interface.get("sriov") is not None:
            continue
        progress = progresses.get(name)
        if progress is not Progress.PENDING:
            begun.append(interface)
        elif not is_absent(interface):
            pending.append(network)
        if progress is Progress.STARTED and not is_absent(interface):
            raise CriticalNetError(
                f"network {name}: its set-up was begun and did not end; it cannot be resumed"
            )
    unplugged = [str(interface["name"]) for interface in begun if is_absent(interface)]
    if not pending and not unplugged:
        return
    started = [str(network["name"]) for network in pending]
    namespace.run(lambda driver: _run(request, cache, progresses, driver, started))
    _finish(progresses, started)
    for name in unplugged:
        _forget(request, cache, progresses, name)


def _run(request: Request, cache: Cache, progresses: Progresses, driver: Driver, started: list[str]) -> None:
    status = driver.read()
    logger.debug("network of the pod of %s: %s", request.uid, status)
    discover(request, status, cache)
    _begin(progresses, started)
    try:
        _configure(request, status, driver)
    except NetError as error:
        raise CriticalNetError(str(error)) from error


def _begin(progresses: Progresses, started: list[str]) -> None:
    """Remember that they are started, or of none: nothing is changed yet, and it may be tried again."""
    try:
        for name in started:
            progresses.put(name, Progress.STARTED)
    except NetError:
        for name in started:
            progresses.drop(name)
        raise


def _finish(progresses: Progresses, started: list[str]) -> None:
    failures = []
    for name in started:
        try:
            progresses.put(name, Progress.FINISHED)
        except NetError as error:
            failures.append(error)
    if failures:
        raise failures[0]


def _configure(request: Request, status: Status, driver: Driver) -> None:
    wanted = desired.compose(request, status)
    logger.debug("network wanted in the pod of %s: %s", request.uid, wanted)
    rulesets = masquerade.compose(request, status, wanted)
    changes = Changes(driver, status)
    try:
        changes.apply(wanted)
        if rulesets:
            driver.load_nft(rulesets)
    except BaseException:
        changes.undo()
        raise


def _forget(request: Request, cache: Cache, progresses: Progresses, name: str) -> None:
    """The record goes last: while it is there, a pass comes back here."""
    network = request.network(name)
    pod_interface = names.candidates(network, request.networks, request.statuses)[0]
    cache.remove_lease(pod_interface)
    cache.remove(name)
    progresses.drop(name)
