"""The operator's settings, and what pools of a namespace may name."""

from __future__ import annotations

import pytest

from controller.allowed import DEFAULT, Allowance, objection, parse_allowed
from controller.settings import OperatorSettings
from thunderagent.errors import InvalidSettings
from thunderagent.pool import Pool, parse_pool
from thunderagent.settings import from_environment


def pool(**queue: str) -> Pool:
    spec = {"queue": {"table": "TaskTable", **queue}}
    resource = {"apiVersion": "thunderagent.dev/v1alpha1", "kind": "ThunderAgentPool", "metadata": {"name": "p"}, "spec": spec}
    return parse_pool(resource)


TEAM_A = (
    Allowance(("team-a",), ("team-a-*",), ("eu-*",), ()),
    Allowance(("test-*",), endpoints=("http://dynamodb.test:8000",)),
)
ROWS = [
    pytest.param({}, "any", DEFAULT, True, id="by default any table"),
    pytest.param({"region": "eu-west-1"}, "any", DEFAULT, True, id="by default any region"),
    pytest.param({"endpoint": "http://x"}, "any", DEFAULT, False, id="by default no endpoint"),
    pytest.param({"table": "team-a-1"}, "team-a", TEAM_A, True, id="a table of its own"),
    pytest.param({"table": "team-b-1"}, "team-a", TEAM_A, False, id="a table of somebody else"),
    pytest.param({"table": "team-a-1", "region": "us-east-1"}, "team-a", TEAM_A, False, id="a region that it may not name"),
    pytest.param({"table": "team-a-1"}, "team-b", TEAM_A, False, id="a namespace that no rule names"),
    pytest.param({"endpoint": "http://dynamodb.test:8000"}, "test-1", TEAM_A, True, id="an endpoint that is allowed"),
    pytest.param({"endpoint": "http://dynamodb.test:8000"}, "team-a", TEAM_A, False, id="an endpoint of other namespaces"),
    pytest.param({}, "any", (), False, id="no rules: nothing"),
]


@pytest.mark.parametrize(("queue", "namespace", "allowed", "fine"), ROWS)
def test_what_a_pool_may_name(queue: dict[str, str], namespace: str, allowed: tuple[Allowance, ...], fine: bool) -> None:
    assert (objection(pool(**queue), namespace, allowed) is None) is fine


def test_the_objection_names_what_was_asked_for() -> None:
    words = objection(pool(endpoint="http://x"), "team", DEFAULT)
    assert words is not None
    assert "team" in words
    assert "endpoint http://x" in words


def test_rules_are_read_from_json() -> None:
    assert parse_allowed('[{"namespaces": ["a"], "tables": ["t-*"]}]') == (Allowance(("a",), ("t-*",)),)
    assert parse_allowed(" ") == DEFAULT
    assert parse_allowed("[]") == ()


BAD = [
    pytest.param("{", "not valid JSON", id="no JSON"),
    pytest.param("{}", "must be a list", id="no list"),
    pytest.param('["a"]', r"allowed\[0\] must be an object", id="no object"),
    pytest.param('[{"table": ["a"]}]', r"allowed\[0\].table is not known", id="a field that is not known"),
    pytest.param('[{"tables": "a"}]', r"allowed\[0\].tables must be a list", id="no list of patterns"),
]


@pytest.mark.parametrize(("text", "words"), BAD)
def test_rules_that_cannot_be_read(text: str, words: str) -> None:
    with pytest.raises(InvalidSettings, match=words):
        from_environment(OperatorSettings, {"THUNDERAGENT_OPERATOR_ALLOWED": text})


def test_settings_come_from_the_environment() -> None:
    environ = {"THUNDERAGENT_OPERATOR_NAMESPACES": "a, b", "THUNDERAGENT_OPERATOR_PORT": "0"}
    settings = from_environment(OperatorSettings, environ)
    assert settings.served_namespaces() == ("a", "b")
    assert settings.port == 0
    assert OperatorSettings().served_namespaces() == ()


def test_an_empty_namespace_is_a_mistake() -> None:
    with pytest.raises(InvalidSettings, match="namespaces"):
        OperatorSettings(namespaces="a,,b")
