"""The SDK for asyncio.

A connection is a producer itself, may have more of them, which share its streams to gateways (aio_streams.py), and
can read and administer.
"""

import asyncio
import random
from collections.abc import Iterable, Mapping
from typing import Any, overload

import grpc
import grpc.aio

from ordercast.client import transport
from ordercast.client.addresses import Addresses
from ordercast.client.admin import AsyncAdmin
from ordercast.client.aio_causal import CausalSubscription
from ordercast.client.aio_live import LiveSubscription
from ordercast.client.aio_merged import MergedSubscription
from ordercast.client.aio_producer import Producer, ReceiptFuture
from ordercast.client.aio_silence import answered
from ordercast.client.aio_streams import Streams
from ordercast.client.aio_subscription import Subscription
from ordercast.client.amounts import IN_FLIGHT_MAX
from ordercast.client.backoff import wait_s
from ordercast.client.errors import InvalidArgument, Unavailable
from ordercast.client.merged_reader import check_merged, checked_choice, checked_merged_start
from ordercast.client.merged_types import Cut, place_of
from ordercast.client.session import Session
from ordercast.client.types import (
    TLS,
    Start,
    checked_groups,
    checked_start,
    checked_starts,
    checked_timeout,
)
from ordercast.core.silence import Silence
from ordercast.v1.gateway_pb2 import CutRequest
from ordercast.v1.gateway_pb2_grpc import GatewayServiceStub


def connect(
    *addresses: str,
    producer: str | None = None,
    in_flight_max: int = IN_FLIGHT_MAX,
    tls: TLS | None = None,
    session_token: bytes | None = None,
    timeout: float = transport.TIMEOUT_S,
) -> "Connection":
    """A connection to the gateways at these addresses; one is used, the others when it fails.

    A named producer goes on where its latest instance ended, and fences it. `timeout` is the default of all calls.

    >>> import asyncio, ordercast
    >>> async def main():
    ...     async with ordercast.connect("127.0.0.1:7400") as oc:
    ...         receipt = await oc.publish(b"transfer 10 from a to b", to=["a", "b"], key="a")
    ...         return sorted(receipt.offsets)
    >>> asyncio.run(main())
    ['a', 'b']
    """
    return Connection(
        transport.parse_addresses(addresses),
        transport.new_session(producer, in_flight_max, session_token),
        tls=tls,
        timeout=checked_timeout(timeout),
    )


class Connection(Producer, AsyncAdmin):
    """What `connect` returns. Use it with `async with`: leaving waits for the receipts that are still to come."""

    def __init__(
        self, addresses: list[str], session: Session[ReceiptFuture], *, tls: TLS | None, timeout: float
    ) -> None:
        super().__init__(session, Addresses(addresses), Streams(tls), timeout=timeout)
        self._tls = tls
        #: Those that were made and are not closed.
        self._producers: list[Producer] = []

    def producer(
        self,
        name: str | None = None,
        *,
        in_flight_max: int = IN_FLIGHT_MAX,
        session_token: bytes | None = None,
    ) -> Producer:
        """One more producer over this connection, with an order of its own. Use it with `async with`.

        Many of them cost less than as many connections, for they share frames. With a name it goes on where its
        latest instance ended, and fences it, as with `connect`. What the connection itself publishes or reads, and
        what its other producers publish, does not count as seen by this one, unless you hand it their
        `session_token`. It ends with the connection at the latest.

        >>> import asyncio, ordercast
        >>> async def main():
        ...     async with ordercast.connect("127.0.0.1:7400") as oc, oc.producer() as one, oc.producer() as other:
        ...         receipts = [await each.publish(b"hello", to=["a", "b"]) for each in (one, other)]
        ...         return len({receipt.message_id for receipt in receipts})
        >>> asyncio.run(main())
        2
        """
        session: Session[ReceiptFuture] = transport.new_session(name, in_flight_max, session_token)
        made = Producer(session, self._addresses, self._streams, timeout=self._timeout)
        self._producers = [*(each for each in self._producers if not each._is_closed), made]
        return made

    async def _close(self) -> None:
        for each in self._producers:
            await each._close()
        await super()._close()
        await self._streams.close()

    # ------------------------------------------------------------------------------- subscriptions, calls

    @overload
    def subscribe(
        self,
        group: str,
        start: Start | None = None,
        *,
        last: int | None = None,
        cursor: str | None = None,
        stop_at_end: bool = False,
        replica: str | None = None,
    ) -> Subscription: ...

    @overload
    def subscribe(
        self,
        group: list[str] | tuple[str, ...],
        start: str | Cut | None = None,
        *,
        cursor: str | None = None,
        stop_at_end: bool = False,
        until: Cut | None = None,
    ) -> MergedSubscription: ...

    def subscribe(
        self,
        group: str | list[str] | tuple[str, ...],
        start: Start | Cut | None = None,
        *,
        last: int | None = None,
        cursor: str | None = None,
        stop_at_end: bool = False,
        replica: str | None = None,
        until: Cut | None = None,
    ) -> Subscription | MergedSubscription:
        """Read a group's log from `"earliest"`, `"latest"`, an offset, or where the cursor stands.

        Or from a `datetime` on, or a `timedelta` ago: at about the first message that was stored then, by the
        clocks of the replicas. Or the `last` so many messages, and all that follow.

        With a cursor, this says where it begins if it does not exist yet, and acknowledging moves it. `replica`
        reads the copy on that node and no other.

        Of several groups the deliveries come as one stream: see `subscribe_merged`.

        >>> import asyncio, ordercast
        >>> async def main():
        ...     async with ordercast.connect("127.0.0.1:7400") as oc:
        ...         await oc.publish(b"hello", to=["c"])
        ...         async with oc.subscribe("c", start="earliest", cursor="example") as deliveries:
        ...             async for delivery in deliveries:
        ...                 await delivery.ack()
        ...                 return delivery.group
        >>> asyncio.run(main())
        'c'
        """
        if not isinstance(group, str):
            check_merged(last, replica)
            merged_start: Any = start
            return self.subscribe_merged(group, merged_start, cursor=cursor, until=until, stop_at_end=stop_at_end)
        if isinstance(start, Cut) or until is not None:
            raise InvalidArgument("a cut is a place in several groups: name them as a list, even if it is one")
        return Subscription(
            self,
            group,
            start=checked_start(start, last),
            cursor=cursor,
            stop_at_end=stop_at_end,
            replica=replica,
            timeout=self._timeout,
        )

    def subscribe_merged(
        self,
        groups: Iterable[str] | None = None,
        start: str | Cut | None = None,
        *,
        domain: str | None = None,
        pattern: str | None = None,
        cursor: str | None = None,
        until: Cut | None = None,
        stop_at_end: bool = False,
    ) -> MergedSubscription:
        """Read several groups of a domain as one stream in the domain's order, each message once.

        Which groups: by name, or all of a `domain`, or those of it whose names match a `pattern` when the
        subscription begins. It starts at `"earliest"`, at `"latest"`, at a cut, or where the cursor stands: one
        cursor for all groups, which acknowledging moves. With `until` it ends before that cut, and with
        `stop_at_end` at a cut that is made when it begins. `FailedPrecondition` in a domain without an order over
        several groups.

        >>> import asyncio, ordercast
        >>> async def main():
        ...     async with ordercast.connect("127.0.0.1:7400") as oc:
        ...         await oc.publish(b"hello", to=["a", "c"])
        ...         cut = await oc.cut(["a", "b", "c"])
        ...         async with oc.subscribe(["a", "b", "c"], start="earliest", until=cut) as deliveries:
        ...             return [delivery.groups async for delivery in deliveries][-1]
        >>> asyncio.run(main())
        ('a', 'c')
        """
        return MergedSubscription(
            self,
            checked_choice(groups, domain=domain, pattern=pattern),
            start=checked_merged_start(start),
            cursor=cursor,
            until=until,
            stop_at_end=stop_at_end,
            timeout=self._timeout,
        )

    async def cut(
        self, groups: Iterable[str] | None = None, *, domain: str | None = None, pattern: str | None = None
    ) -> Cut:
        """A place behind all that was acknowledged in these groups, and before all that is published later."""
        choice = checked_choice(groups, domain=domain, pattern=pattern)
        request = CutRequest(groups=choice.groups, domain=choice.domain, pattern=choice.pattern)
        return Cut.of(place_of((await self._call("Cut", request)).place))

    def subscribe_causal(
        self,
        groups: Iterable[str],
        start: str | Mapping[str, str | int] = "earliest",
        *,
        timeout: float | None = None,
    ) -> CausalSubscription:
        """Read several groups of a domain as one stream, in causal order, if its protocol is causal.

        Whatever a publisher had read or published before, in any of these groups, comes before what it published
        then. `start` is `"earliest"` or `"latest"`, or for each group one of these or an offset. `timeout` is for
        the beginning. `FailedPrecondition` in a domain whose messages do not say what they come after.
        """
        names = checked_groups(groups)
        return CausalSubscription(
            self,
            names,
            starts=checked_starts(start, names),
            timeout=self._timeout if timeout is None else checked_timeout(timeout),
        )

    def subscribe_live(
        self, group: str, *, replica: str | None = None, timeout: float | None = None
    ) -> LiveSubscription:
        """What a replica delivers from now on, before the log shows it, if the protocol has live delivery.

        In causal order, and fast: nobody waits for a disk, a majority, or a place in the log. A crash may take it
        back. `replica` is the node to read from. `timeout` is for the beginning.
        """
        return LiveSubscription(
            self, group, replica=replica, timeout=self._timeout if timeout is None else checked_timeout(timeout)
        )

    def _see(self, token: bytes) -> None:
        """The application has read what this stands for."""
        self._session.see(token)

    def _gateway(self, turn: int) -> str:
        """The address of the gateway in use, or of one so many behind it."""
        return self._addresses.choose(self._session.gateway + turn, _now())

    def _channel(self, address: str) -> grpc.aio.Channel:
        return transport.aio_channel(address, self._tls)

    def _avoid(self, address: str) -> None:
        """The gateway there hangs: whoever looks for one takes another first."""
        self._addresses.avoid(address, _now())

    async def _call(self, name: str, request: Any) -> Any:
        until = _now() + self._timeout
        attempt = 0
        while True:
            try:
                return await self._call_at(self._gateway(attempt), name, request, until)
            except grpc.RpcError as failure:
                error = transport.to_error(failure)
            except Unavailable as silent:
                error = silent
            wait = wait_s(attempt, error, random.random())
            if not isinstance(error, Unavailable) or _now() + wait >= until:
                raise error
            attempt += 1
            await asyncio.sleep(wait)

    async def _call_at(self, address: str, name: str, request: Any, until: float) -> Any:
        """A gateway that hangs is left where another one is known."""
        async with self._channel(address) as channel:
            method = getattr(GatewayServiceStub(channel), name)
            call = method(request, timeout=max(until - _now(), 0.001))
            if len(self._addresses) == 1:
                return await call
            silence = Silence()
            try:
                return await answered(channel, call, silence)
            finally:
                if silence.is_too_long:
                    self._avoid(address)


def _now() -> float:
    return asyncio.get_running_loop().time()
