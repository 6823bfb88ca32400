"""The command line: `python -m tests.cluster COMMAND`. Results go to stdout, everything else to stderr; exit 1 on failure."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from pathlib import Path

from tests.cluster import commands, footprint, record, ways
from tests.cluster.built import control
from tests.cluster.errors import ClusterError
from tests.cluster.record import Record
from tests.cluster.settings import Settings, from_environment


def main() -> None:
    """Run the command that was typed."""
    arguments = _parser().parse_args()
    try:
        _COMMANDS[arguments.command](from_environment(os.environ), arguments)
    except ClusterError as error:
        commands.say(str(error))
        sys.exit(1)
    except KeyboardInterrupt:
        commands.say("Interrupted. `make cluster-down` removes what was begun; `make cluster-up` starts again.")
        sys.exit(130)


def up(settings: Settings, arguments: argparse.Namespace) -> None:
    """Bring a cluster up, or see that it is."""
    existing = record.read(settings.state)
    if existing is not None and settings.way not in (None, existing.way):
        raise ClusterError(f"A cluster by the way {existing.way!r} is recorded here. Type: make cluster-down")
    name = existing.way if existing is not None and existing.way != "current" else ways.chosen(settings)
    way = ways.BY_NAME[name]
    planned = way.plan(settings)
    if existing is not None and existing.way == name and existing.ready and way.is_up(settings, existing):
        commands.say("The cluster is up.")
    else:
        record.write(settings.state, planned)
        record.mark_ready(settings.state, way.up(settings, planned))
    commands.say('To use it: eval "$(make --silent cluster-env)"')


def down(settings: Settings, arguments: argparse.Namespace) -> None:
    """Remove the cluster that is recorded."""
    existing = record.read(settings.state)
    if existing is None:
        commands.say(f"There is no cluster of {settings.state}.")
        return
    ways.BY_NAME[existing.way].down(settings, existing)
    record.remove(settings.state)
    commands.say("The cluster is gone." if existing.way != "current" else "The cluster is forgotten, and as it was.")


def env(settings: Settings, arguments: argparse.Namespace) -> None:
    """Print shell commands that make kubectl and helm use the cluster."""
    existing = _ready(settings)
    print(f"export KUBECONFIG={shlex.quote(existing.kubeconfig)}")
    print(f"export PATH={shlex.quote(str(settings.state / 'bin'))}:$PATH")
    if existing.no_proxy:
        for name in ("NO_PROXY", "no_proxy"):
            print(f'export {name}="{existing.no_proxy}${{{name}:+,${name}}}"')
    if existing.audit_log:
        print(f"export THUNDERAGENT_AUDIT_LOG={shlex.quote(existing.audit_log)}")


def kubeconfig(settings: Settings, arguments: argparse.Namespace) -> None:
    """Print the path of the kubeconfig."""
    print(_ready(settings).kubeconfig)


def image(settings: Settings, arguments: argparse.Namespace) -> None:
    """Build an image and load it."""
    existing = _ready(settings)
    ways.BY_NAME[existing.way].build_image(settings, existing, arguments.reference, arguments.context, arguments.flags)
    print(arguments.reference)


def component(settings: Settings, arguments: argparse.Namespace) -> None:
    """Stop, start or restart a component of a built cluster."""
    if _ready(settings).way != "built":
        raise ClusterError("Only the components of a built cluster can be stopped and started.")
    control.ACTIONS[arguments.action](settings.state, arguments.name)


def show_footprint(settings: Settings, arguments: argparse.Namespace) -> None:
    """Print what a cluster could leave behind, to be compared before `up` and after `down`."""
    print("\n".join(footprint.lines(settings.state)))


def _ready(settings: Settings) -> Record:
    existing = record.read(settings.state)
    if existing is None or not existing.ready:
        raise ClusterError("No cluster is up. Type: make cluster-up")
    return existing


_COMMANDS = {
    "up": up,
    "down": down,
    "env": env,
    "kubeconfig": kubeconfig,
    "image": image,
    "component": component,
    "footprint": show_footprint,
}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.cluster", description="A Kubernetes for the tests.")
    parsers = parser.add_subparsers(dest="command", required=True)
    for name, command in _COMMANDS.items():
        subparser = parsers.add_parser(name, help=command.__doc__, description=command.__doc__)
        if name == "image":
            subparser.add_argument("reference", help="name and tag to build it as")
            subparser.add_argument("context", type=Path, help="directory with the Dockerfile")
            subparser.add_argument("flags", nargs=argparse.REMAINDER, help="as for docker build: --file, --target, --build-arg")
        elif name == "component":
            subparser.add_argument("action", choices=control.ACTIONS)
            subparser.add_argument("name", help="for example kubelet or kube-apiserver")
    return parser
