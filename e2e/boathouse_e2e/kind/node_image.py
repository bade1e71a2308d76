"""The image of a kind node, from Debian packages and Go modules: no image registry is needed.

It follows the layout of kind's own node image: Debian with systemd, the files that the pinned module of kind ships, the
binaries of Kubernetes and containerd, and a containerd store that holds the images of the control plane. The store is
filled by a containerd that runs on this machine while the image is built, so that the build needs no Docker.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import shutil
import subprocess
import tarfile
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from boathouse_e2e import builders, catalogue, debian, tools
from boathouse_e2e.archive import Image, forget_older, write_programs, write_root
from boathouse_e2e.dockerfiles import Base
from boathouse_e2e.errors import ClusterError
from boathouse_e2e.gotoolchain import find_go
from boathouse_e2e.kind import manifests
from boathouse_e2e.paths import images_folder, locked
from boathouse_e2e.shell import run, succeeds

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

NODE_BASE = Base(
    packages=(
        *("systemd", "dbus", "conntrack", "iptables", "nftables", "iproute2", "ethtool", "util-linux", "mount", "kmod"),
        *("libseccomp2", "e2fsprogs", "bash", "ca-certificates", "curl", "jq", "procps", "socat", "ebtables"),
        *("runc", "containernetworking-plugins", "usr-is-merged"),
    )
)
PROXY_BASE = Base(packages=("nftables",), variant="extract")
"""What kube-proxy's image holds beside kube-proxy: it changes address translation with `nft`."""

_KEPT_ARCHIVES = 2
_CONTAINERD_TIMEOUT_S = 60
_MODULE = "sigs.k8s.io/kind"
_STATIC_IMAGES = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd", "coredns")
_BINARIES = {
    "kubelet": "/usr/bin",
    "kubeadm": "/usr/bin",
    "kubectl": "/usr/bin",
    "containerd": "/usr/local/bin",
    "containerd-shim-runc-v2": "/usr/local/bin",
    "ctr": "/usr/local/bin",
}
# A container has neither devices to wait for nor terminals; kind starts the units that a node needs.
_UNITS = """
ln -sf /usr/lib/systemd/systemd /sbin/init
rm -f /lib/systemd/system/sysinit.target.wants/systemd-tmpfiles-setup.service
rm -f /lib/systemd/system/multi-user.target.wants/* /etc/systemd/system/*.wants/*
rm -f /lib/systemd/system/local-fs.target.wants/* /lib/systemd/system/basic.target.wants/*
rm -f /lib/systemd/system/sockets.target.wants/*udev* /lib/systemd/system/sockets.target.wants/*initctl*
echo ReadKMsg=no >> /etc/systemd/journald.conf
systemctl enable kubelet.service containerd.service undo-mount-hacks.service
systemctl mask systemd-binfmt.service
mkdir -p /etc/kubernetes/manifests /opt/cni/bin
cp /usr/lib/cni/host-local /usr/lib/cni/loopback /usr/lib/cni/ptp /usr/lib/cni/portmap /opt/cni/bin
"""


def name() -> str:
    """Return the name of the image with its present inputs."""
    return f"localhost/boathouse-kind-node:{key()}"


def key() -> str:
    """Return a hash over everything that goes into the image."""
    inputs = [NODE_BASE.description(), PROXY_BASE.description(), _kind_version().encode()]
    inputs += [catalogue.TOOLS_BY_NAME[tool].key().encode() for tool in catalogue.KIND_NODE]
    inputs += [Path(source).read_bytes() for source in (__file__, manifests.__file__)]
    return hashlib.sha256(b"\0".join(inputs)).hexdigest()[:12]


def archive() -> Path:
    """Return where the image's archive is, or will be."""
    return images_folder() / f"boathouse-kind-node-{key()}.tar"


def ensure() -> Path:
    """Return the image's archive, after building it if its inputs have changed.

    Raises:
        ClusterError: a tool is missing and cannot be installed, or a build failed.
    """
    target = archive()
    with locked(images_folder() / ".kind-node.lock"):
        if not target.exists():
            debian.ensure(debian.IMAGE_PACKAGES)
            programs = tools.ensure(catalogue.KIND_NODE, catalogue.DEFAULT_RELEASE)
            print("Building the image of kind's nodes once, from Debian packages and Go modules", flush=True)
            started = time.monotonic()
            with tempfile.TemporaryDirectory(prefix="boathouse-kind-") as folder:
                _build(target, Path(folder), programs)
            size_mb = target.stat().st_size / 1e6
            print(f"  built in {time.monotonic() - started:.0f} s, {size_mb:.0f} MB", flush=True)
        forget_older(target, kept=_KEPT_ARCHIVES)
    return target


def _build(target: Path, folder: Path, programs: Mapping[str, Path]) -> None:
    files, root = folder / "files", folder / "root.tar"
    with _step("files and manifests of a node"):
        shipped = kind_module() / "images" / "base" / "files"
        _lay_out(files, shipped, programs)
    with _step("images of the control plane"):
        config = (shipped / "etc/containerd/config.toml").read_text()
        images = _control_plane_images(folder, programs, sandbox_image(config))
    with _step("containerd's store of these images"):
        _import(files / "var/lib/containerd", images, programs, folder)
    with _step(f"Debian {NODE_BASE.suite} with systemd, and all that"):
        hooks = (f"sync-in {files} /", f"chroot \"$1\" sh -ec '{_UNITS}'")
        builders.make_root(NODE_BASE, root, hooks=hooks)
    with _step("archive"):
        image = Image(
            name=name(),
            entrypoint=("/usr/local/bin/entrypoint", "/sbin/init"),
            environment=("container=docker",),
            stop_signal="SIGRTMIN+3",  # SIGTERM makes systemd execute itself again
        )
        write_root(target, image, root)


@contextlib.contextmanager
def _step(what: str) -> Iterator[None]:
    started = time.monotonic()
    print(f"  {what} ...", end="", flush=True)
    yield
    print(f" {time.monotonic() - started:.0f} s", flush=True)


def _kind_version() -> str:
    return catalogue.TOOLS_BY_NAME["kind"].version()


def kind_module() -> Path:
    """Return the folder of kind's module in the module cache."""
    go, folder = find_go(), catalogue.TOOLS_BY_NAME["kind"].folder
    downloaded = run(go.command, "mod", "download", "-json", f"{_MODULE}@{_kind_version()}", cwd=folder)
    return Path(json.loads(downloaded)["Dir"])


def published_image() -> str:
    """Return the name of the image that this version of kind publishes for its nodes.

    Raises:
        ClusterError: the module does not say.
    """
    source = kind_module() / "pkg/apis/config/defaults/image.go"
    found = re.search(r'Image = "([^"]+)"', source.read_text())
    if not found:
        raise ClusterError(f"{source} names no image")
    return found.group(1)


def sandbox_image(containerd_config: str) -> str:
    """Return the name of the image that holds each pod's namespaces, as kind's configuration of containerd has it.

    Raises:
        ClusterError: the configuration does not say.
    """
    found = re.search(r'sandbox_image = "([^"]+)"', containerd_config)
    if not found:
        raise ClusterError("kind's configuration of containerd names no sandbox_image")
    return found.group(1)


def _lay_out(files: Path, shipped: Path, programs: Mapping[str, Path]) -> None:
    """Write the node's files but for Debian's."""
    shutil.copytree(shipped, files)
    for path in (files, *files.rglob("*")):  # modules in the cache are read-only, and none of their files executable
        scripts = path.parent.name == "bin"
        path.chmod(0o755 if path.is_dir() or scripts else 0o644)
    for program, folder in _BINARIES.items():
        target = files / folder.lstrip("/") / program
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(programs[program], target)
        target.chmod(0o755)
    config = files / "etc/containerd/config.toml"
    config.write_text(adapted(config.read_text()))
    specification = json.loads(run(programs["ctr"], "oci", "spec"))
    (files / "etc/containerd/cri-base.json").write_text(json.dumps(base_specification(specification)))
    (files / "kind/version").write_text(catalogue.TOOLS_BY_NAME["kubelet"].version())
    (files / "kind/manifests").mkdir()
    (files / "kind/manifests/default-cni.yaml").write_text(manifests.pod_network())
    (files / "kind/manifests/default-storage.yaml").write_text(manifests.storage())


def adapted(containerd_config: str) -> str:
    """Return kind's configuration of containerd for machines whose processes may not lower their OOM score."""
    return containerd_config.replace("restrict_oom_score_adj = false", "restrict_oom_score_adj = true")


def base_specification(default: Mapping[str, Any]) -> dict[str, Any]:
    """Return the specification of all containers: no limits of open files, and the node's own product name."""
    process = {key: value for key, value in default["process"].items() if key != "rlimits"}
    hook = {"path": "/kind/bin/mount-product-files.sh"}
    return {**default, "process": process, "hooks": {"createContainer": [hook]}}


def _control_plane_images(folder: Path, programs: Mapping[str, Path], sandbox: str) -> list[Path]:
    """Write the images that kubeadm's manifests name, each of one program."""
    version = catalogue.TOOLS_BY_NAME["kubeadm"].version()
    listed = run(programs["kubeadm"], "config", "images", "list", "--kubernetes-version", version).split()
    by_program = {image.rpartition(":")[0].rpartition("/")[2]: image for image in listed}
    found = []
    for program in _STATIC_IMAGES:
        image = Image(name=by_program[program], entrypoint=(f"/usr/local/bin/{program}",))
        found.append(_program_image(folder, image, programs[program]))
    found.append(_program_image(folder, Image(name=sandbox, entrypoint=("/usr/local/bin/pause",)), programs["pause"]))
    own = Image(name=manifests.CNI_IMAGE, entrypoint=("/usr/local/bin/kind-cni",))
    found.append(_program_image(folder, own, programs["kind-cni"]))
    found.append(_kube_proxy_image(folder, by_program["kube-proxy"], programs["kube-proxy"]))
    return found


def _program_image(folder: Path, image: Image, program: Path) -> Path:
    target = folder / f"{program.name}.tar"
    write_programs(target, image, {f"/usr/local/bin/{program.name}": program})
    return target


def _kube_proxy_image(folder: Path, image_name: str, program: Path) -> Path:
    root, target = folder / "kube-proxy-root.tar", folder / "kube-proxy.tar"
    builders.make_root(PROXY_BASE, root)
    with tarfile.open(root, "a") as tar:
        tar.add(program, f"usr/local/bin/{program.name}")
    write_root(target, Image(name=image_name), root)
    return target


def _import(store: Path, images: Sequence[Path], programs: Mapping[str, Path], folder: Path) -> None:
    """Let a containerd write images into the store that a node's containerd will find."""
    with _containerd(store, programs["containerd"], folder) as socket:
        client = (programs["ctr"], f"--address={socket}", "--namespace=k8s.io")
        deadline = time.monotonic() + _CONTAINERD_TIMEOUT_S
        while not succeeds(*client, "version"):
            if time.monotonic() > deadline:
                raise ClusterError(f"containerd did not answer in {_CONTAINERD_TIMEOUT_S} s")
            time.sleep(0.1)
        for image in images:
            run(*client, "images", "import", "--local", "--no-unpack", image)
    for path in store.iterdir():
        if path.name not in {"io.containerd.content.v1.content", "io.containerd.metadata.v1.bolt"}:
            shutil.rmtree(path)


@contextlib.contextmanager
def _containerd(store: Path, program: Path, folder: Path) -> Iterator[Path]:
    """Run a containerd that only stores; yields its socket."""
    socket, config = folder / "containerd.sock", folder / "containerd.toml"
    config.write_text(f"""version = 4
root = '{store}'
state = '{folder}/state'
disabled_plugins = ['io.containerd.grpc.v1.cri', 'io.containerd.cri.v1.images', 'io.containerd.cri.v1.runtime',
  'io.containerd.nri.v1.nri', 'io.containerd.internal.v1.opt']
[plugins.'io.containerd.server.v1.grpc']
  address = '{socket}'
[plugins.'io.containerd.server.v1.ttrpc']
  address = '{socket}.ttrpc'
""")
    with (folder / "containerd.log").open("wb") as log:
        process = subprocess.Popen([program, f"--config={config}"], stdout=log, stderr=log)
    try:
        yield socket
    finally:
        process.terminate()
        process.wait()
