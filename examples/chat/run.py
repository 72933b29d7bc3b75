"""Run the chat on a local cluster that loses nodes meanwhile: `python examples/chat/run.py`.

People ask in one room, answer in another, and remark on answers in a third. Two readers look on, and the room with
the questions reaches both of them late. One reads each room by itself, and is shown answers before questions. The
other one reads all rooms as one causal stream: it must be shown none, though it is shown all posts.
"""

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

import ordercast
from ordercast.local.cluster import LocalCluster
from ordercast.local.setup import create_domain, create_groups

sys.path.insert(0, str(Path(__file__).parent))
from chat import Post, Screen

DOMAIN = "chat"
#: Questions are asked here, answered here, and answers are talked about here.
HELP, ANSWERS, HALL = ROOMS = ["help", "answers", "hall"]
NODES = 5
#: Nodes die and come back meanwhile, perhaps on a machine that has much else to do.
PATIENCE_S = 600


class Chat:
    def __init__(self, gateways: list[str], questions: int) -> None:
        self.gateways = gateways
        self.questions = questions
        self.people = 0

    def connect(self) -> ordercast.Connection:
        """Each person has a connection, and begins with another gateway."""
        self.people += 1
        first = self.people % len(self.gateways)
        return ordercast.connect(*self.gateways[first:], *self.gateways[:first], timeout=PATIENCE_S)

    # -------------------------------------------------------------------------------------------- people

    async def ask(self, author: str) -> None:
        async with self.connect() as oc:
            for number in range(self.questions):
                post = Post(author, HELP, f"What is {number} squared?")
                await oc.publish(post.encode(), to=HELP)
                await asyncio.sleep(0.02)

    async def answer(self, author: str, room: str, count: int, where: str) -> None:
        """Read one room, and answer each post in another. That the answer comes after what was read is all that
        the cluster has to know, and the connection tells it.
        """
        async with self.connect() as oc, oc.subscribe(room, start="earliest") as deliveries:
            for _ in range(count):
                delivery = await anext(deliveries)
                text = f"Re: {Post.decode(delivery.payload).text}"
                post = Post(author, where, text, answers=delivery.message_id)
                await oc.publish(post.encode(), to=where)

    async def close(self, author: str) -> None:
        """Whoever has read all rooms says the last word, in all of them at once."""
        async with self.connect() as oc:
            for room in ROOMS:
                async with oc.subscribe(room, start="earliest", stop_at_end=True) as deliveries:
                    async for _ in deliveries:
                        pass
                await oc.publish(Post(author, room, "We are closing.").encode(), to=room)
            await oc.publish(Post(author, "", "Good night.", is_last=True).encode(), to=ROOMS)

    async def talk(self) -> None:
        count = self.questions
        await asyncio.gather(
            self.ask("ann"),
            self.answer("bob", HELP, count, ANSWERS),
            self.answer("cem", HELP, count, ANSWERS),
            self.answer("dee", ANSWERS, 2 * count, HALL),
        )
        await self.close("eve")

    # ------------------------------------------------------------------------------------------- readers

    async def read_each(self, screen: Screen, enough: asyncio.Event) -> None:
        """Each room by itself, as its posts come; the questions when half of the answers were shown."""

        async def read(room: str) -> None:
            if room == HELP:
                await enough.wait()
            async with oc.subscribe(room, start="earliest") as deliveries:
                async for delivery in deliveries:
                    post = screen.show(delivery.message_id, delivery.group, delivery.payload)
                    if screen.count(ANSWERS) >= self.questions:
                        enough.set()
                    if post.is_last:
                        return

        async with self.connect() as oc:
            await asyncio.gather(*(read(room) for room in ROOMS))

    async def read_causally(self, screen: Screen, enough: asyncio.Event) -> None:
        """All rooms as one stream, in which nothing comes before what it comes after."""
        async with self.connect() as oc, oc.subscribe_causal(ROOMS, start="earliest") as deliveries:

            async def hold_back() -> None:
                deliveries.pause(HELP)
                await enough.wait()
                deliveries.resume(HELP)

            holding = asyncio.create_task(hold_back())
            async for delivery in deliveries:
                screen.show(delivery.message_id, delivery.group, delivery.payload)
                if len(screen.closed) == len(ROOMS):
                    break
            await holding


async def crash_nodes(cluster: LocalCluster, names: list[str], seconds: float) -> None:
    """One node after the other dies and comes back."""
    for name in names:
        await asyncio.sleep(seconds)
        print(f"killing {name}", flush=True)
        cluster.kill(name)
        await asyncio.sleep(seconds)
        cluster.start([name])
        await asyncio.to_thread(cluster.wait_healthy, [name], PATIENCE_S)


async def run(cluster: LocalCluster, questions: int, crashes: int) -> bool:
    chat = Chat(cluster.gateways, questions)
    async with ordercast.connect(*cluster.gateways) as oc:
        for room in ROOMS:
            replicas = (await oc.describe_group(room)).group.replicas
            print(f"{room} is on {', '.join(replicas)}")
    each, causal = Screen(), Screen()
    enough = asyncio.Event()
    crashes = asyncio.create_task(crash_nodes(cluster, list(cluster.members)[:crashes], 0.5))
    await asyncio.gather(chat.talk(), chat.read_each(each, enough), chat.read_causally(causal, enough))
    await crashes
    # Questions, two answers to each, a remark on each answer; the announcements, and the last word.
    posts = 5 * questions + len(ROOMS) + 1
    ok = True
    for name, screen in [("each room by itself", each), ("all rooms, causally", causal)]:
        answers = sum(bool(post.answers) for post in screen.shown.values())
        ok = ok and len(screen.shown) == posts
        print(
            f"{name}: {len(screen.shown)} of {posts} posts shown, {len(screen.early)} of {answers} answers early"
        )
    return ok and bool(each.early) and not causal.early


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=int, default=200, help="how many are asked")
    parser.add_argument("--crashes", type=int, default=NODES, help="how many nodes die and come back")
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="chat-") as directory,
        # More nodes than a room has replicas: rooms overlap, and none is where all others are.
        LocalCluster(Path(directory), nodes=3, workers=NODES - 3) as cluster,
    ):
        cluster.start()
        cluster.wait_healthy(timeout_s=PATIENCE_S)
        create_domain(cluster.gateways, DOMAIN, "isis", {"ordering": "causal"})
        create_groups(cluster.gateways, ROOMS, replicas=3, domain=DOMAIN)
        ok = asyncio.run(run(cluster, max(options.questions, 1), options.crashes))
        cluster.stop()
    sys.exit(0 if ok else 1)


if __name__ == "__main__":
    main()
