"""Rules on the spec beside the domain, and on the metadata."""

from __future__ import annotations

from kvnode.spec.cause import INVALID, NOT_SUPPORTED, REQUIRED, Cause, shown
from kvnode.spec.validation.names import dns_label_fault, dns_subdomain_fault
from kvnode.spec.validation.review import Json, Review
from kvnode.spec.validation.syntax import byte_length, is_ip

RESERVED_LABELS = frozenset(
    {
        "kubevirt.io/created-by",
        "kubevirt.io/migrationJobUID",
        "kubevirt.io/nodeName",
        "kubevirt.io/migrationTargetNodeName",
        "kubevirt.io/schedulable",
        "kubevirt.io/install-strategy",
    }
)
"""Labels of a VMI that KubeVirt's own components alone set and change."""
_EVICTION_STRATEGIES = ("None", "LiveMigrate", "LiveMigrateIfPossible", "External")
_IO_THREADS_POLICIES = ("shared", "auto", "supplementalPool")
_ARCHITECTURES = ("amd64", "arm64", "s390x")
# vmi-create-admitter.go:66-68
_MOST_NAMESERVERS, _MOST_SEARCHES, _MOST_SEARCH_BYTES = 3, 6, 256


def check_metadata(review: Review) -> None:
    """Labels that are KubeVirt's own, annotations with a gate (vmi-create-admitter.go:1246)."""
    reserved = sorted(RESERVED_LABELS.intersection(review.metadata.get("labels", {})))
    if reserved:
        message = f"has {', '.join(reserved)}, which KubeVirt alone sets: remove them"
        review.causes.append(Cause("metadata.labels", NOT_SUPPORTED, message))
    annotations = review.metadata.get("annotations", {})
    for name, gate in (
        ("kubevirt.io/ignitiondata", "ExperimentalIgnitionSupport"),
        ("hooks.kubevirt.io/hookSidecars", "Sidecar"),
    ):
        if annotations.get(name) and not review.config.gate(gate):
            message = f"has {name}, which needs the feature gate {gate}"
            review.causes.append(Cause("metadata.annotations", INVALID, message))


def check_architecture(review: Review) -> None:
    """Architectures there are (vmi-create-admitter.go:163)."""
    if review.architecture not in _ARCHITECTURES:
        message = f"is {shown(review.architecture)}: must be one of {', '.join(_ARCHITECTURES)}"
        review.invalid("architecture", message)


def check_host_names(review: Review) -> None:
    """Host name, subdomain and service account (vmi-create-admitter.go:1146,1163,2152)."""
    hostname, subdomain = review.spec.get("hostname", ""), review.spec.get("subdomain", "")
    account = review.spec.get("serviceAccountName", "")
    for path, text, check in (
        ("hostname", hostname, dns_label_fault),
        ("subdomain", subdomain, dns_subdomain_fault),
        ("serviceAccountName", account, dns_subdomain_fault),
    ):
        fault = check(text) if text else None
        if fault:
            review.invalid(path, f"is {shown(text)}: {fault}")
    for volume in review.volumes if account else []:
        other = (volume.get("serviceAccount") or {}).get("serviceAccountName", account)
        if other != account:
            message = f"is {shown(account)}: must be that of the serviceAccount volume, {shown(other)}"
            review.invalid("serviceAccountName", message)
            break


def check_strategies(review: Review) -> None:
    """Start and eviction strategy (vmi-create-admitter.go:510,854)."""
    start, eviction = review.spec.get("startStrategy"), review.spec.get("evictionStrategy")
    if start is not None and start != "Paused":
        review.invalid("startStrategy", f"is {shown(start)}: must be Paused, or not be set")
    elif start is not None and "livenessProbe" in review.spec:
        review.invalid("startStrategy", "is Paused, which a livenessProbe would take for dead: keep one")
    if eviction is not None and eviction not in _EVICTION_STRATEGIES:
        message = f"is {shown(eviction)}: use one of {', '.join(_EVICTION_STRATEGIES)}"
        review.invalid("evictionStrategy", message)


def check_reboot_policy(review: Review) -> None:
    """A reboot policy needs its gate (vmi-create-admitter.go:2117)."""
    if "rebootPolicy" in review.domain and not review.config.gate("RebootPolicy"):
        review.invalid("domain.rebootPolicy", "needs the feature gate RebootPolicy")


def check_io_threads(review: Review) -> None:
    """I/O thread policies, and the size of a pool (vmi-create-admitter.go:401; path by its old name)."""
    policy = review.domain.get("ioThreadsPolicy")
    if policy is None:
        return
    if policy not in _IO_THREADS_POLICIES:
        message = f"is {shown(policy)}: use one of {', '.join(_IO_THREADS_POLICIES)}"
        review.invalid("domain.ioThreadsPolicy", message)
    threads = (review.domain.get("ioThreads") or {}).get("supplementalPoolThreadCount", 0)
    if policy == "supplementalPool" and threads < 1:
        message = "must be 1 or more with the policy supplementalPool: set supplementalPoolThreadCount"
        review.invalid("domain.ioThreads.count", message)


def check_probes(review: Review) -> None:
    """One handler a probe, and a pod network for those that need it (vmi-create-admitter.go:435-505)."""
    has_pod_network = any("pod" in network for network in review.networks)
    for path in ("readinessProbe", "livenessProbe"):
        probe = review.spec.get(path)
        if probe is None:
            continue
        handlers = [name for name in ("httpGet", "tcpSocket", "exec", "guestAgentPing") if name in probe]
        if len(handlers) > 1:
            review.invalid(path, f"has {' and '.join(handlers)}: exactly one handler must be set")
        elif not handlers:
            review.required(path, "must have one of httpGet, tcpSocket, exec and guestAgentPing")
        for name in ("httpGet", "tcpSocket"):
            if name in probe and not has_pod_network:
                review.invalid(f"{path}.{name}", "needs a pod network among spec.networks")


def check_dns(review: Review) -> None:
    """DNS settings (vmi-create-admitter.go:1286,1370; those inside dnsConfig are reported by bare names)."""
    config: Json | None = review.spec.get("dnsConfig")
    if review.spec.get("dnsPolicy") == "None":
        if config is None:
            review.required("dnsConfig", "must be given with the dnsPolicy None")
        elif not config.get("nameservers"):
            _add_dns(review, REQUIRED, "nameservers", "must have an address with the dnsPolicy None")
            return
    if config is None:
        return
    nameservers, searches = config.get("nameservers", []), config.get("searches", [])
    if len(nameservers) > _MOST_NAMESERVERS:
        _add_dns(review, INVALID, "nameservers", f"may have {_MOST_NAMESERVERS} addresses at most")
    for server in nameservers:
        if not is_ip(server):
            _add_dns(review, INVALID, "nameservers", f"has {shown(server)}, which is no IP address")
    if len(searches) > _MOST_SEARCHES:
        _add_dns(review, INVALID, "searchDomains", f"may have {_MOST_SEARCHES} entries at most")
    if byte_length(" ".join(searches)) > _MOST_SEARCH_BYTES:
        _add_dns(review, INVALID, "searchDomains", f"may have {_MOST_SEARCH_BYTES} bytes at most in all")
    for search in searches:
        fault = dns_subdomain_fault(search)
        if fault:
            _add_dns(review, INVALID, "searchDomains", f"has {shown(search)}, which {fault}")
    for option in config.get("options", []):
        if not option.get("name"):
            _add_dns(review, INVALID, "options", "must each have a name")


def _add_dns(review: Review, reason: str, field: str, message: str) -> None:
    review.causes.append(Cause(field, reason, f"{message} (in spec.dnsConfig)"))


RULES = (
    check_metadata,
    check_architecture,
    check_host_names,
    check_strategies,
    check_reboot_policy,
    check_io_threads,
    check_probes,
    check_dns,
)
