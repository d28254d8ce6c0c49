"""For every test of the screen: an idle application is one whose event loop has nothing to do."""

from __future__ import annotations

import support.idle  # noqa: F401 (it replaces what Textual's pilot waits with)
