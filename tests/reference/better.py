"""Differences that are meant: where the reference is wrong or wasteful, and the project does not follow it.

A rule has a reason, and a predicate on the case and both outputs that recognises exactly that difference;
it never lists cases. A predicate that raises does not recognise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.reference.common import Case


@dataclass(frozen=True)
class Rule:
    """One difference that is meant."""

    group: str
    reason: str
    recognises: Callable[[Case, Any, Any], bool]
    """``recognises(case, want, got)``: the outputs differ in just this way."""


RULES: tuple[Rule, ...] = ()


def reason_for(case: Case, want: Any, got: Any, rules: tuple[Rule, ...] | None = None) -> str:
    """The reason of the first rule that recognises the difference; "" when none does."""
    for rule in RULES if rules is None else rules:
        if rule.group != case.group:
            continue
        try:
            if rule.recognises(case, want, got):
                return rule.reason
        except (LookupError, TypeError, ValueError, AttributeError):
            continue
    return ""
