"""Replies with one unmistakable edit in the formats that local models write, and some that cannot be read."""

from __future__ import annotations

import json

EDIT = {"search": "get(url)", "replace": "get(url, 5)"}
CHANGE = {"path": "api.py", "edits": [EDIT]}
ARGUMENTS = {"changes": [CHANGE]}
REPLY = {"summary": "Adds a timeout.", "fileChanges": [CHANGE]}
CALL = {"name": "propose_changes", "arguments": ARGUMENTS}
LLAMA = {"name": "propose_changes", "parameters": ARGUMENTS}
OPENAI = {
    "id": "c",
    "type": "function",
    "function": {"name": "propose_changes", "arguments": json.dumps(ARGUMENTS)},
}
J = json.dumps
QWEN_CODER = f"<function=propose_changes>\n<parameter=changes>\n{J([CHANGE])}\n</parameter>\n</function>"
READ = {
    "Hermes": f"<tool_call>\n{J(CALL)}\n</tool_call>",
    "Hermes behind words": f"I add a timeout.\n\n<tool_call>\n{J(CALL)}\n</tool_call>\n",
    "Hermes without its end": f"<tool_call>\n{J(CALL)}",
    "Hermes with arguments as text": f"<tool_call>{J({**CALL, 'arguments': J(ARGUMENTS)})}</tool_call>",
    "Qwen-Coder": f"<tool_call>\n{QWEN_CODER}\n</tool_call>",
    "Qwen-Coder without the wrapping": QWEN_CODER,
    "Mistral": f"[TOOL_CALLS] [{J(CALL)}]",
    "Mistral, newer": f"[TOOL_CALLS]propose_changes[ARGS]{J(ARGUMENTS)}",
    "Llama": J(LLAMA),
    "Llama behind its tag": f"<|python_tag|>{J(LLAMA)}<|eom_id|>",
    "Llama, fenced": f"Here it is:\n```json\n{J(LLAMA, indent=2)}\n```\n",
    "Gemma": f"```tool_code\npropose_changes(changes={[CHANGE]!r})\n```",
    "Gemma, printed": f"```tool_code\nprint(default_api.propose_changes(changes={[CHANGE]!r}))\n```",
    "harmony": f"<|channel|>commentary to=functions.propose_changes <|constrain|>json<|message|>{J(ARGUMENTS)}<|call|>",
    "tool_calls": J({"tool_calls": [OPENAI]}),
    "function_call": J({"function_call": CALL}),
    "the function as the key": J({"propose_changes": ARGUMENTS}),
    "our reply": J(REPLY),
    "our reply, fenced": f"Sure:\n\n```json\n{J(REPLY, indent=2)}\n```\nDone.",
    "a bare list": J([CHANGE]),
    "a bare list in chatter": f"These are the changes:\n\n{J([CHANGE], indent=1)}\n\nTell me if it works.",
    "changes": J({"summary": "S", "changes": [CHANGE]}),
    "near names": J(
        {"file_changes": [{"file_path": "api.py", "edits": [{"old": "get(url)", "new": "get(url, 5)"}]}]}
    ),
    "search in the entry": J(
        {"changes": [{"file": "api.py", "old_str": "get(url)", "new_str": "get(url, 5)"}]}
    ),
    "one wrapper too many": J({"response": REPLY}),
    "a call in a wrapper": J({"result": {"tool_calls": [CALL]}}),
    "our reply behind a thought": f"<think>\nMaybe {J({'summary': 'No', 'fileChanges': []})}?\n</think>\n{J(REPLY)}",
    "Hermes behind a thought": f"<thinking>\n```json\n{J(LLAMA)[:40]}\n</thinking>\n<tool_call>{J(CALL)}</tool_call>",
    "behind a thought begun before": f"It says {J({'summary': 'No'})}\n</think>\n\n{J(REPLY)}",
    "harmony's final channel": f"<|channel|>analysis<|message|>{J(REPLY)[:30]}<|end|><|start|>assistant<|channel|>final"
    f"<|message|>{J(REPLY)}<|return|>",
}
READ |= {
    "another reply behind one without changes": f"{J({'summary': 'No', 'fileChanges': []})}\n{J(REPLY)}",
    "Hermes, written twice": f"{READ['Hermes']}\n{READ['Hermes']}",
    "Hermes behind words on its line": f"Here you go: {READ['Hermes']}",
    "Llama in a list": f"1. {READ['Llama']}",
    "Llama, other words of the name": READ["Llama"].replace("propose_changes", "functions.proposeChanges"),
    "Gemma with CRLF": READ["Gemma"].replace("\n", "\r\n"),
    "our reply behind a mark of order": f"\ufeff{READ['our reply']}",
    "our reply, small letters": READ["our reply"].replace("fileChanges", "filechanges"),
    "an entry with capitals": READ["changes"].replace("edits", "Edits"),
    "behind a thought begun before, CRLF": READ["behind a thought begun before"].replace("\n", "\r\n"),
}
REFUSED = {
    "Llama cut short": READ["Llama"][:-1],
    "a bare list with curly quotes": READ["a bare list in chatter"].replace('"path"', "“path”"),
    "broken arguments": '<tool_call>\n{"name": "propose_changes", "arguments": {"changes": [{"path": "a"\n</tool_call>',
    "no end of a function": "<function=propose_changes>\n<parameter=changes>\n[]",
    "Mistral, broken": "[TOOL_CALLS] [{broken",
    "Gemma with code": "```tool_code\npropose_changes(changes=[x for x in y])\n```",
    "other tags": '<function_calls>\n<invoke name="propose_changes">\n</invoke>\n</function_calls>',
}
#: What is read, and what is told, only when all of it has come: until then it is shown.
LATE = {
    "our reply behind words and a thought": f"Sure.\n\n{READ['our reply behind a thought']}",
    "Python": READ["Gemma"].replace("tool_code", "python"),
}
