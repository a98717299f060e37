"""The plain manifests, by themselves and with all components."""

import tomllib
from pathlib import Path

import pytest

import life
import objects as of
from tools import Refused, Tool

MANIFESTS = "deploy/kubernetes"
COMPONENTS = ("network-policy", "service-monitor")
# With brokers on a cluster.
ON_CLUSTER = (*COMPONENTS, "autoscaling")


def plain(tree: Path, kubectl: Tool, *components: str, engine: str = "embedded") -> dict:
    """The objects, as an overlay has them that wants these components."""
    if not components:
        return of.read(kubectl("kustomize", tree / MANIFESTS / engine))
    overlay = tree / MANIFESTS / f"overlay-{engine}"
    overlay.mkdir()
    wanted = "".join(f"  - ../components/{name}\n" for name in components)
    (overlay / "kustomization.yaml").write_text(f"resources:\n  - ../{engine}\ncomponents:\n{wanted}")
    return of.read(kubectl("kustomize", overlay))


def check(objects: dict, overtake: Tool, dir: Path) -> None:
    """Everything that must hold of them."""
    of.check(objects)
    file = dir / "overtake.toml"
    file.write_text(of.config_text(objects))
    overtake("config", "check", "--no-files", "--config", file)
    listening(objects)


def listening(objects: dict) -> None:
    """The container's ports are those on which the broker listens."""
    ports = {port["name"]: port["containerPort"] for port in of.container(of.workload(objects))["ports"]}
    config = of.config(objects)
    listen = {name: config[name]["listen"] for name in ("amqp", "http")}
    listen |= {f"{name}s": config[name]["tls_listen"] for name in ("amqp", "http") if "tls_listen" in config[name]}
    assert listen == {name: f"0.0.0.0:{port}" for name, port in ports.items()}


@pytest.mark.parametrize("engine", ["embedded", "cluster"])
def test_the_manifests_are_right(tree, kubectl, overtake, tmp_path, engine):
    check(plain(tree, kubectl, engine=engine), overtake, tmp_path)


@pytest.mark.parametrize(("engine", "components"), [("embedded", COMPONENTS), ("cluster", ON_CLUSTER)])
def test_with_all_components_they_are_right(broken, kubectl, overtake, tmp_path, engine, components):
    check(plain(broken("Cargo.toml", None, ""), kubectl, *components, engine=engine), overtake, tmp_path)


def test_each_file_is_listed(tree, kubectl):
    for folder in ("embedded", "cluster", *(f"components/{name}" for name in ON_CLUSTER)):
        files = {file.name for file in (tree / MANIFESTS / folder).glob("*.yaml")} - {"kustomization.yaml"}
        listed = (tree / MANIFESTS / folder / "kustomization.yaml").read_text()
        assert not [file for file in files if f"  - {file}\n" not in listed]


@pytest.mark.parametrize("engine", ["embedded", "cluster"])
def test_the_image_is_the_one_that_is_built(tree, kubectl, engine):
    version = tomllib.loads((tree / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    assert of.container(of.workload(plain(tree, kubectl, engine=engine)))["image"] == f"overtake:{version}"


def test_a_pod_lives_and_ends_as_it_says(tree, kubectl, overtake, tmp_path):
    life.live(plain(tree, kubectl), overtake, tmp_path)


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("embedded/kustomization.yaml", "statefulset.yaml", "stateful.yaml"),
        ("embedded/configmap.yaml", "listen =", "listens ="),
        ("embedded/configmap.yaml", "0.0.0.0:5672", "0.0.0.0:5673"),
        ("embedded/configmap.yaml", "= 10000", "= 60000"),
        ("embedded/services.yaml", "targetPort: http", "targetPort: web"),
        ("embedded/services.yaml", "publishNotReadyAddresses", "publishUnready"),
        ("embedded/services.yaml", "name: overtake-headless", "name: overtake-lonely"),
        ("embedded/statefulset.yaml", "replicas: 1", "replicas: one"),
        ("embedded/statefulset.yaml", "runAsNonRoot: true", "runAsNonRoot: false"),
        ("embedded/statefulset.yaml", "drop: [ALL]", "add: [NET_ADMIN]"),
        ("embedded/statefulset.yaml", "mountPath: /etc/overtake", "mountpath: /etc/overtake"),
        ("embedded/statefulset.yaml", "GracePeriodSeconds: 90", "GracePeriodSeconds: 60"),
        ("embedded/disruption.yaml", "  maxUnavailable", "  maxUnavailble"),
        ("components/network-policy/networkpolicy.yaml", "port: amqp", "port: amq"),
        ("components/network-policy/networkpolicy.yaml", "[Ingress]", "Ingress"),
        ("components/service-monitor/servicemonitor.yaml", "port: http", "port: web"),
        ("components/service-monitor/servicemonitor.yaml", "credentials:", "credential:"),
        ("components/service-monitor/servicemonitor.yaml", "      app.kubernetes.io/component: broker\n", ""),
    ],
)
def test_what_is_broken_is_found(broken, kubectl, overtake, tmp_path, file, old, new):
    tree = broken(f"{MANIFESTS}/{file}", old, new)
    with pytest.raises((Refused, AssertionError)):
        check(plain(tree, kubectl, *COMPONENTS), overtake, tmp_path)


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("cluster/kustomization.yaml", "deployment.yaml", "deploy.yaml"),
        ("cluster/configmap.yaml", 'kind = "cluster"', 'kind = "embedded"'),
        ("cluster/configmap.yaml", "nodes =", "node ="),
        ("cluster/configmap.yaml", "0.0.0.0:5672", "0.0.0.0:5673"),
        ("cluster/services.yaml", "targetPort: http", "targetPort: web"),
        ("cluster/deployment.yaml", "type: RollingUpdate", "typ: RollingUpdate"),
        ("cluster/deployment.yaml", "maxUnavailable: 0", "maxUnavailble: 0"),
        ("cluster/deployment.yaml", "runAsNonRoot: true", "runAsNonRoot: false"),
        ("cluster/deployment.yaml", "- name: engine\n", "- name: engin\n"),
        ("cluster/deployment.yaml", "GracePeriodSeconds: 90", "GracePeriodSeconds: 60"),
        ("cluster/disruption.yaml", "  maxUnavailable", "  maxUnavailble"),
        ("components/autoscaling/autoscaling.yaml", "kind: Deployment", "kind: StatefulSet"),
        ("components/autoscaling/autoscaling.yaml", "minReplicas: 2", "minReplicas: 11"),
        ("components/autoscaling/kustomization.yaml", "/spec/replicas", "/spec/paused"),
    ],
)
def test_what_is_broken_on_a_cluster_is_found(broken, kubectl, overtake, tmp_path, file, old, new):
    tree = broken(f"{MANIFESTS}/{file}", old, new)
    with pytest.raises((Refused, AssertionError)):
        check(plain(tree, kubectl, *ON_CLUSTER, engine="cluster"), overtake, tmp_path)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("path: /readyz", "path: /ready"),
        ("[overtake, drain,", "[overtake, drian,"),
        ("args: [serve]", "args: [server]"),
        ("path: /livez", "path: /readyz"),
    ],
)
def test_a_life_that_is_broken_is_found(broken, kubectl, overtake, tmp_path, old, new):
    tree = broken(f"{MANIFESTS}/embedded/statefulset.yaml", old, new)
    if new == "path: /readyz":
        text = (tree / MANIFESTS / "embedded/statefulset.yaml").read_text()
        (tree / MANIFESTS / "embedded/statefulset.yaml").write_text(text.replace(old, new))
    with pytest.raises((Refused, AssertionError)):
        life.live(plain(tree, kubectl), overtake, tmp_path)
