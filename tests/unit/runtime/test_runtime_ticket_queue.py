"""A queue of tickets: one owner at a time; an exception, a dead reference, a nested call or a fork
keeps nobody out."""

import os
import threading

import pytest

from ingot_runtime.loader.ticket_queue import TicketQueue


def test_one_owner_at_a_time() -> None:
    """Eight threads count in steps that would lose counts if two were inside at once."""
    queue, inside, counts = TicketQueue(), set[int](), [0]

    def work(index: int) -> None:
        for _ in range(200):
            ticket = queue.take()
            try:
                inside.add(index)
                assert inside == {index}
                counts[0] += 1
                inside.remove(index)
            finally:
                ticket.end()

    threads = [threading.Thread(target=work, args=(index,)) for index in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counts == [1600]


def test_a_turn_is_waited_for() -> None:
    """Another thread comes only after the end."""
    queue, order = TicketQueue(), list[str]()
    ticket = queue.take()

    def follow() -> None:
        queue.take()
        order.append("second")

    thread = threading.Thread(target=follow)
    thread.start()
    order.append("first")
    ticket.end()
    thread.join()
    assert order == ["first", "second"]


def test_a_forgotten_turn_is_over() -> None:
    """Whoever lost a ticket to an exception has ended it."""
    queue = TicketQueue()

    def interrupted() -> None:
        _ticket = queue.take()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        interrupted()
    del caught
    taken = threading.Event()

    def follow() -> None:
        queue.take()
        taken.set()

    thread = threading.Thread(target=follow)
    thread.start()
    thread.join()
    assert taken.is_set()


def test_one_thread_may_take_two() -> None:
    """A finalizer that runs inside does not wait for itself."""
    queue = TicketQueue()
    outer = queue.take()
    queue.take().end()
    outer.end()
    queue.take().end()


@pytest.mark.filterwarnings(
    "ignore:This process:DeprecationWarning"
)  # of a fork beside threads, which is meant
def test_a_forked_child_waits_for_nobody() -> None:
    """The thread that had the ticket is not there in the child."""
    queue, taken, done = TicketQueue(), threading.Event(), threading.Event()

    def hold() -> None:
        ticket = queue.take()
        taken.set()
        done.wait()
        ticket.end()

    thread = threading.Thread(target=hold)
    thread.start()
    taken.wait()
    child = os.fork()
    if child == 0:
        queue.take()
        os._exit(7)
    done.set()
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
