from ordercast.v1 import consensus_pb2 as _consensus_pb2
from ordercast.v1 import gateway_pb2 as _gateway_pb2
from ordercast.v1 import isis_pb2 as _isis_pb2
from ordercast.v1 import causal_pb2 as _causal_pb2
from ordercast.v1 import scalatom_pb2 as _scalatom_pb2
from ordercast.v1 import sequencer_pb2 as _sequencer_pb2
from ordercast.v1 import telemetry_pb2 as _telemetry_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Channel(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CHANNEL_UNSPECIFIED: _ClassVar[Channel]
    CHANNEL_MEMBERSHIP: _ClassVar[Channel]
    CHANNEL_DOMAINS: _ClassVar[Channel]
CHANNEL_UNSPECIFIED: Channel
CHANNEL_MEMBERSHIP: Channel
CHANNEL_DOMAINS: Channel

class Own(_message.Message):
    __slots__ = ("type", "protocol")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    type: str
    protocol: bytes
    def __init__(self, type: _Optional[str] = ..., protocol: _Optional[bytes] = ...) -> None: ...

class Packet(_message.Message):
    __slots__ = ("disseminate", "rec_ts", "gossip", "gossip_ask", "pull", "have", "have_ask", "fetch_log", "log_chunk", "envelope_decided", "envelope_delivered", "envelope_durable", "snapshot_ask", "snapshot_part", "hand_over_ask", "hand_over", "prepare", "promise", "accept", "accepted", "rejected", "closed", "close", "decide", "votes_ask", "votes", "log_prepare", "log_promise", "log_accept", "log_accepted", "log_rejected", "log_decided", "log_heartbeat", "log_echo", "log_fetch", "log_tail", "log_install", "log_found_ask", "log_found_grant", "log_rejoin", "log_rejoined", "publish_request", "publish_reply", "cast", "stability", "sets_order", "resume", "epoch_flush", "forward", "flush", "cut", "cut_synced", "submit", "part_cast", "parts_cast", "tell", "tell_ack", "keep_traces", "own")
    DISSEMINATE_FIELD_NUMBER: _ClassVar[int]
    REC_TS_FIELD_NUMBER: _ClassVar[int]
    GOSSIP_FIELD_NUMBER: _ClassVar[int]
    GOSSIP_ASK_FIELD_NUMBER: _ClassVar[int]
    PULL_FIELD_NUMBER: _ClassVar[int]
    HAVE_FIELD_NUMBER: _ClassVar[int]
    HAVE_ASK_FIELD_NUMBER: _ClassVar[int]
    FETCH_LOG_FIELD_NUMBER: _ClassVar[int]
    LOG_CHUNK_FIELD_NUMBER: _ClassVar[int]
    ENVELOPE_DECIDED_FIELD_NUMBER: _ClassVar[int]
    ENVELOPE_DELIVERED_FIELD_NUMBER: _ClassVar[int]
    ENVELOPE_DURABLE_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_ASK_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_PART_FIELD_NUMBER: _ClassVar[int]
    HAND_OVER_ASK_FIELD_NUMBER: _ClassVar[int]
    HAND_OVER_FIELD_NUMBER: _ClassVar[int]
    PREPARE_FIELD_NUMBER: _ClassVar[int]
    PROMISE_FIELD_NUMBER: _ClassVar[int]
    ACCEPT_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_FIELD_NUMBER: _ClassVar[int]
    REJECTED_FIELD_NUMBER: _ClassVar[int]
    CLOSED_FIELD_NUMBER: _ClassVar[int]
    CLOSE_FIELD_NUMBER: _ClassVar[int]
    DECIDE_FIELD_NUMBER: _ClassVar[int]
    VOTES_ASK_FIELD_NUMBER: _ClassVar[int]
    VOTES_FIELD_NUMBER: _ClassVar[int]
    LOG_PREPARE_FIELD_NUMBER: _ClassVar[int]
    LOG_PROMISE_FIELD_NUMBER: _ClassVar[int]
    LOG_ACCEPT_FIELD_NUMBER: _ClassVar[int]
    LOG_ACCEPTED_FIELD_NUMBER: _ClassVar[int]
    LOG_REJECTED_FIELD_NUMBER: _ClassVar[int]
    LOG_DECIDED_FIELD_NUMBER: _ClassVar[int]
    LOG_HEARTBEAT_FIELD_NUMBER: _ClassVar[int]
    LOG_ECHO_FIELD_NUMBER: _ClassVar[int]
    LOG_FETCH_FIELD_NUMBER: _ClassVar[int]
    LOG_TAIL_FIELD_NUMBER: _ClassVar[int]
    LOG_INSTALL_FIELD_NUMBER: _ClassVar[int]
    LOG_FOUND_ASK_FIELD_NUMBER: _ClassVar[int]
    LOG_FOUND_GRANT_FIELD_NUMBER: _ClassVar[int]
    LOG_REJOIN_FIELD_NUMBER: _ClassVar[int]
    LOG_REJOINED_FIELD_NUMBER: _ClassVar[int]
    PUBLISH_REQUEST_FIELD_NUMBER: _ClassVar[int]
    PUBLISH_REPLY_FIELD_NUMBER: _ClassVar[int]
    CAST_FIELD_NUMBER: _ClassVar[int]
    STABILITY_FIELD_NUMBER: _ClassVar[int]
    SETS_ORDER_FIELD_NUMBER: _ClassVar[int]
    RESUME_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FLUSH_FIELD_NUMBER: _ClassVar[int]
    FORWARD_FIELD_NUMBER: _ClassVar[int]
    FLUSH_FIELD_NUMBER: _ClassVar[int]
    CUT_FIELD_NUMBER: _ClassVar[int]
    CUT_SYNCED_FIELD_NUMBER: _ClassVar[int]
    SUBMIT_FIELD_NUMBER: _ClassVar[int]
    PART_CAST_FIELD_NUMBER: _ClassVar[int]
    PARTS_CAST_FIELD_NUMBER: _ClassVar[int]
    TELL_FIELD_NUMBER: _ClassVar[int]
    TELL_ACK_FIELD_NUMBER: _ClassVar[int]
    KEEP_TRACES_FIELD_NUMBER: _ClassVar[int]
    OWN_FIELD_NUMBER: _ClassVar[int]
    disseminate: _sequencer_pb2.Disseminate
    rec_ts: _scalatom_pb2.RecTs
    gossip: _scalatom_pb2.Gossip
    gossip_ask: _scalatom_pb2.GossipAsk
    pull: _scalatom_pb2.Pull
    have: _scalatom_pb2.Have
    have_ask: _scalatom_pb2.HaveAsk
    fetch_log: _sequencer_pb2.FetchLog
    log_chunk: _sequencer_pb2.LogChunk
    envelope_decided: _scalatom_pb2.EnvelopeDecided
    envelope_delivered: _sequencer_pb2.EnvelopeDelivered
    envelope_durable: _scalatom_pb2.EnvelopeDurable
    snapshot_ask: _sequencer_pb2.SnapshotAsk
    snapshot_part: _sequencer_pb2.SnapshotPart
    hand_over_ask: _scalatom_pb2.HandOverAsk
    hand_over: _scalatom_pb2.HandOver
    prepare: _consensus_pb2.Prepare
    promise: _consensus_pb2.Promise
    accept: _consensus_pb2.Accept
    accepted: _consensus_pb2.Accepted
    rejected: _consensus_pb2.Rejected
    closed: _consensus_pb2.Closed
    close: _consensus_pb2.Close
    decide: _consensus_pb2.Decide
    votes_ask: _consensus_pb2.VotesAsk
    votes: _consensus_pb2.Votes
    log_prepare: _consensus_pb2.LogPrepare
    log_promise: _consensus_pb2.LogPromise
    log_accept: _consensus_pb2.LogAccept
    log_accepted: _consensus_pb2.LogAccepted
    log_rejected: _consensus_pb2.LogRejected
    log_decided: _consensus_pb2.LogDecided
    log_heartbeat: _consensus_pb2.LogHeartbeat
    log_echo: _consensus_pb2.LogEcho
    log_fetch: _consensus_pb2.LogFetch
    log_tail: _consensus_pb2.LogTail
    log_install: _consensus_pb2.LogInstall
    log_found_ask: _consensus_pb2.LogFoundAsk
    log_found_grant: _consensus_pb2.LogFoundGrant
    log_rejoin: _consensus_pb2.LogRejoin
    log_rejoined: _consensus_pb2.LogRejoined
    publish_request: _gateway_pb2.PublishRequest
    publish_reply: _gateway_pb2.PublishReply
    cast: _isis_pb2.Cast
    stability: _isis_pb2.Stability
    sets_order: _isis_pb2.SetsOrder
    resume: _isis_pb2.Resume
    epoch_flush: _isis_pb2.EpochFlush
    forward: _isis_pb2.Forward
    flush: _isis_pb2.Flush
    cut: _isis_pb2.Cut
    cut_synced: _isis_pb2.CutSynced
    submit: _isis_pb2.Submit
    part_cast: _isis_pb2.PartCast
    parts_cast: _isis_pb2.PartsCast
    tell: _isis_pb2.Tell
    tell_ack: _isis_pb2.TellAck
    keep_traces: _telemetry_pb2.KeepTraces
    own: Own
    def __init__(self, disseminate: _Optional[_Union[_sequencer_pb2.Disseminate, _Mapping]] = ..., rec_ts: _Optional[_Union[_scalatom_pb2.RecTs, _Mapping]] = ..., gossip: _Optional[_Union[_scalatom_pb2.Gossip, _Mapping]] = ..., gossip_ask: _Optional[_Union[_scalatom_pb2.GossipAsk, _Mapping]] = ..., pull: _Optional[_Union[_scalatom_pb2.Pull, _Mapping]] = ..., have: _Optional[_Union[_scalatom_pb2.Have, _Mapping]] = ..., have_ask: _Optional[_Union[_scalatom_pb2.HaveAsk, _Mapping]] = ..., fetch_log: _Optional[_Union[_sequencer_pb2.FetchLog, _Mapping]] = ..., log_chunk: _Optional[_Union[_sequencer_pb2.LogChunk, _Mapping]] = ..., envelope_decided: _Optional[_Union[_scalatom_pb2.EnvelopeDecided, _Mapping]] = ..., envelope_delivered: _Optional[_Union[_sequencer_pb2.EnvelopeDelivered, _Mapping]] = ..., envelope_durable: _Optional[_Union[_scalatom_pb2.EnvelopeDurable, _Mapping]] = ..., snapshot_ask: _Optional[_Union[_sequencer_pb2.SnapshotAsk, _Mapping]] = ..., snapshot_part: _Optional[_Union[_sequencer_pb2.SnapshotPart, _Mapping]] = ..., hand_over_ask: _Optional[_Union[_scalatom_pb2.HandOverAsk, _Mapping]] = ..., hand_over: _Optional[_Union[_scalatom_pb2.HandOver, _Mapping]] = ..., prepare: _Optional[_Union[_consensus_pb2.Prepare, _Mapping]] = ..., promise: _Optional[_Union[_consensus_pb2.Promise, _Mapping]] = ..., accept: _Optional[_Union[_consensus_pb2.Accept, _Mapping]] = ..., accepted: _Optional[_Union[_consensus_pb2.Accepted, _Mapping]] = ..., rejected: _Optional[_Union[_consensus_pb2.Rejected, _Mapping]] = ..., closed: _Optional[_Union[_consensus_pb2.Closed, _Mapping]] = ..., close: _Optional[_Union[_consensus_pb2.Close, _Mapping]] = ..., decide: _Optional[_Union[_consensus_pb2.Decide, _Mapping]] = ..., votes_ask: _Optional[_Union[_consensus_pb2.VotesAsk, _Mapping]] = ..., votes: _Optional[_Union[_consensus_pb2.Votes, _Mapping]] = ..., log_prepare: _Optional[_Union[_consensus_pb2.LogPrepare, _Mapping]] = ..., log_promise: _Optional[_Union[_consensus_pb2.LogPromise, _Mapping]] = ..., log_accept: _Optional[_Union[_consensus_pb2.LogAccept, _Mapping]] = ..., log_accepted: _Optional[_Union[_consensus_pb2.LogAccepted, _Mapping]] = ..., log_rejected: _Optional[_Union[_consensus_pb2.LogRejected, _Mapping]] = ..., log_decided: _Optional[_Union[_consensus_pb2.LogDecided, _Mapping]] = ..., log_heartbeat: _Optional[_Union[_consensus_pb2.LogHeartbeat, _Mapping]] = ..., log_echo: _Optional[_Union[_consensus_pb2.LogEcho, _Mapping]] = ..., log_fetch: _Optional[_Union[_consensus_pb2.LogFetch, _Mapping]] = ..., log_tail: _Optional[_Union[_consensus_pb2.LogTail, _Mapping]] = ..., log_install: _Optional[_Union[_consensus_pb2.LogInstall, _Mapping]] = ..., log_found_ask: _Optional[_Union[_consensus_pb2.LogFoundAsk, _Mapping]] = ..., log_found_grant: _Optional[_Union[_consensus_pb2.LogFoundGrant, _Mapping]] = ..., log_rejoin: _Optional[_Union[_consensus_pb2.LogRejoin, _Mapping]] = ..., log_rejoined: _Optional[_Union[_consensus_pb2.LogRejoined, _Mapping]] = ..., publish_request: _Optional[_Union[_gateway_pb2.PublishRequest, _Mapping]] = ..., publish_reply: _Optional[_Union[_gateway_pb2.PublishReply, _Mapping]] = ..., cast: _Optional[_Union[_isis_pb2.Cast, _Mapping]] = ..., stability: _Optional[_Union[_isis_pb2.Stability, _Mapping]] = ..., sets_order: _Optional[_Union[_isis_pb2.SetsOrder, _Mapping]] = ..., resume: _Optional[_Union[_isis_pb2.Resume, _Mapping]] = ..., epoch_flush: _Optional[_Union[_isis_pb2.EpochFlush, _Mapping]] = ..., forward: _Optional[_Union[_isis_pb2.Forward, _Mapping]] = ..., flush: _Optional[_Union[_isis_pb2.Flush, _Mapping]] = ..., cut: _Optional[_Union[_isis_pb2.Cut, _Mapping]] = ..., cut_synced: _Optional[_Union[_isis_pb2.CutSynced, _Mapping]] = ..., submit: _Optional[_Union[_isis_pb2.Submit, _Mapping]] = ..., part_cast: _Optional[_Union[_isis_pb2.PartCast, _Mapping]] = ..., parts_cast: _Optional[_Union[_isis_pb2.PartsCast, _Mapping]] = ..., tell: _Optional[_Union[_isis_pb2.Tell, _Mapping]] = ..., tell_ack: _Optional[_Union[_isis_pb2.TellAck, _Mapping]] = ..., keep_traces: _Optional[_Union[_telemetry_pb2.KeepTraces, _Mapping]] = ..., own: _Optional[_Union[Own, _Mapping]] = ...) -> None: ...

class Section(_message.Message):
    __slots__ = ("domain", "packets")
    DOMAIN_FIELD_NUMBER: _ClassVar[int]
    PACKETS_FIELD_NUMBER: _ClassVar[int]
    domain: str
    packets: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, domain: _Optional[str] = ..., packets: _Optional[_Iterable[bytes]] = ...) -> None: ...

class Hello(_message.Message):
    __slots__ = ("version", "channel", "process", "incarnation", "node_id", "cluster_id", "to", "mute", "life", "members")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    PROCESS_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_ID_FIELD_NUMBER: _ClassVar[int]
    TO_FIELD_NUMBER: _ClassVar[int]
    MUTE_FIELD_NUMBER: _ClassVar[int]
    LIFE_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    version: int
    channel: Channel
    process: str
    incarnation: int
    node_id: bytes
    cluster_id: bytes
    to: str
    mute: bool
    life: int
    members: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, version: _Optional[int] = ..., channel: _Optional[_Union[Channel, str]] = ..., process: _Optional[str] = ..., incarnation: _Optional[int] = ..., node_id: _Optional[bytes] = ..., cluster_id: _Optional[bytes] = ..., to: _Optional[str] = ..., mute: _Optional[bool] = ..., life: _Optional[int] = ..., members: _Optional[_Iterable[str]] = ...) -> None: ...

class Frame(_message.Message):
    __slots__ = ("sections",)
    SECTIONS_FIELD_NUMBER: _ClassVar[int]
    sections: _containers.RepeatedCompositeFieldContainer[Section]
    def __init__(self, sections: _Optional[_Iterable[_Union[Section, _Mapping]]] = ...) -> None: ...

class ConnectRequest(_message.Message):
    __slots__ = ("hello",)
    HELLO_FIELD_NUMBER: _ClassVar[int]
    hello: Hello
    def __init__(self, hello: _Optional[_Union[Hello, _Mapping]] = ...) -> None: ...

class ConnectResponse(_message.Message):
    __slots__ = ("hello", "port", "ticket")
    HELLO_FIELD_NUMBER: _ClassVar[int]
    PORT_FIELD_NUMBER: _ClassVar[int]
    TICKET_FIELD_NUMBER: _ClassVar[int]
    hello: Hello
    port: int
    ticket: bytes
    def __init__(self, hello: _Optional[_Union[Hello, _Mapping]] = ..., port: _Optional[int] = ..., ticket: _Optional[bytes] = ...) -> None: ...

class TellWaitingRequest(_message.Message):
    __slots__ = ("domain",)
    DOMAIN_FIELD_NUMBER: _ClassVar[int]
    domain: str
    def __init__(self, domain: _Optional[str] = ...) -> None: ...

class TellWaitingResponse(_message.Message):
    __slots__ = ("waiting",)
    WAITING_FIELD_NUMBER: _ClassVar[int]
    waiting: _containers.RepeatedCompositeFieldContainer[_sequencer_pb2.WaitingEnvelope]
    def __init__(self, waiting: _Optional[_Iterable[_Union[_sequencer_pb2.WaitingEnvelope, _Mapping]]] = ...) -> None: ...
