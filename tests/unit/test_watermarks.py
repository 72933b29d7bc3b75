"""What readers hear of what machines said, and what gateways ask idle cells."""

from ordercast.core.ids import last_key_of
from ordercast.core.machine import Watermark
from ordercast.core.questions import AGAIN_S, PACE_S, Question, Questions
from ordercast.core.watermarks import WAITING_MAX, Watermarks

# ----------------------------------------------------------------------------------------------- what readers hear


def said(*pairs: tuple[int, int]) -> Watermarks:
    watermarks = Watermarks()
    for sn, position in pairs:
        watermarks.note(Watermark("a", last_key_of(sn), position))
    return watermarks


def test_a_watermark_is_heard_when_the_log_on_disk_goes_as_far():
    watermarks = said((5, 3))
    assert watermarks.readable("a", 2) == b""
    assert watermarks.readable("a", 3) == last_key_of(5)
    assert watermarks.readable("b", 9) == b""


def test_the_highest_that_the_disk_allows_is_heard():
    watermarks = said((5, 1), (6, 2), (9, 4))
    assert watermarks.readable("a", 3) == last_key_of(6)
    assert watermarks.readable("a", 9) == last_key_of(9)


def test_at_one_position_only_the_latest_is_kept():
    watermarks = said((5, 1), (7, 1))
    assert watermarks.readable("a", 1) == last_key_of(7)


def test_a_disk_that_stands_still_makes_nothing_grow_and_hides_only_what_is_between():
    watermarks = said(*((sn, sn) for sn in range(1, 1000)))
    assert len(watermarks._said["a"]) == WAITING_MAX
    assert watermarks.readable("a", 1) == last_key_of(1)
    assert watermarks.readable("a", 1000) == last_key_of(999)


def test_a_log_that_begins_anew_is_not_vouched_for_before_it_is_as_long_again():
    watermarks = said((5, 3))
    assert watermarks.readable("a", 3) == last_key_of(5)
    assert watermarks.readable("a", 0) == b""


def test_cells_that_are_not_here_any_more_are_forgotten():
    watermarks = said((5, 0))
    watermarks.keep(lambda cell: cell == "b")
    assert watermarks.readable("a", 0) == b""


# --------------------------------------------------------------------------------------------- what gateways ask


def test_however_many_wait_for_a_cell_it_is_asked_once_for_the_highest_key():
    questions = Questions()
    for sn in (3, 9, 5):
        questions.want("a", last_key_of(sn), 1.0)
    assert questions.due(1.0) == [Question("a", last_key_of(9), again=False)]
    assert questions.due(1.0) == []


def test_a_higher_key_is_asked_for_a_moment_later_though_the_first_is_not_answered():
    questions = Questions()
    questions.want("a", last_key_of(3), 1.0)
    questions.due(1.0)
    questions.want("a", last_key_of(4), 1.0)
    assert questions.due(1.0 + PACE_S / 2) == []
    assert questions.next_at() == 1.0 + PACE_S
    assert questions.due(1.0 + PACE_S) == [Question("a", last_key_of(4), again=False)]


def test_a_question_without_an_answer_goes_to_everybody():
    questions = Questions()
    questions.want("a", last_key_of(3), 1.0)
    questions.due(1.0)
    assert questions.due(1.0 + AGAIN_S) == [Question("a", last_key_of(3), again=True)]


def test_an_answer_that_goes_far_enough_ends_it():
    questions = Questions()
    questions.want("a", last_key_of(3), 1.0)
    questions.due(1.0)
    questions.passed("a", last_key_of(2), 1.1)
    assert len(questions) == 1
    questions.passed("a", last_key_of(3), 1.2)
    assert (len(questions), questions.next_at()) == (0, None)
