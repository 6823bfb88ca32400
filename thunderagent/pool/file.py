"""Reading a pool file: YAML that is safe, bounded and means one thing only."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from thunderagent.errors import InvalidPool
from thunderagent.pool.parse import parse_pool
from thunderagent.pool.spec import Pool

MAX_BYTES = 256 * 1024
"""The size of a pool file. Kubernetes keeps the last applied file in an annotation of at most this size."""

MAX_NODES = 50_000
"""Values in a file once its aliases are written out: a few lines of aliases to aliases can stand for billions."""


def load_pool(path: str | Path, *, on_kubernetes: bool = False) -> Pool:
    """Read a pool from a YAML (or JSON) file with one document.

    Raises InvalidPool for a file that cannot be read, is not such a document, or breaks a rule of the pool's fields.
    """
    return parse_pool(read_document(_text(Path(path)), str(path)), on_kubernetes=on_kubernetes)


def read_document(text: str, name: str) -> dict[str, Any]:
    """The mapping in a YAML text with exactly one document. ``name`` is for error messages.

    Values are as Kubernetes reads them: dates stay strings. Raises InvalidPool.
    """
    try:
        loader = _Loader(text)
    except yaml.YAMLError as error:
        raise InvalidPool(f"{name} is not valid YAML: {_told(error)}.") from error
    try:
        node = _only_node(loader, name)
        _check_size(node, name)
        document = loader.construct_document(node)
    except yaml.YAMLError as error:
        raise InvalidPool(f"{name} is not valid YAML: {_told(error)}.") from error
    except ValueError as error:  # an escape that names no character; PyYAML lets it through
        mark = loader.get_mark()
        raise InvalidPool(f"{name} is not valid YAML: {error} (line {mark.line + 1}, column {mark.column + 1}).") from error
    except RecursionError:
        raise InvalidPool(f"{name} is nested too deeply.") from None
    if not isinstance(document, dict):
        raise InvalidPool(f"{name} must hold the fields of a pool: apiVersion, kind, metadata and spec.")
    return document


_UNREADABLE = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError)
"""What PyYAML's constructors raise, among other things, for text that is not of the type that its tag names."""


class _Loader(yaml.SafeLoader):
    """Builds plain values only. Refuses a key that is there twice, of which PyYAML would silently keep the last."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)
        except _UNREADABLE as error:
            tag = node.tag.replace("tag:yaml.org,2002:", "!!")
            text = f"{str(node.value)!r:.40} cannot be read as {tag}"
            raise yaml.MarkedYAMLError(problem=text, problem_mark=node.start_mark) from error

    def construct_scalar(self, node: yaml.ScalarNode | yaml.MappingNode) -> Any:
        value = super().construct_scalar(node)
        value.encode("utf-8")  # an escape may name half a character, which nothing that comes after can write
        return value

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)
        seen: set[tuple[str, str]] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if (key.tag, key.value) in seen:
                    raise yaml.MarkedYAMLError(problem=f'the key "{key.value}" is there twice', problem_mark=key.start_mark)
                seen.add((key.tag, key.value))
        return node


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise InvalidPool(f"{path} cannot be read: {error.strerror or error}.") from error
    if len(raw) > MAX_BYTES:
        raise InvalidPool(f"{path} is larger than {MAX_BYTES // 1024} KiB.")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidPool(f"{path} is not UTF-8 text.") from None


def _only_node(loader: _Loader, name: str) -> yaml.Node:
    node = loader.get_node() if loader.check_node() else None
    if node is None:
        raise InvalidPool(f"{name} is empty.")
    if loader.check_node():
        raise InvalidPool(f"{name} holds several documents; a pool file holds one.")
    return node


def _check_size(root: yaml.Node, name: str) -> None:
    sizes: dict[int, int] = {}

    def size(node: yaml.Node) -> int:
        key = id(node)
        if key not in sizes:
            sizes[key] = MAX_NODES + 1  # what a node that contains itself will find here
            sizes[key] = 1 + sum(size(child) for child in _children(node))
        return sizes[key]

    if size(root) > MAX_NODES:
        raise InvalidPool(f"{name} holds more than {MAX_NODES} values, its aliases written out.")


def _children(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return [child for pair in node.value for child in pair]
    return list(node.value) if isinstance(node, yaml.SequenceNode) else []


def _told(error: yaml.YAMLError) -> str:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        mark = error.problem_mark
        return f"{error.problem} (line {mark.line + 1}, column {mark.column + 1})"
    return str(error).replace("\n", " ")
