"""Any text is a pool, or is refused in words that name the place. YAML has more corners than a file for people needs."""

from __future__ import annotations

import copy
import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.hostile.inputs import SEEDED
from tests.unit.test_pool import FULL, MINIMAL
from thunderagent.errors import InvalidPool
from thunderagent.pool import parse_pool
from thunderagent.pool.file import read_document
from thunderagent.settings import AgentSettings, TableSettings

PLACE = re.compile(r"pool\.yaml |thunderagent\.dev/|[\w.\[\]/-]*('.*'|\".*\")?…?[\w.\[\]/-]*: ")

CORNERS = (
    *("!!int x", "!!int ''", "!!float much", "!!timestamp 2001-99-99", "!!timestamp x", "!!bool maybe", "!!null x"),
    *("!!binary é", "!!binary aGk=", "!!set {a, b}", "!!omap [a: b]", "!!omap x", "!!pairs [a: 1]", "!!seq {}", "!!map []"),
    *("!!python/object/apply:os.system [true]", "!unknown x", "!!str 5", "2024-01-01", "1:2:3", "1_000", "0o17", "0b", "yes"),
    *("9" * 5000, "1e400", ".nan", ".inf", "-.inf", "0x" + "f" * 40, "18446744073709551616", "-9223372036854775809", "-1", "0"),
    *('"\\ud800"', '"\\x00"', '"\\U00110000"', "\u2028", "\t", "''", "~", "a" * 3000),
    *("*nobody", "&a [*a]", "&a {b: *a}", "<<", "{<<: 1}", "{<<: [1]}", "{<<: {a: 1}}", "{? [a] : b}", "{? {a: b} : c}"),
    *(
        "{1: 2}",
        "{null: 1}",
        "{1.5: a}",
        "{true: 1}",
        "{a: 1, a: 2}",
        "[[[]]]",
        "[",
        "{",
        "]",
        "=",
        "|",
        ">",
        "%",
        "@",
        "`",
        "---",
        "...",
    ),
)
LINES = FULL.strip("\n").splitlines()


@st.composite
def damaged(draw: st.DrawFn) -> str:
    """A pool's file in which some lines have been changed, moved, doubled or lost."""
    lines = list(LINES)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(lines) - 1))
        corner = draw(st.one_of(st.sampled_from(CORNERS), st.text(max_size=8)))
        column = draw(st.integers(0, len(lines[at])))
        lines[at] = draw(
            st.sampled_from(
                [
                    f"{lines[at].partition(':')[0]}: {corner}",
                    lines[at][:column] + corner + lines[at][column:],
                    " " * (column % 7) + lines[at].lstrip(),
                    f"{lines[at]}\n{lines[(at + column) % len(lines)]}",
                    corner,
                    "",
                ]
            )
        )
    return "\n".join(lines)


anything = st.one_of(damaged(), st.sampled_from(CORNERS), st.text(max_size=60))


@settings(SEEDED, max_examples=80)
@example("a: &a [x, x]\nb: &b [*a, *a]\n" + "".join(f"c{n}: &c{n} [{'*b, ' * 9}*b]\n" for n in range(9)))
@example("".join(f"x{n}: &x{n} [{f'*x{n - 1}, ' * 9 if n else ''}1]\n" for n in range(30)))
@given(anything)
def test_any_text_is_a_pool_or_an_error_that_names_the_place(text: str) -> None:
    try:
        pool = parse_pool(read_document(text, "pool.yaml"))
        AgentSettings(**pool.agent_settings())
        TableSettings(**pool.table_settings())
        pool.scaling_rules()
        pool.literal_env()
    except InvalidPool as refused:
        problems = str(refused).splitlines()
    else:
        return
    assert problems
    assert [each for each in problems if not names_a_place(each)] == []


def names_a_place(problem: str) -> bool:
    """Whether a line of an error begins with the file's name, or with the path of a field or of an annotation."""
    return PLACE.match(problem) is not None


@pytest.mark.parametrize(
    ("text", "told"),
    [
        pytest.param("a: !!int x", "'x' cannot be read as !!int (line 1, column 4)", id="a number that is none"),
        pytest.param("a: !!bool maybe", "'maybe' cannot be read as !!bool (line 1, column 4)", id="neither true nor false"),
        pytest.param("a:\n  b: " + "9" * 5000, "cannot be read as !!int (line 2, column 6)", id="a number of 5,000 digits"),
        pytest.param("a: !!timestamp 2001-99-99", "cannot be read as !!timestamp (line 1", id="a day that there is not"),
        pytest.param('a: "\\ud800"', "cannot be read as !!str (line 1, column 4)", id="half a character"),
        pytest.param('a: "\\U00110000"', "(line 1, column 7)", id="a character beyond the last"),
        pytest.param("a\0b", "pool.yaml is not valid YAML: ", id="a null character"),
    ],
)
def test_what_pyyaml_lets_through_is_told_with_its_line(text: str, told: str) -> None:
    with pytest.raises(InvalidPool) as caught:
        read_document(text, "pool.yaml")

    assert str(caught.value).startswith("pool.yaml is not valid YAML: ")
    assert told in str(caught.value)


plain = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text()),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.one_of(st.text(), st.integers(), st.none()), inner, max_size=3)
    ),
    max_leaves=8,
)


@pytest.mark.parametrize("field", ["metadata", "spec", "queue", "scaling", "agent", "template", "targetRef"])
@settings(SEEDED, max_examples=40)
@given(value=plain)
def test_any_resource_is_a_pool_or_is_refused(field: str, value: object) -> None:
    """As the API server sends it: the operator parses mappings, not text."""
    mapping = copy.deepcopy(MINIMAL)
    (mapping if field in mapping else mapping["spec"])[field] = value
    problems = []
    try:
        parse_pool(mapping, on_kubernetes=True)
    except InvalidPool as refused:
        problems = str(refused).splitlines()
    assert [each for each in problems if not names_a_place(each)] == []
