"""What terminals send that nobody typed, as it was recorded, and a way to mix it with keys."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

ST, BEL = "\x1b\\", "\a"

#: By what was asked. The terminals are xterm, VTE, kitty, foot, WezTerm, Ghostty, Konsole, iTerm2, Alacritty, mintty,
#: Windows Terminal, tmux and screen; vim and nvim ask most of it when they start and leave the answers behind.
ANSWERS: dict[str, Sequence[str]] = {
    "DA1": (
        "\x1b[?1;2c",
        "\x1b[?6c",
        "\x1b[?62;22c",
        "\x1b[?64;1;2;6;9;15;16;17;18;21;22;28c",
        "\x1b[?65;1;9c",
    ),
    "DA2": ("\x1b[>0;276;0c", "\x1b[>41;354;0c", "\x1b[>1;4000;29c", "\x1b[>84;0;0c", "\x1b[>65;7600;1c"),
    "DA3": (f"\x1bP!|00000000{ST}", f"\x1bP!|7E565445{ST}", f"\x1bP!|464F4F54{ST}"),
    "XTVERSION": (
        f"\x1bP>|xterm(388){ST}",
        f"\x1bP>|tmux 3.4{ST}",
        f"\x1bP>|kitty(0.35.2){ST}",
        f"\x1bP>|a A s{ST}",
    ),
    "DSR": ("\x1b[0n", "\x1b[3n", "\x1b[?13n", "\x1b[?997;1n"),
    "CPR": ("\x1b[1;1R", "\x1b[24;80R", "\x1b[1;2R", "\x1b[?5;10;1R"),
    "kitty keys": ("\x1b[?0u", "\x1b[?1u", "\x1b[?25u", "\x1b[?31u"),
    "modifyOtherKeys": ("\x1b[>4;2m", "\x1b[>4;0m"),
    "DECRPM": ("\x1b[?2026;2$y", "\x1b[?2048;2$y", "\x1b[?2027;0$y", "\x1b[?12;1$y", "\x1b[4;2$y"),
    "DECRQSS": (f"\x1bP1$r0m{ST}", f"\x1bP1$r2 q{ST}", f"\x1bP0$r{ST}", f"\x1bP1$r48:2:1:2:3m{ST}"),
    "XTGETTCAP": (f"\x1bP1+r524742=382F382F38{ST}", f"\x1bP0+r4D73{ST}", f"\x1bP1+r6b75=1B4F41{ST}"),
    "size": (
        "\x1b[8;24;80t",
        "\x1b[4;960;1280t",
        "\x1b[6;20;10t",
        "\x1b[48;24;80;960;1280t",
        "\x1b[48;10;20;0;0t",
    ),
    "title": (f"\x1b]la A s\r U{ST}", f"\x1b]Lapply all{ST}"),
    "colours": (
        f"\x1b]10;rgb:ffff/ffff/ffff{ST}",
        f"\x1b]11;rgb:1e1e/1e1e/2e2e{BEL}",
        f"\x1b]12;rgb:aaaa/aaaa/aaaa{ST}",
        f"\x1b]4;0;rgb:0000/0000/0000{BEL}",
        f"\x1b]4;255;rgba:eeee/eeee/eeee/ffff{ST}",
    ),
    "clipboard": (f"\x1b]52;c;YSBBIHMgVQ=={BEL}", f"\x1b]52;p;{ST}", f"\x1b]52;c;{'QUFh' * 2000}{ST}"),
    "pictures": (
        f"\x1b_Gi=31;OK{ST}",
        f"\x1b_Gi=31;ENOTSUPPORTED:a A s{ST}",
        "\x1b[?1;0;256S",
        "\x1b[?2;0;800;600S",
    ),
    "shell marks": (f"\x1b]133;A{ST}", f"\x1b]7;file:///home/a{BEL}", f"\x1b]1337;Capabilities=T3C{ST}"),
    "PM, SOS": (f"\x1b^a private message{ST}", f"\x1bXa string of anything: a\rA{ST}"),
    "mouse": (
        "\x1b[M !!",
        "\x1b[Ma\x7f\x7f",
        "\x1b[32;10;10M",
        "\x1b[<35;-1;4M",
        "\x1b[<0;99999999999999999999;1M",
    ),
    "focus": ("\x1b[I", "\x1b[O\x1b[I"),
    "keys let go": ("\x1b[97;1:3u", "\x1b[13;1:3u", "\x1b[1;1:3A"),
    "no keys": (
        "\x1b[99999999u",
        "\x1b[u",
        "\x1b[97;5;9999999u",
        "\x1b[17;29;0;1;0;1_",
        "\x1b[1;2;3;4;5~",
        "\x1b[201~",
    ),
    "reports of settings": (
        "\x1b[2;1;1;120;120;1;0x",
        "\x1b[1;2;3;4;0&w",
        f"\x1bP1$u1;1;1;@;@;@;0;2;@;BB%5%5{ST}",
        f"\x1bP2$u9/17/25/33{ST}",
        f"\x1bP0!u%5{ST}",
        f"\x1bP5!~FF3A{ST}",
    ),
    "other programs": (
        f'\x1bP@kitty-cmd{{"ok":true,"data":"y A"}}{ST}',
        f"\x1bP1000p%begin 1 2 3\r\n%end{ST}",
        f"\x1b]99;i=x:p=?;a=focus{ST}",
        f"\x1b]5522;type=read:status=DATA:mime=dGV4dA==;YUFV{ST}",
        f"\x1b]1337;ReportCellSize=18.0;9.0;2.0{ST}",
    ),
    "iTerm2": ("\x1b[ITERM2 3.5.11n", "\x1b[ITERM2 n", "\x9bITERM2 3.4n"),
    "fresh": (
        f"\x1bP1+r544e=787465726d2d6b69747479;5265706c79=41{ST}",
        f'\x1bP1$r64;1"p{ST}',
        f"\x1bP1$r1;24r{ST}",
        f'\x1bP1$r0"q{ST}',
        f"\x1b_Gi=7,p=3,I=12;EINVAL:no A{ST}",
        f"\x1b_Gi=1;OK{ST}\x1b_Gi=2;OK{ST}",
        "\x1b[?10;3;0S",
        "\x1b[?3;3;0S",
        f"\x1bP0;1q#0;2;0;0;0~-{ST}",
        f"\x1b]22;text,default{ST}",
        f"\x1b]21;foreground=rgb:ff/ff/ff;cursor=?{BEL}",
        f"\x1b]60;allowColorOps,allowFontOps{ST}",
        "\x1b[?997;2n",
        "\x1b[4;7;1;1;3&w",
        "\x1b[?62;4c",
    ),
    "8-bit": (
        "\x9b?62;22c",
        "\x9d11;rgb:1/2/3\x9c",
        "\x90>|xterm a\x9c",
        "\x9fGi=1;OK\x9c",
        "\x9d52;c;YQ==\x07",
    ),
    "8-bit bytes": ("\udc9b?62;22c", "\udc9d11;rgb:1/2/3\udc9c", "\udc90>|xterm a\udc9c"),
}
ALL = [answer for answers in ANSWERS.values() for answer in answers]


def mixed(keys: Sequence[str], random: Random, share: float = 0.5) -> str:
    """The keys with answers between them, where `keys` are the bytes of one event each."""
    parts: list[str] = []
    for key in keys:
        while random.random() < share:
            parts.append(random.choice(ALL))
        parts.append(key)
    return "".join([*parts, random.choice(ALL)])


def cut(text: str, random: Random, most: int = 8) -> list[str]:
    """The same, cut anywhere."""
    cuts = sorted(random.sample(range(1, len(text)), min(random.randint(0, most), len(text) - 1)))
    return [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
