"""The pool's spec: what a file or a resource may say, what is told when it says something else, and the CRD's schema."""

from __future__ import annotations

import copy
import dataclasses
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from thunderagent.errors import InvalidPool
from thunderagent.pool import API_VERSION, KIND, Pool, crd_schema, load_pool, parse_pool
from thunderagent.pool.rules import RULES
from thunderagent.scaling import Behaviour, Fallback, Pause, Policy, PolicyKind, ScalingRules, SelectPolicy
from thunderagent.settings import AgentSettings, TableSettings

MINIMAL: dict[str, Any] = {
    "apiVersion": API_VERSION,
    "kind": KIND,
    "metadata": {"name": "reports"},
    "spec": {"queue": {"table": "TaskTable"}},
}

FULL = """
apiVersion: thunderagent.dev/v1alpha1
kind: ThunderAgentPool
metadata:
  name: reports
  namespace: team-a
  labels: {app: reports}
  annotations:
    thunderagent.dev/paused-in: "true"
spec:
  queue:
    table: TaskTable
    region: eu-west-1
    endpoint: http://127.0.0.1:8000
    taskTypes: [report, import]
  scaling:
    minReplicas: 1
    maxReplicas: 8
    tasksPerReplica: 4
    pollSeconds: 2
    activationThreshold: 3
    cooldownSeconds: 120
    tolerancePercent: 10
    scaleUp:
      policies:
        - {type: Percent, value: 100, periodSeconds: 15}
        - {type: Pods, value: 4, periodSeconds: 15}
      selectPolicy: Min
    scaleDown:
      stabilizationWindowSeconds: 300
    fallback: {failedReads: 5, replicas: 2}
  agent:
    handler: reports.tasks:router
    slots: {processes: 2, threads: 3}
    leaseSeconds: 30
    renewSeconds: 10
    taskTimeoutSeconds: 120
    waits: {busySeconds: 2}
    taskTypes:
      - {name: report, slots: 1, ratePerSecond: 0.5, timeoutSeconds: 600, retry: {baseSeconds: 1, capSeconds: 9}}
    env:
      - {name: REPORT_STYLE, value: plain}
      - {name: LOG_LEVEL, value: info}
  template:
    metadata: {labels: {app: reports}}
    spec:
      containers:
        - name: sidecar
          image: example/sidecar
          env: [{name: LOG_LEVEL, value: trace}]
        - name: agent
          image: example/reports:1
          env:
            - {name: LOG_LEVEL, value: debug}
            - {name: SINCE, value: 2024-01-01}
            - {name: EMPTY}
            - {name: PASSWORD, valueFrom: {secretKeyRef: {name: db, key: password}}}
"""


def changed(change: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    mapping = copy.deepcopy(MINIMAL)
    change(mapping)
    return mapping


def spec(**fields: Any) -> dict[str, Any]:
    return changed(lambda mapping: mapping["spec"].update(fields))


def problems(mapping: Any, **options: Any) -> list[str]:
    with pytest.raises(InvalidPool) as caught:
        parse_pool(mapping, **options)
    return str(caught.value).splitlines()


def written(folder: Path, text: str) -> Path:
    path = folder / "pool.yaml"
    path.write_text(text, encoding="utf-8")
    return path


# --- reading ------------------------------------------------------------------------------------------------------------


def test_a_table_is_all_that_must_be_said() -> None:
    pool = parse_pool(MINIMAL)
    assert (pool.name, pool.namespace, pool.spec.queue.index) == ("reports", None, "status-createdAt-index")
    assert pool.scaling_rules() == ScalingRules(
        min_replicas=0,
        max_replicas=10,
        tasks_per_replica=10,
        cooldown_seconds=60,
        scale_down=Behaviour(window_seconds=30),
    )


def test_every_field_of_a_file_arrives(tmp_path: Path) -> None:
    pool = load_pool(written(tmp_path, FULL), on_kubernetes=True)
    assert pool.namespace == "team-a"
    assert pool.scaling_rules() == ScalingRules(
        min_replicas=1,
        max_replicas=8,
        tasks_per_replica=4,
        activation_threshold=3,
        cooldown_seconds=120,
        tolerance_percent=10,
        scale_up=Behaviour(0, (Policy(PolicyKind.PERCENT, 100, 15), Policy(PolicyKind.PODS, 4, 15)), SelectPolicy.MIN),
        scale_down=Behaviour(300),
        fallback=Fallback(5, 2),
        pause=Pause(scale_in=True),
    )
    assert pool.spec.scaling.poll_seconds == 2
    assert pool.spec.agent.handler == "reports.tasks:router"


def test_the_spec_becomes_settings_of_table_and_agent(tmp_path: Path) -> None:
    pool = load_pool(written(tmp_path, FULL))
    table = TableSettings(**pool.table_settings())
    agent = AgentSettings(**pool.agent_settings())
    assert (table.table, table.region, table.endpoint) == ("TaskTable", "eu-west-1", "http://127.0.0.1:8000")
    assert (agent.processes, agent.threads, agent.lease, agent.renew, agent.drain) == (2, 3, 30, 10, 600)
    assert (agent.wait_busy, agent.wait_quiet, agent.timeout, agent.task_types) == (2, 5, 120, "report,import")
    assert json.loads(agent.types) == {"report": {"slots": 1, "rate": 0.5, "timeout": 600, "retry_base": 1, "retry_cap": 9}}


def test_a_pool_that_says_nothing_has_the_agents_own_defaults() -> None:
    """One default for one setting, whether an agent is started by hand or by a pool."""
    given, defaults = parse_pool(MINIMAL).agent_settings(), AgentSettings()
    assert given == {name: getattr(defaults, name) for name in given}
    assert set(given) <= {field.name for field in dataclasses.fields(AgentSettings)}


def test_the_agents_literal_environment_is_taken_and_the_template_wins(tmp_path: Path) -> None:
    env = load_pool(written(tmp_path, FULL)).literal_env()
    assert env == {"REPORT_STYLE": "plain", "LOG_LEVEL": "debug", "SINCE": "2024-01-01", "EMPTY": ""}


def test_without_a_template_the_environment_is_the_agents() -> None:
    assert parse_pool(spec(agent={"env": [{"name": "A", "value": "b"}]})).literal_env() == {"A": "b"}


def container(**fields: Any) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": "agent", **fields}]}}


BAD_TEMPLATES = [
    pytest.param({}, "spec.template.spec.containers", id="an empty template"),
    pytest.param({"spec": {"containers": [{"name": "other"}]}}, "spec.template.spec.containers", id="no container of the name"),
    pytest.param({"spec": []}, "spec.template.spec.containers", id="a template of another shape"),
    pytest.param(container(env={"A": "b"}), "containers[agent].env:", id="env as a mapping"),
    pytest.param(container(env=["A=b"]), "containers[agent].env[0]:", id="env as text"),
    pytest.param(container(env=[{"value": "b"}]), "containers[agent].env[0]:", id="a variable without a name"),
    pytest.param(container(env=[{"name": "A", "value": 1}]), "containers[agent].env[0].value:", id="a value without quotes"),
]


@pytest.mark.parametrize(("template", "path"), BAD_TEMPLATES)
def test_a_template_that_has_no_usable_environment_is_told(template: dict[str, Any], path: str) -> None:
    with pytest.raises(InvalidPool) as caught:
        parse_pool(spec(template=template)).literal_env()
    assert path in str(caught.value)


def test_a_template_is_kept_as_it_is() -> None:
    template: dict[str, Any] = {"spec": {"containers": [], "tolerations": None, "x": {"y": None}}}
    assert parse_pool(spec(template=template)).spec.template == template


def test_a_resource_as_the_api_server_sends_it_is_read() -> None:
    resource = spec(template={"spec": {}}, agent=None)
    resource["metadata"] |= {"uid": "u", "resourceVersion": "1", "generation": 2, "managedFields": [], "creationTimestamp": "t"}
    resource["status"] = {"replicas": 1}
    assert parse_pool(resource, on_kubernetes=True).name == "reports"


def test_pools_are_immutable() -> None:
    with pytest.raises(AttributeError):
        parse_pool(MINIMAL).spec.scaling.max_replicas = 5  # type: ignore[misc]


# --- what is refused ----------------------------------------------------------------------------------------------------

REFUSED = [
    pytest.param(
        spec(scaling={"minReplicas": 5, "maxReplicas": 2}), "spec.scaling.minReplicas: must not be above", id="min > max"
    ),
    pytest.param(spec(scaling={"minReplicas": -1}), "spec.scaling.minReplicas: expected int >= 0", id="negative minReplicas"),
    pytest.param(spec(scaling={"maxReplicas": 0}), "spec.scaling.maxReplicas: expected int >= 1", id="maxReplicas 0"),
    pytest.param(
        spec(scaling={"maxReplicas": 10**9}), "spec.scaling.maxReplicas: expected int <= 1000", id="boundless maxReplicas"
    ),
    pytest.param(
        spec(scaling={"tasksPerReplica": 0}), "spec.scaling.tasksPerReplica: expected int >= 1", id="tasksPerReplica 0"
    ),
    pytest.param(spec(scaling={"pollSeconds": 0}), "spec.scaling.pollSeconds: ", id="no time between polls"),
    pytest.param(spec(scaling={"cooldownSeconds": -1}), "spec.scaling.cooldownSeconds: ", id="negative cooldown"),
    pytest.param(spec(scaling={"activationThreshold": -1}), "spec.scaling.activationThreshold: ", id="negative threshold"),
    pytest.param(spec(scaling={"tolerancePercent": 100}), "spec.scaling.tolerancePercent: ", id="everything tolerated"),
    pytest.param(
        spec(scaling={"maxReplicas": "4"}), "spec.scaling.maxReplicas: expected int, got str", id="a number in quotes"
    ),
    pytest.param(spec(scaling={"maxReplicas": 2.5}), "spec.scaling.maxReplicas: expected int, got float", id="half a replica"),
    pytest.param(
        spec(scaling={"maxReplicas": True}), "spec.scaling.maxReplicas: expected int, got bool", id="a truth as a number"
    ),
    pytest.param(
        spec(scaling={"scaleUp": {"policies": [{"type": "Pods", "periodSeconds": 5}]}}),
        "spec.scaling.scaleUp.policies[0].value: is required",
        id="a policy without a value",
    ),
    pytest.param(
        spec(scaling={"scaleDown": {"policies": [{"type": "Pods", "value": 0, "periodSeconds": 5}]}}),
        "spec.scaling.scaleDown.policies[0].value: expected int >= 1",
        id="a policy that allows nothing",
    ),
    pytest.param(
        spec(scaling={"scaleDown": {"policies": [{"type": "pods", "value": 1, "periodSeconds": 5}]}}),
        "spec.scaling.scaleDown.policies[0].type: expected Pods or Percent, but it is 'pods'",
        id="a policy of an unknown type",
    ),
    pytest.param(
        spec(scaling={"scaleUp": {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 5}] * 9}}),
        "spec.scaling.scaleUp.policies: expected array of length <= 8",
        id="too many policies",
    ),
    pytest.param(
        spec(scaling={"scaleUp": {"selectPolicy": "Most"}}), "selectPolicy: expected Max or Min or Disabled", id="selectPolicy"
    ),
    pytest.param(
        spec(scaling={"fallback": {"failedReads": 2}}), "spec.scaling.fallback.replicas: is required", id="empty fallback"
    ),
    pytest.param(
        spec(scaling={"fallback": {"replicas": 50}}),
        "spec.scaling.fallback.replicas: must not be above maxReplicas",
        id="fallback > max",
    ),
    pytest.param(spec(queue={"table": ""}), "spec.queue.table: expected str of length >= 3", id="empty table name"),
    pytest.param(spec(queue={}), "spec.queue.table: is required", id="no table name"),
    pytest.param(spec(queue={"table": "a/b/c"}), "spec.queue.table: expected str matching", id="a table name DynamoDB refuses"),
    pytest.param(
        spec(queue={"table": "x" * 256}), "spec.queue.table: expected str of length <= 255", id="a table name too long"
    ),
    pytest.param(
        spec(queue={"table": "Tasks\n"}), "spec.queue.table: must not end with a line break", id="a line break after it"
    ),
    pytest.param(
        spec(queue={"table": "Tasks", "endpoint": "127.0.0.1:8000"}),
        "spec.queue.endpoint: expected str matching",
        id="no scheme",
    ),
    pytest.param(
        spec(queue={"table": "Tasks", "taskTypes": ["a", "b", "a"]}),
        "spec.queue.taskTypes: must not name",
        id="a task type twice",
    ),
    pytest.param(
        spec(queue={"table": "Tasks", "taskTypes": ["a,b"]}), "spec.queue.taskTypes[0]: ", id="a comma in a task type"
    ),
    pytest.param(
        spec(agent={"leaseSeconds": 60, "renewSeconds": 60}),
        "spec.agent.renewSeconds: must be at most half",
        id="renew >= lease",
    ),
    pytest.param(
        spec(agent={"drainSeconds": 10, "taskTimeoutSeconds": 11}),
        "spec.agent.drainSeconds: must be at least taskTimeoutSeconds",
        id="drain < task time-out",
    ),
    pytest.param(
        spec(agent={"taskTypes": [{"name": "slow", "timeoutSeconds": 601}]}),
        "spec.agent.drainSeconds: must be at least timeoutSeconds of every task type",
        id="drain < a type's time-out",
    ),
    pytest.param(
        spec(agent={"taskTypes": [{"name": "a"}, {"name": "a"}]}),
        "spec.agent.taskTypes: must not have two",
        id="settings twice",
    ),
    pytest.param(
        spec(agent={"env": [{"name": "A"}, {"name": "A"}]}), "spec.agent.env: must not have two", id="a variable twice"
    ),
    pytest.param(
        spec(agent={"env": [{"name": "1A"}]}), "spec.agent.env[0].name: expected str matching", id="a variable's name"
    ),
    pytest.param(
        spec(agent={"env": [{"name": "A", "value": True}]}),
        "but it is True; put it in quotes",
        id="a variable's value without quotes",
    ),
    pytest.param(
        spec(agent={"retry": {"baseSeconds": 9, "capSeconds": 3}}), "spec.agent.retry.baseSeconds: must not", id="base > cap"
    ),
    pytest.param(
        spec(agent={"taskTypes": [{"name": "a", "retry": {"baseSeconds": 999}}]}),
        "spec.agent.taskTypes[0].retry.baseSeconds: must not be above capSeconds",
        id="base > cap of a type",
    ),
    pytest.param(spec(agent={"waits": {"idleSeconds": 2}}), "spec.agent.waits: must not shrink", id="shrinking waits"),
    pytest.param(
        spec(agent={"handler": "tasks.handle"}), "spec.agent.handler: expected str matching", id="a handler without a colon"
    ),
    pytest.param(spec(agent={"slots": {"threads": 0}}), "spec.agent.slots.threads: ", id="no slot at all"),
    pytest.param(
        spec(template={"spec": {}}, targetRef={"name": "d"}),
        "spec: has both template and targetRef",
        id="both template and targetRef",
    ),
    pytest.param(
        spec(targetRef={"kind": "StatefulSet", "name": "s"}), "spec.targetRef.kind: expected Deployment", id="another kind"
    ),
    pytest.param(spec(scaling=[]), "spec.scaling: expected object, got array", id="a list where fields belong"),
    pytest.param(changed(lambda mapping: mapping.pop("spec")), "spec: is required", id="no spec"),
    pytest.param(
        changed(lambda mapping: mapping.update(kind="Pool")), "kind: expected ThunderAgentPool", id="another kind of thing"
    ),
    pytest.param(
        changed(lambda mapping: mapping.update(apiVersion="v1")), "apiVersion: expected thunderagent.dev/v1alpha1", id="version"
    ),
    pytest.param(
        changed(lambda mapping: mapping["metadata"].update(name="A_b")), "metadata.name: must be 1 to 63", id="a name"
    ),
    pytest.param(
        changed(lambda mapping: mapping["metadata"].update(name="a" * 64)), "metadata.name: must be 1 to 63", id="a long name"
    ),
    pytest.param(
        changed(lambda mapping: mapping["metadata"].update(annotations={"a": True})),
        "metadata.annotations['a']: expected str, got bool",
        id="an annotation without quotes",
    ),
]


@pytest.mark.parametrize(("mapping", "told"), REFUSED)
def test_what_is_refused_and_how_it_is_told(mapping: dict[str, Any], told: str) -> None:
    (problem,) = problems(mapping)
    assert told in problem


def test_on_kubernetes_a_pool_needs_a_template_or_a_target() -> None:
    assert problems(MINIMAL, on_kubernetes=True) == [
        "spec: needs a template for the pods, or a targetRef to an existing Deployment."
    ]
    parse_pool(spec(template={"spec": {}}), on_kubernetes=True)
    parse_pool(spec(targetRef={"name": "reports"}), on_kubernetes=True)


def test_everything_wrong_is_told_at_once() -> None:
    mapping = spec(
        scaling={"minReplica": 1, "maxReplicas": 0},
        queue={"table": "x"},
        agent={"renewSeconds": 200, "drainSeconds": 1, "taskTimeoutSeconds": 2},
        target={"name": "d"},
    )
    assert [line.partition(":")[0] for line in problems(mapping)] == [
        "spec.queue.table",
        "spec.scaling.maxReplicas",
        "spec.scaling.minReplica",
        "spec.agent.renewSeconds",
        "spec.agent.drainSeconds",
        "spec.target",
    ]


UNKNOWN = [
    pytest.param(
        spec(scaling={"minReplica": 1}), "spec.scaling.minReplica: is not a field; did you mean minReplicas?", id="a letter"
    ),
    pytest.param(
        spec(scaling={"max_replicas": 1}), "spec.scaling.max_replicas: is not a field; did you mean maxReplicas?", id="a style"
    ),
    pytest.param(spec(Queue={}), "spec.Queue: is not a field; did you mean queue?", id="a capital"),
    pytest.param(
        spec(agent={"slots": {"cores": 2}}),
        "spec.agent.slots.cores: is not a field; known are asyncTasks, processes, threads.",
        id="nothing near",
    ),
    pytest.param(
        changed(lambda mapping: mapping["metadata"].update(annotation={})),
        "metadata.annotation: is not a field; did you mean annotations?",
        id="in metadata",
    ),
    pytest.param(dict([*MINIMAL.items(), (1, 1)]), "1: is not a field; known are", id="a key that is no text"),
]


@pytest.mark.parametrize(("mapping", "told"), UNKNOWN)
def test_unknown_fields_are_told_with_what_may_have_been_meant(mapping: dict[Any, Any], told: str) -> None:
    assert any(problem.startswith(told) for problem in problems(mapping))


# --- pause annotations --------------------------------------------------------------------------------------------------

PREFIX = "thunderagent.dev/"
PAUSES = [
    pytest.param({}, Pause(), id="none"),
    pytest.param({"other.example/paused": "true"}, Pause(), id="somebody else's"),
    pytest.param({"thunderagent.dev/paused": "true"}, Pause.everything(), id="paused true"),
    pytest.param({"thunderagent.dev/paused": "all"}, Pause.everything(), id="paused all"),
    pytest.param({"thunderagent.dev/paused": "false"}, Pause(), id="paused false"),
    pytest.param({"thunderagent.dev/paused-in": "true"}, Pause(scale_in=True), id="paused in"),
    pytest.param({"thunderagent.dev/paused-out": "true"}, Pause(scale_out=True), id="paused out"),
    pytest.param({"thunderagent.dev/paused-at-replicas": "0"}, Pause(at_replicas=0), id="pinned at 0"),
    pytest.param({"thunderagent.dev/paused-at-replicas": "12"}, Pause(at_replicas=12), id="pinned at 12"),
]


def annotated(annotations: dict[str, str]) -> Pool:
    return parse_pool(changed(lambda mapping: mapping["metadata"].update(annotations=annotations)))


@pytest.mark.parametrize(("annotations", "pause"), PAUSES)
def test_pause_annotations(annotations: dict[str, str], pause: Pause) -> None:
    assert annotated(annotations).scaling_rules().pause == pause


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("paused", "yes"),
        ("paused", ""),
        ("paused-in", "all"),
        ("paused-out", "True"),
        ("paused-at-replicas", "-1"),
        ("paused-at-replicas", "two"),
        ("paused-at-replicas", "1.5"),
        ("paused-at-replicas", ""),
        ("paused-at-replicas", "100000"),
        ("paused-at-replicas", "٣"),
    ],
)
def test_a_malformed_annotation_is_told_by_its_name(name: str, value: str) -> None:
    with pytest.raises(InvalidPool, match=f'annotations\\["{PREFIX}{name}"\\]: is "'):
        annotated({PREFIX + name: value}).scaling_rules()


# --- files --------------------------------------------------------------------------------------------------------------

ALIASES = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{new}: &{new} [{', '.join([f'*{old}'] * 10)}]\n" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)
FILES = [
    pytest.param("", "is empty", id="an empty file"),
    pytest.param("# nothing\n", "is empty", id="a comment"),
    pytest.param("--- \na: 1\n---\nb: 2\n", "holds several documents", id="several documents"),
    pytest.param("- a\n", "must hold the fields of a pool", id="a list"),
    pytest.param("just text", "must hold the fields of a pool", id="a text"),
    pytest.param(
        "kind: a\nspec: {queue: {table: x}}\nkind: b\n", 'the key "kind" is there twice (line 3, column 1)', id="a key twice"
    ),
    pytest.param("spec: {queue: {table: x, table: y}}", 'the key "table" is there twice', id="a key twice further in"),
    pytest.param("a: [1, 2", "is not valid YAML", id="broken YAML"),
    pytest.param("a: *b", "is not valid YAML", id="an alias to nothing"),
    pytest.param("a: !!python/object/apply:os.system [true]", "is not valid YAML", id="a tag that would run code"),
    pytest.param("a: \x07", "is not valid YAML", id="a control character"),
    pytest.param("{[1, 2]: 3}", "is not valid YAML", id="a list as a key"),
    pytest.param("a: &a [*a]", "more than 50000 values", id="a value that contains itself"),
    pytest.param(ALIASES, "more than 50000 values", id="aliases that stand for billions"),
    pytest.param("[" * 5_000, "is nested too deeply", id="nested without end"),
    pytest.param("a: " + "x" * 300_000, "is larger than 256 KiB", id="too large"),
]


@pytest.mark.parametrize(("text", "told"), FILES)
def test_files_that_are_refused(tmp_path: Path, text: str, told: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(InvalidPool) as caught:
        load_pool(path)
    assert str(caught.value).startswith(str(path))
    assert told in str(caught.value)


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(InvalidPool, match=r"none\.yaml cannot be read: No such file"):
        load_pool(tmp_path / "none.yaml")


def test_a_file_that_is_not_text_is_told(tmp_path: Path) -> None:
    (tmp_path / "pool.yaml").write_bytes(b"a: \xff\xfe")
    with pytest.raises(InvalidPool, match="is not UTF-8 text"):
        load_pool(tmp_path / "pool.yaml")


def test_json_and_a_byte_order_mark_are_fine(tmp_path: Path) -> None:
    assert load_pool(written(tmp_path, "\ufeff" + json.dumps(MINIMAL))).name == "reports"


def test_anchors_and_merges_are_fine(tmp_path: Path) -> None:
    text = json.dumps(MINIMAL)[:-2] + ', "scaling": {scaleUp: &way {policies: []}, scaleDown: {<<: *way, policies: []}}}}'
    assert load_pool(written(tmp_path, text)).spec.scaling.scale_down.policies == ()


# --- the CRD's schema ---------------------------------------------------------------------------------------------------

STRUCTURAL = {
    "type",
    "format",
    "description",
    "properties",
    "required",
    "items",
    "enum",
    "default",
    "pattern",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "maxItems",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-validations",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
}


def nodes(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    yield path, schema
    for name, child in schema.get("properties", {}).items():
        yield from nodes(child, f"{path}.{name}")
    if "items" in schema:
        yield from nodes(schema["items"], f"{path}[]")


ALL_NODES = [pytest.param(path, schema, id=path or "the root") for path, schema in nodes(crd_schema())]
NODES = [node for node in ALL_NODES if node.id != ".metadata"]


@pytest.mark.parametrize(("path", "schema"), NODES)
def test_each_node_of_the_schema_is_structural_bounded_and_described(path: str, schema: dict[str, Any]) -> None:
    assert set(schema) <= STRUCTURAL
    assert schema["type"] in {"object", "array", "string", "integer", "number"}
    if not path.endswith("[]") or schema["type"] == "object":
        assert schema["description"]
    is_bounded = {
        "object": "properties" in schema or path == ".spec.template",
        "array": "maxItems" in schema,
        "string": "maxLength" in schema or "enum" in schema or path in {".apiVersion", ".kind"},
        "integer": {"minimum", "maximum", "format"} <= set(schema),
        "number": {"minimum", "maximum"} <= set(schema),
    }
    assert is_bounded[schema["type"]]


def test_what_the_schema_says_of_template_and_metadata() -> None:
    schema = crd_schema()
    assert schema["properties"]["metadata"] == {"type": "object"}
    assert schema["properties"]["spec"]["properties"]["template"]["x-kubernetes-preserve-unknown-fields"] is True
    assert schema["required"] == ["spec"]


def defaulted(schema: dict[str, Any], value: Any) -> Any:
    """What the API server makes of a value: absent fields with a default get it, from the outside in."""
    if schema["type"] == "object" and "properties" in schema:
        given = dict(value)
        for name, child in schema["properties"].items():
            if name not in given and "default" in child:
                given[name] = child["default"]
            if name in given:
                given[name] = defaulted(child, given[name])
        return given
    if schema["type"] == "array":
        return [defaulted(schema["items"], item) for item in value]
    return value


def test_the_schemas_defaults_are_the_structs_defaults() -> None:
    """A pool that the API server has filled in means the same as the one that the user wrote."""
    mapping = spec(
        scaling={"fallback": {"replicas": 1}},
        targetRef={"name": "d"},
        agent={"taskTypes": [{"name": "a", "retry": {}}], "env": [{"name": "A"}]},
    )
    filled = defaulted(crd_schema(), mapping)
    assert filled["spec"]["scaling"]["maxReplicas"] == 10
    assert filled["spec"]["agent"]["slots"]["processes"] == 1
    assert parse_pool(filled, on_kubernetes=True) == parse_pool(mapping, on_kubernetes=True)


def test_no_default_holds_a_null() -> None:
    """The API server refuses a default that its own schema would not take."""
    assert all("null" not in json.dumps(schema.get("default")) for _, schema in nodes(crd_schema()) if "default" in schema)


def test_each_rule_stands_in_the_schema_beside_its_struct() -> None:
    found = [rule["rule"] for _, schema in nodes(crd_schema()) for rule in schema.get("x-kubernetes-validations", ())]
    assert set(found) == {rule.cel for rules in RULES.values() for rule in rules}


def test_cel_rules_name_fields_that_exist() -> None:
    for path, schema in nodes(crd_schema()):
        for rule in schema.get("x-kubernetes-validations", ()):
            assert rule["message"].endswith(tuple("abcdefghijklmnopqrstuvwxyz"))
            field = rule.get("fieldPath", "").lstrip(".").partition(".")[0]
            assert not field or field in schema["properties"], path


def test_the_schema_is_made_anew_at_each_call() -> None:
    for _, node in list(nodes(crd_schema())):
        for value in list(node.values()):
            if isinstance(value, list | dict):
                value.clear()
    assert [schema for _, schema in nodes(crd_schema())] == [param.values[1] for param in ALL_NODES]


def test_the_schema_is_plain_json() -> None:
    assert json.loads(json.dumps(crd_schema())) == crd_schema()
