"""The chart: linted and rendered by Helm, held against the same schemas, and against the plain manifests."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

import objects as of
from test_manifests import COMPONENTS, ON_CLUSTER, check, plain
from tools import Refused, Tool

CHART = "deploy/helm/overtake"

# Of Helm's making, and of no meaning to the broker.
HELMS = ("app.kubernetes.io/version", "app.kubernetes.io/managed-by", "helm.sh/chart", "checksum/config")

# With these it is what the plain manifests are with all components.
LIKE_PLAIN = {
    "admin": {"existingSecret": "overtake-admin"},
    "networkPolicy": {"enabled": True},
    "serviceMonitor": {"enabled": True},
}

# With these, what those are for a cluster.
LIKE_PLAIN_ON_CLUSTER = LIKE_PLAIN | {
    "engine": {"kind": "cluster", "nodes": ["redis://valkey:6379"], "existingSecret": "overtake-engine"},
    "autoscaling": {"enabled": True},
}

# Everything that can be said, said.
ALL = LIKE_PLAIN | {
    "nameOverride": "broker",
    "image": {"repository": "registry.example/overtake", "digest": "sha256:" + "0" * 64, "pullPolicy": "Always"},
    "imagePullSecrets": [{"name": "registry"}],
    "admin": {"user": "ann", "passwordKey": "ann.password"},
    "config": {
        "server": {"drain_timeout_ms": 2500, "priority_lanes": {"enabled": True, "threshold": -5}},
        "store": {"memory_bytes": "256MiB"},
        "telemetry": {"otlp_endpoint": "http://collector:4318", "traces_sample": 0.25},
        "queues": {
            "jobs": {"scheme": "named", "max_active": 10, "lanes": {"background": {"max_active": 6}}},
            "two lanes": {
                "scheme": "signed",
                "order": {"lanes": [{"name": "primary", "from": 0}, {"name": "backfill"}]},
            },
        },
        "log": None,
    },
    "drain": {"withinSeconds": 300},
    "startup": {"maxSeconds": 61},
    "persistence": {
        "size": "1.5Ti",
        "storageClassName": "fast",
        "accessMode": "ReadWriteOncePod",
        "annotations": {"a": "b"},
    },
    "service": {"type": "LoadBalancer", "amqpPort": 1, "httpPort": 80, "annotations": {"a": "b"}},
    "tls": {"existingSecret": "certificate"},
    "resources": {"limits": {"memory": "2Gi", "cpu": 2}},
    "podDisruptionBudget": {"maxUnavailable": 0},
    "serviceAccount": {"name": "broker"},
    "podAnnotations": {"a": "b"},
    "podLabels": {"team": "mail"},
    "nodeSelector": {"disk": "fast"},
    "tolerations": [{"operator": "Exists"}],
    "affinity": {"nodeAffinity": {}},
    "priorityClassName": "urgent",
    "extraEnv": [{"name": "TOKEN", "value": "x"}],
    "extraVolumes": [{"name": "routes", "configMap": {"name": "overtake-broker"}}],
    "extraVolumeMounts": [{"name": "routes", "mountPath": "/etc/routes"}],
}


# The same, and of a cluster.
ALL_ON_CLUSTER = {key: value for key, value in ALL.items() if key != "persistence"} | {
    "engine": {
        "kind": "cluster",
        "nodes": ["rediss://a:6379", "rediss://b:6379"],
        "username": "broker",
        "existingSecret": "valkey",
        "passwordKey": "broker.password",
        "caSecret": "authorities",
        "replicasAcked": 2,
        "fsyncAcked": True,
    },
    "config": ALL["config"] | {"engine": {"sweep_ms": 500}},
    "replicas": 5,
}


def render(tree: Path, helm: Tool, values: dict, *words: str) -> dict:
    """What Helm makes of these values, for a release called overtake."""
    given = yaml.safe_dump(values)
    return of.read(helm("template", "overtake", tree / CHART, "--values", "-", *words, input=given))


def alike(rendered: dict, plain: dict) -> None:
    """Both are the same objects."""
    rendered = {
        key: item for key, item in rendered.items() if "helm.sh/hook" not in item["metadata"].get("annotations", {})
    }
    assert set(rendered) == set(plain)
    for key, item in plain.items():
        assert bare(rendered[key]) == bare(item), key


def bare(thing):
    """Without what is Helm's, and with overtake.toml read."""
    if isinstance(thing, list):
        return [bare(item) for item in thing]
    if not isinstance(thing, dict):
        return thing
    its = {
        key: tomllib.loads(value) if key == "overtake.toml" else bare(value)
        for key, value in thing.items()
        if key not in HELMS
    }
    return {key: value for key, value in its.items() if not (key == "annotations" and value == {})}


def whole(tree: Path, helm: Tool, kubectl: Tool, overtake: Tool, dir: Path) -> None:
    """Everything that must hold of the chart."""
    helm("lint", "--strict", tree / CHART)
    alike(render(tree, helm, LIKE_PLAIN), plain(tree, kubectl, *COMPONENTS))
    alike(render(tree, helm, LIKE_PLAIN_ON_CLUSTER), plain(tree, kubectl, *ON_CLUSTER, engine="cluster"))
    for values in ({}, ALL, ALL_ON_CLUSTER, LIKE_PLAIN_ON_CLUSTER):
        check(render(tree, helm, values), overtake, dir)
    versions(tree)
    values_are_read(tree / CHART)


def versions(tree: Path) -> None:
    version = tomllib.loads((tree / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    chart = yaml.safe_load((tree / CHART / "Chart.yaml").read_text())
    assert (chart["version"], chart["appVersion"]) == (version, version)


def values_are_read(chart: Path) -> None:
    """Each value of values.yaml is read by a template and has a comment; each that is read is there."""
    templates = "".join(file.read_text() for file in chart.rglob("templates/**/*") if file.is_file())
    # What is in config is the broker's.
    names = [path.split(".") for path in re.findall(r"\.Values\.([A-Za-z.]+)", templates)]
    read = {("config",) if path[0] == "config" else tuple(path) for path in names}
    there = dict(paths((chart / "values.yaml").read_text()))
    sections = {path[:-1] for path in there}
    missing = [path for path in read if path not in there]
    assert not missing, f"not in values.yaml: {missing}"
    for path, has_comment in there.items():
        above = [path[:length] for length in range(1, len(path) + 1)]
        assert any(one in read for one in above) or path in sections, f"no template reads {'.'.join(path)}"
        if path in read:
            assert has_comment or (len(path) > 2 and there[path[:-1]]), f"{'.'.join(path)} has no comment"


def paths(text: str):
    """Every path of keys, and whether a comment stands above it."""
    path, indents, commented = [], [], False
    for line in text.splitlines():
        key = re.match(r"( *)([A-Za-z_]+):", line)
        if key:
            while indents and indents[-1] >= len(key[1]):
                indents.pop()
                path.pop()
            indents.append(len(key[1]))
            path.append(key[2])
            yield tuple(path), commented
        commented = line.lstrip().startswith("#")


def test_the_chart_is_right(broken, helm, kubectl, overtake, tmp_path):
    whole(broken("Cargo.toml", None, ""), helm, kubectl, overtake, tmp_path)


def test_what_is_said_arrives(tree, helm):
    objects = render(tree, helm, ALL)
    pod = of.workload(objects)["spec"]["template"]["spec"]
    assert pod["terminationGracePeriodSeconds"] == 300 + 3 + 35
    assert of.container(of.workload(objects))["startupProbe"]["failureThreshold"] == 13
    config = of.config(objects)
    assert config["queues"] == ALL["config"]["queues"]
    assert config["server"] == ALL["config"]["server"]
    assert config["telemetry"] == ALL["config"]["telemetry"]
    assert config["access"]["admin_user"] == "ann"
    assert "log" not in config
    assert config["tls"]["cert_file"] == "/run/secrets/overtake-tls/tls.crt"


def test_what_is_said_of_a_cluster_arrives(tree, helm):
    objects = render(tree, helm, ALL_ON_CLUSTER)
    assert of.workload(objects)["spec"]["replicas"] == 5
    assert of.config(objects)["engine"] == {
        "kind": "cluster",
        "nodes": ["rediss://a:6379", "rediss://b:6379"],
        "username": "broker",
        "password": {"file": "/run/secrets/overtake-engine/password"},
        "replicas_acked": 2,
        "fsync_acked": True,
        "sweep_ms": 500,
        "tls": {"ca_file": "/run/secrets/overtake-engine-tls/ca.crt"},
    }
    assert not of.workload(objects)["spec"].get("volumeClaimTemplates")
    assert ("Service", "overtake-broker-headless") not in objects


def test_a_password_that_nobody_chose_is_another_each_time(tree, helm):
    made = [render(tree, helm, {})[("Secret", "overtake-admin")]["data"]["password"] for _ in range(2)]
    assert made[0] != made[1] and all(len(password) > 40 for password in made)


def test_other_settings_restart_the_pod_and_nothing_else_does(tree, helm):
    def checksum(values):
        return of.workload(render(tree, helm, values))["spec"]["template"]["metadata"]["annotations"]["checksum/config"]

    assert checksum({}) == checksum({"service": {"amqpPort": 1}})
    assert checksum({}) != checksum({"config": {"log": {"level": "debug"}}})


def test_the_notes_name_what_is_there(tree, helm):
    words = ["--namespace", "mail", "--set", "tls.existingSecret=c,serviceMonitor.enabled=true"]
    said = helm("install", "fast", tree / CHART, "--dry-run=client", *words)
    for text in (
        "amqp",
        "fast-overtake.mail:5672",
        "https://fast-overtake.mail:15671",
        "secret fast-overtake-admin",
        "exec fast-overtake-0",
    ):
        assert text in said


def test_the_notes_of_a_cluster_name_the_deployment(tree, helm):
    words = ["--set", "engine.kind=cluster,engine.nodes={a:1,b:2}"]
    said = helm("install", "fast", tree / CHART, "--dry-run=client", *words)
    for text in ("cluster at a:1, b:2.", "exec deployment/fast-overtake -- overtake doctor", "overtake queue list"):
        assert text in said
    assert "fast-overtake-0" not in said


@pytest.mark.parametrize(
    "values",
    [
        {"typo": 1},
        {"engine": {"kind": "cluster"}},
        {"engine": {"nodes": ["valkey:6379"]}},
        {"config": {"engine": {"kind": "cluster"}}},
        {"engine": {"kind": "cluster", "nodes": ["a:1"]}, "config": {"engine": {"nodes": ["b:1"]}}},
        {"autoscaling": {"enabled": True, "minReplicas": 0}},
        {"image": {"repositry": "x"}},
        {"image": {"pullPolicy": "Sometimes"}},
        {"admin": {"password": "secret"}},
        {"config": {"htpp": {}}},
        {"config": {"http": {"listen": "127.0.0.1:80"}}},
        {"config": {"access": {"admin_user": "root"}}},
        {"config": {"server": {"drain_timeout_ms": "10s"}}},
        {"persistence": {"size": "much"}},
        {"service": {"amqpPort": 0}},
        {"podDisruptionBudget": {"maxUnavailable": 2}},
        {"serviceMonitor": {"tokenSecret": {"name": "Not A Name"}}},
    ],
)
def test_values_that_cannot_be_are_refused(tree, helm, values):
    with pytest.raises(Refused, match="schema|is the chart's to set"):
        render(tree, helm, values)


def test_a_setting_that_the_broker_does_not_know_is_found(tree, helm, overtake, tmp_path):
    with pytest.raises(Refused, match="drain_timeout"):
        check(render(tree, helm, {"config": {"server": {"drain_timeout": 5}}}), overtake, tmp_path)


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("Chart.yaml", "version: 0.1.0", "version: 0.0.9"),
        ("values.yaml", "  # Of the claim.\n", ""),
        ("values.yaml", None, "\n# Read by nobody.\nspare: 1\n"),
        ("values.schema.json", '"nameOverride"', '"nameoverride"'),
        ("templates/_helpers.tpl", "$timeout 35", "$timeout 5"),
        ("templates/_config.tpl", "data_dir: /var", "data_directory: /var"),
        ("templates/_config.tpl", "replicas_acked:", "replica_acked:"),
        ("templates/_pod.tpl", "name: data", "name: dta"),
        ("templates/_pod.tpl", "- name: engine-tls\n        mountPath", "- name: engin-tls\n        mountPath"),
        ("templates/_pod.tpl", "{{- end }}", ""),
        ("templates/configmap.yaml", "overtake.toml", "overtke.toml"),
        ("templates/autoscaling.yaml", "kind: Deployment", "kind: StatefulSet"),
        ("templates/deployment.yaml", "maxSurge: 1", "maxSurge: one"),
        ("templates/disruption.yaml", ".maxUnavailable", ".maxUnavail"),
        ("templates/networkpolicy.yaml", "port: amqps", "port: amqp"),
        ("templates/secret.yaml", "type: Opaque", "typ: Opaque"),
        ("templates/services.yaml", "clusterIP: None", "clusterIP: none"),
        ("templates/servicemonitor.yaml", "component: broker", "component: brokers"),
        ("templates/statefulset.yaml", "-headless", "-lonely"),
        ("templates/tests/login.yaml", "name: admin", "name: admn"),
        ("templates/NOTES.txt", "-}}", "}"),
    ],
)
def test_what_is_broken_is_found(broken, helm, kubectl, overtake, tmp_path, file, old, new):
    tree = broken(f"{CHART}/{file}", old, new)
    with pytest.raises((Refused, AssertionError)):
        whole(tree, helm, kubectl, overtake, tmp_path)
