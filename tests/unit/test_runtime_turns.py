"""Turns: one owner at a time; an exception, a dead reference, a nested call or a fork keeps nobody out."""

import os
import threading

import pytest

from ingot_runtime.loader.turns import Turns


def test_one_owner_at_a_time() -> None:
    """Eight threads count in steps that would lose counts if two were inside at once."""
    turns, inside, counts = Turns(), set[int](), [0]

    def work(index: int) -> None:
        for _ in range(200):
            turn = turns.take()
            try:
                inside.add(index)
                assert inside == {index}
                counts[0] += 1
                inside.remove(index)
            finally:
                turn.end()

    threads = [threading.Thread(target=work, args=(index,)) for index in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counts == [1600]


def test_a_turn_is_waited_for() -> None:
    """Another thread comes only after the end."""
    turns, order = Turns(), list[str]()
    turn = turns.take()

    def follow() -> None:
        turns.take()
        order.append("second")

    thread = threading.Thread(target=follow)
    thread.start()
    order.append("first")
    turn.end()
    thread.join()
    assert order == ["first", "second"]


def test_a_forgotten_turn_is_over() -> None:
    """Whoever lost a turn to an exception has ended it."""
    turns = Turns()

    def interrupted() -> None:
        _turn = turns.take()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        interrupted()
    del caught
    taken = threading.Event()

    def follow() -> None:
        turns.take()
        taken.set()

    thread = threading.Thread(target=follow)
    thread.start()
    thread.join()
    assert taken.is_set()


def test_one_thread_may_take_two() -> None:
    """A finalizer that runs inside does not wait for itself."""
    turns = Turns()
    outer = turns.take()
    turns.take().end()
    outer.end()
    turns.take().end()


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # of a fork beside threads, which is meant
def test_a_forked_child_waits_for_nobody() -> None:
    """The thread that had the turn is not there in the child."""
    turns, taken, done = Turns(), threading.Event(), threading.Event()

    def hold() -> None:
        turn = turns.take()
        taken.set()
        done.wait()
        turn.end()

    thread = threading.Thread(target=hold)
    thread.start()
    taken.wait()
    child = os.fork()
    if child == 0:
        turns.take()
        os._exit(7)
    done.set()
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
