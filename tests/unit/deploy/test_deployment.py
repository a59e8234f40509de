"""Everything in deploy/ against what it configures: without these, a renamed setting would be found out in production."""

from __future__ import annotations

import configparser
import json
import re
import shutil
import subprocess
import sys
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from clew.daemon.configuration import Configured, examine

DEPLOY = Path(__file__).parents[3] / "deploy"
CHART = DEPLOY / "helm" / "clew"
#: Ray is turned on and everything optional with it: what is off by default breaks unseen.
EVERYTHING: dict[str, Any] = {
    "ray": {
        "enabled": True,
        "extraction": {"maximum": 4, "cpus": 2},
        "embedding": {"maximum": 2},
        "query": {"enabled": True, "maximum": 3},
    },
    "serviceMonitor": {"enabled": True, "keySecret": {"name": "clew-metrics"}},
    "alerts": {"enabled": True},
    "environmentSecrets": ["clew-storage"],
    "environment": {"STORE_KEY": "id"},
    "serviceAccount": {"annotations": {"eks.amazonaws.com/role-arn": "arn:aws:iam::1:role/clew"}},
    "networkPolicy": {"from": [{"matchLabels": {"app": "web"}}]},
    "imagePullSecrets": [{"name": "registry"}],
    "nodeSelector": {"disk": "ssd"},
    "tolerations": [{"key": "x", "operator": "Exists"}],
    "affinity": {"nodeAffinity": {}},
}


def valid(path: Path) -> Configured:
    configured, faults = examine(path)
    assert configured is not None, [fault.sentence() for fault in faults]
    return configured


# --- the image and the compose file ---------------------------------------------------------------


def test_the_image_passes_the_linter_of_its_field() -> None:
    found = shutil.which("hadolint", path=str(Path(sys.executable).parent)) or shutil.which("hadolint")
    if found is None:
        pytest.skip("hadolint is not installed (the group `deploy` of pyproject.toml)")
    done = subprocess.run([found, str(DEPLOY / "Dockerfile")], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "")


def test_the_image_runs_without_rights() -> None:
    text = (DEPLOY / "Dockerfile").read_text()
    last = text[text.rindex("\nFROM ") :]
    assert re.search(r"^USER 10001:10001$", last, re.MULTILINE)
    assert "HEALTHCHECK" in last
    command = json.loads(re.findall(r"^CMD (\[.*\])$", last, re.MULTILINE)[-1])
    assert command[0] == "serve"
    assert options_of("serve") >= {one for one in command if one.startswith("--")}
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", text, re.MULTILINE)
    for name in " ".join(copied).split():
        assert (DEPLOY.parent / name).exists(), name
    extras = re.search(r"^ARG EXTRAS=(\S+)$", text, re.MULTILINE)
    assert extras is not None
    assert set(extras[1].split(",")) <= set(project()["project"]["optional-dependencies"])


def project() -> dict[str, Any]:
    import tomllib

    return tomllib.loads((DEPLOY.parent / "pyproject.toml").read_text())


def options_of(command: str) -> set[str]:
    """The options that a command has, as its help names them."""
    from tests.acceptance.commands import clew

    return set(re.findall(r"--[a-z-]+", clew(command, "--help").out))


def test_constraints_of_the_image_are_versions_alone() -> None:
    """The `sed` of the Dockerfile on the very lock: pip refuses hashes for some and none for others."""
    expression = re.search(r"sed -E '([^']+)' requirements\.lock", (DEPLOY / "Dockerfile").read_text())
    assert expression is not None
    lock = DEPLOY.parent / "requirements.lock"
    done = subprocess.run(["sed", "-E", expression[1], str(lock)], capture_output=True, text=True, check=True)
    lines = [line for line in done.stdout.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    assert len(lines) == len(re.findall(r"^[a-zA-Z0-9]", lock.read_text(), re.MULTILINE))
    assert all(re.fullmatch(r"[A-Za-z0-9._\-\[\]]+==[^\s\\]+( *;.*)?", line) and "--hash" not in line for line in lines)


def test_compose_starts_what_it_configures() -> None:
    folder = DEPLOY / "compose"
    compose = yaml.safe_load((folder / "compose.yaml").read_text())
    configured = valid(folder / "clew.yaml")
    services = compose["services"]
    clew = services["clew"]
    assert clew["read_only"] is True
    assert clew["cap_drop"] == ["ALL"]
    # Whoever is trusted without a key must come from this machine.
    assert configured.config.http.trust_peer
    assert clew["ports"] == [f"127.0.0.1:{configured.config.server.port}:{configured.config.server.port}"]
    assert float(clew["stop_grace_period"].rstrip("s")) > configured.config.limits.grace + 20
    for name, service in services.items():
        for other in service.get("depends_on", {}):
            assert other in services, name
        for mount in service.get("volumes", []):
            source = mount.split(":")[0]
            assert (folder / source).exists() if source.startswith(".") else source in compose["volumes"], mount
    identity = json.loads((folder / "s3.json").read_text())["identities"][0]["credentials"][0]
    environment = clew["environment"]
    assert identity == {
        "accessKey": environment["AWS_ACCESS_KEY_ID"],
        "secretKey": environment["AWS_SECRET_ACCESS_KEY"],
    }
    seed = (folder / "seed.py").read_text()
    for root in (configured.root("handbook"), configured.index("handbook") or ""):
        assert f'"{root.removeprefix("s3://").split("/")[0]}"' in seed
    compile(seed, "seed.py", "exec")


def test_compose_passes_the_schema_of_its_field(tmp_path: Path) -> None:
    found = shutil.which("docker")
    if found is None or subprocess.run([found, "compose", "version"], capture_output=True).returncode:
        pytest.skip("docker compose is not installed")
    file = str(DEPLOY / "compose" / "compose.yaml")
    done = subprocess.run(
        [found, "compose", "-f", file, "config", "--quiet"], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr


# --- the unit and the script ----------------------------------------------------------------------


def unit() -> configparser.ConfigParser:
    parser = configparser.ConfigParser(strict=False, interpolation=None, allow_no_value=True, delimiters=("=",))
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read(DEPLOY / "systemd" / "clew.service")
    return parser


def test_the_unit_speaks_the_protocol_that_the_service_speaks() -> None:
    service = unit()["Service"]
    assert service["Type"] == "notify"
    assert service["RestartPreventExitStatus"] == "2"  # errors.ConfigurationError
    assert int(service["TimeoutStopSec"]) > 10 + 20  # limits.grace and WINDING_UP
    assert "-HUP" in service["ExecReload"]
    for line in (service["ExecStart"], service["ExecStartPre"]):
        command = line.split()[1:]
        assert options_of(command[0]) >= {one for one in command if one.startswith("--")}


def test_the_unit_passes_the_check_of_systemd(tmp_path: Path) -> None:
    found = shutil.which("systemd-analyze")
    if found is None:
        pytest.skip("systemd-analyze is not installed")
    text = (DEPLOY / "systemd" / "clew.service").read_text()
    # It wants the commands to be there.
    written = tmp_path / "clew.service"
    written.write_text(text.replace("/opt/clew/bin/clew", sys.executable).replace("User=clew\nGroup=clew\n", ""))
    done = subprocess.run([found, "verify", str(written)], capture_output=True, text=True, timeout=60)
    said = [line for line in done.stderr.splitlines() if "clew.service" in line]
    assert said == []


def test_the_notification_script_does_what_it_says(tmp_path: Path) -> None:
    """With stand-ins for the AWS command line and clew: which calls are made, and what comes out is configuration."""
    aws, clew = tmp_path / "aws", tmp_path / "clew"
    calls = tmp_path / "calls"
    aws.write_text(
        f'#!/bin/sh\necho "aws $*" >> {calls}\ncase "$2" in create-queue) echo https://queue/1/handbook;; '
        "*) echo arn:aws:sqs:eu-west-1:1:handbook;; esac\n"
    )
    clew.write_text(f'#!/bin/sh\necho "clew $*" >> {calls}\n')
    aws.chmod(0o755)
    clew.chmod(0o755)
    script = DEPLOY / "s3" / "notifications.sh"
    done = subprocess.run(
        ["sh", str(script), "s3://bucket/docs", "handbook"],
        env={"PATH": "/usr/bin:/bin", "AWS": str(aws), "CLEW": str(clew)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    made = calls.read_text().splitlines()
    assert made[-1] == "clew events setup s3://bucket/docs --queue arn:aws:sqs:eu-west-1:1:handbook"
    assert options_of_events_setup() >= {"--queue"}
    (tmp_path / "clew.yaml").write_text(done.stdout)
    entry = valid(tmp_path / "clew.yaml").config.collections["handbook"]
    assert (entry.root, entry.events) == ("s3://bucket/docs", "sqs://handbook")
    refused = subprocess.run(["sh", str(script)], capture_output=True, text=True, timeout=60)
    assert refused.returncode == 2


def options_of_events_setup() -> set[str]:
    from tests.acceptance.commands import clew

    return set(re.findall(r"--[a-z-]+", clew("events", "setup", "--help").out))


# --- the chart ------------------------------------------------------------------------------------


def rendered(values: Mapping[str, Any]) -> dict[tuple[str, str], Any]:
    """All objects of the chart, by kind and name."""
    helm = pytest.importorskip("helm_python", reason="helm-python-sdk is not installed (the group `deploy`)")
    chart = helm.Chart.load(str(CHART))
    try:
        texts = chart.render(dict(values), name="docs", namespace="search")
    finally:
        chart.close()
    found = {}
    for text in texts.values():
        for one in yaml.safe_load_all(text):
            if one:
                found[one["kind"], one["metadata"]["name"]] = one
    return found


def walk(value: Any) -> Iterator[Any]:
    yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from walk(inner)


@pytest.mark.parametrize("values", [{}, EVERYTHING], ids=["defaults", "everything"])
def test_the_chart_renders_objects_that_kubernetes_knows(values: Mapping[str, Any]) -> None:
    check = pytest.importorskip(
        "kubernetes_validate", reason="kubernetes-validate is not installed (the group `deploy`)"
    )
    objects = rendered(values)
    checked = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for (kind, name), one in objects.items():
            if one["apiVersion"].startswith(("monitoring.coreos.com", "ray.io")):
                continue  # kinds of operators: looked at below
            check.validate(one, "1.29", strict=True)
            checked += 1
            assert one["metadata"]["labels"]["app.kubernetes.io/instance"] == "docs", (kind, name)
    assert checked >= 7


@pytest.mark.parametrize("values", [{}, EVERYTHING], ids=["defaults", "everything"])
def test_the_configuration_of_the_chart_is_one_that_serve_accepts(values: Mapping[str, Any], tmp_path: Path) -> None:
    objects = rendered(values)
    path = tmp_path / "clew.yaml"
    path.write_text(objects["ConfigMap", "docs-clew"]["data"]["clew.yaml"])
    config = valid(path).config
    deployment = objects["Deployment", "docs-clew"]["spec"]["template"]["spec"]
    (container,) = deployment["containers"]
    assert container["ports"][0]["containerPort"] == config.server.port
    assert deployment["terminationGracePeriodSeconds"] > config.limits.grace + 20
    assert container["securityContext"]["readOnlyRootFilesystem"]
    for every in (*deployment["containers"], *deployment["initContainers"]):
        assert every["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        assert {mount["name"] for mount in every["volumeMounts"]} <= {one["name"] for one in deployment["volumes"]}
    assert (config.engine == "ray") == bool(values)
    if values:
        assert config.cluster.extraction.maximum == 8
        assert config.cluster.embedding.gpus == 1
        head = objects["RayCluster", "docs-clew-ray"]
        assert config.cluster.address == f"{head['metadata']['name']}-head-svc:6379"


def test_the_chart_selects_its_own_pods() -> None:
    objects = rendered(EVERYTHING)
    labels = objects["Deployment", "docs-clew"]["spec"]["template"]["metadata"]["labels"]
    selectors = [
        objects["Service", "docs-clew"]["spec"]["selector"],
        objects["PodDisruptionBudget", "docs-clew"]["spec"]["selector"]["matchLabels"],
        objects["NetworkPolicy", "docs-clew"]["spec"]["podSelector"]["matchLabels"],
        objects["Deployment", "docs-clew"]["spec"]["selector"]["matchLabels"],
    ]
    for selector in selectors:
        assert selector.items() <= labels.items()
    monitor = objects["ServiceMonitor", "docs-clew"]["spec"]
    assert monitor["selector"]["matchLabels"].items() <= objects["Service", "docs-clew"]["metadata"]["labels"].items()
    assert monitor["endpoints"][0]["authorization"]["credentials"]["name"] == "clew-metrics"
    assert objects["Service", "docs-clew"]["spec"]["ports"][0]["name"] == monitor["endpoints"][0]["port"]


def test_the_ray_cluster_grows_between_its_bounds() -> None:
    spec = rendered(EVERYTHING)["RayCluster", "docs-clew-ray"]["spec"]
    assert spec["enableInTreeAutoscaling"]
    assert spec["headGroupSpec"]["rayStartParams"]["num-cpus"] == "0"
    extraction, embedding = spec["workerGroupSpecs"]
    assert extraction["minReplicas"] <= extraction["replicas"] <= extraction["maxReplicas"] == 4
    assert embedding["rayStartParams"]["num-gpus"] == "1"
    ray = next(one for one in project()["project"]["optional-dependencies"]["cluster"])
    from packaging.requirements import Requirement

    assert Requirement(ray).specifier.contains(spec["rayVersion"])


def test_whoever_drives_the_cluster_is_a_node_of_it() -> None:
    """Ray refuses a driver on a machine without a raylet."""
    objects = rendered(EVERYTHING)
    pod = objects["Deployment", "docs-clew"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    (script,) = container["args"]
    assert container["command"] == ["sh", "-c"]
    assert re.fullmatch(
        r"ray start --address=docs-clew-ray-head-svc:6379 --num-cpus=0 .*&& exec clew serve \S+", script
    )
    assert {"name": "shared", "mountPath": "/dev/shm"} in container["volumeMounts"]
    assert container["image"].startswith("clew-ray:")
    (plain,) = rendered({})["Deployment", "docs-clew"]["spec"]["template"]["spec"]["containers"]
    assert plain["args"] == ["serve", "/etc/clew/clew.yaml"]
    assert plain["image"].startswith("clew:")
    policy = objects["NetworkPolicy", "docs-clew"]["spec"]
    labels = objects["RayCluster", "docs-clew-ray"]["spec"]["headGroupSpec"]["template"]["metadata"]["labels"]
    for rules, direction in ((policy["ingress"], "from"), (policy["egress"], "to")):
        peers = [peer["podSelector"].get("matchLabels", {}) for rule in rules for peer in rule.get(direction, [])]
        assert any(peer and peer.items() <= labels.items() for peer in peers), direction


def test_the_ray_service_runs_the_application_that_there_is(tmp_path: Path) -> None:
    import importlib

    objects = rendered(EVERYTHING)
    spec = objects["RayService", "docs-clew-answers"]["spec"]
    serve = yaml.safe_load(spec["serveConfigV2"])
    (application,) = serve["applications"]
    module, _, name = application["import_path"].partition(":")
    assert callable(getattr(importlib.import_module(module), name))
    path = tmp_path / "clew.yaml"
    path.write_text(objects["ConfigMap", "docs-clew"]["data"]["clew.yaml"])
    query = valid(path).config.query
    # The service beside it answers by itself, and deploys no replicas of its own.
    assert query.engine == "local"
    (workers,) = spec["rayClusterConfig"]["workerGroupSpecs"]
    assert (workers["minReplicas"], workers["maxReplicas"]) == (query.minimum, query.maximum) == (1, 3)
    assert int(workers["rayStartParams"]["num-cpus"]) > query.cpus
    for group in (spec["rayClusterConfig"]["headGroupSpec"], workers):
        (container,) = group["template"]["spec"]["containers"]
        mounted = [one["mountPath"] for one in container["volumeMounts"]]
        assert str(Path(application["args"]["config"]).parent) in mounted
        assert container["envFrom"] == [{"secretRef": {"name": "clew-storage"}}]
        assert serve["http_options"]["port"] in [one["containerPort"] for one in container["ports"]]
        assert all("wget" not in str(container[probe]) for probe in ("readinessProbe", "livenessProbe"))


@pytest.mark.slow
def test_serve_knows_every_key_of_the_ray_service() -> None:
    schema = pytest.importorskip("ray.serve.schema", reason="Ray Serve is not installed (pip install 'clew[cluster]')")
    spec = rendered(EVERYTHING)["RayService", "docs-clew-answers"]["spec"]
    deployed = schema.ServeDeploySchema.model_validate(yaml.safe_load(spec["serveConfigV2"]))
    assert deployed.applications[0].route_prefix == "/"


def test_the_chart_passes_the_linter_of_its_field() -> None:
    helm = pytest.importorskip("helm_python", reason="helm-python-sdk is not installed (the group `deploy`)")
    for values in ({}, EVERYTHING):
        report = helm.lint(str(CHART), values, strict=True)
        assert [one for one in report["messages"] if one["severity"] > 1] == []
        assert not report["errors"]


# --- figures --------------------------------------------------------------------------------------


def exported() -> dict[str, set[str]]:
    """Names and labels of the figures that the service really gives."""
    pytest.importorskip("prometheus_client")
    from clew.daemon.collections import Collections
    from clew.daemon.http.admission import Admission
    from clew.daemon.http.metrics import Metrics

    admission = Admission(concurrency=1, queue=1, seconds=1)
    try:
        metrics = Metrics(Collections(), admission)
        metrics.observe_request("POST", "/v1/collections/{name}/search", 200, 0.1)
        text = metrics.text().decode()
    finally:
        admission.close()
    names = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")}
    suffixed = {f"{name}{end}" for name in names for end in ("", "_bucket", "_sum", "_count", "_total")}
    return {name: set() for name in suffixed}


def test_dashboard_and_alerts_ask_for_figures_that_exist() -> None:
    known = exported()
    dashboard = json.loads((CHART / "dashboard.json").read_text())
    alerts = yaml.safe_load((CHART / "alerts.yaml").read_text())
    asked = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    asked += [rule["expr"] for group in alerts["groups"] for rule in group["rules"]]
    asked += [one["query"] for one in dashboard["templating"]["list"] if "label_values" in str(one["query"])]
    names = {name for expression in asked for name in re.findall(r"\bclew_[a-z_]+", expression)}
    assert names
    assert names <= set(known)
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])
    for group in alerts["groups"]:
        for rule in group["rules"]:
            assert {"summary", "action"} <= set(rule["annotations"]), rule["alert"]
            assert rule["labels"]["severity"] in ("warning", "critical")
