"""Where Rich breaks a text into lines.

Defect: Rich's `Text.wrap` makes the lines; for the height of a message only the places of the breaks are wanted, which
has no public function.

Figure: longest stall while a long message is measured.

Checked with: Rich 15.0.0.

Upstream report: "`rich._wrap.divide_line` could be public: it is all that measuring a text takes."
"""

from __future__ import annotations

from rich._wrap import divide_line

__all__ = ["divide_line"]
