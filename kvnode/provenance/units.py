"""What differs between two instances, in pieces that make sense alone: a disk with its volume, an interface
with its network, a field."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from kvnode.provenance.devices import disk_verdict, interface_verdict
from kvnode.provenance.document import Keys, shown_path
from kvnode.provenance.live import Verdict, field_verdict

__all__ = ["ABSENT", "Unit", "get", "put", "units"]

Json: TypeAlias = Mapping[str, Any]

_DISKS: Keys = ("spec", "domain", "devices", "disks")
_VOLUMES: Keys = ("spec", "volumes")
_INTERFACES: Keys = ("spec", "domain", "devices", "interfaces")
_NETWORKS: Keys = ("spec", "networks")
_APART = (_DISKS, _VOLUMES, _INTERFACES, _NETWORKS)
ABSENT = object()
"""What `get` finds where nothing is; put there, it takes a member away."""

_METADATA = ("name", "namespace", "uid", "annotations", "labels")
_STATUS = (
    "VSOCKCID",
    "currentCPUTopology",
    "interfaces",
    "memory",
    "runtimeUser",
    "topologyHints",
    "volumeStatus",
)
"""Parts that a domain can hang on; the rest is for the cluster's own use."""


@dataclass(frozen=True, slots=True)
class Unit:
    """One piece of the difference."""

    fields: tuple[str, ...]
    """Paths, in the wanted instance where it has them."""
    old: Any
    new: Any
    """What stood there and what stands there; of a disk or an interface what it is, its volume or network
    beside it."""
    verdict: Verdict
    apply: Callable[[Json, Json], dict[str, Any]]
    """Puts what the second instance has into a copy of the first."""


def units(running: Json, wanted: Json, *, copies: bool = False) -> list[Unit]:
    """The pieces, in the order of the API's fields. `copies`: see `devices.disk_verdict`."""
    room = get(running, ("spec", "domain", "devices", "disableHotplug")) is not True
    found = list(_fields(running, wanted, (), running, wanted))
    found += _tied(
        running, wanted, (_DISKS, _VOLUMES), lambda d, v: disk_verdict(d, v, room=room, copies=copies)
    )
    found += _tied(running, wanted, (_INTERFACES, _NETWORKS), interface_verdict)
    return found


def _fields(running: Json, wanted: Json, keys: Keys, old: Any, new: Any) -> Iterator[Unit]:
    """Every field that differs, but for the lists that are judged apart."""
    if old == new or keys in _APART or _is_clusters(keys):
        return
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for name in {**old, **new}:
            yield from _fields(running, wanted, (*keys, name), old.get(name, ABSENT), new.get(name, ABSENT))
        return
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (one, other) in enumerate(zip(old, new, strict=True)):
            yield from _fields(running, wanted, (*keys, index), one, other)
        return
    one_sided = old if new is ABSENT else new if old is ABSENT else None
    if isinstance(one_sided, Mapping) and one_sided:
        # a whole object that came or went: each of its values by itself would not convert
        inner = [(*keys, *below) for below in _leaves(one_sided)]
        verdicts = [field_verdict(shown_path(one), running, wanted) for one in inner]
        verdict = next((v for v in verdicts if not v.live), verdicts[0])
    else:
        verdict = field_verdict(shown_path(keys), running, wanted)
    yield Unit(
        (shown_path(keys),),
        None if old is ABSENT else old,
        None if new is ABSENT else new,
        verdict,
        lambda base, other: put(base, keys, get(other, keys)),
    )


def _is_clusters(keys: Keys) -> bool:
    if len(keys) == 1:
        return keys[0] not in ("metadata", "spec", "status")
    if len(keys) == 2:
        wanted = {"metadata": _METADATA, "status": _STATUS}.get(str(keys[0]))
        return wanted is not None and keys[1] not in wanted
    return False


def _leaves(value: Any) -> Iterator[Keys]:
    if isinstance(value, Mapping) and value:
        for name, inner in value.items():
            yield from ((name, *below) for below in _leaves(inner))
    else:
        yield ()


def _tied(
    running: Json,
    wanted: Json,
    lists: tuple[Keys, Keys],
    judge: Callable[[tuple[Json | None, Json | None], tuple[Json | None, Json | None]], Verdict],
) -> Iterator[Unit]:
    """A unit for each name whose entry in either of two lists differs."""
    old = [_by_name(get(running, keys)) for keys in lists]
    new = [_by_name(get(wanted, keys)) for keys in lists]
    for name in dict.fromkeys(name for side in (*old, *new) for name in side):
        pairs = [(one.get(name), other.get(name)) for one, other in zip(old, new, strict=True)]
        if all(_item(one) == _item(other) for one, other in pairs):
            continue
        paths = tuple(
            shown_path((*keys, entry[0]))
            for keys, (before, after) in zip(lists, pairs, strict=True)
            if _item(before) != _item(after) and (entry := after or before) is not None
        )
        yield Unit(
            paths,
            _described(lists, [before for before, _ in pairs]),
            _described(lists, [after for _, after in pairs]),
            judge(*((_item(before), _item(after)) for before, after in pairs)),
            lambda base, other, name=name: _exchanged(base, other, lists, name),  # type: ignore[misc]
        )
    yield from (_reordered(keys) for keys in lists if _in_other_order(get(running, keys), get(wanted, keys)))


def _reordered(keys: Keys) -> Unit:
    verdict = Verdict(False, "devices are in the order in which the machine was started")
    return Unit(
        (shown_path(keys),), None, None, verdict, lambda base, other: put(base, keys, get(other, keys))
    )


def _in_other_order(old: Any, new: Any) -> bool:
    one, other = _by_name(old), _by_name(new)
    return [name for name in one if name in other] != [name for name in other if name in one]


def _item(entry: tuple[int, Json] | None) -> Json | None:
    return None if entry is None else entry[1]


def _by_name(items: Any) -> dict[str, tuple[int, Json]]:
    if not isinstance(items, list):
        return {}
    named = [(i, item) for i, item in enumerate(items) if isinstance(item, Mapping)]
    return {item["name"]: (i, item) for i, item in named if isinstance(item.get("name"), str)}


def _described(lists: tuple[Keys, Keys], entries: list[tuple[int, Json] | None]) -> dict[str, Any] | None:
    found = {
        str(keys[-1])[:-1]: entry[1] for keys, entry in zip(lists, entries, strict=True) if entry is not None
    }
    return found or None


def _exchanged(base: Json, other: Json, lists: tuple[Keys, Keys], name: str) -> dict[str, Any]:
    """The base with the other's entries of a name: in place, or behind the others, or gone."""
    made = dict(base)
    for keys in lists:
        items = _list(get(base, keys))
        mine, theirs = _by_name(items).get(name), _by_name(get(other, keys)).get(name)
        if mine is not None and theirs is not None:
            items[mine[0]] = theirs[1]
        elif mine is not None:
            del items[mine[0]]
        elif theirs is not None:
            items.insert(theirs[0], theirs[1])
        made = put(made, keys, items)
    return made


def _list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list) else []


def get(value: Any, keys: Keys) -> Any:
    """The value there, or ABSENT."""
    for key in keys:
        if isinstance(key, int):
            if not isinstance(value, list) or key >= len(value):
                return ABSENT
            value = value[key]
        else:
            if not isinstance(value, Mapping) or key not in value:
                return ABSENT
            value = value[key]
    return value


def put(value: Any, keys: Keys, new: Any) -> Any:
    """A copy of `value` with `new` at `keys`; nothing of the original is changed."""
    if not keys:
        return new
    key, rest = keys[0], keys[1:]
    if isinstance(key, int):
        return [put(item, rest, new) if index == key else item for index, item in enumerate(value)]
    made = dict(value) if isinstance(value, Mapping) else {}
    if not rest and new is ABSENT:
        made.pop(key, None)
    else:
        made[key] = put(made.get(key, {}), rest, new)
    return made
