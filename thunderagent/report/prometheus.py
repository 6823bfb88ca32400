"""Asking a Prometheus over its HTTP API (prometheus.io/docs/prometheus/latest/querying/api), or what speaks as one."""

from __future__ import annotations

import base64
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from thunderagent.errors import InvalidInput, NoReport

PATIENCE = 60.0
"""Seconds that one answer may take."""

MOST_BYTES = 64 * 1024 * 1024

Labels = Mapping[str, str]
Points = Sequence[tuple[float, float]]

Post = Callable[[str, Mapping[str, str], bytes], bytes]
"""Sends a form to a URL with these headers and gives the body of the answer. Raises as :func:`urllib.request.urlopen` does."""


class _Series(msgspec.Struct):
    metric: dict[str, str]
    values: list[tuple[float, str]] = []
    value: tuple[float, str] | None = None


class _Data(msgspec.Struct, rename="camel"):
    result_type: str
    result: list[_Series]


class _Answer(msgspec.Struct, rename="camel"):
    status: str
    data: _Data | None = None
    error_type: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True)
class Address:
    """Where a Prometheus is. ``shown`` is the URL for people, without the password that ``headers`` are made of."""

    url: str
    shown: str
    headers: Mapping[str, str]


def address(url: str) -> Address:
    """Of a URL as a person types it, with ``user:password@`` where it needs one. Raises InvalidInput for what is none."""
    parts = urllib.parse.urlsplit(url if "//" in url else f"http://{url}")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InvalidInput(f"{url!r} is not the URL of a Prometheus. Write it whole: http://127.0.0.1:9090.")
    credentials, at, host = parts.netloc.rpartition("@")
    shown = urllib.parse.urlunsplit((parts.scheme, host, parts.path.rstrip("/"), "", ""))
    encoded = base64.b64encode(urllib.parse.unquote(credentials).encode()).decode()
    return Address(shown, shown, {"Authorization": f"Basic {encoded}"} if at else {})


def post(url: str, headers: Mapping[str, str], form: bytes) -> bytes:
    """Send the form over the network."""
    request = urllib.request.Request(url, data=form, headers=dict(headers))
    with urllib.request.urlopen(request, timeout=PATIENCE) as reply:
        read: bytes = reply.read(MOST_BYTES + 1)
    if len(read) > MOST_BYTES:
        raise OSError(f"its answer has more than {MOST_BYTES >> 20} MB")
    return read


class Prometheus:
    """One of them. Every method raises NoReport where it cannot be asked, with what to do about it."""

    def __init__(self, where: Address, send: Post = post) -> None:
        self._where = where
        self._send = send

    def query(self, expr: str, at: float) -> list[tuple[Labels, float]]:
        """The series that an expression has at a time, in epoch seconds, with their values."""
        found = self._ask("query", query=expr, time=f"{at:.3f}")
        return [(each.metric, float(each.value[1])) for each in found if each.value is not None]

    def scraped(self, selector: str, seconds: float, at: float) -> list[list[float]]:
        """When each series of a selector was scraped in so many seconds before a time: epoch seconds, in order."""
        found = self._ask("query", query=f"{selector}[{max(1, round(seconds))}s]", time=f"{at:.3f}")
        return [[when for when, _ in each.values] for each in found]

    def query_range(self, expr: str, times: Sequence[float], step: float) -> list[tuple[Labels, Points]]:
        """The series that an expression has at these times, ``step`` seconds apart."""
        found = self._ask("query_range", query=expr, start=f"{times[0]:.3f}", end=f"{times[-1]:.3f}", step=f"{step:g}")
        return [(each.metric, [(at, float(value)) for at, value in each.values]) for each in found]

    def _ask(self, path: str, **parameters: str) -> list[_Series]:
        url = f"{self._where.url}/api/v1/{path}"
        form = urllib.parse.urlencode(parameters).encode()
        try:
            body = self._send(url, self._where.headers, form)
        except urllib.error.HTTPError as refused:
            with refused:
                return self._refused(refused.code, refused.read(MOST_BYTES))
        except (OSError, ValueError) as error:
            why = getattr(error, "reason", None) or error
            raise NoReport(
                f"The Prometheus at {self._where.shown} cannot be reached: {why}. Correct --prometheus, or forward its port: "
                "kubectl port-forward service/prometheus-operated 9090 in its namespace."
            ) from None
        return self._data(body)

    def _refused(self, status: int, body: bytes) -> list[_Series]:
        if status in (401, 403):
            raise NoReport(
                f"{self._where.shown} wants to know who asks (HTTP {status}). Write user and password into the URL, or ask it "
                "from inside, as by kubectl port-forward."
            )
        return self._data(body, f" (HTTP {status})")

    def _data(self, body: bytes, note: str = "") -> list[_Series]:
        try:
            answer = msgspec.json.decode(body, type=_Answer)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise NoReport(
                f"{self._where.shown} answers{note}, but not as a Prometheus does. Give the URL before /api/v1: with "
                "--web.external-url or behind a gateway it has a path."
            ) from None
        if answer.status != "success" or answer.data is None:
            raise NoReport(f"The Prometheus at {self._where.shown} refuses the query: {answer.error or answer.status}.")
        return answer.data.result
