"""What goes to the terminal: at once where it has room, else later and in order; nobody waits; a frame is one write."""

from __future__ import annotations

import os
import select
import tty
from contextlib import suppress
from unittest.mock import Mock

from textual._ansi_sequences import SYNC_END, SYNC_START

from tui_agent.ui.terminal import TerminalDriver, TerminalWriter


def test_what_there_is_room_for_is_written_by_the_caller_and_the_rest_in_order() -> None:
    master, slave = os.openpty()
    tty.setraw(slave)
    writer = TerminalWriter(slave, lambda: None)
    writer.write("one")
    assert os.read(master, 100) == b"one", "there is no thread yet"
    long = "".join(f"é{number} " for number in range(40_000))
    writer.write(long)
    assert os.get_blocking(slave), "the shell writes there too"
    writer.start()
    writer.write("two")
    got = b""
    while not got.endswith(b"two"):
        got += os.read(master, 1 << 16)
    assert got.decode() == f"{long}two"
    writer.stop(5)
    os.close(master)
    os.close(slave)


def test_where_no_terminal_can_be_opened_again_a_thread_writes() -> None:
    out, into = os.pipe()
    writer = TerminalWriter(into, lambda: None)
    writer.write("one")
    writer.start()
    assert os.read(out, 100) == b"one"
    writer.stop(5)
    os.close(out)
    os.close(into)


def test_a_writer_waits_for_an_earlier_one_that_still_has_output_for_the_same_terminal() -> None:
    master, slave = os.openpty()
    tty.setraw(slave)
    earlier = TerminalWriter(slave, lambda: None)
    earlier.start()
    earlier.write("1" * 100_000)
    earlier.stop(0)
    later = TerminalWriter(slave, lambda: None)
    later.start()
    later.write("2" * 10)
    other_master, other_slave = os.openpty()
    other = TerminalWriter(other_slave, lambda: None)
    other.write("3")
    assert os.read(other_master, 100) == b"3", "another terminal does not wait"
    got = b""
    while len(got) < 100_010:
        got += os.read(master, 1 << 16)
    assert got == b"1" * 100_000 + b"2" * 10
    later.stop(5)
    other.start()
    other.stop(5)
    for descriptor in (master, slave, other_master, other_slave):
        os.close(descriptor)


async def test_the_last_words_on_a_full_terminal_are_written_when_it_is_read() -> None:
    master, slave = os.openpty()
    tty.setraw(slave)
    filling = os.open(os.ttyname(slave), os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK)
    with suppress(BlockingIOError):
        while os.write(filling, b"1" * 1000):
            pass
    driver = TerminalDriver(Mock())
    driver.fileno, driver.output, driver._draws_errors = os.dup(slave), os.dup(slave), False
    driver.is_parked = False
    driver.park("the last words")
    got = b""
    while b"the last words\r\n" not in got:
        assert select.select([master], [], [], 10)[0], "the words were dropped"
        got += os.read(master, 1 << 16)
    for descriptor in (master, slave, filling, driver.fileno, driver.output):
        os.close(descriptor)


async def test_a_frame_is_one_write() -> None:
    driver = TerminalDriver(Mock())
    driver._writer = Mock()
    for part in ("a", SYNC_START, "b", "c", SYNC_END, "d"):
        driver.write(part)
    written = [call.args[0] for call in driver._writer.write.call_args_list]
    assert written == ["a", f"{SYNC_START}bc{SYNC_END}", "d"]
