"""`helm install` with three of everything, and what it promises."""

from tests.k8s.installation import RELEASE, Installation
from tests.k8s.kube import wait_until

COMPONENTS = {"membership": 3, "consensus": 3, "sequencer": 3, "gateway": 3, "telemetry": 1}


def test_all_pods_are_ready_and_the_release_proves_itself(separate: Installation):
    found = {component: len(separate.pods(component)) for component in COMPONENTS}
    assert found == COMPONENTS
    assert separate.is_settled()
    said = separate.helm("test", RELEASE, "--logs", "--timeout", "3m")
    assert "All replicas agree" in said


def test_nothing_runs_as_root_or_can_write_where_it_should_not(separate: Installation):
    """As the kernel sees it, and not only as it was asked for."""
    script = (
        "import os; status = dict(line.split(':', 1) for line in open('/proc/self/status'));"
        "print(os.getuid(), status['CapEff'].strip(), status['NoNewPrivs'].strip(), status['Seccomp'].strip());"
        "print(os.access('/', os.W_OK), os.statvfs('/').f_flag & os.ST_RDONLY)"
    )
    for component in COMPONENTS:
        pod = separate.pods(component)[0]
        told = separate.exec(pod.name, "python", "-c", script).split()
        assert told == ["10001", "0000000000000000", "1", "2", "False", "1"], pod.name


def test_pods_are_found_through_kubernetes(separate: Installation):
    for component in ("membership", "consensus", "sequencer", "gateway"):
        for pod in separate.pods(component):
            assert "pods are found through Kubernetes" in separate.logs(pod.name), pod.name


def test_what_the_account_of_a_pod_may_do(separate: Installation):
    """To read EndpointSlices, and nothing else."""
    account = f"system:serviceaccount:{separate.namespace}:oc-ordercast-sequencer"
    allowed = separate.kubectl("auth", "can-i", "--list", "--no-headers", f"--as={account}")
    own = [line.split() for line in allowed.splitlines() if not line.startswith(("selfsubject", " ", "["))]
    resources = {words[0] for words in own}
    assert "endpointslices.discovery.k8s.io" in resources
    assert resources <= {"endpointslices.discovery.k8s.io"}, allowed


def test_each_kind_of_pod_has_a_budget(separate: Installation):
    """Kubernetes counts anew a moment after pods have become ready."""
    wanted = dict.fromkeys(("membership", "consensus", "sequencer", "gateway"), 1)
    wait_until("one of each kind may be taken away", lambda: separate.disruptions_allowed() == wanted)
