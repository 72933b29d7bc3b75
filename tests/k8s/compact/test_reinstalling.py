"""A release is uninstalled and installed again: what was published is still there."""

from tests.k8s.compact.kept import assert_kept, publish
from tests.k8s.installation import Installation


def test_data_outlives_the_release(compact: Installation):
    last = publish(compact, ["kept-a", "kept-b"])
    claims = {claim["metadata"]["uid"] for claim in compact.get("pvc")["items"]}
    compact.uninstall()
    assert {claim["metadata"]["uid"] for claim in compact.get("pvc")["items"]} == claims

    compact.install()
    assert_kept(compact, last)
