"""The thirty tasks of the benchmark, five for each repository."""

from __future__ import annotations

from tests.tasks.task import Repository, Skill, Task

PYTHON = Repository(
    "python",
    "python",
    checks="python3 -m unittest discover -q -s tests -t .",
    filler=("src/shop/stock", "src/shop/reports", "src/shop/web", "src/shop/billing"),
    tasks=(
        Task(
            "timeout-in-three-files",
            "fetch_rates waits for ever. Give it a timeout parameter that the opener gets as `timeout`, with a new entry "
            "rates_timeout (5.0) in DEFAULTS as its default, and let cached_rates take a timeout and pass it on.",
            """
import io, time
from shop import settings
from shop.rates import cache, client
seen = []
def opener(address, timeout):
    seen.append(timeout)
    return io.StringIO('{"rates": {}}')
assert float(settings.DEFAULTS["rates_timeout"]) == 5.0
client.fetch_rates("A", opener)
client.fetch_rates("B", opener, timeout=2)
cache.cached_rates("C", opener, timeout=3)
assert [float(one) for one in seen] == [5.0, 2.0, 3.0], seen
""",
            ("src/shop/rates/*.py", "src/shop/settings.py", "tests/*"),
            (
                Skill(
                    "fetch_rates",
                    r"^def fetch_rates\(",
                    "fetch_rates.py",
                    (
                        (
                            r"^def fetch_rates\(base, opener\):",
                            "def fetch_rates(base, opener, timeout=None):",
                        ),
                        (
                            r"^    with opener\(address\) as answer:",
                            '    seconds = float(setting("rates_timeout")) if timeout is None else timeout\n'
                            "    with opener(address, timeout=seconds) as answer:",
                        ),
                    ),
                    slip=(
                        (r"^def fetch_rates\(base, opener\):", "def fetch_rates(base, opener, timeout):"),
                        (r"^    with opener\(address\) as", "    with opener(address, timeout=timeout) as"),
                    ),
                ),
                Skill(
                    "DEFAULTS",
                    r"^DEFAULTS = \{",
                    "defaults.py",
                    ((r'^(    "rates_cache_seconds": 3600,)$', r'\1\n    "rates_timeout": 5.0,'),),
                ),
                Skill(
                    "cached_rates",
                    r"^def cached_rates\(",
                    "cached_rates.py",
                    (
                        (
                            r"^def cached_rates\(base, opener, now=time.time\):",
                            "def cached_rates(base, opener, now=time.time, timeout=None):",
                        ),
                        (
                            r"rates = fetch_rates\(base, opener\)",
                            "rates = fetch_rates(base, opener, timeout)",
                        ),
                    ),
                ),
            ),
        ),
        Task(
            "round-once",
            "The total of a Cart rounds each line, so three thirds are not one. Round once, at the end.",
            """
from decimal import Decimal
from shop.cart import Cart, Line
third = Line("x", Decimal("0.335"))
assert Cart([third] * 3).total() == Decimal("1.01"), Cart([third] * 3).total()
""",
            ("src/shop/cart.py", "tests/*"),
            (
                Skill(
                    "Cart",
                    r"^class Cart:",
                    "cart.py",
                    (
                        (
                            r"total \+= round_cents\(line.price \* line.amount\)",
                            "total += line.price * line.amount",
                        ),
                        (r"^        return total$", "        return round_cents(total)"),
                    ),
                    slip=(
                        (r"total \+= round_cents\(line.price \* line.amount\)", "total += line.price"),
                        (r"^        return total$", "        return round_cents(total)"),
                    ),
                ),
            ),
        ),
        Task(
            "currency-column",
            "to_csv drops the currency of orders. Add a column `currency` after the amount.",
            """
from decimal import Decimal
from shop.orders.export import to_csv
from shop.orders.models import Order
assert to_csv([Order(1, "ann", Decimal("2"), "USD")]).split() == ["number,customer,amount,currency", "1,ann,2,USD"]
""",
            ("src/shop/orders/export.py", "tests/*"),
            (
                Skill(
                    "to_csv",
                    r"^def to_csv\(",
                    "csv.py",
                    (
                        (
                            r'\["number", "customer", "amount"\]',
                            '["number", "customer", "amount", "currency"]',
                        ),
                        (r"order.customer, order.amount\]", "order.customer, order.amount, order.currency]"),
                    ),
                ),
            ),
        ),
        Task(
            "discount-module",
            "Add a new module src/shop/discounts.py with apply_discount(total, percent), rounded to cents, which raises "
            "ValueError for a percent outside of 0 to 100. The total of a Cart takes discount=0 and uses it.",
            """
from decimal import Decimal
from shop.cart import Cart, Line
from shop.discounts import apply_discount
cart = Cart([Line("a", Decimal("10"))])
assert cart.total() == 10 and cart.total(discount=15) == Decimal("8.50")
for percent in (-1, 101):
    try:
        apply_discount(Decimal(1), percent)
    except ValueError:
        continue
    raise SystemExit(1)
""",
            ("src/shop/discounts.py", "src/shop/cart.py", "tests/*"),
            (
                Skill(
                    "Cart",
                    r"^class Cart:",
                    "cart.py",
                    (
                        (r"^from shop.money", "from shop.discounts import apply_discount\nfrom shop.money"),
                        (r"^    def total\(self\):", "    def total(self, discount=0):"),
                        (
                            r"^        return (?:total|round_cents\(total\))$",
                            "        return apply_discount(total, discount)",
                        ),
                    ),
                    slip=(
                        (r"^from shop.money", "from shop.discount import apply_discount\nfrom shop.money"),
                        (r"^    def total\(self\):", "    def total(self, discount=0):"),
                        (
                            r"^        return (?:total|round_cents\(total\))$",
                            "        return apply_discount(total, discount)",
                        ),
                    ),
                ),
            ),
            {
                "src/shop/discounts.py": '"""Discounts on totals."""\n\nfrom decimal import Decimal\n\n'
                "from shop.money import round_cents\n\n\ndef apply_discount(total, percent):\n"
                '    """The total less a discount, rounded to cents."""\n'
                "    if not 0 <= percent <= 100:\n        raise ValueError(percent)\n"
                "    return round_cents(total * (100 - Decimal(percent)) / 100)\n"
            },
        ),
        Task(
            "rename-function",
            "Rename place_order to submit_order, in the tests and on the command line too.",
            """
from pathlib import Path
from shop.orders.service import submit_order
assert "place_order" not in "".join(path.read_text() for path in Path(".").rglob("*.py"))
from shop import cli
assert cli.main(["ann", "3"]) == 0
""",
            ("src/shop/orders/service.py", "src/shop/cli.py", "tests/*"),
            (
                Skill(
                    "place_order",
                    r"^def place_order\(",
                    "place_order.py",
                    ((r"\bplace_order\b", "submit_order"),),
                ),
                Skill(
                    "place_order",
                    r"^def main\((.|\n)*place_order",
                    "command_line.py",
                    ((r"\bplace_order\b", "submit_order"),),
                ),
                Skill(
                    "place_order",
                    r"unittest(.|\n)*place_order",
                    "tests.py",
                    ((r"\bplace_order\b", "submit_order"),),
                ),
            ),
        ),
    ),
)

TYPESCRIPT = Repository(
    "typescript",
    "typescript",
    filler=("src/features", "src/formats", "src/files"),
    tasks=(
        Task(
            "retry-in-three-files",
            "Let request() in the client try again when the server is busy: a new function isRetryable next to isAuthError "
            "(an ApiError with status 429 or 503), and `retries` (2) in the config says how many more times it is tried.",
            """// node
const assert = require("node:assert");
const { request } = require(root + "/src/api/client.ts");
const { isRetryable, ApiError } = require(root + "/src/api/errors.ts");
assert.strictEqual(require(root + "/src/config.ts").config.retries, 2);
assert.ok(isRetryable(new ApiError(503, "")) && !isRetryable(new ApiError(404, "")));
let count = 0;
const busy = async () => ({ status: ++count < 3 ? 503 : 200, body: "7" });
request("/x", busy).then(async (value) => {
  assert.strictEqual(value, 7);
  count = 0;
  await assert.rejects(request("/x", async () => (count++, { status: 404, body: "" })));
  assert.strictEqual(count, 1);
}).catch((error) => { console.error(error); process.exit(1); });
""",
            ("src/api/*.ts", "src/config.ts", "test/*"),
            (
                Skill(
                    "request",
                    r"^export async function request<",
                    "client.ts",
                    (
                        (
                            r'^import \{ ApiError \} from "./errors";',
                            'import { ApiError, isRetryable } from "./errors";',
                        ),
                        (
                            r"^export async function request<T>",
                            "export async function request<T>(path: string, fetcher: Fetcher): Promise<T> {\n"
                            "  for (let tried = 0; ; tried++) {\n    try {\n      return await requestOnce<T>(path, fetcher);\n"
                            "    } catch (error) {\n      if (tried >= config.retries || !isRetryable(error)) {\n"
                            "        throw error;\n      }\n    }\n  }\n}\n\nasync function requestOnce<T>",
                        ),
                    ),
                ),
                Skill(
                    "isAuthError",
                    r"^export function isAuthError",
                    "auth_error.ts",
                    (
                        (
                            r"(error.status === 401;\n\})",
                            r"\1\n\nexport function isRetryable(error: unknown): boolean {\n"
                            r"  return error instanceof ApiError && (error.status === 429 || error.status === 503);\n}",
                        ),
                    ),
                ),
                Skill(
                    "config",
                    r"^export const config: Config",
                    "config.ts",
                    (
                        (r"^  pageSize: number;", "  pageSize: number;\n  retries: number;"),
                        (r"^  pageSize: 50,", "  pageSize: 50,\n  retries: 2,"),
                    ),
                ),
            ),
        ),
        Task(
            "sixty-seconds",
            "formatDuration shows 60 as `60s`. It is `1m 0s`.",
            """// node
const assert = require("node:assert");
const { formatDuration } = require(root + "/src/lib/format.ts");
assert.deepStrictEqual([59, 60, 61].map(formatDuration), ["59s", "1m 0s", "1m 1s"]);
""",
            ("src/lib/format.ts", "test/*"),
            (
                Skill(
                    "formatDuration",
                    r"^export function formatDuration",
                    "duration.ts",
                    ((r"seconds <= 60", "seconds < 60"),),
                ),
            ),
        ),
        Task(
            "filter-overdue",
            "selectTasks gets a filter `overdue`: tasks that are not done and whose due time is before now. The type Filter "
            "has to allow it.",
            """// node
const assert = require("node:assert");
const fs = require("node:fs");
const { selectTasks } = require(root + "/src/store/tasks.ts");
const tasks = [{ id: "a", due: 1, done: false }, { id: "b", due: 1, done: true }, { id: "c", due: 9, done: false }, { id: "d", done: false }];
assert.deepStrictEqual(selectTasks(tasks, "overdue", 5).map((task) => task.id), ["a"]);
assert.ok(fs.readFileSync(root + "/src/types.ts", "utf8").includes('"overdue"'));
""",
            ("src/store/tasks.ts", "src/types.ts", "test/*"),
            (
                Skill(
                    "selectTasks",
                    r"^export function selectTasks",
                    "select_tasks.ts",
                    (
                        (
                            r"^    default:",
                            '    case "overdue":\n'
                            "      return tasks.filter((task) => !task.done && task.due !== undefined && task.due < now);\n"
                            "    default:",
                        ),
                    ),
                ),
                Skill(
                    "Filter",
                    r"^export type Filter =",
                    "filter.ts",
                    ((r'"open" \| "done";', '"open" | "done" | "overdue";'),),
                ),
            ),
        ),
        Task(
            "debounce-cancel",
            "debounce has no way to stop a call that waits. Give what it returns a method cancel().",
            """// node
const { debounce } = require(root + "/src/lib/debounce.ts");
let called = 0;
const wait = debounce(() => called++, 1);
wait();
wait.cancel();
setTimeout(() => process.exit(called), 30);
""",
            ("src/lib/debounce.ts", "test/*"),
            (
                Skill(
                    "debounce",
                    r"^export function debounce",
                    "debounce.ts",
                    (
                        (r"^  \(\.\.\.args: A\): void;", "  (...args: A): void;\n  cancel(): void;"),
                        (
                            r"^  return debounced;",
                            "  return Object.assign(debounced, { cancel: () => clearTimeout(timer) });",
                        ),
                    ),
                ),
            ),
        ),
        Task(
            "remove-legacy",
            "legacyFetch is deprecated and unused. Remove its file and its export from the index of the api.",
            """// node
const assert = require("node:assert");
const fs = require("node:fs");
assert.ok(!fs.existsSync(root + "/src/api/legacyFetch.ts"));
assert.ok(!("legacyFetch" in require(root + "/src/api/index.ts")));
""",
            ("src/api/legacyFetch.ts", "src/api/index.ts"),
            (
                Skill("legacyFetch", r"^export function legacyFetch", "legacyFetch.ts", deletes=True),
                Skill(
                    "legacyFetch",
                    r"^export \{ legacyFetch",
                    "api/index.ts",
                    ((r"^export \{ legacyFetch.*\n", ""),),
                ),
            ),
        ),
    ),
)

GO = Repository(
    "go",
    "go",
    filler=("internal/store", "internal/audit", "internal/metrics"),
    tasks=(
        Task(
            "limit-in-three-files",
            "The handler reads bodies of any size. Add MaxBody (1 << 20) to the Config, give NewHandler a second parameter "
            "maxBody int64, answer 413 for a larger body, and pass it on in func main.",
            """package hidden

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"example.org/relay/internal/config"
	"example.org/relay/internal/queue"
	"example.org/relay/internal/server"
)

func TestLimit(t *testing.T) {
	if config.Default().MaxBody != 1<<20 {
		t.Fatal("MaxBody")
	}
	for size, want := range map[int]int{4: http.StatusAccepted, 40: http.StatusRequestEntityTooLarge} {
		answer := httptest.NewRecorder()
		request := httptest.NewRequest("POST", "/", strings.NewReader(strings.Repeat("x", size)))
		server.NewHandler(queue.NewQ(), 10).ServeHTTP(answer, request)
		if answer.Code != want {
			t.Fatal(size, answer.Code)
		}
	}
}
""",
            ("internal/config/config.go", "internal/server/handler.go", "cmd/relay/main.go"),
            (
                Skill(
                    "Config",
                    r"^type Config struct",
                    "config.go",
                    (
                        (r"^\tWorkers int$", "\tWorkers int\n\tMaxBody int64"),
                        (r"^\t\tWorkers: 4,$", "\t\tWorkers: 4,\n\t\tMaxBody: 1 << 20,"),
                    ),
                ),
                Skill(
                    "NewHandler",
                    r"^func NewHandler\(",
                    "new_handler.go",
                    (
                        (r"^\tmessages \*queue.Queue$", "\tmessages *queue.Queue\n\tmaxBody  int64"),
                        (
                            r"^func NewHandler\(messages \*queue.Queue\) \*Handler \{",
                            "func NewHandler(messages *queue.Queue, maxBody int64) *Handler {",
                        ),
                        (r"Handler\{messages: messages\}", "Handler{messages: messages, maxBody: maxBody}"),
                        (
                            r"^\tbody, err := io.ReadAll\(r.Body\)",
                            "\tbody, err := io.ReadAll(io.LimitReader(r.Body, h.maxBody+1))\n"
                            "\tif int64(len(body)) > h.maxBody {\n"
                            '\t\thttp.Error(w, "too large", http.StatusRequestEntityTooLarge)\n\t\treturn\n\t}',
                        ),
                    ),
                ),
                Skill(
                    "func main",
                    r"^func main\(\)",
                    "main.go",
                    ((r"server.NewHandler\(messages\)", "server.NewHandler(messages, settings.MaxBody)"),),
                ),
            ),
        ),
        Task(
            "empty-queue",
            "Pop of an empty Queue panics. It returns an empty text and false.",
            """package hidden

import (
	"testing"

	"example.org/relay/internal/queue"
)

func TestPop(t *testing.T) {
	messages := queue.NewQ()
	if item, ok := messages.Pop(); ok || item != "" {
		t.Fatal(item, ok)
	}
	messages.Push("a")
	if item, ok := messages.Pop(); !ok || item != "a" {
		t.Fatal(item, ok)
	}
}
""",
            ("internal/queue/*.go",),
            (
                Skill(
                    "Pop",
                    r"^func \(q \*Queue\) Pop\(",
                    "queue.go",
                    (
                        (
                            r"^\titem := q.items\[0\]",
                            '\tif len(q.items) == 0 {\n\t\treturn "", false\n\t}\n\titem := q.items[0]',
                        ),
                    ),
                ),
            ),
        ),
        Task(
            "queue-length",
            "The Queue needs a method Len() int that is safe beside Push.",
            """package hidden

import (
	"testing"

	"example.org/relay/internal/queue"
)

func TestLen(t *testing.T) {
	messages := queue.NewQ()
	messages.Push("a")
	if messages.Len() != 1 {
		t.Fatal(messages.Len())
	}
}
""",
            ("internal/queue/*.go",),
            (
                Skill(
                    "Queue",
                    r"^type Queue struct",
                    "queue.go",
                    (
                        (
                            r"^// Pop takes",
                            "// Len returns the number of messages.\nfunc (q *Queue) Len() int {\n\tq.mu.Lock()\n"
                            "\tdefer q.mu.Unlock()\n\treturn len(q.items)\n}\n\n// Pop takes",
                        ),
                    ),
                ),
            ),
        ),
        Task(
            "recover-middleware",
            "Add a file internal/server/recovered.go with Recovered(next http.Handler) http.Handler, which answers 500 if "
            "the next handler panics.",
            """package hidden

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"example.org/relay/internal/server"
)

func TestRecovered(t *testing.T) {
	answer := httptest.NewRecorder()
	next := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("x") })
	server.Recovered(next).ServeHTTP(answer, httptest.NewRequest("GET", "/", nil))
	if answer.Code != 500 {
		t.Fatal(answer.Code)
	}
}
""",
            ("internal/server/recovered.go",),
            (),
            {
                "internal/server/recovered.go": 'package server\n\nimport "net/http"\n\n'
                "// Recovered answers 500 if a handler panics.\nfunc Recovered(next http.Handler) http.Handler {\n"
                "\treturn http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {\n"
                "\t\tdefer func() {\n\t\t\tif recover() != nil {\n"
                '\t\t\t\thttp.Error(w, "failed", http.StatusInternalServerError)\n\t\t\t}\n\t\t}()\n'
                "\t\tnext.ServeHTTP(w, r)\n\t})\n}\n"
            },
        ),
        Task(
            "rename-constructor",
            "NewQ is a bad name. Call it New, also in func main and in the worker.",
            """package hidden

import (
	"testing"

	"example.org/relay/internal/queue"
	"example.org/relay/internal/worker"
)

func TestNew(t *testing.T) {
	queue.New().Push("a")
	worker.Fresh("a")
}
""",
            ("internal/queue/queue.go", "internal/worker/worker.go", "cmd/relay/main.go"),
            (
                Skill("NewQ", r"^func NewQ\(", "newq.go", ((r"\bNewQ\b", "New"),)),
                Skill("NewQ", r"^package main(.|\n)*NewQ", "main.go", ((r"\bNewQ\b", "New"),)),
                Skill("NewQ", r"^package worker(.|\n)*NewQ", "worker.go", ((r"\bNewQ\b", "New"),)),
            ),
        ),
    ),
)

MONOREPO = Repository(
    "monorepo",
    "python",
    filler=(
        "services/billing/billing/web",
        "services/auth/auth/web",
        "services/search/search/web",
        "packages/ui/src/forms",
    ),
    tasks=(
        Task(
            "event-in-three-places",
            "The event invoice.paid is called invoice.settled from now on: in the publisher of billing, among the events "
            "that auth has HANDLED, and in the list of events of the shared package.",
            """
import json, sys
from pathlib import Path
sys.path[:0] = ["services/billing", "services/auth"]
from auth.consumer import handles
from billing import publisher
sent = []
publisher.paid(1, lambda name, _: sent.append(name))
assert sent == ["invoice.settled"] and handles("invoice.settled") and not handles("invoice.paid")
events = json.loads(Path("packages/shared/src/events.json").read_text())["events"]
assert events == ["user.created", "invoice.settled", "index.built"]
""",
            (
                "services/billing/billing/publisher.py",
                "services/auth/auth/consumer.py",
                "packages/shared/src/events.json",
            ),
            (
                Skill(
                    "invoice.paid",
                    r"^INVOICE_PAID =",
                    "billing/publisher.py",
                    ((r"invoice\.paid", "invoice.settled"),),
                ),
                Skill("HANDLED", r"^HANDLED =", "auth/events.py", ((r"invoice\.paid", "invoice.settled"),)),
                Skill(
                    "invoice.paid",
                    r'"events": \[',
                    "shared/events.ts",
                    ((r"invoice\.paid", "invoice.settled"),),
                ),
            ),
        ),
        Task(
            "one-of-many-configs",
            "billing gives up too early: its RETRIES go from 3 to 5. The other services keep theirs.",
            """
import sys
sys.path[:0] = ["services/billing", "services/auth", "services/search"]
import auth.config, billing.config, search.config
assert (billing.config.RETRIES, auth.config.RETRIES, search.config.RETRIES) == (5, 3, 3)
""",
            ("services/billing/billing/config.py",),
            (
                Skill(
                    "RETRIES",
                    r"Settings of billing",
                    "billing/retries.py",
                    ((r"RETRIES = 3", "RETRIES = 5"),),
                ),
            ),
        ),
        Task(
            "owner-in-every-readme",
            "Add the line `Owner: platform` at the end of every README.md of services/ and packages/.",
            """
from pathlib import Path
found = [*Path("services").glob("*/README.md"), *Path("packages").glob("*/README.md")]
assert len(found) == 5
assert all(path.read_text().rstrip().endswith("Owner: platform") for path in found)
assert "Owner" not in Path("README.md").read_text() + Path("tools/README.md").read_text()
""",
            ("services/*/README.md", "packages/*/README.md"),
            (
                Skill(
                    "README.md",
                    r"\A# (billing|auth|search)",
                    "README.md",
                    ((r"\n\Z", "\n\nOwner: platform\n"),),
                    glob="services/*/README.md",
                ),
                Skill(
                    "README.md",
                    r"\A# (shared|ui)",
                    "README.md",
                    ((r"\n\Z", "\n\nOwner: platform\n"),),
                    glob="packages/*/README.md",
                ),
            ),
        ),
        Task(
            "new-tool",
            "Write tools/count_files.py: a function count_files(root) that returns a dict of the number of files below each "
            "folder of services/, by the name of the service.",
            """
import sys
sys.path.insert(0, "tools")
from count_files import count_files
from pathlib import Path
Path("services/search/extra.txt").write_text("x")
before = count_files(".")["search"]
Path("services/search/extra.txt").unlink()
assert count_files(".")["search"] == before - 1 and set(count_files(".")) == {"auth", "billing", "search"}
""",
            ("tools/count_files.py",),
            (),
            {
                "tools/count_files.py": '"""Count the files of each service."""\n\nfrom pathlib import Path\n\n\n'
                'def count_files(root):\n    folders = [path for path in Path(root, "services").iterdir() if path.is_dir()]\n'
                '    return {folder.name: sum(path.is_file() for path in folder.rglob("*")) for folder in folders}\n'
            },
        ),
        Task(
            "minutes-are-no-seconds",
            "token_expiry adds TOKEN_MINUTES to a time in seconds. Tokens end after 15 seconds instead of 15 minutes.",
            """
import sys
sys.path.insert(0, "services/auth")
from auth.tokens import token_expiry
assert token_expiry(100) == 1000
""",
            ("services/auth/auth/tokens.py", "services/auth/tests/*"),
            (
                Skill(
                    "token_expiry",
                    r"^def token_expiry",
                    "token.py",
                    ((r"now \+ TOKEN_MINUTES", "now + TOKEN_MINUTES * 60"),),
                ),
            ),
        ),
    ),
)

LEGACY = Repository(
    "legacy",
    "python",
    checks="python3 -m unittest discover -q -s TESTS -t .",
    legacy=True,
    tasks=(
        Task(
            "currency-in-three-files",
            "Prices need a currency: a key currency=EUR in a new section [money] of config.ini, a function currency(settings) "
            'next to gross_price, and print_line takes currency="" and puts it behind the number, after a blank.',
            """
from INC import Params, Report
settings = Params.read("CONFIG.INI")
assert Params.currency(settings) == "EUR"
assert Report.print_line("a", 3, "EUR").endswith("3 EUR") and Report.print_line("a", 3).endswith("3")
""",
            ("CONFIG.INI", "INC/Params.py", "INC/Report.py", "TESTS/*"),
            (
                Skill(
                    "config.ini",
                    r"^\[print\]",
                    "config.ini",
                    ((r"^width=40\r?$", "width=40\n[money]\ncurrency=EUR"),),
                ),
                Skill(
                    "gross_price",
                    r"^def gross_price",
                    "price.py",
                    (
                        (
                            r"^def gross_price",
                            'def currency(settings):\n\treturn settings["money"]["currency"]\n\n\ndef gross_price',
                        ),
                    ),
                ),
                Skill(
                    "print_line",
                    r"^def print_line",
                    "print.py",
                    (
                        (r"^def print_line\(name, number\):", 'def print_line(name, number, currency=""):'),
                        (
                            r"^\treturn name.ljust\(30\) \+ str\(number\).rjust\(10\)",
                            '\treturn (name.ljust(30) + str(number).rjust(10) + " " + currency).rstrip()',
                        ),
                    ),
                ),
            ),
        ),
        Task(
            "two-digit-years",
            "parse_date reads 01.02.05 as 1905. Years below 70 belong to this century.",
            """
from INC.Dates import parse_date
assert parse_date("01.02.05") == (2005, 2, 1) and parse_date("31.12.99") == (1999, 12, 31)
""",
            ("INC/Dates.py", "TESTS/*"),
            (
                Skill(
                    "parse_date",
                    r"^def parse_date",
                    "date.py",
                    (
                        (
                            r"^\treturn 1900 \+ int\(year\), int\(month\), int\(day\)",
                            "\tcentury = 2000 if int(year) < 70 else 1900\n\treturn century + int(year), int(month), int(day)",
                        ),
                    ),
                ),
            ),
        ),
        Task(
            "no-negative-stock",
            "take() of a StockList may not go below zero: it raises ValueError and leaves the number as it is.",
            """
from INC.Stock import StockList
stock = StockList(1)
stock.put("a", 2)
try:
    stock.take("a", 3)
except ValueError:
    raise SystemExit(stock.articles != {"a": 2})
raise SystemExit(1)
""",
            ("INC/Stock.py", "TESTS/*"),
            (
                Skill(
                    "StockList",
                    r"^class StockList",
                    "stock_list.py",
                    (
                        (
                            r"^\t\tself.articles\[name\] = self.articles\[name\] - number",
                            "\t\tif number > self.articles[name]:\n\t\t\traise ValueError(name)\n"
                            "\t\tself.articles[name] -= number",
                        ),
                    ),
                    slip=(
                        (
                            r"^\t\tself.articles\[name\] = self.articles\[name\] - number",
                            "\t\tif number < self.articles[name]:\n\t\t\traise ValueError(name)\n"
                            "\t\tself.articles[name] -= number",
                        ),
                    ),
                ),
            ),
        ),
        Task(
            "tax-rate",
            "The tax rate in config.ini is 19 now.",
            """
from INC import Params
assert Params.gross_price(100, Params.read("CONFIG.INI")) == 119
""",
            ("CONFIG.INI",),
            (Skill("config.ini", r"^\[tax\]", "config.ini", ((r"^rate=16", "rate=19"),)),),
        ),
        Task(
            "rename-in-reports",
            "print_line prints nothing. Rename it to format_line wherever it is used.",
            """
from INC.Labels import label
from INC.Report import format_line, print_all
from INC.Stock import StockList
assert label("a").startswith("*a") and print_all(StockList(1)) == []
""",
            ("INC/Report.py", "INC/Labels.py"),
            (
                Skill("print_line", r"^def print_line", "print.py", ((r"\bprint_line\b", "format_line"),)),
                Skill("print_line", r"import print_line", "line.py", ((r"\bprint_line\b", "format_line"),)),
            ),
        ),
    ),
)

NO_GIT = Repository(
    "no_git",
    "python",
    checks="python3 -m unittest discover -q -s tests -t .",
    git=False,
    tasks=(
        Task(
            "weekly-in-three-files",
            "Copies are kept for 90 days (KEEP_DAYS), the newest of them always: too_old never returns the smallest age. And "
            "report_text also says how many MB were copied, as a third argument: `3 files, 20 MB in 5 s, kept 90 days`.",
            """
from backup import plan, prune, report
assert plan.KEEP_DAYS == 90
assert prune.too_old([100, 95, 3]) == [100, 95] and prune.too_old([100, 95]) == [100] and prune.too_old([]) == []
assert report.report_text(3, 5, 20) == "3 files, 20 MB in 5 s, kept 90 days"
""",
            ("backup/*.py", "tests/*"),
            (
                Skill("KEEP_DAYS", r"^KEEP_DAYS =", "keep.py", ((r"KEEP_DAYS = 30", "KEEP_DAYS = 90"),)),
                Skill(
                    "too_old",
                    r"^def too_old",
                    "too_old.py",
                    (
                        (
                            r"^    return \[age for age in ages if age > KEEP_DAYS\]",
                            "    newest = min(ages, default=0)\n"
                            "    return [age for age in ages if age > KEEP_DAYS and age != newest]",
                        ),
                    ),
                ),
                Skill(
                    "report_text",
                    r"^def report_text",
                    "report_text.py",
                    (
                        (
                            r"^def report_text\(count, seconds\):",
                            "def report_text(count, seconds, megabytes):",
                        ),
                        (r"\{count\} files in", "{count} files, {megabytes} MB in"),
                    ),
                ),
            ),
        ),
        Task(
            "percent",
            "percent_free returns a share, not percent, so every disk is full.",
            """
from monitor.disk import is_full, percent_free
assert percent_free(1, 4) == 25 and is_full(1, 20) and not is_full(1, 4)
""",
            ("monitor/disk.py", "tests/*"),
            (
                Skill(
                    "percent_free",
                    r"^def percent_free",
                    "disk.py",
                    ((r"return free / total", "return 100 * free / total"),),
                ),
            ),
        ),
        Task(
            "copy-over",
            "copy_folder fails if the target exists. It copies over it.",
            """
import tempfile
from pathlib import Path
from backup.copy import copy_folder
with tempfile.TemporaryDirectory() as folder:
    source, target = Path(folder, "a"), Path(folder, "b")
    source.mkdir(), target.mkdir()
    (source / "x").write_text("x")
    assert copy_folder(source, target) == 1
""",
            ("backup/copy.py", "tests/*"),
            (
                Skill(
                    "copy_folder",
                    r"^def copy_folder",
                    "folder.py",
                    ((r"copytree\(source, target\)", "copytree(source, target, dirs_exist_ok=True)"),),
                    slip=((r"copytree\(source, target\)", "copytree(source, target, dirs_exist_ok=True"),),
                ),
            ),
        ),
        Task(
            "strict-scripts",
            "Every script in bin/ gets `set -eu` below its first comment; one that has `set -e` gets it there instead.",
            """
from pathlib import Path
for path in Path("bin").glob("*.sh"):
    lines = path.read_text().splitlines()
    assert lines.count("set -eu") == 1 and "set -e" not in lines and lines[2] == "set -eu", path
assert len(list(Path("bin").iterdir())) == 3
""",
            ("bin/*.sh",),
            (
                Skill(
                    "bin/",
                    r"\A#!/bin/sh",
                    "bin/script.sh",
                    ((r"^set -e\n", ""), (r"\A(#!/bin/sh\n#.*\n)", r"\1set -eu\n")),
                    glob="bin/*.sh",
                ),
            ),
        ),
        Task(
            "new-main",
            "bin/backup.sh starts backup.main, which is missing. Write backup/main.py with a function main(copy, folders) that "
            "calls copy for each of the folders and returns the sum of the results.",
            """
from backup.main import main
assert main(lambda folder: len(folder), ["ab", "c"]) == 3
""",
            ("backup/main.py", "tests/*"),
            (),
            {
                "backup/main.py": '"""Copies all folders."""\n\n\ndef main(copy, folders):\n'
                '    """The number of files that were copied."""\n    return sum(copy(folder) for folder in folders)\n'
            },
        ),
    ),
)

REPOSITORIES = (PYTHON, TYPESCRIPT, GO, MONOREPO, LEGACY, NO_GIT)
TASKS = tuple((repository, task) for repository in REPOSITORIES for task in repository.tasks)
