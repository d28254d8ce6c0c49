"""Git in a view: which files are hidden from it, and which replacements a plan has."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tui_agent.files.git_folder import GitFolder
from tui_agent.git.object_stores import HistoryAnswer, WithoutSecrets
from tui_agent.sandbox import git_objects
from tui_agent.sandbox.view_plan import Seed, ViewPlan

PLAN = ViewPlan("/w/a", "/h", (), {}, (), ("/m",), ("/w/.git", "/w", "/w/a"), (Seed("x", "gone"),))


@pytest.mark.parametrize(
    ("path", "overlay", "hidden"),
    [
        ("a/.env", "/w", None),  # The workspace has its own overlay.
        (".env", "", b"a/.env"),
        (".env", "/w/a", b"a/.env"),
        (".env", "/w", b".env"),
        ("a/.env", "/other", None),
        ("config", "/w/.git", None),
        (".git/config", "/w", None),
    ],
)
def test_paths_below_the_top_of_a_repository_are_hidden(
    path: str, overlay: str, hidden: bytes | None
) -> None:
    found = GitFolder("/w", "/w/.git", "/w/.git", "", ())
    told = git_objects._hidden(found, [Seed(path, "hidden", overlay=overlay)], "/w/a")
    assert told == ([] if hidden is None else [hidden])


def test_without_a_repository_the_workspace_is_the_top() -> None:
    seeds = [Seed("b", "hidden"), Seed("a", "hidden"), Seed("a", "hidden", overlay="/w/a")]
    assert git_objects._hidden(None, seeds, "/w/a") == [b"a", b"b"]


def without(**changed: object) -> WithoutSecrets:
    given: dict = {"common_dir": b"/w/.git", "git_dir": b"/w/.git"} | changed
    return WithoutSecrets(**given)


def seeds_of(made: ViewPlan) -> dict[tuple[str, str], tuple[str, bytes]]:
    return {(seed.overlay, seed.path): (seed.kind, seed.content) for seed in made.seeds}


def test_files_of_git_are_replaced_in_their_overlay_and_masked_outside() -> None:
    each = without(
        gone=[b"/w/.git/objects/pack/p", b"/other/p"], emptied=[b"/w/.git/ORIG"], refs=b"r", index=b"i"
    )
    made = git_objects._with_objects(PLAN, HistoryAnswer([each], gone=[b"/w/b"]))
    assert seeds_of(made) == {
        ("", "x"): ("gone", b""),
        ("/w", "b"): ("gone", b""),
        ("/w/.git", "objects/pack/p"): ("gone", b""),
        ("/w/.git", "ORIG"): ("hidden", b""),
        ("/w/.git", "packed-refs"): ("hidden", b"r"),
        ("/w/.git", "index"): ("hidden", b"i"),
    }
    assert made.masks == ("/m", "/other/p")


@pytest.mark.parametrize("isolated", ["overlay", "landlock"])
def test_stores_of_objects_are_alternates(isolated) -> None:
    plan = replace(PLAN, isolated=isolated)
    made = git_objects._with_objects(plan, HistoryAnswer([without(stores=[b"/state/s1", b"/state/s2"])]))
    shown = (
        ["/state/s1", "/state/s2"] if isolated == "landlock" else ["/run/tui-agent/s1", "/run/tui-agent/s2"]
    )
    assert made.stores == dict(zip(shown, ("/state/s1", "/state/s2"), strict=True))
    content = "".join(f"{path}\n" for path in shown).encode()
    assert seeds_of(made)["/w/.git", "objects/info/alternates"] == ("hidden", content)


@pytest.mark.parametrize("sparse", [False, True])
def test_tracked_secrets_are_left_out_by_a_sparse_checkout(tmp_path: Path, sparse: bool) -> None:
    git = tmp_path / ".git"
    (git / "info").mkdir(parents=True)
    (git / "config").write_text(f"[core]\n\tsparseCheckout = {str(sparse).lower()}\n")
    (git / "info/sparse-checkout").write_text("/src/\n\n")
    plan = replace(PLAN, workspace=str(tmp_path), overlays=(str(git), str(tmp_path)), seeds=())
    each = without(common_dir=bytes(git), git_dir=bytes(git), tracked=[b".env", b"a *[x]?!#\\", b"b\nc"])
    found = seeds_of(git_objects._with_objects(plan, HistoryAnswer([each])))
    kind, settings = found[str(git), "config"]
    assert kind == "hidden" and settings.endswith(git_objects._SPARSE)
    patterns = b"!/.env\n!/a\\ \\*\\[x]\\?\\!\\#\\\\\n!/b?c\n"
    assert found[str(git), "info/sparse-checkout"] == (
        "hidden",
        (b"/src/\n" if sparse else b"/*\n") + patterns,
    )


def test_a_plan_without_a_visible_repository_is_unchanged(tmp_path: Path) -> None:
    for name in ("objects", "refs"):
        (tmp_path / "repo/.git" / name).mkdir(parents=True)
    (tmp_path / "repo/.git/HEAD").write_text("ref: refs/heads/main\n")
    (tmp_path / "repo/inner").mkdir()
    root, inner = str(tmp_path / "repo"), str(tmp_path / "repo/inner")
    secret = [Seed(".env", "hidden")]
    assert git_objects._of_view(replace(PLAN, workspace=root, overlays=(root,)), secret, []) == (
        root,
        [b".env"],
    )
    nested = replace(PLAN, workspace=inner, overlays=(root, inner))
    assert git_objects._of_view(nested, secret, []) == (root, [b"inner/.env"])
    alone = replace(PLAN, workspace=inner, overlays=(inner,))
    assert git_objects._of_view(alone, secret, []) == ("", [])
    assert git_objects._of_view(alone, secret, ["sub"]) == (inner, [b".env"])
    copied = replace(nested, isolated="landlock", folder="/trials/1")
    assert git_objects._of_view(copied, secret, []) == ("", [])
