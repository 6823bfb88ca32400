"""The keys, certificates and kubeconfigs of a built cluster. They are valid for 30 days and made anew by each start."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from pathlib import Path

from tests.cluster import commands
from tests.cluster.built.layout import API_SERVICE, DNS_DOMAIN, NODE_ADDRESS, NODE_NAME, Layout

API_SERVER = f"https://{NODE_ADDRESS}:6443"
_DAYS = "30"
_CURVE = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


@dataclass(frozen=True)
class Certificate:
    """A certificate to issue; Kubernetes reads the user from the common name and the groups from the organisation."""

    name: str
    subject: str
    authority: str = "ca"
    names: tuple[str, ...] = ()
    """What a server is reached as; empty for a client."""

    def extensions(self) -> str:
        """The X.509 extensions, as openssl reads them."""
        usage = "serverAuth,clientAuth" if self.names else "clientAuth"
        lines = ["basicConstraints=critical,CA:FALSE", "keyUsage=critical,digitalSignature", f"extendedKeyUsage={usage}"]
        return "\n".join(lines + ([f"subjectAltName={','.join(self.names)}"] if self.names else [])) + "\n"


AUTHORITIES = ("ca", "front-proxy-ca")

_API_NAMES = ("kubernetes", "kubernetes.default", "kubernetes.default.svc", f"kubernetes.default.svc.{DNS_DOMAIN}", "localhost")
_API_ADDRESSES = ("127.0.0.1", NODE_ADDRESS, API_SERVICE)

CERTIFICATES = (
    Certificate(
        "apiserver",
        "/CN=kube-apiserver",
        names=(*(f"DNS:{name}" for name in _API_NAMES), *(f"IP:{address}" for address in _API_ADDRESSES)),
    ),
    Certificate("apiserver-to-kubelet", "/O=system:masters/CN=kube-apiserver-kubelet-client"),
    Certificate("front-proxy", "/CN=front-proxy-client", authority="front-proxy-ca"),
    Certificate(
        "kubelet",
        f"/O=system:nodes/CN=system:node:{NODE_NAME}",
        names=(f"DNS:{NODE_NAME}", f"IP:{NODE_ADDRESS}", "IP:127.0.0.1"),
    ),
    Certificate("admin", "/O=system:masters/CN=admin"),
    Certificate("controller-manager", "/CN=system:kube-controller-manager"),
    Certificate("scheduler", "/CN=system:kube-scheduler"),
    Certificate("proxy", "/CN=system:kube-proxy"),
    Certificate("network-policies", "/CN=system:network-policies"),
)


def make(layout: Layout) -> None:
    """Make all keys and certificates, and a kubeconfig for each client."""
    layout.pki.mkdir(mode=0o700)
    for authority in AUTHORITIES:
        _make_authority(layout.pki, authority)
    for certificate in CERTIFICATES:
        _issue(layout.pki, certificate)
    commands.run("openssl", "genrsa", "-out", layout.pki / "service-accounts.key", "2048")
    public = ("-pubout", "-out", layout.pki / "service-accounts.pub")
    commands.run("openssl", "rsa", "-in", layout.pki / "service-accounts.key", *public)
    for client in ("kubelet", "controller-manager", "scheduler", "proxy", "network-policies"):
        _write_kubeconfig(layout, client, layout.kubeconfig_of(client))
    _write_kubeconfig(layout, "admin", layout.kubeconfig)


def _make_authority(pki: Path, name: str) -> None:
    constraints = ("-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign,cRLSign")
    files = ("-keyout", pki / f"{name}.key", "-out", pki / f"{name}.crt")
    commands.run("openssl", "req", "-x509", *_CURVE, "-subj", f"/CN={name}", "-days", _DAYS, *constraints, *files)


def _issue(pki: Path, certificate: Certificate) -> None:
    name, authority = certificate.name, certificate.authority
    extensions = pki / f"{name}.extensions"
    extensions.write_text(certificate.extensions())
    request = commands.run("openssl", "req", "-new", *_CURVE, "-keyout", pki / f"{name}.key", "-subj", certificate.subject)
    signer = ("-CA", pki / f"{authority}.crt", "-CAkey", pki / f"{authority}.key", "-CAcreateserial")
    output = ("-days", _DAYS, "-extfile", extensions, "-out", pki / f"{name}.crt")
    commands.run("openssl", "x509", "-req", *signer, *output, stdin=request)


def _write_kubeconfig(layout: Layout, client: str, file: Path) -> None:
    cluster = {"server": API_SERVER, "certificate-authority-data": _encoded(layout.pki / "ca.crt")}
    user = {
        "client-certificate-data": _encoded(layout.pki / f"{client}.crt"),
        "client-key-data": _encoded(layout.pki / f"{client}.key"),
    }
    file.unlink(missing_ok=True)
    file.touch(mode=0o600)
    file.write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [{"name": "built", "cluster": cluster}],
                "users": [{"name": client, "user": user}],
                "contexts": [{"name": "thunderagent-built", "context": {"cluster": "built", "user": client}}],
                "current-context": "thunderagent-built",
            },
            indent=2,
        )
    )


def _encoded(file: Path) -> str:
    return base64.b64encode(file.read_bytes()).decode()
