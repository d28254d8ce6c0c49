"""Attacks that one test each tries in the program as it is: values in requests, foreign repositories, redirects, names.

A kind is a table row, and each case of the tests that it names is one case here; it holds if the test passes.
"""

from __future__ import annotations

import contextlib
import io
from pathlib import Path

import pytest

from tests.proofs.tally import Tally

TESTS = Path(__file__).parents[1]
KINDS: dict[str, tuple[str, ...]] = {
    "what a command prints goes to no model and into no export": (
        "turn/test_secret_values.py::test_what_a_command_prints_of_a_secret_is_in_no_request_and_no_export",
        "turn/test_secret_values.py::test_an_output_that_was_kept_before_is_masked_in_exports",
        "turn/test_secret_values.py::test_a_value_in_another_file_is_masked_and_that_file_is_known_in_part",
    ),
    "a value that only git has": ("turn/test_secret_values.py::test_a_secret_that_only_git_has_is_masked",),
    "a mask reaches no file": (
        "turn/test_secret_values.py::test_a_mask_is_never_written",
        "turn/test_secret_values.py::test_what_a_command_wrote_with_a_mask_is_not_taken",
    ),
    "a repository elsewhere": (
        "files/test_hostile_repositories.py::test_a_repository_that_names_another_folder_or_none_is_not_taken",
        "files/test_hostile_repositories.py::test_a_repository_elsewhere_is_said_at_the_start",
    ),
    "folders of others in the temporary folder": ("files/test_temporary.py",),
    "a redirect to another host": (
        "model/test_redirect.py::test_neither_a_key_nor_a_prompt_goes_to_another_host",
    ),
    "a key that no header can hold": (
        "model/test_redirect.py::test_a_key_that_no_header_can_hold_is_refused_in_a_sentence",
    ),
    "an answer that unpacks without end": (
        "model/test_broken_streams.py::test_a_packed_body_is_unpacked_in_small_pieces",
        "model/test_broken_streams.py::test_a_line_that_does_not_end_cuts_the_answer_long_before_it_fills_the_memory",
    ),
    "globs of `trial.reveal`": (
        "sandbox/test_hidden_files.py",
        "sandbox/test_secrets.py::test_what_the_person_reveals_is_there_and_each_glob_says_what_it_shows",
    ),
    "trust without a terminal": (
        "cli/test_config_command.py::test_trust_brings_the_workspaces_settings_into_force",
    ),
    "a filter with a name of 3,000 letters": (
        "ui/test_trusting.py::test_filters_are_shown_with_their_commands",
    ),
    "a denied command in other clothes": (
        "tools/test_permission.py::test_a_denied_command_is_found_however_it_is_written",
    ),
    "a pipe with a file's name": (
        "files/test_gate.py::test_a_pipe_never_blocks",
        "files/test_gate.py::test_a_pipe_swapped_in_does_not_block_either",
        "cli/test_given_files.py",
    ),
}


class Outcomes:
    """What became of each case, by the test's path and name without its parameters."""

    def __init__(self) -> None:
        self.found: list[tuple[str, bool]] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or report.failed:
            self.found.append((report.nodeid, report.passed))


def prove(tally: Tally, scale: float) -> None:
    """Every case, whatever the scale: together they take less than a minute."""
    outcomes = Outcomes()
    words = ["-q", "-n", "0", "-p", "no:cacheprovider", f"--rootdir={TESTS.parent}"]
    tests = [str(TESTS / one) for ones in KINDS.values() for one in ones]
    with contextlib.redirect_stdout(io.StringIO()):
        pytest.main([*words, *tests], plugins=[outcomes])
    for kind, named in KINDS.items():
        of_kind = [pair for pair in outcomes.found if pair[0].removeprefix("tests/").startswith(named)]
        for name, passed in of_kind:
            tally.case(kind, passed, what=name)
        if not of_kind:
            tally.case(kind, False, what="it did not run")
