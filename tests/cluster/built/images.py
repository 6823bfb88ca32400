"""Images without a registry: a base made by debootstrap, two made of built programs, and any Dockerfile on top.

buildah runs in a mount namespace of its own, so nothing that it mounts outlives it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path

from tests.cluster import commands
from tests.cluster.built.layout import BASE_IMAGE, COREDNS_IMAGE, PAUSE_IMAGE, Layout
from tests.cluster.built.packages import debian_mirror
from tests.cluster.errors import ClusterError

_SUITE = "bookworm"  # its Python is 3.11, whatever Debian this machine runs
_BASE_PACKAGES = ("ca-certificates", "netbase", "python3", "python3-venv", "tzdata")
_EMPTIED = ("var/cache/apt/archives", "var/lib/apt/lists", "var/log", "usr/share/doc", "usr/share/man", "usr/share/locale")
_BASE_KEY = " ".join([_SUITE, *_BASE_PACKAGES, BASE_IMAGE])
_CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

# What pip needs to reach an index from inside a build, and no more of this machine's configuration.
_PIP_SETTINGS = ("index-url", "extra-index-url", "trusted-host", "proxy", "timeout", "default-timeout", "retries")


def make(layout: Layout) -> None:
    """Make the base image and the archives of pause and CoreDNS, as far as they are absent or older than their programs."""
    layout.images.mkdir(parents=True, exist_ok=True)
    stamp = layout.images / "base"
    if not stamp.exists() or stamp.read_text() != _BASE_KEY:
        with commands.step("Making the base image with debootstrap"):
            _make_base(layout)
        stamp.write_text(_BASE_KEY)
    for reference, program in ((PAUSE_IMAGE, "pause"), (COREDNS_IMAGE, "coredns")):
        archive, binary = archive_of(layout, reference), layout.bin / program
        if not archive.exists() or archive.stat().st_mtime < binary.stat().st_mtime:
            _make_from_program(layout, reference, binary)


def build(layout: Layout, reference: str, context: Path, flags: list[str]) -> Path:
    """Build a Dockerfile's context (`flags` as for `docker build`) and return the archive. `FROM` finds local images only."""
    pip_conf = layout.buildah / "pip.conf"
    pip_conf.write_text(_pip_conf())
    certificates = os.environ.get("SSL_CERT_FILE") or _CERTIFICATES
    with commands.step(f"Building {reference}"):
        _buildah(
            layout,
            *("bud", "--pull-never", "--isolation=chroot", "--network=host", "--layers", "--format=docker"),
            f"--volume={certificates}:{_CERTIFICATES}:ro",
            f"--volume={pip_conf}:/etc/pip.conf:ro",
            f"--tag={reference}",
            *flags,
            str(context.absolute()),
        )
        return _save(layout, reference)


def archive_of(layout: Layout, reference: str) -> Path:
    """Where the archive of an image lies."""
    return layout.images / f"{re.sub(r'[/:]', '_', reference)}.tar"


def _make_base(layout: Layout) -> None:
    root = layout.buildah / "rootfs"
    shutil.rmtree(root, ignore_errors=True)
    # Without a mount namespace of its own, an interrupted debootstrap leaves /proc mounted in the tree.
    _alone("debootstrap", "--variant=minbase", f"--include={','.join(_BASE_PACKAGES)}", _SUITE, root, debian_mirror())
    # A venv at /usr/local puts python, pip and site-packages where the published python images have them.
    _alone("chroot", root, "python3", "-m", "venv", "/usr/local")
    _slim(root)
    container = _buildah(layout, "from", "scratch")
    _buildah(layout, "add", "--quiet", container, root, "/")
    _buildah(layout, "config", f"--env=PATH={_PATH}", "--env=LANG=C.UTF-8", "--cmd=python3", container)
    _buildah(layout, "commit", "--quiet", "--rm", container, BASE_IMAGE)
    shutil.rmtree(root)


def _slim(root: Path) -> None:
    for device in (root / "dev").iterdir():  # the runtime makes its own
        shutil.rmtree(device) if device.is_dir() and not device.is_symlink() else device.unlink()
    for directory in _EMPTIED:
        shutil.rmtree(root / directory)
        (root / directory).mkdir()


def _make_from_program(layout: Layout, reference: str, binary: Path) -> None:
    container = _buildah(layout, "from", "scratch")
    _buildah(layout, "add", "--quiet", container, binary, f"/{binary.name}")
    entrypoint = json.dumps([f"/{binary.name}"])
    _buildah(layout, "config", f"--entrypoint={entrypoint}", "--cmd=", "--user=65535:65535", container)
    _buildah(layout, "commit", "--quiet", "--rm", container, reference)
    _save(layout, reference)


def identity(archive: Path) -> str:
    """What tells the image in an archive from one that was built from other files."""
    return archive.with_suffix(".id").read_text()


def _save(layout: Layout, reference: str) -> Path:
    """Write the archive, which takes longer than a build from cached layers, unless it holds this very image."""
    archive = archive_of(layout, reference)
    known, built = archive.with_suffix(".id"), _buildah(layout, "images", "--quiet", "--no-trunc", reference)
    if archive.exists() and known.exists() and known.read_text() == built:
        return archive
    unfinished = archive.with_suffix(".unfinished")
    unfinished.unlink(missing_ok=True)
    known.unlink(missing_ok=True)
    _buildah(layout, "push", "--quiet", reference, f"docker-archive:{unfinished}:{reference}")
    unfinished.rename(archive)
    known.write_text(built)
    return archive


def _buildah(layout: Layout, *arguments: str | Path) -> str:
    (layout.buildah / "tmp").mkdir(parents=True, exist_ok=True)
    places = (f"--root={layout.buildah / 'root'}", f"--runroot={layout.buildah / 'run'}", "--storage-driver=overlay")
    # A cache of buildah's lies in /var/lib whatever it is told; it goes to memory.
    covered = ("sh", "-c", 'mount -t tmpfs tmpfs /var/lib && exec buildah "$@"', "buildah")
    return _alone(*covered, *places, *arguments, TMPDIR=str(layout.buildah / "tmp")).strip()


def _alone(*argv: str | Path, **environment: str) -> str:
    return commands.run("unshare", "--mount", *argv, env=os.environ | environment)


def _pip_conf() -> str:
    try:
        listed = commands.run("python3", "-m", "pip", "config", "list")
    except ClusterError:  # no pip here, so no settings of it
        listed = ""
    values = dict(re.findall(r"^(?:global|:env:)\.([a-z-]+)='(.*)'$", listed, re.MULTILINE))
    chosen = {name.removeprefix("default-"): values[name] for name in _PIP_SETTINGS if name in values}
    return "\n".join(["[global]", *(f"{name} = {value}" for name, value in chosen.items()), f"cert = {_CERTIFICATES}", ""])
