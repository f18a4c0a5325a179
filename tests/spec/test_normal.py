"""The form in which an API server keeps an instance."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pytest

from kvnode.spec.model import INTEGERS, TYPES, fields
from kvnode.spec.normal import ABSENT_WHEN_ZERO, PRESENT_WHEN_ZERO, normal_instance


def spec(**members: Any) -> dict[str, Any]:
    made: dict[str, Any] = normal_instance({"spec": members})["spec"]
    return made


def test_the_sections_that_everything_reads_are_there() -> None:
    assert normal_instance({}) == {"metadata": {}, "spec": {"domain": {"devices": {}}}}


@pytest.mark.parametrize("table", [ABSENT_WHEN_ZERO, PRESENT_WHEN_ZERO])
def test_the_tables_name_fields_of_the_api(table: Mapping[str, Any]) -> None:
    unknown = [
        f"{name}.{member}" for name in table for member in table[name] if member not in TYPES.get(name, ())
    ]
    assert not unknown


def test_only_numbers_and_booleans_are_absent_when_zero() -> None:
    kinds = {fields(name)[member].name for name, members in ABSENT_WHEN_ZERO.items() for member in members}
    assert kinds <= {"bool", *INTEGERS}


def test_false_and_zero_go_where_they_say_nothing() -> None:
    devices = {"disks": [{"name": "a", "disk": {"readonly": False}, "shareable": False}]}
    made = spec(domain={"cpu": {"cores": 0, "sockets": 1}, "devices": devices})
    assert made["domain"]["cpu"] == {"sockets": 1}
    assert made["domain"]["devices"]["disks"] == [{"name": "a", "disk": {}, "shareable": False}]


def test_null_is_absent_and_an_empty_mapping_is_not() -> None:
    made = spec(domain={"cpu": {"realtime": {}, "numa": None}}, livenessProbe=None)
    assert made == {"domain": {"cpu": {"realtime": {}}, "devices": {}}}


def test_quantities_are_canonical() -> None:
    requests = {"memory": "1024Mi", "cpu": 0.5}
    made = spec(domain={"resources": {"requests": requests}, "memory": {"guest": " 0.5Gi "}})
    assert made["domain"]["resources"]["requests"] == {"memory": "1Gi", "cpu": "500m"}
    assert made["domain"]["memory"]["guest"] == "512Mi"


def test_a_port_without_a_number_is_port_zero() -> None:
    made = spec(domain={"devices": {"interfaces": [{"name": "a", "ports": [{"name": "p"}]}]}})
    assert made["domain"]["devices"]["interfaces"][0]["ports"] == [{"name": "p", "port": 0}]


def test_a_capacity_is_always_written() -> None:
    made = spec(volumes=[{"name": "a", "hostDisk": {"path": "/x", "type": "Disk"}}])
    assert made["volumes"][0]["hostDisk"]["capacity"] == "0"


def test_the_copy_shares_nothing_with_the_original() -> None:
    vmi = {"spec": {"nodeSelector": {"a": "b"}, "unknown": [{"deep": [1]}]}}
    made = normal_instance(vmi)
    made["spec"]["nodeSelector"]["a"] = "changed"
    made["spec"]["unknown"][0]["deep"].append(2)
    assert vmi == {"spec": {"nodeSelector": {"a": "b"}, "unknown": [{"deep": [1]}]}}


def test_any_mapping_will_do() -> None:
    frozen = MappingProxyType({"spec": MappingProxyType({"hostname": "a"})})
    assert normal_instance(frozen)["spec"]["hostname"] == "a"


def test_what_is_repeated_by_reference_is_not_multiplied() -> None:
    value: Any = "a"
    for _ in range(60):
        value = [value, value]
    made = spec(unknown=value)["unknown"]
    assert made[0] is made[1]
    assert made is not value
