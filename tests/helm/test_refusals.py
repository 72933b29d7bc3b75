"""Values that make no sense are refused before anything is installed, with a sentence that says what to do."""

import re

import pytest

from deploy.kubernetes.rendering import CHART
from ordercast.membership.settings import REPLICAS_MAX
from ordercast.protocols.catalogue import protocols
from ordercast.runtime.process.settings import MEMBERSHIP_NODES_MAX
from tests.helm.chart import objects, refusal

COMPACT = "profile=compact"
TLS = "tls.enabled=true,tls.secretName=s"
SPARK = "analytics.enabled=true,analytics.kind=SparkApplication"


def group(*settings: str) -> str:
    """One group in one domain, with more about it."""
    given = ("domains[0].name=d", "domains[0].groups[0].name=g", *settings)
    return ",".join(given)


#: Values, and the sentence: what is wrong, and what to do.
REFUSED = [
    ("membership.replicas=4", "membership.replicas is 4: an even number", "Set it to 3 or 5"),
    ("membership.replicas=1", "membership.replicas is 1: without a third one, none may fail", "Set it to 3 or 5"),
    ("membership.replicas=17", "there are 15 membership nodes at most", "Set it to 3 or 5"),
    (f"{COMPACT},compact.replicas=4", "compact.replicas is 4: an even number", "Set it to 3 or 5"),
    (f"{COMPACT},compact.replicas=1", "compact.replicas is 1: without a third one", "Set it to 3 or 5"),
    ("consensus.replicas=2", "consensus.replicas is 2, and a group needs 3", "Set it to 3 or more"),
    ("sequencer.replicas=2", "sequencer.replicas is 2, and a group needs 3", "Set it to 3 or more"),
    (f"{COMPACT},membership.replicas=3", "membership.replicas is set", "set compact.replicas instead"),
    (f"{COMPACT},consensus.replicas=3", "consensus.replicas is set", "set compact.replicas instead"),
    (f"{COMPACT},sequencer.replicas=3", "sequencer.replicas is set", "set compact.replicas instead"),
    (f"{COMPACT},gateway.replicas=2", "gateway.replicas is set", "set compact.replicas instead"),
    (f"{COMPACT},gateway.autoscaling.enabled=true", "needs gateways in pods of their own", "profile=separate"),
    ("compact.replicas=3", "compact.replicas is set, and profile is separate", "set profile=compact"),
    ("gateway.autoscaling.enabled=true,gateway.replicas=3", "gateway.replicas is set", "leave one of them out"),
    (
        "gateway.autoscaling.enabled=true,gateway.autoscaling.minReplicas=9",
        "minReplicas (9) is above maxReplicas (8)",
        "set it to at most that",
    ),
    ("tls.enabled=true", "tls.enabled needs certificates", "set tls.secretName"),
    ("tls.enabled=true,tls.source=certManager", "needs who signs", "set tls.certManager.issuerRef.name"),
    (TLS, "a certificate names each process", "set gateway.kind=StatefulSet, or profile=compact"),
    ("tls.extraDnsNames[0]=a", "for certificates that cert-manager makes", "set tls.enabled and"),
    ("telemetry.externalEndpoint=a:1", "and the telemetry service is too", "set telemetry.enabled=false"),
    (
        "telemetry.settings.retention_bytes=21474836480",
        "the spool does not fit into its volume of 15Gi",
        "telemetry.persistence.size higher",
    ),
    ("telemetry.persistence.size=10G", "does not fit into its volume of 10G", "set it lower"),
    ("telemetry.sink=kafka", "telemetry.sink=kafka needs brokers", "set telemetry.kafka.bootstrap"),
    ("telemetry.kafka.bootstrap=a:1", "records go to the spool", "set telemetry.sink=kafka"),
    ("telemetry.replicas=2", "a spool is one process's", "set it to 1, or telemetry.sink=kafka"),
    (
        "analytics.enabled=true,telemetry.enabled=false",
        "what the telemetry service keeps",
        "telemetry.enabled=true",
    ),
    (
        "analytics.enabled=true,telemetry.sink=kafka,telemetry.kafka.bootstrap=a:1",
        "telemetry.sink is kafka",
        "set telemetry.sink=spool",
    ),
    (SPARK, "needs an image with Spark's own entry point", "set analytics.sparkApplication.image"),
    (
        f"{SPARK},analytics.sparkApplication.image=i",
        "executors that write to the same volume",
        "set analytics.persistence.accessMode=ReadWriteMany",
    ),
    ("clientService.nodePort=30000", "and the type is ClusterIP", "set clientService.type"),
    ("clientService.loadBalancerSourceRanges[0]=10.0.0.0/8", "is for clientService.type=LoadBalancer", "set that"),
    (group("domains[0].protocol=raft"), 'd has the protocol "raft"', "there are isis, scalatom: set one of them"),
    (group("domains[1].name=d"), "domains: d is there twice", "put its groups together"),
    (group("domains[1].name=e", "domains[1].groups[0].name=g"), "the group g is there twice", "rename one"),
    (group("domains[0].groups[0].replicas=4"), "the group g has 4 replicas: an even number", "Set it to 3 or 5"),
    (
        group("domains[0].groups[0].replicas=9", "sequencer.replicas=9", "consensus.replicas=9"),
        "7 is the most",
        "set it to 3, 5 or 7",
    ),
    (
        group("domains[0].groups[0].replicas=5", "sequencer.replicas=5"),
        "there are 5 sequencers and 3 acceptors",
        "sequencer.replicas and consensus.replicas higher",
    ),
    (
        group("domains[0].groups[0].replicas=5", COMPACT),
        "there are 3 sequencers and 3 acceptors",
        "compact.replicas higher",
    ),
    ("fullnameOverride=a123456789-123456789-123456789-123456789", "has 40 characters", "set fullnameOverride"),
]


@pytest.mark.parametrize(("settings", "wrong", "advice"), REFUSED, ids=[each[0] for each in REFUSED])
def test_it_is_refused_with_what_is_wrong_and_what_to_do(settings: str, wrong: str, advice: str):
    said = refusal(settings)
    sentence = said.partition("validate.yaml")[2]
    assert wrong in sentence
    assert advice in sentence


def test_every_sentence_is_tried():
    """One that no test brings about may never be said."""
    sentences = re.findall(
        r"fail (?:\(printf )?\"(.+?)\"[ )-]", (CHART / "templates" / "_validate.tpl").read_text()
    )
    assert len(sentences) > 25
    said = [refusal(settings) for settings, _, _ in REFUSED]

    def is_said(sentence: str) -> bool:
        pattern = re.sub(r"%[sdq]", ".*?", re.escape(sentence).replace("\\%", "%"))
        return any(re.search(pattern, text) for text in said)

    # test_installing.py brings about those that need a cluster to look it up in.
    untried = [sentence for sentence in sentences if not is_said(sentence)]
    assert [text.partition(",")[0] for text in untried] == [
        "the membership nodes of this release are the StatefulSet %s",
        "there are %d membership nodes",
        "tls.secretName is %s",
        "the Secret %s has no %s: processes show tls.crt with tls.key",
    ]


@pytest.mark.parametrize(
    ("settings", "wrong"),
    [
        ("profile=large", "profile must be one of the following"),
        ("membership.replicas=three", "Invalid type"),
        ("membership.replicas=0", "Must be greater than or equal to 1"),
        ("ipFamily=ipv4", "must be one of the following"),
        ("sequencer.persistence.size=much", "Does not match pattern"),
        ("domains[0].name=A", "Does not match pattern"),
        ("domains[0].groups[0].name=b", "name is required"),
        ("image.digest=latest", "Does not match pattern"),
        ("settings.log.level=loud", "must be one of the following"),
    ],
)
def test_what_is_not_well_formed_is_named(settings: str, wrong: str):
    assert wrong in refusal(settings)


def test_limits_are_those_of_the_software():
    text = (CHART / "templates" / "_validate.tpl").read_text()
    assert f"list {' '.join(f'{chr(34)}{name}{chr(34)}' for name in protocols())} " in text
    assert f"gt $replicas {MEMBERSHIP_NODES_MAX} " in text
    assert f"gt $replicas {REPLICAS_MAX} " in text


def test_what_makes_sense_is_let_through():
    assert objects("default", "membership.replicas=5", "sequencer.replicas=4", "consensus.replicas=6")
    assert objects("default", COMPACT, "compact.replicas=5")
    assert objects("default", group("domains[0].groups[0].replicas=1"))
