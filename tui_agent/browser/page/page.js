// The terminal of the page: bytes of a WebSocket are drawn, keys and sizes are sent.

import { Terminal } from "/xterm/xterm.mjs";
import { FitAddon } from "/xterm/addon-fit.mjs";

// Browsers keep Ctrl+T, Ctrl+N and Ctrl+W for themselves; with Alt they reach the program.
const TWINS = { KeyT: "\x14", KeyN: "\x0e", KeyW: "\x17" };

const terminal = new Terminal({
  cursorBlink: false,
  fontFamily: "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace",
  fontSize: 14,
  scrollback: 0,
  theme: { background: "#14161b", foreground: "#d3d7de" },
});
const fit = new FitAddon();
const encoder = new TextEncoder();
let socket = null;

terminal.loadAddon(fit);
terminal.open(document.getElementById("terminal"));
fit.fit();

function send(data) {
  if (socket && socket.readyState === WebSocket.OPEN) socket.send(data);
}

function sendSize() {
  send(JSON.stringify({ size: [terminal.cols, terminal.rows] }));
}

function connect() {
  const scheme = location.protocol === "https:" ? "wss" : "ws";
  let ended = "";
  socket = new WebSocket(`${scheme}://${location.host}/terminal${location.search}`);
  socket.binaryType = "arraybuffer";
  socket.onopen = sendSize;
  socket.onmessage = (event) => {
    if (event.data instanceof ArrayBuffer) {
      terminal.write(new Uint8Array(event.data));
      return;
    }
    const message = JSON.parse(event.data);
    if (message.session) {
      // A reload opens the same session.
      history.replaceState(null, "", `/?session=${encodeURIComponent(message.session)}`);
      terminal.focus();
    }
    if (message.ended !== undefined) ended = message.ended || "The session has ended.";
  };
  socket.onclose = () => {
    document.getElementById("words").textContent = ended ||
      "The connection was lost. If tui-agent serve was started again, open its new link.";
    document.getElementById("ended").showModal();
  };
}

document.getElementById("ended").addEventListener("close", () => {
  terminal.reset();
  connect();
});

terminal.onData((data) => send(encoder.encode(data)));
terminal.onBinary((data) => send(Uint8Array.from(data, (letter) => letter.charCodeAt(0))));
terminal.onResize(sendSize);
new ResizeObserver(() => fit.fit()).observe(document.getElementById("terminal"));

terminal.attachCustomKeyEventHandler((event) => {
  if (event.altKey && !event.ctrlKey && !event.metaKey && event.code in TWINS) {
    if (event.type === "keydown") send(encoder.encode(TWINS[event.code]));
    event.preventDefault();
    return false;
  }
  // Paste belongs to the browser.
  return !((event.ctrlKey || event.metaKey) && event.code === "KeyV");
});

// OSC 52: the program may write the clipboard of the browser and never reads it.
terminal.parser.registerOscHandler(52, (data) => {
  const text = data.slice(data.indexOf(";") + 1);
  if (text === "?") return true;
  try {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    navigator.clipboard?.writeText(new TextDecoder().decode(bytes)).catch(() => {});
  } catch {
    // Not base64: nothing is copied.
  }
  return true;
});

connect();
