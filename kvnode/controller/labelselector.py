"""Label selectors as objects of the API hold them (``metav1.LabelSelector``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

_Test = Callable[[str | None, list[str]], bool]

_OPERATORS: dict[str, _Test] = {
    "In": lambda value, values: value is not None and value in values,
    "NotIn": lambda value, values: value not in values,
    "Exists": lambda value, _: value is not None,
    "DoesNotExist": lambda value, _: value is None,
}


def selects(selector: Mapping[str, Any] | None, labels: Mapping[str, str]) -> bool:
    """Whether labels are selected: by no selector none are, by an empty one all.

    A selector with a requirement that cannot be read selects nothing.
    """
    if not isinstance(selector, Mapping):
        return False
    wanted, requirements = selector.get("matchLabels") or {}, selector.get("matchExpressions") or ()
    if not isinstance(wanted, Mapping) or not isinstance(requirements, list | tuple):
        return False
    same = all(labels.get(key) == value for key, value in wanted.items())
    return same and all(_meets(one, labels) for one in requirements)


def _meets(requirement: Any, labels: Mapping[str, str]) -> bool:
    if not isinstance(requirement, Mapping):
        return False
    test, values = _OPERATORS.get(str(requirement.get("operator"))), requirement.get("values") or []
    return (
        test is not None
        and isinstance(values, list)
        and test(labels.get(str(requirement.get("key"))), values)
    )
