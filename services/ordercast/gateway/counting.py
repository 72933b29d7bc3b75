"""What clients got of this gateway, counted for telemetry."""

from ordercast.v1.gateway_pb2 import PublishReply, PublishStatus

#: Sets of groups that are told one by one within a second; clients may name anything.
TOLD_MAX = 200


class Counts:
    def __init__(self) -> None:
        #: By domain.
        self.published: dict[str, int] = {}
        #: By domain and reason.
        self.refused: dict[tuple[str, str], int] = {}
        #: The same by group, since somebody last looked.
        self._recent: dict[tuple[str, str, str], int] = {}
        self.delivered = 0

    def receipt(self, domain: str, messages: int) -> None:
        self.published[domain] = self.published.get(domain, 0) + messages

    def refusal(self, domain: str, reply: PublishReply) -> None:
        """Groups as the client named them."""
        reason = PublishStatus.Name(reply.status).removeprefix("PUBLISH_STATUS_").lower()
        self.refused[domain, reason] = self.refused.get((domain, reason), 0) + 1
        for group in reply.groups:
            place = (domain, group, reason)
            if place in self._recent or len(self._recent) < TOLD_MAX:
                self._recent[place] = self._recent.get(place, 0) + 1

    def take_recent(self) -> dict[tuple[str, str, str], int]:
        recent, self._recent = self._recent, {}
        return recent
