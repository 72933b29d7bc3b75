"""Membership's word: which views there are, which are complete, and who is in them [BSS91 7.4].

Views are entries in the log of the membership service, which has them from consensus and its failure information
from heartbeats. It may be wrong about failures: a process that was left out finds itself a learner, copies the
log, and comes back in a later view. To that view it is as new as if it had restarted.
"""

from typing import TYPE_CHECKING

from ordercast.core.ids import unpack_u64
from ordercast.core.machine import Interrupted, Observe, Progress, ResetLog, Send
from ordercast.core.view import FIRST, Group, View
from ordercast.protocols.causal.casts import Key
from ordercast.protocols.celllog.idempotence import Record
from ordercast.protocols.celllog.saved_logs import SavedLogs
from ordercast.protocols.isis import past, records
from ordercast.protocols.isis.era import Era, key_of
from ordercast.protocols.isis.past import stamp_from
from ordercast.protocols.isis.replica import Replica
from ordercast.v1.isis_pb2 import Cast, CastKey, CutRecord, Flush, IsisRecord, Seen, Submit

if TYPE_CHECKING:
    from ordercast.protocols.isis.machine import Isis


class Views:
    def __init__(self, machine: "Isis") -> None:
        self.machine = machine
        #: What was on disk at the start, until its group is in a view.
        self.saved: list[tuple[bytes, bytes]] = []
        #: Something happened that a view may have waited for.
        self.is_due = False

    # -------------------------------------------------------------------------------------------- following

    def on_view(self, view: View) -> None:
        machine = self.machine
        is_first = machine.view is None
        machine.view = view
        for name, group in view.groups.items():
            replica = machine.replicas.get(name) or Replica(group, machine.process, machine.settings)
            replica.follow(group)
            if name not in machine.replicas and replica.is_concerned:
                machine.replicas[name] = replica
                self._load(replica)
            machine.touched[name] = None
        if is_first:
            self._load_parts()
            machine.changes += self._forget_strangers(view)
        self._collect_times(view)
        machine.epochs.on_view()
        machine.asking.on_view(view)
        machine.receiving.on_view()
        machine.wake()

    def advance(self) -> None:
        """Act on what is defined and on what is complete, as far as it can be."""
        self.is_due = False
        view = self.machine.view
        if view is None:
            return
        for name, replica in list(self.machine.replicas.items()):
            if name not in view.groups:
                self.machine.changes += self._forget(replica)
                continue
            self._begin_first(replica)
            self._complete(replica)
            self._begin_flush(replica)
            if not replica.is_concerned:
                self.machine.changes += self._forget_log(replica) if replica.eras else self._forget(replica)

    def _begin_first(self, replica: Replica) -> None:
        """A group begins with nothing, and its members wait for nobody."""
        group = replica.group
        if replica.view or not replica.begins_in():
            return
        if group.configuration == FIRST:
            lives = dict(zip(group.replicas, group.incarnations, strict=True))
            replica.start(FIRST, group.replicas, lives, self.machine.incarnation)
        else:
            # It never was in it, so it has nothing of it: and that is all there is to contribute.
            assert group.former is not None
            replica.start(FIRST, group.former.replicas, {}, self.machine.incarnation)
        self.machine.changes.append(replica.position_record())
        if replica.eras:
            self.entered(replica)
        self.machine.epochs.entered(replica)
        self.machine.replay_early(replica.name, FIRST)
        self.machine.receiving.entered(replica)

    def _complete(self, replica: Replica) -> None:
        view, group = replica.completed, replica.group
        if replica.view >= view:
            return
        is_former = group.former is not None and group.former.number == view
        members = group.former_replicas if is_former else group.replicas
        is_ready = self.machine.flushing.is_ready(replica, view)
        if replica.process not in members and not (is_ready and replica.view == replica.cut_ends):
            self._leave(replica)
            return
        if not is_ready:
            return
        before = replica.eras[0] if replica.eras else None
        self.machine.flushing.complete(replica, view, members)
        self.machine.copying.began(replica)
        if replica.eras and replica.eras[0] is not before:
            self.entered(replica)

    def _leave(self, replica: Replica) -> None:
        """A view is complete without us, and we do not know what came before it."""
        if replica.eras or replica.saved is not None:
            self.machine.changes += replica.leave()
            self.out_of(replica)
        self.machine.left_out_of(replica.name)

    def out_of(self, replica: Replica) -> None:
        """Nothing of the group is delivered here any more, until we are in a view again."""
        if replica.eras:
            replica.eras.clear()
            self.machine.out.append(Interrupted(replica.name))

    def entered(self, replica: Replica) -> None:
        """Without a past to deliver first."""
        machine = self.machine
        if machine.observe:
            machine.out.append(Observe("installed", b"", f"{replica.name} {replica.eras[0].view}"))

    def _begin_flush(self, replica: Replica) -> None:
        group = replica.group
        if group.configuration <= replica.view:
            return
        if replica.attempt is not None and replica.attempt.view == group.configuration:
            return
        if replica.process in (*group.replicas, *group.leaving):
            self.machine.watching.sealed(replica)
            self.machine.flushing.begin(replica)

    def _collect_times(self, view: View) -> None:
        """[6.4] See past.collect."""
        past.collect(self.machine.known.times, view)
        past.collect(self.machine.known.carried, view)
        self.machine.confirmed.collect(view)

    # ------------------------------------------------------------------------------------------- from disk

    def _load(self, replica: Replica) -> None:
        mine = [
            (k, v) for k, v in self.saved if k[:1] in records.OF_GROUPS and records.group_of(k) == replica.name
        ]
        self.saved = [pair for pair in self.saved if pair not in mine]
        if replica.has_lost_everything:
            self.machine.out.append(ResetLog(replica.name, 0))
            self.machine.changes += [(key, None) for key, _ in mine]
            return
        casts: dict[int, dict[Key, Cast]] = {}
        places: dict[int, Key] = {}
        saved = SavedLogs()
        found = IsisRecord()
        for key, value in mine:
            kind = key[:1]
            if kind == records.POSITION:
                found = IsisRecord.FromString(value)
            elif kind == records.CAST:
                cast = Cast.FromString(value)
                casts.setdefault(cast.view, {})[key_of(cast.key)] = cast
            elif kind == records.ORDER:
                places[records.number_of(key)] = key_of(CastKey.FromString(value))
            elif kind == records.CUT:
                replica.cut = CutRecord.FromString(value)
            elif kind == records.CONFIRMED:
                self.machine.confirmed.load(replica.name, Seen.FromString(value))
            elif kind == records.COPIED:
                replica.copied = unpack_u64(value)
            else:
                saved.add(key, value)
        saved.restore(replica)
        replica.view, replica.position, replica.offset = found.view, found.position, found.offset
        if replica.cut is not None:
            there = casts.get(replica.cut.ends, {})
            replica.cut_casts = {k: there[k] for k in map(key_of, replica.cut.keys) if k in there}
        members = self._members_of(replica.group, found.view)
        if members is not None and replica.process in members:
            replica.saved = self._saved_era(replica, members, found, casts.get(found.view, {}), places)
        # What is of no view that can end here would be taken for the next one's: positions do not name theirs.
        kept = dict.fromkeys(records.cast(replica.name, replica.cut_ends, key) for key in replica.cut_casts)
        if replica.saved is not None:
            kept.update(replica.forget_era(replica.saved))
        gone = [key for key, _ in mine if key[:1] in (records.CAST, records.ORDER) and key not in kept]
        self.machine.changes += [(key, None) for key in gone]

    def _members_of(self, group: Group, view: int) -> tuple[str, ...] | None:
        if group.configuration == view:
            return group.replicas
        if group.former is not None and group.former.number == view:
            return group.former.replicas
        return None

    def _saved_era(
        self,
        replica: Replica,
        members: tuple[str, ...],
        found: IsisRecord,
        casts: dict[Key, Cast],
        places: dict[int, Key],
    ) -> Era:
        """What this process has of the view on its disk: what it contributes when that ends."""
        me = members.index(replica.process)
        era = Era(replica.name, found.view, members, (0,) * len(members), me, found.settled)
        if found.settled_counts:
            era.settled_counts = list(found.settled_counts)
            era.received = list(found.settled_counts)
        for key in sorted(casts):
            if key[1] == era.received[key[0]] + 1:
                era.take(key, casts[key], stamp_from(casts[key]))
        for place in sorted(places):
            if place >= era.settled:
                era.place(place, places[place])
        return era

    def _load_parts(self) -> None:
        mine = [(k, v) for k, v in self.saved if k[:1] == records.PARTS]
        self.saved = [pair for pair in self.saved if pair not in mine]
        for _, value in mine:
            self.machine.parts.load(Submit.FromString(value))

    def _forget_strangers(self, view: View) -> list[Record]:
        """What is on disk of groups that are gone, or elsewhere."""
        gone: list[Record] = [(key, None) for key, _ in self.saved if key[:1] in records.OF_GROUPS]
        self.saved = []
        return gone

    def _forget_log(self, replica: Replica) -> list[Record]:
        """The driver dropped it. What is left of the views is delivered; who comes back begins with nothing."""
        if not replica.position and replica.copied is None:
            return []
        replica.position = replica.offset = 0
        replica.copied = None
        self.machine.out.append(ResetLog(replica.name, 0))
        changes = [replica.position_record(), *self.machine.copying.forget(replica.name)]
        return [*changes, *replica.clear()]

    def _forget(self, replica: Replica) -> list[Record]:
        name = replica.name
        del self.machine.replicas[name]
        self.machine.speaking.drop(name)
        changes: list[Record] = [(records.position(name), None), (records.cut(name), None)]
        changes += [*self.machine.copying.forget(name), *self.machine.confirmed.forget(name)]
        changes += [*replica.leave(), *replica.forget_cut(keeping=None), *replica.clear()]
        # Only then: what is on disk of its views is known from them.
        self.out_of(replica)
        return changes

    # -------------------------------------------------------------------------------------------- progress

    def progress(self) -> dict[str, Progress]:
        found: dict[str, Progress] = {}
        for name, replica in self.machine.replicas.items():
            group = replica.group
            if self.machine.process not in (*group.starting, *group.learners):
                continue
            installed = replica.installed
            is_learner = self.machine.process in group.learners
            found[name] = Progress(
                group.configuration,
                started=self.has_cut(replica),
                caught_up=self.machine.copying.has_caught_up(replica)
                if is_learner
                else installed is not None and installed.view == group.configuration,
                position=replica.position,
                head=replica.head or 0,
                epoch=self._epoch_of_cut(replica),
            )
        return found

    def has_cut(self, replica: Replica) -> bool:
        view = replica.group.configuration
        if replica.view >= view:
            return True
        return replica.has_synced_cut and replica.cut is not None and replica.cut.view == view

    def _epoch_of_cut(self, replica: Replica) -> int:
        cut = replica.cut if replica.cut is not None else replica.last_cut
        return cut.epoch if cut is not None else 0

    def is_busy(self) -> bool:
        return any(
            replica.attempt is not None or self.machine.process in replica.group.learners
            for replica in self.machine.replicas.values()
        )

    def on_tick(self) -> None:
        self.machine.copying.snapshots.on_tick()
        for replica in self.machine.replicas.values():
            attempt = replica.attempt
            if attempt is not None and attempt.ending is None:
                is_late = replica.completed >= attempt.view or not self.machine.flushing.contributes(replica)
                if is_late:
                    self._ask_for_cut(replica)
            self.machine.copying.look(replica)

    def _ask_for_cut(self, replica: Replica) -> None:
        """Of those who may have it, one after the other."""
        others = [name for name in replica.group.replicas if name != self.machine.process]
        if others and replica.attempt is not None:
            replica.fetches += 1
            to = others[replica.fetches % len(others)]
            flush = Flush(group=replica.name, view=replica.attempt.view, behind=True)
            self.machine.out.append(Send((to,), flush))
