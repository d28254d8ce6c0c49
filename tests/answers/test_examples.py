"""Whether the words above a change say that it is to be done, or show it as an example or as history."""

from __future__ import annotations

import pytest
from support.shapes import FUNCTIONS, RESPONSE

from tui_agent.answers import examples
from tui_agent.answers.examples import is_example
from tui_agent.answers.structured_reader import StructuredReader
from tui_agent.answers.values import Reply


def read(text: str) -> Reply:
    reader = StructuredReader(RESPONSE, FUNCTIONS)
    reader.feed(text)
    return reader.finish(False)


DO = [
    "I fixed the bug that came with the last commit:",
    "The linter is right; I remove the import:",
    "The docs say 2, so I change it:",
    "Die Funktion sieht jetzt so aus:",
    "Ik pas de waarde aan:",
    "I follow the protocol and send 2:",
    "Here is the change:",
    "I changed the default from 3 to 30, because the server was slow:",
    "The error came from a missing await; this adds it:",
    "Replace the call in `api.py`:",
    "The following edit adds a timeout, as in the example you gave:",
    "Update `m.py` so that it no longer uses the old format:",
    "I have not run the tests, but this should work:",
    "These lines were changed by mistake, so I put them back:",
    "The problem was the missing lock. I add one:",
    "Now the retry loop, which did not apply to timeouts before:",
    "I did not touch the other callers. The edit:",
    "The documentation said seconds, so the code now does too:",
    "In `m.py`, the reply format is checked now:",
    "Adds an example to the docstring:",
    "Here's the patch:",
    "Apply this patch:",
    "The bug was introduced by the commit abc1234, this reverts it:",
    "I'll revert the change made in commit abc1234:",
    "First, make `load` return early:",
    "And the test for it:",
    "To do this, edit `m.py`:",
    "Add the missing import:",
    "I removed the branch that was never called:",
    "The config was not applied on reload; it is now:",
    "Since the error started with 2.0, pin the version:",
    "The function should not return None, so raise instead:",
    "The output looks like a table now:",
    "I use a context manager instead of calling close:",
    "It must not be negative, so clamp it:",
    "This would have been simpler with a dict, so I use one:",
    "For instance methods the name is bound now:",
    "Voici la correction :",
    "这是修改：",
    "Changes to `m.py`:",
    "Fix the typo in the message:",
    "Next, the CHANGELOG entry for the commit:",
    "I wrote the example from the issue as a test:",
    "The change was small:",
    "Here is what I changed:",
    "Make the documentation match:",
    "I'm adding a guard clause to `parse`:",
    "Let me correct that:",
    "The simplest fix is to cache the result:",
    "Below is the full patch:",
    "We need to close the file as well:",
    "In order to support Windows, the path is normalised:",
    "`m.py` gets a new helper:",
    "The test expects a list, so return one:",
    "Sure! Here are the edits you asked for:",
    "Rename `foo` to `bar`:",
    "This commit message says 3 but the code says 2; align them:",
    "I've gone ahead and removed the unused import:",
    "Switching to `pathlib`:",
    "After that, `main` calls it:",
    "Here's my proposed change:",
    "And finally the docs:",
    "The documentation needs an update too:",
    "It used to ignore errors; with this edit it logs them:",
    "The last commit forgot the changelog, here it is:",
    "Let's use a set here:",
    "Proposed edit:",
    "Modified `m.py`:",
    "Step 1. Guard against empty input:",
    "Fixes #12:",
    "The call could fail, so I wrap it:",
    "Moved the constant to the top, since it is used twice:",
    "Corrige la función así:",
    "修复如下：",
    "I'll tighten the check:",
    "The loop must stop at the first match:",
    "Swap the arguments:",
    "Two changes are needed. The first:",
    "Here you go:",
    "`Config.load` should accept a path as well:",
    "That's a one-line fix:",
    "I noticed the log level was wrong, so I corrected it:",
    "Also drop the dead code:",
    "The tests were failing because of a typo; fixed:",
    "My edit to `m.py`:",
    "The types don't match, convert first:",
    "There was a race. Take the lock:",
    "I extracted the helper:",
    "With that in place, simplify `main`:",
    "Done. The diff:",
    "I bumped the pool size and kept the rest:",
    "That leaves the parser, which I've shortened:",
    "This makes the lookup case-insensitive:",
    "`utils/date.py`, with the timezone handled:",
    "Just one line changes:",
    "You were right that the earlier patch missed Windows. Corrected version:",
    "As the reviewer suggested, I split the function:",
    "I couldn't run the suite here, yet the fix is straightforward:",
    "I haven't touched anything else. The diff for `api.py`:",
    "So the complete change is",
    "Changes in `a.py` and `b.py`:",
    "I replaced the example configuration with a working one:",
    "Ich habe die Prüfung ergänzt:",
    "Voici le correctif pour `panier.py` :",
    "He añadido la validación:",
    "Corrigi o cálculo do total:",
    "Ecco la modifica:",
    "Замените вызов на следующий:",
    "把默认值改成 30：",
    "다음과 같이 수정했습니다:",
    "Hatayı düzelttim:",
    "Thanks! The session is closed too early, so the fix is to keep it open until the request is done:",
    "Edit:",
    "This adds the flag you asked for, and documents it:",
    "`parse` crashes on an empty line. Guard it:",
    "J'ai corrigé la faute de frappe :",
    "Исправил ошибку в `api.py`:",
    "And in the template",
    "It's a one-character change:",
    "I'd suggest the following change:",
    "I recommend making this change:",
    "I would change it as follows:",
    "Here's how to fix it:",
    "Here's how you can implement the feature:",
    "You could fix this by applying the following patch:",
    "The simplest solution is to add a guard clause:",
    "This can be done by adding a default:",
    "After the change the function looks like this:",
    "Your function should look like this:",
    "Don't forget to also update the constructor:",
    "Not a problem, here you go:",
    "As you asked, only the diff:",
    "A minimal patch that does what you want:",
    "I think the best way to go about this is a small helper:",
]
SHOW = [
    "This is what the linter complained about:",
    "Git bisect points at:",
    "A typical reply in this protocol:",
    "The author of PR 431 proposed:",
    "The manual gives this call:",
    "Were it mine, I would write:",
    "What GPT answered:",
    "Ein Aufruf sieht so aus:",
    "Il formato è questo:",
    "次のような形式です：",
    "変更前：",
    "For example, you could write:",
    "If you wanted to change it, you could do:",
    "Do NOT apply this:",
    "Don't do this:",
    "An alternative (which I rejected):",
    "Previously I tried this and it failed:",
    "This is what I would have done:",
    "The bug came with this commit:",
    "This is what the commit changed:",
    "The regression was introduced by this change:",
    "Upstream fixed it like this:",
    "Here is what the previous version did:",
    "What changed in version 2.0:",
    "The format of an edit is:",
    "An edit looks like this:",
    "A search/replace block looks like this:",
    "As an example:",
    "Example:",
    "e.g.",
    "Instead of this:",
    "You should avoid changes like this:",
    "It would look something like:",
    "I have not made this change:",
    "I did not apply the following:",
    "I decided against this:",
    "This was rejected in review:",
    "The diff of the last commit:",
    "Last week somebody changed it:",
    "`git log -p` shows:",
    "The output of `git diff`:",
    "The old implementation was changed like so:",
    "One could also write:",
    "Another option would be:",
    "Alternatively, you might want:",
    "A naive fix would be:",
    "Hypothetically:",
    "The wrong way:",
    "Bad:",
    "Zum Beispiel:",
    "Por ejemplo:",
    "Das wäre falsch:",
    "比如：",
    "例如：",
    "Suppose we had done this instead:",
    "You could later extend it like so:",
    "This is how the maintainers fixed it in 3.1:",
    "In the tutorial they do:",
    "Your earlier patch was:",
    "Here's an example of the edit format:",
    "For reference, the reverted commit was:",
    "That would be done like this:",
    "Please don't apply this, it's only for illustration:",
    "To illustrate:",
    "A typical edit would be:",
    "Just to show the idea:",
    "Something along these lines might work:",
    "The commit that broke it:",
    "For comparison, the original code was:",
    "I considered this but dropped it:",
    "In a previous session I proposed:",
    "What you had before:",
    "The old code:",
    "Your colleague's change from yesterday:",
    "I'd normally write:",
    "Not this:",
    "Anti-pattern:",
    "In pseudo-code:",
    "Like this (don't copy it):",
    "The following is wrong:",
    "The upstream diff, for context:",
    "Here is how such a block is written:",
    "Sample:",
    "Illustration:",
    "You can also do it by hand, e.g.:",
    "Beispielsweise so:",
    "仅供参考：",
    "The change that introduced the bug:",
    "One way to do it (not recommended):",
    "If we ever need that, this is how:",
    "In the old days one wrote:",
    "As an illustration, consider:",
    "This snippet shows the syntax:",
    "A made-up example:",
    "Had you asked for it, I would have sent:",
    "The patch from the pull request:",
    "Blame shows:",
    "Not done, because it breaks the API:",
    "I am not going to do this:",
    "Please ignore the following:",
    "The reviewer suggested:",
    "Compare with what version 1 did:",
    "Possible, but risky:",
    "Theoretically:",
    "Format:",
    "Wrong:",
    "Say you had a dict there; then this would be enough:",
    "This is roughly what git recorded at the time:",
    "That's the diff I found in the history:",
    "The culprit is this one, from March:",
    "Here's what I won't be doing:",
    "Each edit must be written in this form:",
    "For the record, the rejected version:",
    "Out of scope here, but a follow-up might be",
    "Other projects solve it this way:",
    "The docs give this sample:",
    "Nobody should ever write",
    "Quoting the patch from the mailing list:",
    "Yours looked like this yesterday:",
    "`git show HEAD~3` prints",
    "The regression arrived with this hunk:",
    "Think of it as",
    "So sah die Stelle vorher aus:",
    "Das habe ich nicht gemacht:",
    "On aurait pu écrire :",
    "Un ejemplo del formato:",
    "No apliques esto:",
    "Ecco un esempio:",
    "Можно было бы написать так:",
    "这个提交引入了错误：",
    "以前のコミットの差分です：",
    "Przykład takiego bloku:",
    "If we went that way, the edit to `api.py` would read",
    "As of v1.9 it was",
    "A sketch:",
    "The following was rolled back in March:",
    "Old version:",
    "I will not change this file, but if I did:",
    "Do you mean something like this?",
    "Would this be OK?",
    "Option B:",
    "Möglich wäre:",
    "¿Quieres que haga esto?",
    "Старый вариант:",
    "以前的写法：",
]


def test_what_is_to_be_done_is_told_from_what_is_shown() -> None:
    assert [line for line in DO if is_example(line)] == []
    assert [line for line in SHOW if not is_example(line)] == []


def test_a_line_below_may_say_so_too() -> None:
    assert all(
        is_example("", line) for line in ("This was not applied.", "as documented.", "It is only an example.")
    )
    assert not any(
        is_example("", line) for line in ("It works now.", "The tests pass.", "Run it with `make`.")
    )


BLOCK = "<<<<<<< SEARCH\nget(url)\n=======\nget(url, 5)\n>>>>>>> REPLACE\n"
DIFF = "```diff\n--- a/api.py\n+++ b/api.py\n@@ -1 +1 @@\n-get(url)\n+get(url, 5)\n```\n"


@pytest.mark.parametrize(
    "text",
    [
        f"For example, you could write:\n\napi.py\n{BLOCK}",
        f"The culprit was this commit:\n\n**api.py**\n```\n{BLOCK}```\n",
        f"The bug came with this commit:\n\n### api.py\n\n{DIFF}",
        f"The bug came with this commit.\n\nIt changed the call:\n\n{DIFF}",
        f"If you ever want to call it with a timeout, you could of\ncourse extend `get` in\nthis way:\n\n{DIFF}",
        f"Should I do this?\n\n{DIFF}",
        f"## What the commit did\n\n{DIFF}",
        f"The handler of the second route:\n\nhistory of `get`, as far as the log has it\n\n{DIFF}",
        "How a patch looks:\n\n*** Begin Patch\n*** Update File: api.py\n@@\n-get(url)\n+get(url, 5)\n*** End Patch\n",
    ],
)
def test_names_line_breaks_and_paragraphs_between_hide_no_words(text: str) -> None:
    reply = read(text)
    assert (len(reply.changes), len(reply.offered)) == (0, 1)


def test_what_follows_without_words_is_as_what_it_follows() -> None:
    both = f"api.py\n{BLOCK}\nb.py\n{BLOCK}"
    shown, meant = read(f"For example:\n\n{both}"), read(f"The value is never checked.\n\n{both}")
    assert (len(shown.changes), len(shown.offered)) == (0, 2)
    assert (len(meant.changes), len(meant.offered)) == (2, 0)


@pytest.mark.parametrize(
    "words", ["", "The regex lacks the sign.\n\n", "Sure!\n\n", "I made `get` wait, as you could see.\n\n"]
)
def test_what_leads_to_nothing_hides_no_change(words: str) -> None:
    assert len(read(f"{words}api.py\n{BLOCK}").changes) == 1


@pytest.mark.parametrize(
    "fenced",
    [
        "```python api.py\n# Author: A. Name <a@b.c>\n# commit 0123abcdef\nAuthor: A. Name\nx = 1\n```\n",
        "```diff\n--- a/api.py\n+++ b/api.py\n@@ -1,2 +1,2 @@\n Author: A. Name\n-x\n+y\n```\n",
        "api.py\n```\n<<<<<<< SEARCH\nAuthor: A. Name\n=======\nAuthor: B. Name\n>>>>>>> REPLACE\n```\n",
    ],
)
def test_the_author_of_a_file_is_no_commit(fenced: str) -> None:
    assert len(read(f"Certainly, here is the change.\n\n{fenced}").changes) == 1


def test_a_commit_above_a_diff_in_a_fence_is_only_shown() -> None:
    diff = "diff --git a/api.py b/api.py\n--- a/api.py\n+++ b/api.py\n@@ -1 +1 @@\n-x\n+y\n"
    assert examples.is_commit("", f"```\nAuthor: A. Name <a@b.c>\n\n    Words\n\n{diff}")
    assert examples.is_commit("Author: A. Name <a@b.c>\n", "```python api.py\n")


def test_a_file_like_the_one_below_is_an_example() -> None:
    assert is_example("To keep it small, add a `.dockerignore` file like the one below:\n")
    assert is_example("Add a file similar to this one:\n")
    assert not is_example("I changed the function so that it looks like the following:\n")
