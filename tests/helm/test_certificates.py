"""Certificates name those who show them."""

import pytest

from tests.helm.chart import NAMESPACE, PREFIX, component_of, named, objects, of_kind, pod_templates, workloads


def secret_of(volumes: list[dict[str, object]]) -> str:
    (secret,) = [volume["secret"] for volume in volumes if volume["name"] == "tls"]
    assert isinstance(secret, dict)
    return str(secret["secretName"])


def test_a_process_is_named_by_the_certificate_that_it_is_given():
    found = objects("production")
    certificates = {each["spec"]["secretName"]: each["spec"]["dnsNames"] for each in of_kind(found, "Certificate")}
    (scaler,) = of_kind(found, "HorizontalPodAutoscaler")
    for component, workload in workloads(found).items():
        names = certificates[secret_of(workload["spec"]["template"]["spec"]["volumes"])]
        if component == "telemetry":
            continue
        # Also those that may yet come.
        count = workload["spec"].get("replicas", scaler["spec"]["maxReplicas"])
        assert {f"{workload['metadata']['name']}-{number}" for number in range(count)} <= set(names)


def test_gateways_are_named_as_clients_dial_them():
    names = named(objects("production"), "Certificate", f"{PREFIX}-gateway")["spec"]["dnsNames"]
    assert {f"{PREFIX}-gateway.{NAMESPACE}.svc.cluster.local", "localhost", "orders.example"} <= set(names)
    for name, template in pod_templates(objects("production")):
        for argument in template["spec"]["containers"][0]["args"]:
            if argument.startswith("--gateway="):
                host = argument.removeprefix("--gateway=").partition(":")[0]
                assert host.replace("$(POD_NAMESPACE)", NAMESPACE) in names, name


#: What is no process of the cluster: what it may be used for.
OTHERS = {"jobs": {"client auth"}, "analytics": {"client auth"}, "telemetry": {"server auth"}}


def test_between_processes_both_sides_show_it_and_the_same_authority_signs_all():
    issuers = []
    for certificate in of_kind(objects("production"), "Certificate"):
        spec, component = certificate["spec"], component_of(certificate)
        both = {"server auth", "client auth"}
        assert both & set(spec["usages"]) == OTHERS.get(component, both), component
        issuers.append(spec["issuerRef"])
    assert len(issuers) == len(workloads(objects("production"))) + 1
    expected = {"name": "ordercast-ca", "kind": "ClusterIssuer", "group": "cert-manager.io"}
    assert all(issuer == expected for issuer in issuers)


@pytest.mark.parametrize("mark", ["ordercast:peer", "ordercast://orders/peer"])
def test_processes_have_a_mark_that_nobody_else_has_and_demand_it(mark: str):
    """The one authority signs for clients too: Jobs are such, and so is whoever else the issuer serves."""
    found = objects(
        "analytics",
        "gateway.kind=StatefulSet",
        f"tls.enabled=true,tls.source=certManager,tls.certManager.issuerRef.name=ca,tls.peerUri={mark}",
    )
    marks = {component_of(each): each["spec"].get("uris", []) for each in of_kind(found, "Certificate")}
    reader = "ordercast:reader"
    assert {component: marks.pop(component) for component in OTHERS} == {
        "jobs": [],
        "analytics": [reader],
        "telemetry": [],
    }
    assert set(marks) == {"membership", "consensus", "sequencer", "gateway"}
    assert set(map(tuple, marks.values())) == {(mark,)}
    for component in (*marks, "telemetry"):
        (container,) = workloads(found)[component]["spec"]["template"]["spec"]["containers"]
        demanded = f"--tls.uris={mark},{reader}" if component == "telemetry" else f"--tls.peer-uri={mark}"
        assert demanded in container["args"]


@pytest.mark.parametrize("profile", ["analytics", "spark-operator"])
def test_the_spark_job_shows_its_own_certificate_and_knows_that_of_the_telemetry_service(profile: str):
    found = objects(
        profile,
        "gateway.kind=StatefulSet",
        "tls.enabled=true,tls.source=certManager,tls.certManager.issuerRef.name=ca",
    )
    if profile == "analytics":
        spec = workloads(found)["analytics"]["spec"]["template"]["spec"]
        (container,) = spec["containers"]
        arguments, mounting = container["args"], [container]
    else:
        (application,) = of_kind(found, "SparkApplication")
        spec = application["spec"]
        # Executors read the spool, and the driver asks how far it is.
        arguments, mounting = spec["arguments"], [spec["driver"], spec["executor"]]
    given = dict(argument.split("=", 1) for argument in arguments if "=" in argument)
    folder = "/etc/ordercast/tls"
    assert (given["--ca"], given["--cert"], given["--cert-key"]) == tuple(
        f"{folder}/{file}" for file in ("ca.crt", "tls.crt", "tls.key")
    )
    for each in mounting:
        assert folder in {mount["mountPath"] for mount in each["volumeMounts"]}
    assert secret_of(spec["volumes"]) == named(found, "Certificate", f"{PREFIX}-analytics")["spec"]["secretName"]
    assert given["--server-name"] in named(found, "Certificate", f"{PREFIX}-telemetry")["spec"]["dnsNames"]


def test_a_given_secret_is_everybodys():
    found = objects("tls-secret")
    assert of_kind(found, "Certificate") == []
    for _, template in pod_templates(found):
        assert secret_of(template["spec"]["volumes"]) == "ordercast-certificates"


@pytest.mark.parametrize(("profile", "shows"), [("production", True), ("tls-secret", False)])
def test_jobs_show_a_certificate_where_clients_have_to(profile: str, shows: bool):
    jobs = [t for _, t in pod_templates(objects(profile)) if component_of(t) == "jobs"]
    assert jobs
    for template in jobs:
        arguments = [argument.partition("=")[0] for argument in template["spec"]["containers"][0]["args"]]
        assert "--ca" in arguments
        assert ("--cert" in arguments) == shows


def test_without_tls_nothing_of_it_is_left():
    for name, template in pod_templates(objects()):
        assert "tls" not in str(template), name
