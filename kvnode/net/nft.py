"""Rules of nftables, loaded in one transaction by ``nft`` (nft(8), libnftables-json(5))."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from kvnode.net.errors import NetError

TABLE = "nat"
HOOKS = {"prerouting": -100, "input": 100, "output": -100, "postrouting": 100}
"""Base chains, each named for its hook, and their priorities."""

_TIMEOUT = 60.0


@dataclass(frozen=True)
class Match:
    """A condition on a packet."""

    base: str
    """Protocol whose field it is; ``meta`` for what is no field."""
    field: str
    value: str | int | range | tuple[str, ...] | tuple[int, ...]
    """One value, a range of numbers, or a set."""


@dataclass(frozen=True)
class Verdict:
    """What becomes of a packet."""

    name: str
    """``masquerade``, ``return``, or with an operand ``jump``, ``dnat``, ``snat``."""
    operand: str = ""


@dataclass(frozen=True)
class Rule:
    """A rule, which counts what it takes."""

    chain: str
    matches: tuple[Match, ...]
    verdict: Verdict


@dataclass(frozen=True)
class Ruleset:
    """The rules of one family's table."""

    family: str
    """``ip`` or ``ip6``."""
    chains: tuple[str, ...]
    """Chains beside those of the hooks."""
    rules: tuple[Rule, ...]


def load(rulesets: Iterable[Ruleset]) -> None:
    """Put the rules in place of those that the same chains have, in the caller's network namespace.

    All of them or none. Raises NetError when the kernel or ``nft`` refuses.
    """
    commands = json.dumps({"nftables": [command for one in rulesets for command in commands_of(one)]})
    try:
        subprocess.run(
            ["nft", "-j", "-f", "-"],
            input=commands,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT,
            check=True,
        )
    except OSError as error:
        raise NetError(f"nft: cannot be run: {error.strerror}") from None
    except subprocess.TimeoutExpired:
        raise NetError(f"nft: did not end within {_TIMEOUT:.0f} s") from None
    except subprocess.CalledProcessError as error:
        lines = (error.stderr or error.stdout or "").strip().splitlines()
        raise NetError(f"nft: the rules are refused: {lines[0] if lines else error.returncode}") from None


def commands_of(ruleset: Ruleset) -> list[dict[str, Any]]:
    """Return the commands that make a table, empty our chains and fill them."""
    table = {"family": ruleset.family, "table": TABLE}
    commands: list[dict[str, Any]] = [{"add": {"table": {"family": ruleset.family, "name": TABLE}}}]
    for name, priority in HOOKS.items():
        base = {**table, "name": name, "type": "nat", "hook": name, "prio": priority}
        commands.append({"add": {"chain": base}})
    commands += [{"add": {"chain": {**table, "name": name}}} for name in ruleset.chains]
    # Else a second set-up would double every rule. A mesh's chains in this table have other names, and stay.
    commands += [{"flush": {"chain": {**table, "name": name}}} for name in (*HOOKS, *ruleset.chains)]
    for rule in ruleset.rules:
        expressions = [*map(_matching, rule.matches), {"counter": None}, _verdict(rule.verdict)]
        commands.append({"add": {"rule": {**table, "chain": rule.chain, "expr": expressions}}})
    return commands


def _matching(match: Match) -> dict[str, Any]:
    if match.base == "meta":
        left: dict[str, Any] = {"meta": {"key": match.field}}
    else:
        left = {"payload": {"protocol": match.base, "field": match.field}}
    right: Any = match.value
    if isinstance(right, range):
        right = {"range": [right.start, right.stop - 1]}
    elif isinstance(right, tuple):
        right = {"set": list(right)}
    return {"match": {"op": "==", "left": left, "right": right}}


def _verdict(verdict: Verdict) -> dict[str, Any]:
    if verdict.name == "jump":
        return {"jump": {"target": verdict.operand}}
    return {verdict.name: {"addr": verdict.operand} if verdict.operand else None}
