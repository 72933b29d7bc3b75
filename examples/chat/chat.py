"""A chat of several rooms. A question is asked in one room and may be answered in another.

Each room is a group of its own. Within a room everybody sees the posts in one order; across rooms all that matters
is that nobody sees an answer before what it answers.
"""

import json
from dataclasses import asdict, dataclass, field


@dataclass(frozen=True)
class Post:
    author: str
    #: Where it is read; the last post, which closes all rooms, is in each of them.
    room: str
    text: str
    #: The message id of the post that this one answers, if it answers one.
    answers: str = ""
    is_last: bool = False

    def encode(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    @staticmethod
    def decode(payload: bytes) -> "Post":
        return Post(**json.loads(payload))


@dataclass
class Screen:
    """What one reader has been shown, of all rooms, in this order."""

    shown: dict[str, Post] = field(default_factory=dict)
    #: Answers that were shown before what they answer.
    early: list[Post] = field(default_factory=list)
    #: Rooms whose last post was shown.
    closed: list[str] = field(default_factory=list)

    def show(self, message_id: str, room: str, payload: bytes) -> Post:
        post = Post.decode(payload)
        if post.answers and post.answers not in self.shown:
            self.early.append(post)
        self.shown[message_id] = post
        if post.is_last:
            self.closed.append(room)
        return post

    def count(self, room: str) -> int:
        return sum(post.room == room for post in self.shown.values())
