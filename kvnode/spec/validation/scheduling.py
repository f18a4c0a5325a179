"""Rules on where the pod may run: affinity and spread (`validate-k8s-utils.go` of the VMI's admission).

Affinity is reported right below the spec there: ``spec.nodeAffinity``, not ``spec.affinity.nodeAffinity``.
"""

from __future__ import annotations

from kvnode.spec.cause import shown
from kvnode.spec.validation.names import (
    dns_label_fault,
    dns_subdomain_fault,
    label_value_fault,
    qualified_name_fault,
)
from kvnode.spec.validation.review import Json, Review

_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def check_affinity(review: Review) -> None:
    """Affinity to nodes and pods (validate-k8s-utils.go:57-171)."""
    affinity = review.spec.get("affinity") or {}
    _check_node_affinity(review, affinity.get("nodeAffinity") or {})
    for kind in ("podAffinity", "podAntiAffinity"):
        rules = affinity.get(kind) or {}
        for index, term in enumerate(rules.get(_REQUIRED, [])):
            _check_pod_term(review, f"{kind}.{_REQUIRED}[{index}]", term)
        for index, weighted in enumerate(rules.get(_PREFERRED, [])):
            path = f"{kind}.{_PREFERRED}[{index}]"
            _check_weight(review, path, weighted)
            _check_pod_term(review, f"{path}.podAffinityTerm", weighted.get("podAffinityTerm") or {})


def _check_node_affinity(review: Review, affinity: Json) -> None:
    """Terms on nodes (validate-k8s-utils.go:76,174)."""
    required = affinity.get(_REQUIRED)
    if required is not None:
        path = f"nodeAffinity.{_REQUIRED}.nodeSelectorTerms"
        terms = required.get("nodeSelectorTerms", [])
        if not terms:
            review.invalid(path, "must have a term at least")
        for index, term in enumerate(terms):
            _check_node_term(review, f"{path}[{index}]", term)
    for index, weighted in enumerate(affinity.get(_PREFERRED, [])):
        path = f"nodeAffinity.{_PREFERRED}[{index}]"
        _check_weight(review, path, weighted)
        _check_node_term(review, f"{path}.preference", weighted.get("preference") or {})


def _check_weight(review: Review, path: str, weighted: Json) -> None:
    """Weights (validate-k8s-utils.go:96,128)."""
    if not 1 <= weighted.get("weight", 0) <= 100:
        review.invalid(f"{path}.weight", "must be from 1 to 100")


def _check_node_term(review: Review, path: str, term: Json) -> None:
    """One term's expressions on labels and on fields (validate-k8s-utils.go:199)."""
    for index, expression in enumerate(term.get("matchExpressions", [])):
        _check_expression(review, f"{path}.matchExpressions[{index}]", expression, numbers=True)
    for index, expression in enumerate(term.get("matchFields", [])):
        _check_field_expression(review, f"{path}.matchFields[{index}]", expression)


def _check_expression(review: Review, path: str, expression: Json, *, numbers: bool) -> None:
    """An operator with as many values as it takes, on a label (validate-k8s-utils.go:214)."""
    operator, values = expression.get("operator", ""), expression.get("values", [])
    if operator in ("In", "NotIn"):
        if not values:
            review.invalid(f"{path}.values", f"must have a value at least, with the operator {operator}")
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            review.invalid(f"{path}.values", f"must be empty with the operator {operator}")
    elif numbers and operator in ("Gt", "Lt"):
        if len(values) != 1:
            review.invalid(f"{path}.values", f"must have exactly one value, with the operator {operator}")
    else:
        review.invalid(f"{path}.operator", f"is {shown(operator)}: use In, NotIn, Exists or DoesNotExist")
    fault = qualified_name_fault(expression.get("key", ""))
    if fault:
        review.invalid(f"{path}.key", fault)


def _check_field_expression(review: Review, path: str, expression: Json) -> None:
    """An expression on a node's name, the one field there is (validate-k8s-utils.go:240)."""
    operator, values = expression.get("operator", ""), expression.get("values", [])
    if operator not in ("In", "NotIn"):
        review.invalid(f"{path}.operator", f"is {shown(operator)}: use In or NotIn")
    elif len(values) != 1:
        review.invalid(f"{path}.values", f"must have exactly one value, with the operator {operator}")
    if expression.get("key", "") != "metadata.name":
        review.invalid(f"{path}.key", "must be metadata.name")
        return
    for index, value in enumerate(values):
        fault = dns_subdomain_fault(value)
        if fault:
            review.invalid(f"{path}.values[{index}]", f"is {shown(value)}: {fault}")


def _check_pod_term(review: Review, path: str, term: Json) -> None:
    """A term on pods (validate-k8s-utils.go:137)."""
    _check_selector(review, f"{path}.labelSelector", term.get("labelSelector"))
    _check_selector(review, f"{path}.namespaceSelector", term.get("namespaceSelector"))
    for namespace in term.get("namespaces", []):
        fault = dns_label_fault(namespace)
        if fault:
            review.invalid(f"{path}.namespace", f"has {shown(namespace)} in namespaces, which {fault}")
    _check_topology_key(review, path, term)


def _check_topology_key(review: Review, path: str, term: Json) -> None:
    fault = qualified_name_fault(term.get("topologyKey", ""))
    if fault:
        review.invalid(f"{path}.topologyKey", f"must be a node label: it {fault}")


def _check_selector(review: Review, path: str, selector: Json | None) -> None:
    """A label selector (`k8s.io/apimachinery`, `pkg/apis/meta/v1/validation/validation.go`)."""
    if selector is None:
        return
    for key, value in selector.get("matchLabels", {}).items():
        fault = qualified_name_fault(key) or label_value_fault(value)
        if fault:
            review.invalid(f"{path}.matchLabels", f"has {shown(key)}: {shown(value)}; both {fault}")
    for index, expression in enumerate(selector.get("matchExpressions", [])):
        where = f"{path}.matchExpressions[{index}]"
        _check_expression(review, where, expression, numbers=False)
        for number, value in enumerate(expression.get("values", [])):
            fault = label_value_fault(value)
            if fault:
                review.invalid(f"{where}.values[{number}]", f"is {shown(value)}: {fault}")


def check_spread(review: Review) -> None:
    """Topology spread constraints (validate-k8s-utils.go:271; the selector's path has no index)."""
    pairs: set[tuple[str, str]] = set()
    constraints = review.spec.get("topologySpreadConstraints", [])
    # From the last to the first, as a constraint is compared with those behind it.
    for index in range(len(constraints) - 1, -1, -1):
        constraint = constraints[index]
        path = f"topologySpreadConstraints[{index}]"
        if constraint.get("maxSkew", 0) <= 0:
            review.invalid(f"{path}.maxSkew", "must be 1 or more")
        _check_topology_key(review, path, constraint)
        action = constraint.get("whenUnsatisfiable", "")
        if action not in ("DoNotSchedule", "ScheduleAnyway"):
            message = f"is {shown(action)}: use DoNotSchedule or ScheduleAnyway"
            review.invalid(f"{path}.whenUnsatisfiable", message)
        selector = constraint.get("labelSelector")
        _check_selector(review, "topologySpreadConstraints.labelSelector", selector)
        pair = (constraint.get("topologyKey", ""), action)
        if pair in pairs:
            where = f"{path}.{{topologyKey, whenUnsatisfiable}}"
            review.invalid(where, "is there twice: each pair may have one constraint")
        pairs.add(pair)


RULES = (check_affinity, check_spread)
