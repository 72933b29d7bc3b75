"""`ordercast publish`: send messages to any set of groups, and print their receipts."""

import queue
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ordercast.cli import completion
from ordercast.cli.connection import Connection, connected
from ordercast.cli.domain import pairs
from ordercast.cli.output import Json, JsonList, print_json, say
from ordercast.cli.payload import payload_of
from ordercast.core.limits import PAYLOAD_BYTES_MAX

if TYPE_CHECKING:
    from ordercast.client.types import Receipt

#: Messages whose receipts are not printed yet.
AHEAD_MAX = 1024


@connected
def publish(
    connection: Connection,
    groups: Annotated[
        str,
        typer.Argument(
            metavar="GROUP[,GROUP...]", help="The destination groups.", autocompletion=completion.group_list
        ),
    ],
    message: Annotated[
        str | None, typer.Argument(help="The message. - or nothing: all of stdin, as it is, is one.")
    ] = None,
    key: Annotated[str, typer.Option(help="The message's key, for consumers.")] = "",
    header: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="A header of the message; repeatable.")
    ] = None,
    file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Take the message from a file, as it is; - is stdin.")
    ] = None,
    lines: Annotated[bool, typer.Option("--lines", help="Each line of stdin is a message of its own.")] = False,
    producer: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Publish as this named producer, and fence whoever did so before."),
    ] = None,
    unordered: Annotated[
        bool, typer.Option("--unordered", help="Give up the order towards messages to other sets of groups.")
    ] = False,
    json: Json = False,
) -> None:
    """Publish to a set of groups. All of them deliver the message, at one place in the order, or none does.

    A receipt is printed when the message is durable at a majority of every group. With --lines, messages are sent
    as they are read and keep their order; the first that fails ends it. With --json, --lines prints one list.

    Without --lines stdin is one message, with its line ends. An empty stdin is an error: '' is an empty message.

    Examples: `ordercast publish a,b 'hello, both'` · `ordercast publish a --file picture.png --key p1` ·
    `date | ordercast publish a` · `seq 1000 | ordercast publish a,b --lines`
    """
    if (message is not None) + (file is not None) + lines > 1:
        raise typer.BadParameter("give one of: a MESSAGE, --file, --lines")
    names = [name.strip() for name in groups.split(",")]
    options: dict[str, Any] = {
        "to": names,
        "key": key,
        "headers": pairs(header or [], "--header"),
        "ordered": not unordered,
    }
    if lines:
        with connection.client(producer=producer) as client:
            _publish_lines(client, options, json)
        return
    payload = payload_of(groups, message, file)
    with connection.client(producer=producer) as client:
        receipt = client.publish(payload, **options)
    if json:
        print_json(receipt_document(receipt))
    else:
        say(receipt_text(receipt))


# --------------------------------------------------------------------------------------------- many messages


def _publish_lines(client: Any, options: dict[str, Any], json: bool) -> None:
    printer = ReceiptPrinter(json)
    try:
        for payload in _stdin_lines():
            if printer.failure is not None:
                break
            printer.put(client.publish_soon(payload, **options))
    finally:
        printer.close()
    if printer.failure is not None:
        raise printer.failure


def _stdin_lines() -> Iterator[bytes]:
    number = 0
    # Two more, for the end of the line.
    while line := sys.stdin.buffer.readline(PAYLOAD_BYTES_MAX + 2):
        number += 1
        payload = line[:-2] if line.endswith(b"\r\n") else line.removesuffix(b"\n")
        if len(payload) > PAYLOAD_BYTES_MAX:
            raise typer.BadParameter(f"line {number} has more than {PAYLOAD_BYTES_MAX} bytes: no message can")
        yield payload


class ReceiptPrinter:
    """Prints receipts in the order of the messages, as they come, while more is being read and sent."""

    def __init__(self, json: bool) -> None:
        self.failure: BaseException | None = None
        self._list = JsonList() if json else None
        self._queue: queue.Queue[Future[Receipt] | None] = queue.Queue(AHEAD_MAX)
        self._thread = threading.Thread(target=self._run, name="receipts", daemon=True)
        self._thread.start()

    def put(self, future: "Future[Receipt]") -> None:
        self._queue.put(future)

    def close(self) -> None:
        """When all that was put is printed."""
        self._queue.put(None)
        self._thread.join()
        if self._list is not None:
            self._list.close()

    def _run(self) -> None:
        while (future := self._queue.get()) is not None:
            # What was sent behind a failure may be stored too: its receipts are still told.
            try:
                receipt = future.result()
                if self._list is not None:
                    self._list.add(receipt_document(receipt))
                else:
                    say(receipt_text(receipt))
            except Exception as error:
                self.failure = self.failure or error


# -------------------------------------------------------------------------------------------------- receipts


def receipt_document(receipt: "Receipt") -> dict[str, Any]:
    return {
        "message_id": receipt.message_id,
        "order_key": receipt.order_key.hex(),
        "offsets": {group: receipt.offsets[group] for group in sorted(receipt.offsets)},
        "duplicate": receipt.duplicate,
    }


def receipt_text(receipt: "Receipt") -> str:
    places = ", ".join(f"{group} at {receipt.offsets[group]}" for group in sorted(receipt.offsets))
    again = " (was there already)" if receipt.duplicate else ""
    return f"{receipt.message_id}  {places}{again}"
