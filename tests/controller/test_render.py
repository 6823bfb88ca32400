"""From a pool to its Deployment: what is injected, what is left as it was given, and what is refused."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from controller.names import POOL_LABEL
from controller.render import is_current, render, rendered_from
from tests.controller.fakecluster import Manifest
from tests.controller.world import spec
from thunderagent.errors import InvalidPool
from thunderagent.pool import parse_pool


def resource(**changes: Any) -> Manifest:
    """A pool as the API server gives it; ``changes`` to its spec."""
    metadata = {"name": "reports", "namespace": "team", "uid": "pool-uid", "generation": 1}
    return {
        "apiVersion": "thunderagent.dev/v1alpha1",
        "kind": "ThunderAgentPool",
        "metadata": metadata,
        "spec": {**deepcopy(spec()), **changes},
    }


def with_container(**fields: Any) -> Manifest:
    return resource(template={"spec": {"containers": [{"name": "agent", "image": "myapp:1", **fields}]}})


def rendered(pool: Manifest) -> Manifest:
    return render(pool, parse_pool(pool, on_kubernetes=True), "1.0")


def container(pool: Manifest) -> Manifest:
    found: Manifest = rendered(pool)["spec"]["template"]["spec"]["containers"][0]
    return found


def environment(pool: Manifest) -> dict[str, Any]:
    return {entry["name"]: entry.get("value", entry.get("valueFrom")) for entry in container(pool)["env"]}


def test_replicas_are_never_mentioned() -> None:
    assert "replicas" not in rendered(resource())["spec"]


def test_the_agent_knows_its_table_its_settings_and_who_it_is() -> None:
    env = environment(resource(queue={"table": "Reports", "region": "eu-west-1"}, agent={"leaseSeconds": 120}))
    assert env["THUNDERAGENT_TABLE"] == "Reports"
    assert env["AWS_REGION"] == "eu-west-1"
    assert env["THUNDERAGENT_LEASE"] == "120"
    assert env["THUNDERAGENT_POOL"] == "team.reports"
    assert env["THUNDERAGENT_POD_NAME"]["fieldRef"]["fieldPath"] == "metadata.name"
    assert env["THUNDERAGENT_POD_UID"]["fieldRef"]["fieldPath"] == "metadata.uid"


def test_the_templates_own_variables_win_over_the_pools() -> None:
    pool = with_container(env=[{"name": "THUNDERAGENT_LEASE", "value": "77"}, {"name": "PLAIN", "value": "theirs"}])
    pool["spec"]["agent"]["env"] = [{"name": "PLAIN", "value": "ours"}, {"name": "MORE", "value": "ours"}]
    env = environment(pool)
    assert (env["THUNDERAGENT_LEASE"], env["PLAIN"], env["MORE"]) == ("77", "theirs", "ours")
    names = [entry["name"] for entry in container(pool)["env"]]
    assert len(names) == len(set(names))


def test_a_template_cannot_give_the_agent_another_identity() -> None:
    """By lockOwner the operator knows which pods are busy."""
    pool = with_container(env=[{"name": "THUNDERAGENT_POOL", "value": "other"}, {"name": "THUNDERAGENT_POD_UID", "value": "x"}])
    env = environment(pool)
    assert env["THUNDERAGENT_POOL"] == "team.reports"
    assert isinstance(env["THUNDERAGENT_POD_UID"], dict)


COMMANDS = [
    pytest.param({}, ["thunderagent", "agent", "run", "myapp.tasks:handle"], None, id="none: the handler is run"),
    pytest.param({"command": ["python"]}, ["python"], None, id="a command stays"),
    pytest.param({"args": ["serve"]}, None, ["serve"], id="arguments for the image's own entry point stay"),
]


@pytest.mark.parametrize(("given", "command", "args"), COMMANDS)
def test_command(given: Manifest, command: list[str] | None, args: list[str] | None) -> None:
    made = container(with_container(**given))
    assert (made.get("command"), made.get("args")) == (command, args)


def test_a_pod_gets_longer_to_end_than_its_agent_to_drain() -> None:
    template = rendered(resource(agent={"drainSeconds": 900}))["spec"]["template"]
    assert template["spec"]["terminationGracePeriodSeconds"] == 930


PROCESS_NAMESPACES = [
    pytest.param({}, True, id="nothing: the pod's"),
    pytest.param({"shareProcessNamespace": False}, False, id="the container's own"),
    pytest.param({"hostPID": True}, None, id="the node's"),
]


@pytest.mark.parametrize(("given", "shared"), PROCESS_NAMESPACES)
def test_an_agent_is_not_process_1_which_would_not_hear_an_early_sigterm(given: Manifest, shared: bool | None) -> None:
    pool = resource()
    pool["spec"]["template"]["spec"].update(given)
    assert rendered(pool)["spec"]["template"]["spec"].get("shareProcessNamespace") is shared


def test_probes_and_ports_are_added_on_the_agents_port() -> None:
    made = container(with_container(env=[{"name": "THUNDERAGENT_PORT", "value": "9999"}]))
    assert made["ports"] == [{"name": "metrics", "containerPort": 9999, "protocol": "TCP"}]
    assert made["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": 9999}
    assert made["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": 9999}


def test_an_agent_without_a_port_gets_no_probes() -> None:
    made = container(with_container(env=[{"name": "THUNDERAGENT_PORT", "value": "-1"}]))
    assert {"ports", "livenessProbe", "readinessProbe"}.isdisjoint(made)


def test_probes_and_ports_that_are_there_stay() -> None:
    probe = {"exec": {"command": ["true"]}}
    made = container(with_container(livenessProbe=probe, ports=[{"containerPort": 9464, "name": "http"}]))
    assert made["livenessProbe"] == probe
    assert made["ports"] == [{"containerPort": 9464, "name": "http"}]


def test_the_restricted_profile_holds_where_nothing_else_is_said() -> None:
    template = rendered(resource())["spec"]["template"]["spec"]
    assert template["securityContext"] == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    assert template["containers"][0]["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
    }


def test_security_that_the_template_says_stays() -> None:
    made = container(with_container(securityContext={"capabilities": {"add": ["NET_ADMIN"]}}))
    assert made["securityContext"] == {"capabilities": {"add": ["NET_ADMIN"]}, "allowPrivilegeEscalation": False}


def test_other_containers_are_left_alone() -> None:
    sidecar = {"name": "proxy", "image": "proxy:1"}
    pool = resource(template={"spec": {"containers": [sidecar, {"name": "agent", "image": "myapp:1"}]}})
    assert rendered(pool)["spec"]["template"]["spec"]["containers"][0] == sidecar


def test_the_selector_selects_the_templates_own_labels() -> None:
    pool = resource(template={"metadata": {"labels": {"team": "a", POOL_LABEL: "other"}}, **spec()["template"]})
    made = rendered(pool)["spec"]
    assert made["selector"]["matchLabels"] == {POOL_LABEL: "reports"}
    assert made["template"]["metadata"]["labels"] == {"team": "a", POOL_LABEL: "reports"}


def test_the_garbage_collector_needs_nobodys_leave() -> None:
    (owner,) = rendered(resource())["metadata"]["ownerReferences"]
    assert (owner["uid"], owner["controller"], owner["blockOwnerDeletion"]) == ("pool-uid", True, False)


SHAPELESS = [
    pytest.param({}, id="empty"),
    pytest.param({"spec": None}, id="no spec"),
    pytest.param({"spec": {"containers": "agent"}}, id="containers are no list"),
    pytest.param({"spec": {"containers": [{"name": "other"}]}}, id="no container of that name"),
    pytest.param({"spec": {"containers": ["agent"]}}, id="a container is no object"),
]


@pytest.mark.parametrize("template", SHAPELESS)
def test_a_template_that_holds_no_agent_is_refused(template: Manifest) -> None:
    with pytest.raises(InvalidPool, match=r"spec\.template\.spec\.containers: none is named \"agent\""):
        rendered(resource(template=template))


def test_what_is_no_list_or_mapping_is_left_for_the_api_server_to_refuse() -> None:
    made = container(with_container(env={"A": "1"}, securityContext="strict", ports="9464"))
    assert (made["env"], made["securityContext"], made["ports"]) == ({"A": "1"}, "strict", "9464")


def test_the_pool_is_not_changed_by_rendering() -> None:
    pool = resource()
    before = deepcopy(pool)
    rendered(pool)
    assert pool == before


# --- when to render -----------------------------------------------------------------------------------------------------


def deployment(pool: Manifest) -> Manifest:
    return rendered(pool)


CHANGES = [
    pytest.param({"scaling": {"maxReplicas": 50}}, True, id="scaling changes nothing in the pods"),
    pytest.param({"queue": {"table": "TaskTable", "index": "status-createdAt-index"}}, True, id="a default written out"),
    pytest.param({"agent": {"handler": "myapp.tasks:handle", "batch": 10}}, True, id="a default of the agent written out"),
    pytest.param({"agent": {"handler": "myapp.tasks:handle", "batch": 30}}, False, id="a setting of the agent"),
    pytest.param({"queue": {"table": "TaskTable", "region": "eu-west-1"}}, False, id="another region"),
    pytest.param({"template": {"spec": {"containers": [{"name": "agent", "image": "myapp:2"}]}}}, False, id="an image"),
]


@pytest.mark.parametrize(("changes", "current"), CHANGES)
def test_what_makes_a_deployment_outdated(changes: Manifest, current: bool) -> None:
    assert is_current(deployment(resource()), resource(**changes)) is current


def test_a_deployment_that_says_nothing_is_outdated() -> None:
    assert not is_current({"metadata": {}}, resource())
    assert not is_current({"metadata": {"annotations": {"thunderagent.dev/rendered-from": "{]"}}}, resource())


def test_the_order_of_keys_does_not_matter() -> None:
    pool = resource()
    turned = {**pool, "spec": dict(reversed(pool["spec"].items()))}
    assert rendered_from(pool) == rendered_from(turned)


def test_a_service_account_that_the_template_no_longer_names_is_the_default_again() -> None:
    """The API server keeps a deprecated twin of the field, which would bring the old name back."""
    assert rendered(resource())["spec"]["template"]["spec"]["serviceAccountName"] == "default"
