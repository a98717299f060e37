"""A pod's life without Kubernetes: a broker on loopback is started, probed, drained and stopped as the manifest says."""

import json
import subprocess
import urllib.error
import urllib.request
from pathlib import Path

import objects as of
from tools import Tool


def live(objects: dict, overtake: Tool, dir: Path) -> None:
    """Lives through it."""
    container = of.container(of.workload(objects))
    (dir / "overtake.toml").write_text(of.config_text(objects))
    (dir / "password").write_text("correct horse\n")
    environment = {entry["name"]: entry["value"] for entry in container["env"]}
    # The broker may not be reached from elsewhere here, and has other directories.
    here = {
        "OVERTAKE__HTTP__LISTEN": "127.0.0.1:0",
        "OVERTAKE__AMQP__LISTEN": "127.0.0.1:0",
        "OVERTAKE__STORE__DATA_DIR": str(dir / "data"),
        "OVERTAKE__STORE__SEGMENT_BYTES": "1MiB",
        "OVERTAKE__ACCESS__ADMIN_PASSWORD_FILE": str(dir / "password"),
        "OVERTAKE__SERVER__PORTS_FILE": str(dir / "ports.json"),
        "OVERTAKE_PASSWORD_FILE": str(dir / "password"),
    }
    assert environment["OVERTAKE_PASSWORD_FILE"] == of.config(objects)["access"]["admin_password_file"]
    overtake = Tool(overtake.path, **environment | here)
    words = [overtake.path, *container["args"], "--config", str(dir / "overtake.toml")]
    with subprocess.Popen(
        words, env=overtake.environment, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    ) as broker:
        try:
            url = ready(broker, dir)
            said = Tool(overtake.path, **environment | here | {"OVERTAKE_URL": url})
            for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
                assert status(url + container[probe]["httpGet"]["path"]) == 200, probe
            name, *rest = container["lifecycle"]["preStop"]["exec"]["command"]
            assert name == "overtake"
            said(*rest)
            assert status(url + container["livenessProbe"]["httpGet"]["path"]) == 200, (
                "a broker that drains is restarted"
            )
            assert status(url + container["readinessProbe"]["httpGet"]["path"]) == 503, (
                "a broker that drains is sent requests"
            )
            broker.terminate()
            broker.communicate()
            assert broker.returncode == 0
        finally:
            broker.kill()


def ready(broker: subprocess.Popen, dir: Path) -> str:
    """Where it serves HTTP, once it does. It says so in its log, a line of JSON each."""
    heard = []
    for line in broker.stderr:
        heard.append(line)
        if (dir / "ports.json").exists():
            return json.loads((dir / "ports.json").read_text())["http"]["url"]
    raise AssertionError("the broker ended:\n" + "".join(heard))


def status(url: str) -> int:
    """What it answers."""
    try:
        with urllib.request.urlopen(url) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code
