"""The files in deploy/ must be valid under Kubernetes' schemas, Ray's and ours, and use only metrics that
the servers have."""

import json
import re
import subprocess

import kubernetes_validate
import promql_parser
import pytest
import yaml
from jsonschema import Draft202012Validator
from ray.serve.schema import ServeDeploySchema

from clusters import REPOSITORY, demo_settings, single_server
from deploy_schemas import CUSTOM, NAME
from valora_serve.relay import Counts
from valora_serve.settings import Settings

DEPLOY = REPOSITORY / "deploy"
KUBERNETES = kubernetes_validate.latest_version()


def documents(path):
    return [document for document in yaml.safe_load_all((DEPLOY / path).read_text()) if document]


def of_kind(path, kind):
    return [document for document in documents(path) if document["kind"] == kind]


def custom_errors(document):
    schema = CUSTOM[f"{document['apiVersion']} {document['kind']}"]
    assert re.match(NAME["pattern"], document["metadata"]["name"])
    return [
        f"{list(error.path)}: {error.message}"
        for error in Draft202012Validator(schema).iter_errors(document["spec"])
    ]


def test_deployment_is_valid():
    kinds = [document["kind"] for document in documents("kubernetes/valora.yaml")]
    assert kinds == ["Service", "Deployment", "HorizontalPodAutoscaler", "PodDisruptionBudget"]
    for document in documents("kubernetes/valora.yaml"):
        kubernetes_validate.validate(document, KUBERNETES, strict=True)
    broken = of_kind("kubernetes/valora.yaml", "Deployment")[0]
    broken["spec"]["template"]["spec"]["containers"][0]["nonsense"] = 1
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(broken, KUBERNETES, strict=True)


def test_deployment_parts_are_consistent():
    service, deployment, scaler, budget = documents("kubernetes/valora.yaml")
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    pool = of_kind("gateway/inferencepool.yaml", "InferencePool")[0]
    for selector in (
        service["spec"]["selector"],
        deployment["spec"]["selector"]["matchLabels"],
        budget["spec"]["selector"]["matchLabels"],
        pool["spec"]["selector"]["matchLabels"],
    ):
        assert selector.items() <= labels.items()
    container = deployment["spec"]["template"]["spec"]["containers"][0]
    assert pool["spec"]["targetPorts"] == [{"number": container["ports"][0]["containerPort"]}]
    assert scaler["spec"]["scaleTargetRef"]["name"] == deployment["metadata"]["name"]
    rules = yaml.safe_load((DEPLOY / "prometheus/adapter.yaml").read_text())["rules"]["custom"]
    assert scaler["spec"]["metrics"][0]["pods"]["metric"]["name"] in [
        rule["name"]["as"] for rule in rules
    ]
    grace = deployment["spec"]["template"]["spec"]["terminationGracePeriodSeconds"]
    drain = next(word for word in container["args"] if word.startswith("--drain-timeout="))
    assert grace > int(drain.partition("=")[2])


def test_program_options_in_deployment_exist():
    known = subprocess.run(
        [demo_settings().program, "serve", "--help"], capture_output=True, text=True
    ).stdout
    deployment = of_kind("kubernetes/valora.yaml", "Deployment")[0]
    command, *options = deployment["spec"]["template"]["spec"]["containers"][0]["args"]
    assert command == "serve" and len(options) > 3
    for option in options:
        assert re.search(rf"^ +(\S+,)*{option.split('=')[0]}[ ,=]", known, re.MULTILINE), option


@pytest.mark.parametrize("path", ["ray/rayservice.yaml", "gateway/inferencepool.yaml"])
def test_custom_resources_match_their_schemas(path):
    assert documents(path)
    for document in documents(path):
        assert custom_errors(document) == []
        broken = json.loads(json.dumps(document))
        del broken["spec"][
            next(iter(CUSTOM[f"{document['apiVersion']} {document['kind']}"]["required"]))
        ]
        assert custom_errors(broken)
        broken["spec"]["nonsense"] = 1
        assert len(custom_errors(broken)) == 2


def pod_templates():
    cluster = documents("ray/rayservice.yaml")[0]["spec"]["rayClusterConfig"]
    return [
        cluster["headGroupSpec"]["template"],
        *(group["template"] for group in cluster["workerGroupSpecs"]),
    ]


def test_ray_cluster_pods_are_valid():
    for template in pod_templates():
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p"},
            "spec": template["spec"],
        }
        kubernetes_validate.validate(pod, KUBERNETES, strict=True)


def test_serve_config_is_valid_for_ray_and_valora():
    spec = documents("ray/rayservice.yaml")[0]["spec"]
    config = ServeDeploySchema.model_validate(yaml.safe_load(spec["serveConfigV2"]))
    settings = Settings.model_validate(config.applications[0].args)
    assert (
        spec["rayClusterConfig"]["rayVersion"]
        in (REPOSITORY / "python/valora_serve/pyproject.toml").read_text()
    )
    worker = pod_templates()[1]["spec"]["containers"][0]
    assert int(worker["resources"]["limits"]["cpu"]) >= settings.cores
    mounts = [mount["mountPath"] for mount in worker["volumeMounts"]]
    for place in (settings.model, settings.adapters, settings.cache):
        assert any(place.startswith(mount) for mount in mounts)
    example = yaml.safe_load((REPOSITORY / "python/valora_serve/examples/demo.yaml").read_text())
    Settings.model_validate(ServeDeploySchema.model_validate(example).applications[0].args)


@pytest.fixture(scope="module")
def exposed(tmp_path_factory):
    """The names of all samples shown by a server with applications and by the ingress."""
    applications = tmp_path_factory.mktemp("metrics") / "applications.yaml"
    applications.write_text("applications:\n  - {name: one, models: [mood], ttft: 1}\n")
    settings = demo_settings()
    settings.options += ["--applications", str(applications)]
    with single_server(settings) as client:
        asked = client.post(
            "/v1/completions", json={"model": "mood", "prompt": "a", "max_tokens": 2}
        )
        assert asked.status_code == 200, asked.text  # adapters have series once used
        text = client.get("/metrics").text + Counts().text("ingress", 1)
    return {
        line.partition("{")[0].partition(" ")[0]
        for line in text.splitlines()
        if not line.startswith("#")
    }


def names_in(expression):
    """The metrics of a PromQL expression, which must parse."""
    plain = expression.replace("$__rate_interval", "5m")
    parsed = promql_parser.parse(plain)
    found, waiting = set(), [parsed]
    while waiting:
        at = waiting.pop()
        if isinstance(at, promql_parser.VectorSelector):
            found.add(at.name)
        parts = [
            getattr(at, name, None)
            for name in ("lhs", "rhs", "expr", "vector_selector", "args", "param")
        ]
        for part in parts:
            waiting += part if isinstance(part, list) else [part] if part is not None else []
    return found


def test_alerts_use_existing_metrics(exposed):
    rules = [
        rule
        for group in yaml.safe_load((DEPLOY / "prometheus/alerts.yaml").read_text())["groups"]
        for rule in group["rules"]
    ]
    assert len(rules) > 5 and len({rule["alert"] for rule in rules}) == len(rules)
    for rule in rules:
        assert set(rule) <= {"alert", "expr", "for", "labels", "annotations"}
        assert (
            rule["labels"]["severity"] in ("critical", "warning", "info")
            and rule["annotations"]["summary"]
        )
        names = names_in(rule["expr"])
        assert names and names <= exposed | {"up"}, rule["alert"]


def test_dashboard_uses_existing_metrics(exposed):
    board = json.loads((DEPLOY / "grafana/valora.json").read_text())
    assert board["title"] and board["uid"] and board["schemaVersion"] >= 36
    sources = {f"${{{variable['name']}}}" for variable in board["templating"]["list"]}
    places = [tuple(panel["gridPos"][key] for key in "xy") for panel in board["panels"]]
    assert (
        len(set(places))
        == len({panel["id"] for panel in board["panels"]})
        == len(board["panels"])
        == 12
    )
    for panel in board["panels"]:
        assert panel["type"] == "timeseries" and panel["datasource"]["uid"] in sources
        for target in panel["targets"]:
            names = names_in(target["expr"])
            assert names and names <= exposed, panel["title"]


def test_unknown_metric_names_are_detected(exposed):
    assert names_in("sum(rate(vllm:no_such_total[5m])) / up > 3") - exposed == {
        "vllm:no_such_total",
        "up",
    }
    with pytest.raises(ValueError):
        names_in("sum(rate(")


def test_prometheus_scrapes_existing_endpoints(exposed):
    config = yaml.safe_load((DEPLOY / "prometheus/prometheus.yaml").read_text())
    assert all((DEPLOY / "prometheus" / file).exists() for file in config["rule_files"])
    jobs = {job["job_name"]: job for job in config["scrape_configs"]}
    assert set(jobs) == {"valora", "valora-ray", "ray"}
    kept = {
        rule["source_labels"][0]: rule["regex"]
        for rule in jobs["valora"]["relabel_configs"]
        if "regex" in rule
    }
    deployment = of_kind("kubernetes/valora.yaml", "Deployment")[0]["spec"]["template"]
    assert deployment["metadata"]["labels"]["app"] == kept["__meta_kubernetes_pod_label_app"]
    ports = [port["name"] for port in deployment["spec"]["containers"][0]["ports"]]
    assert kept["__meta_kubernetes_pod_container_port_name"] in ports
    query = yaml.safe_load((DEPLOY / "prometheus/adapter.yaml").read_text())["rules"]["custom"][0][
        "seriesQuery"
    ]
    assert names_in(query) <= exposed


def test_endpoint_picker_finds_its_metrics(exposed):
    """Checks the metrics that the Gateway API Inference Extension reads by default."""
    assert {
        "vllm:num_requests_waiting",
        "vllm:kv_cache_usage_perc",
        "vllm:lora_requests_info",
        "vllm:cache_config_info",
    } <= exposed
