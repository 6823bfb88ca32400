"""Values that make no sense are refused before anything is installed, with words that say which."""

from __future__ import annotations

import re

import pytest

from tests.chart.chart import Chart


@pytest.mark.parametrize(
    ("flag", "words"),
    [
        pytest.param("--set=replicas=2", r"additional properties 'replicas' not allowed", id="a value that is not there"),
        pytest.param("--set=image.name=x", r"at '/image': additional properties 'name'", id="one inside a group"),
        pytest.param("--set=crds.enabled=true", r"at '/crds': additional properties 'enabled'", id="another chart's word"),
        pytest.param("--set=replicaCount=0", r"at '/replicaCount': minimum: got 0, want 1", id="no replica"),
        pytest.param("--set=replicaCount=9", r"at '/replicaCount': maximum: got 9, want 5", id="too many replicas"),
        pytest.param("--set-string=replicaCount=2", r"at '/replicaCount': got string, want integer", id="a number as text"),
        pytest.param("--set=image.repository=a/b:1", r"at '/image/repository': 'a/b:1' does not match", id="a tag in the name"),
        pytest.param("--set=image.repository=", r"at '/image/repository': minLength: got 0", id="an image without a name"),
        pytest.param("--set=image.tag=latest", r"The tag latest of thunderagent/operator", id="the tag latest"),
        pytest.param("--set=demo.enabled=true,demo.agent.image.tag=latest", r"latest of thunderagent/agent", id="the demo's"),
        pytest.param("--set=image.digest=abc", r"at '/image/digest': 'abc' does not match", id="a digest that is none"),
        pytest.param("--set=image.pullPolicy=Often", r"at '/image/pullPolicy': value must be one of", id="a pull policy"),
        pytest.param("--set=scope.namespaces=team-a", r"at '/scope/namespaces': got string, want array", id="one namespace"),
        pytest.param(
            "--set=scope.namespaces={Team_A}", r"at '/scope/namespaces/0': 'Team_A' does not", id="no namespace's name"
        ),
        pytest.param("--set=scope.namespaces={a,a}", r"at '/scope/namespaces': items at 0 and 1 are equal", id="one twice"),
        pytest.param("--set=allowed={team-a}", r"at '/allowed/0': got string, want object", id="a rule that is none"),
        pytest.param("--set=allowed[0].table=x", r"at '/allowed/0': additional properties 'table'", id="a rule's wrong word"),
        pytest.param("--set=allowed[0].tables=x", r"at '/allowed/0/tables': got string, want array", id="one pattern"),
        pytest.param("--set=settings.stall=0", r"at '/settings/stall': exclusiveMinimum: got 0, want 0", id="no time at all"),
        pytest.param(
            "--set-json=settings.readThreads=2.5", r"at '/settings/readThreads': got number, want", id="half a thread"
        ),
        pytest.param("--set=networkPolicy.awsPorts={70000}", r"at '/networkPolicy/awsPorts/0': maximum", id="no port"),
        pytest.param(
            "--set=serviceAccount.annotations.a=1", r"annotations/a': got number, want string", id="a number to annotate"
        ),
        pytest.param("--set=crds.keep=yes", r"at '/crds/keep': got string, want boolean", id="yes for true"),
        pytest.param("--set=extraEnv[0].value=x", r"at '/extraEnv/0': missing property 'name'", id="a variable without a name"),
        pytest.param("--set=fullnameOverride=A", r"at '/fullnameOverride': 'A' does not match", id="a name in capitals"),
        pytest.param(
            "--set=demo.enabled=true,scope.namespaces={team-a}",
            r"scope\.namespaces must contain default",
            id="a demo that nobody would scale",
        ),
    ],
)
def test_refused(flag: str, words: str, chart: Chart) -> None:
    refusal = chart.refusal(flag)
    assert re.search(words, refusal), refusal
