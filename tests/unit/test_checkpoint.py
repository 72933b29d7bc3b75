"""Cuts that are kept in one transaction with what was made of the messages before them."""

import sqlite3

import pytest

import ordercast
from ordercast import errors


@pytest.fixture
def database(tmp_path):
    with sqlite3.connect(tmp_path / "results.db") as found:
        found.execute("CREATE TABLE sums (name TEXT PRIMARY KEY, amount INTEGER)")
        yield found


CUT = ordercast.Cut(bytes(range(24)), 3)


def again_the_same(database, checkpoint):
    """Fails when it is half done."""
    checkpoint.keep(ordercast.Cut(CUT.order_key, 4))
    database.execute("INSERT INTO sums VALUES ('a', 2)")


def test_at_first_there_is_nothing_to_go_on_from(database):
    assert ordercast.Checkpoint(database, "sums").cut is None


def test_the_place_and_the_result_are_there_together_or_not_at_all(database, tmp_path):
    checkpoint = ordercast.Checkpoint(database, "sums")
    with database:
        database.execute("INSERT INTO sums VALUES ('a', 1)")
        checkpoint.keep(CUT)
    with pytest.raises(sqlite3.IntegrityError), database:
        again_the_same(database, checkpoint)
    with sqlite3.connect(tmp_path / "results.db") as again:
        assert again.execute("SELECT amount FROM sums").fetchall() == [(1,)]
        assert ordercast.Checkpoint(again, "sums").cut == CUT


def test_consumers_have_places_of_their_own_in_one_table(database):
    one, other = (ordercast.Checkpoint(database, name) for name in ("one", "other"))
    one.keep(CUT)
    assert (one.cut, other.cut) == (CUT, None)


def test_a_delivery_stands_for_the_cut_right_behind_it(database):
    delivery = ordercast.MergedDelivery({"a": 0}, CUT.order_key, 3, b"", b"", {}, b"p", 1, "p-1")
    checkpoint = ordercast.Checkpoint(database, "sums")
    checkpoint.keep(delivery)
    assert checkpoint.cut == ordercast.Cut(CUT.order_key, 4)


@pytest.mark.parametrize(("name", "table"), [("", "places"), ("sums", "places; DROP TABLE sums"), ("sums", "")])
def test_a_table_is_called_by_a_name(database, name, table):
    with pytest.raises(errors.InvalidArgument):
        ordercast.Checkpoint(database, name, table=table)


@pytest.mark.parametrize("text", ["", "zz", "00.x", "00" * 65, "00.-1", "00.4294967296"])
def test_what_is_no_cut_is_not_taken_for_one(text):
    if not text:
        assert ordercast.Cut.parse(text) == ordercast.Cut()
        return
    with pytest.raises(errors.InvalidArgument):
        ordercast.Cut.parse(text)
