"""Pods as their status shows them."""

from dataclasses import dataclass
from typing import Self

from tests.k8s.kube import Object

#: Who makes pods that are meant to stay.
LASTING = ("StatefulSet", "ReplicaSet")


@dataclass(frozen=True)
class Pod:
    name: str
    uid: str
    component: str
    is_ready: bool
    restarts: int
    image: str
    #: Why its container ended the last time, if it did: OOMKilled, Error, Completed.
    ended: str = ""
    exit_code: int | None = None
    #: It is one of those that a cluster is made of; Jobs and tests come and go.
    is_lasting: bool = True

    @classmethod
    def of(cls, found: Object) -> Self:
        metadata, status = found["metadata"], found.get("status", {})
        (container,) = status.get("containerStatuses") or [{}]
        last = (
            container.get("lastState", {}).get("terminated") or container.get("state", {}).get("terminated") or {}
        )
        conditions = {each["type"]: each["status"] for each in status.get("conditions", [])}
        return cls(
            name=metadata["name"],
            uid=metadata["uid"],
            component=metadata["labels"].get("app.kubernetes.io/component", ""),
            is_ready=conditions.get("Ready") == "True" and "deletionTimestamp" not in metadata,
            restarts=container.get("restartCount", 0),
            image=found["spec"]["containers"][0]["image"],
            ended=last.get("reason", ""),
            exit_code=last.get("exitCode"),
            is_lasting=any(each["kind"] in LASTING for each in metadata.get("ownerReferences", [])),
        )
