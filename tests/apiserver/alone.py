"""etcd and kube-apiserver as two processes of this machine on free ports of 127.0.0.1, for one administrator."""

from __future__ import annotations

import json
import secrets
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from kubernetes.client import ApiClient, Configuration

from controller.errors import ClusterError
from controller.kube import POOLS, Api
from controller.names import GROUP, PLURAL
from controller.resource import custom_resource_definition
from tests.standins.ports import free_ports

_START_SECONDS = 120.0
_STOP_SECONDS = 10.0


class ApiServerAlone:
    """Runs from entering to leaving; ``programs`` is the folder with etcd and kube-apiserver, ``folder`` an empty one."""

    def __init__(self, programs: Path, folder: Path) -> None:
        self._programs = programs
        self._folder = folder
        self._token = secrets.token_hex(16)
        self._processes: list[subprocess.Popen[bytes]] = []
        self._port = 0

    def __enter__(self) -> Self:
        with ExitStack() as undo:
            undo.callback(self._stop)
            self._start()
            undo.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._stop()

    def api(self) -> Api:
        """A connection as an administrator."""
        configuration = Configuration()
        configuration.host = self._url
        configuration.ssl_ca_cert = str(self._certificate)
        configuration.api_key = {"authorization": f"Bearer {self._token}"}
        configuration.retries = 0
        return Api(ApiClient(configuration))

    def kubeconfig(self) -> dict[str, Any]:
        """A kubeconfig of the administrator."""
        cluster = {"server": self._url, "certificate-authority": str(self._certificate)}
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "alone", "cluster": cluster}],
            "users": [{"name": "admin", "user": {"token": self._token}}],
            "contexts": [{"name": "alone", "context": {"cluster": "alone", "user": "admin"}}],
            "current-context": "alone",
        }

    @property
    def _url(self) -> str:
        return f"https://127.0.0.1:{self._port}"

    @property
    def _certificate(self) -> Path:
        """The API server signs itself."""
        return self._folder / "certificates" / "apiserver.crt"

    def _start(self) -> None:
        clients, peers, self._port = free_ports(3)
        etcd = f"http://127.0.0.1:{clients}"
        peer = f"http://127.0.0.1:{peers}"
        self._run(
            "etcd",
            "--unsafe-no-fsync",
            f"--data-dir={self._folder / 'etcd'}",
            *(f"--{name}-client-urls={etcd}" for name in ("listen", "advertise")),
            *(f"--{name}-peer-urls={peer}" for name in ("listen", "initial-advertise")),
            f"--initial-cluster=default={peer}",
        )
        key = self._folder / "service-accounts.key"
        subprocess.run(["openssl", "genrsa", "-out", key, "2048"], check=True, capture_output=True)
        tokens = self._folder / "tokens"
        tokens.write_text(f"{self._token},admin,admin,system:masters\n")
        self._run(
            "kube-apiserver",
            f"--etcd-servers={etcd}",
            "--bind-address=127.0.0.1",
            f"--secure-port={self._port}",
            f"--cert-dir={self._folder / 'certificates'}",
            f"--token-auth-file={tokens}",
            "--authorization-mode=RBAC",
            "--disable-admission-plugins=ServiceAccount",  # no controller is there to make one for each namespace
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={key}",
            f"--service-account-signing-key-file={key}",
            "--service-cluster-ip-range=10.96.0.0/16",
        )
        self._wait_until_ready()

    def _run(self, program: str, *arguments: str) -> None:
        with (self._folder / f"{program}.log").open("wb") as log:
            self._processes.append(
                subprocess.Popen([self._programs / program, *arguments], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
            )

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline:
            if any(process.poll() is not None for process in self._processes):
                break
            try:
                self.api().call("GET", "/api/v1/namespaces/default", timeout=5.0)
            except (ClusterError, OSError):
                time.sleep(0.2)
            else:
                return
        logs = {log.name: log.read_text(errors="replace")[-1500:] for log in self._folder.glob("*.log")}
        raise RuntimeError(f"The API server is not ready after {_START_SECONDS:g} s: {json.dumps(logs, indent=1)}")

    def _stop(self) -> None:
        for process in reversed(self._processes):
            process.terminate()
            try:
                process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._processes.clear()


def serve_pools(api: Api) -> None:
    """Create the CRD of the pools, and return once pools are served."""
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    api.call("POST", path, body=custom_resource_definition(), timeout=10.0)
    for _ in range(300):
        reply = api.call("GET", f"{path}/{PLURAL}.{GROUP}", timeout=10.0)
        conditions = {each["type"]: each["status"] for each in reply["status"]["conditions"] or ()}
        if conditions.get("Established") == "True" and _is_served(api):
            return
        time.sleep(0.1)
    raise RuntimeError(f"The CRD is not served: {reply['status']}")


def _is_served(api: Api) -> bool:
    try:
        api.call("GET", f"{POOLS}/{PLURAL}", timeout=10.0)
    except ClusterError:
        return False
    return True
