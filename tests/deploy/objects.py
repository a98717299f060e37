"""Kubernetes' objects: read, and held against the schemas of those who read them, and against each other."""

import tomllib

import kubernetes_validate
import yaml
from cloudcoil.models.prometheus_operator.v1 import ServiceMonitor

# The oldest that the chart takes, and the newest whose schemas are known.
VERSIONS = ("1.25", "1.37")

# What a pod of the profile `restricted` may have besides projected volumes.
VOLUMES = {"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret"}


def read(text: str) -> dict[tuple[str, str], dict]:
    """The objects of some YAML, by kind and name."""
    found = {}
    for item in filter(None, yaml.safe_load_all(text)):
        key = (item["kind"], item["metadata"]["name"])
        assert key not in found, f"{key} is there twice"
        found[key] = item
    return found


def check(objects: dict) -> None:
    """What must hold of any set of objects, rendered or plain."""
    for (kind, name), item in objects.items():
        if kind == "ServiceMonitor":
            understood(item)
            continue
        for version in VERSIONS:
            try:
                kubernetes_validate.validate(item, version, strict=True)
            except kubernetes_validate.ValidationError as error:
                raise AssertionError(f"{kind} {name}, Kubernetes {version}: {error.message}") from error
    for pod in pods(objects):
        restricted(pod)
        mounted(pod, objects)
    selected(objects)
    graceful(objects)


def understood(item: dict) -> None:
    """The operator's types leave out what they do not know."""
    model = ServiceMonitor.model_validate(item)
    said = model.model_dump(by_alias=True, exclude_none=True, exclude_unset=True, mode="json")
    assert said["spec"] == item["spec"], f"the Prometheus operator reads {said['spec']}"


def pods(objects: dict) -> list[dict]:
    """The specifications of all pods."""
    found = [item["spec"] for (kind, _), item in objects.items() if kind == "Pod"]
    return found + [item["spec"]["template"]["spec"] for item in objects.values() if "template" in item.get("spec", {})]


def restricted(pod: dict) -> None:
    """The profile `restricted` of Kubernetes' pod security standards."""
    whole = pod["securityContext"]
    assert whole["runAsNonRoot"] is True and whole["runAsUser"] > 0
    assert whole["seccompProfile"]["type"] in ("RuntimeDefault", "Localhost")
    for name in ("hostNetwork", "hostPID", "hostIPC"):
        assert not pod.get(name), f"{name} is not for a restricted pod"
    for volume in pod.get("volumes", []):
        assert set(volume) - {"name"} <= VOLUMES, f"{volume} is not for a restricted pod"
    for container in pod["containers"]:
        its = container["securityContext"]
        assert its["allowPrivilegeEscalation"] is False and not its.get("privileged")
        assert its["capabilities"].get("drop") == ["ALL"] and not its["capabilities"].get("add")
        assert its["readOnlyRootFilesystem"] is True
        assert not any("hostPort" in port for port in container.get("ports", []))


def mounted(pod: dict, objects: dict) -> None:
    """Every mount has its volume, every volume its mount, every ConfigMap is there."""
    claims = [
        claim["metadata"]["name"]
        for item in objects.values()
        if item.get("spec", {}).get("template", {}).get("spec") is pod
        for claim in item["spec"].get("volumeClaimTemplates", [])
    ]
    volumes = [volume["name"] for volume in pod.get("volumes", [])] + claims
    mounts = [mount["name"] for container in pod["containers"] for mount in container.get("volumeMounts", [])]
    assert sorted(volumes) == sorted(mounts)
    for volume in pod.get("volumes", []):
        if "configMap" in volume:
            assert ("ConfigMap", volume["configMap"]["name"]) in objects


def selected(objects: dict) -> None:
    """Whatever selects, selects the broker; and where it speaks of ports, those of the broker, or of its services."""
    broker = workload(objects)
    labels = broker["spec"]["template"]["metadata"]["labels"]
    ports = {port["name"] for port in container(broker)["ports"]}
    if broker["kind"] == "StatefulSet":
        assert ("Service", broker["spec"]["serviceName"]) in objects
    scaled(objects)
    for (kind, name), item in objects.items():
        spec = item.get("spec", {})
        match kind:
            case "Service":
                wanted, its = spec["selector"], {port["targetPort"] for port in spec["ports"]}
                assert its == ports, f"Service {name} leads to {its}"
            case "StatefulSet" | "Deployment" | "PodDisruptionBudget":
                wanted = spec["selector"]["matchLabels"]
            case "NetworkPolicy":
                wanted = spec["podSelector"]["matchLabels"]
                allowed = {port["port"] for rule in spec["ingress"] for port in rule["ports"]}
                assert allowed == ports, f"NetworkPolicy {name} lets in {allowed}"
            case "ServiceMonitor":
                services = [each for (other, _), each in objects.items() if other == "Service"]
                scraped = [
                    each
                    for each in services
                    if spec["selector"]["matchLabels"].items() <= each["metadata"]["labels"].items()
                ]
                assert len(scraped) == 1, f"ServiceMonitor {name} finds {len(scraped)} services"
                assert {end["port"] for end in spec["endpoints"]} <= {
                    port["name"] for port in scraped[0]["spec"]["ports"]
                }
                continue
            case _:
                continue
        assert wanted.items() <= labels.items(), f"{kind} {name} does not select the broker"


def scaled(objects: dict) -> None:
    """Who counts the brokers counts those there are, and alone."""
    scalers = [item["spec"] for (kind, _), item in objects.items() if kind == "HorizontalPodAutoscaler"]
    broker = workload(objects)
    for scaler in scalers:
        target = scaler["scaleTargetRef"]
        assert (target["kind"], target["name"]) == (broker["kind"], broker["metadata"]["name"])
        assert 1 <= scaler["minReplicas"] <= scaler["maxReplicas"]
    if broker["kind"] == "StatefulSet":
        assert broker["spec"]["replicas"] == 1 and not scalers
    else:
        assert ("replicas" in broker["spec"]) != bool(scalers), "two count the brokers"


def graceful(objects: dict) -> None:
    """The pod may live for as long as it drains and the broker stops, and for half a minute more."""
    pod = workload(objects)["spec"]["template"]["spec"]
    stop = container(workload(objects))["lifecycle"]["preStop"]["exec"]["command"]
    within = int(stop[stop.index("--within") + 1].removesuffix("s"))
    timeout = config(objects)["server"]["drain_timeout_ms"] / 1000
    assert pod["terminationGracePeriodSeconds"] >= within + timeout + 30


def workload(objects: dict) -> dict:
    """What runs brokers, of which there is one: a StatefulSet on the embedded store, a Deployment on a cluster."""
    (found,) = [item for (kind, _), item in objects.items() if kind in ("StatefulSet", "Deployment")]
    kind = config(objects)["engine"]["kind"]
    assert found["kind"] == {"embedded": "StatefulSet", "cluster": "Deployment"}[kind]
    return found


def container(workload: dict) -> dict:
    """The broker's."""
    (found,) = workload["spec"]["template"]["spec"]["containers"]
    return found


def config(objects: dict) -> dict:
    """overtake.toml of the one ConfigMap, read."""
    return tomllib.loads(config_text(objects))


def config_text(objects: dict) -> str:
    """overtake.toml of the one ConfigMap, as it stands there."""
    (found,) = [item for (kind, _), item in objects.items() if kind == "ConfigMap"]
    return found["data"]["overtake.toml"]
