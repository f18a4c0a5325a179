"""``python -m tests.cluster``: bring up, look at, enter and take away real Kubernetes clusters."""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

from tests.cluster import binaries, cluster, host
from tests.cluster.deploy import deploy_agent, deploy_all, load_images
from tests.cluster.errors import ClusterError

DEFAULT = "main"


def _say_since_start() -> binaries.Say:
    begun = time.monotonic()

    def say(line: str) -> None:
        print(f"cluster [{time.monotonic() - begun:5.1f} s] {line}", file=sys.stderr, flush=True)

    return say


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.cluster", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)

    def verb(name: str, text: str) -> argparse.ArgumentParser:
        return verbs.add_parser(name, help=text, description=text)

    up = verb("up", "Bring a cluster up and leave it running")
    up.add_argument("name", nargs="?", default=DEFAULT)
    up.add_argument(
        "--nodes", type=int, default=2, help="how many; 0 is the control plane alone (default: 2)"
    )
    up.add_argument("--audit", action="store_true", help="let the API server write audit.log")
    up.add_argument("--no-crds", action="store_true", help="do not install deploy/crds")
    up.add_argument("--if-absent", action="store_true", help="be content with one that is up already")
    down = verb("down", "Take a cluster away without a trace")
    down.add_argument("name", nargs="?", default=DEFAULT)
    down.add_argument("--if-present", action="store_true", help="be content if there is none")
    down.add_argument("--all", action="store_true", help="every cluster of this user")
    verb("status", "Say which clusters are up; clear away what killed runs left")
    verb("build", "Build all programs into the cache, and nothing else")
    config = verb("kubeconfig", "Print the path of a cluster's kubeconfig")
    config.add_argument("name", nargs="?", default=DEFAULT)
    load = verb("load", "Import OCI archives into every node")
    load.add_argument("name")
    load.add_argument("archives", nargs="+", type=Path)
    images = verb("images", "Build the project's images and import them into every node")
    images.add_argument("name", nargs="?", default=DEFAULT)
    deployment = verb("deploy", "The same, then all of deploy/, with emulated guests")
    deployment.add_argument("name", nargs="?", default=DEFAULT)
    deployment.add_argument(
        "--only-agent", action="store_true", help="deploy/namespace.yaml and deploy/agent alone"
    )
    enter = verb("exec", "Run a command inside a node")
    enter.add_argument("name")
    enter.add_argument("node")
    enter.add_argument("command", nargs=argparse.REMAINDER)
    crash = verb("crash", "Kill a node, as a power cut would")
    crash.add_argument("name")
    crash.add_argument("node")
    return parser


def main(argv: list[str] | None = None) -> int:
    """Run the command; the answer is its exit code: 0 done, 1 not possible, 130 interrupted."""
    args = _parser().parse_args(argv)
    try:
        return _run(args, _say_since_start())
    except (ClusterError, OSError) as error:
        print(f"cluster: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def _run(args: argparse.Namespace, say: binaries.Say) -> int:
    match args.verb:
        case "up":
            _up(args, say)
        case "down":
            _down(args, say)
        case "status":
            _status()
        case "build":
            binaries.ensure(binaries.EVERYTHING, say)
        case "kubeconfig":
            print(cluster.find(args.name).kubeconfig)
        case "load":
            found = cluster.find(args.name)
            for archive in args.archives:
                found.load_image(archive.resolve())
                say(f"loaded {archive}")
        case "images":
            load_images(cluster.find(args.name), say)
        case "deploy":
            load_images(cluster.find(args.name), say)
            deploy = deploy_agent if args.only_agent else deploy_all
            deploy(cluster.find(args.name), say)
            say("all is ready")
        case "exec":
            command = args.command[1:] if args.command[:1] == ["--"] else args.command
            entered = cluster.find(args.name).node_command(args.node, command or ["bash"])
            os.execvp(entered[0], entered)  # noqa: S606
        case "crash":
            cluster.find(args.name).crash_node(args.node)
            say(f"{args.node} is dead")
    return 0


def _up(args: argparse.Namespace, say: binaries.Say) -> None:
    host.check_name(args.name)
    if args.if_absent and any(one.name == args.name for one in cluster.clusters()):
        say(f"{args.name} is up already")
        up = cluster.find(args.name)
    else:
        up = cluster.up(say, args.name, nodes=args.nodes, keep=True, audit=args.audit, crds=not args.no_crds)
        say(f"{up.name} is ready: {args.nodes or 'no'} nodes, API server at {up.server}")
    kubectl = binaries.kubectl(say)
    print(f"export KUBECONFIG={up.kubeconfig}")
    print(f"# then: {kubectl or 'kubectl'} get nodes")


def _down(args: argparse.Namespace, say: binaries.Say) -> None:
    swept = cluster.sweep()
    up = cluster.clusters()
    if args.all:
        chosen = up
    elif args.if_present or args.name in swept:
        chosen = [one for one in up if one.name == args.name]
    else:
        chosen = [cluster.find(args.name)]
    for one in chosen:
        one.down()
        say(f"{one.name} is gone")
    if not chosen:
        say("nothing is up")


def _status() -> None:
    for name, reason in cluster.sweep().items():
        print(f"{name}: dead ({reason}), cleared away")
    found = cluster.clusters()
    for one in found:
        try:
            answers = "ready" if one.api.ready() else "not answering"
            size = cluster.disk_use(one.plan) / 2**20
        except FileNotFoundError:
            print(f"{one.name}: coming up or going down")
            continue
        print(f"{one.name}: {answers}, {one.plan.nodes} nodes, {size:.0f} MiB on disk, {one.kubeconfig}")
    if not found:
        print("no cluster is up")


if __name__ == "__main__":
    sys.exit(main())
