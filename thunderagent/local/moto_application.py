"""moto's DynamoDB as a WSGI application: one account, one region, and comparisons that answer as DynamoDB's do."""

from __future__ import annotations

import base64
import operator
import secrets
from collections.abc import Callable
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal

from thunderagent.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterable
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

_ANYBODY = "AWS4-HMAC-SHA256 Credential=anybody/20000101/us-east-1/dynamodb/aws4_request"


def moto_application() -> WSGIApplication:
    """moto's DynamoDB, empty, and only that: its other services and what they import stay out.

    Whoever calls, from whatever region, sees the same tables. No other application that this function has returned
    shares them. Not safe from several threads: conditions and their writes are two steps.

    Raises:
        InvalidInput: moto, or what its server needs, is not installed.
    """
    create_backend_app = _import_moto()
    dynamodb = create_backend_app("dynamodb")
    account = f"{secrets.randbelow(10**12):012d}"

    def as_one_account(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        # moto keeps its data in module globals: by account, for which this header stands, and by the region that
        # the client has signed for; one that AWS does not have ("local", say) would be a KeyError.
        environ["HTTP_X_MOTO_ACCOUNT_ID"] = account
        environ["HTTP_AUTHORIZATION"] = _ANYBODY
        return dynamodb(environ, start_response)

    return as_one_account


def _import_moto() -> Callable[[Literal["dynamodb"]], WSGIApplication]:
    """moto's maker of an application for one service. A second of imports, and an extra: so not at the top."""
    try:
        # moto's server needs these two; where one is missing moto advises an extra that is not ours.
        import flask  # noqa: F401, PLC0415
        import flask_cors  # noqa: F401, PLC0415
        from moto.core import serialize  # noqa: PLC0415
        from moto.dynamodb import comparisons  # noqa: PLC0415
        from moto.moto_server.werkzeug_app import create_backend_app  # noqa: PLC0415
    except ImportError as missing:
        raise InvalidInput(
            f"The embedded DynamoDB needs the package {missing.name}, which is not installed. "
            "Install it with: pip install 'thunderagent[local]'"
        ) from missing
    _compare_as_dynamodb(comparisons)
    _write_values_directly(serialize.BaseJSONSerializer)
    return create_backend_app


def _compare_as_dynamodb(comparisons: Any) -> None:
    """Make ``a <= :b`` and its like false where the two are of different types, as DynamoDB has it.

    moto compares them in Python, where a string beside a number is a TypeError, answered with 500, and True is below
    5. Tables that others write to do hold numbers as strings. Seen in moto 5.2.5.
    """
    comparisons.OpLessThan.expr = _ordered(operator.lt)
    comparisons.OpLessThanOrEqual.expr = _ordered(operator.le)
    comparisons.OpGreaterThan.expr = _ordered(operator.gt)
    comparisons.OpGreaterThanOrEqual.expr = _ordered(operator.ge)


def _ordered(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def expr(comparison: Any, item: Any) -> bool:
        left, right = comparison.lhs.expr(item), comparison.rhs.expr(item)
        kind = _ordered_type(left)
        return kind is not None and kind is _ordered_type(right) and compare(left, right)

    return expr


def _ordered_type(value: object) -> type | None:
    """The DynamoDB type of a value, of those that have an order: number, string, binary."""
    if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        return Decimal
    return type(value) if isinstance(value, str | bytes) else None


def _write_values_directly(serializer: Any) -> None:
    """Write a DynamoDB value as the JSON that it nearly is, in place of trying each of its ten members under four names.

    That search took nine tenths of the time of a read: 2 ms an item. Seen in moto 5.2.5.
    """
    by_the_model = serializer._serialize_type_structure

    def structure(self: Any, serialized: dict[str, Any], value: Any, shape: Any, key: str) -> None:
        if key and shape.name == "AttributeValue" and isinstance(value, dict) and len(value) == 1:
            serialized[key] = _as_json(value)
        else:
            by_the_model(self, serialized, value, shape, key)

    if by_the_model.__name__ != structure.__name__:  # not twice, where two embedded DynamoDBs are made
        serializer._serialize_type_structure = structure


def _as_json(value: Any) -> Any:
    """A DynamoDB value, in which moto keeps binary as bytes and a number that it has worked out as a number."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, dict):
        return {name: _as_json(inner) for name, inner in value.items()}
    return [_as_json(inner) for inner in value] if isinstance(value, list) else value
