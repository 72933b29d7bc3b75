"""How gateways send in a ToTo domain: everything to one process of the view, which casts it."""

import zlib

from ordercast.core.one_receiver import OneReceiver
from ordercast.core.submission import Sender
from ordercast.core.view import View
from ordercast.v1.toto_pb2 import DagUnfinished


class TotoSubmission(OneReceiver):
    """All processes are alike. A gateway takes the one beside it, and otherwise gateways are spread over them."""

    def __init__(self, gateway: Sender) -> None:
        super().__init__(gateway, receiver=self._receiver, unfinished=DagUnfinished)

    def _receiver(self, view: View) -> str:
        names = view.processes.names if view.processes is not None else ()
        if not names or self.gateway.process in names:
            return self.gateway.process if names else ""
        return names[zlib.crc32(self.gateway.process.encode()) % len(names)]
