"""A chat that stays on this machine: Ollama answers and embeds, the memories are in one file.

ollama pull nomic-embed-text && ollama pull llama3.2
python examples/local_chat.py chat.json  # "/remember I am vegetarian", "/forget fact:1"
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.request import ProxyHandler, Request, build_opener

from sentinel_memory import ConversationIndex, Memory, Transcript, build_messages, one_line
from sentinel_memory.agent import near, reinforce_used


def ask(url: str, call: str, **body: Any) -> Any:
    """The answer of Ollama to one call of its API."""
    kind = {"Content-Type": "application/json"}
    request = Request(f"{url}/api/{call}", json.dumps(body).encode(), kind)
    with build_opener(ProxyHandler({})).open(request, timeout=300) as response:  # no proxy
        return json.load(response)


def chat(path: str, lines: Iterable[str], url: str = "http://localhost:11434") -> Iterator[str]:
    """The answers to lines, of which some are commands."""

    def embed(texts: list[str], prefix: str = "search_document: ") -> Any:
        inputs = [prefix + text for text in texts]  # nomic was trained with two prefixes
        return ask(url, "embed", model="nomic-embed-text", input=inputs)["embeddings"]

    index = ConversationIndex(embed, lambda texts: embed(texts, "search_query: "))
    memory = Memory.open(path, index=index)
    transcript = Transcript(memory)
    for line in filter(None, map(str.strip, lines)):
        command, _, rest = line.partition(" ")
        try:
            if command == "/forget":
                yield "forgotten" if memory.forget(rest) else "there is no such memory"
            elif command == "/remember" and rest:
                added = memory.add(rest, kind="fact", importance=0.8).entry
                yield one_line(added)
                for other in near(memory, added.key):  # to decide is for the user
                    yield f"nearly the same: {one_line(other.entry)}"
            else:
                with memory.batch(), transcript.turn(line) as turn:  # one save
                    sent = build_messages(memory, transcript, line, token_budget=3_000)
                    reply = ask(url, "chat", model="llama3.2", messages=sent.messages, stream=False)
                    turn.answer(text := reply["message"]["content"])
                    reinforce_used(memory, sent.entries, text, question=line)
                yield text or "(no answer)"
        except Exception as error:  # no server, an answer that is none, a text that is too long
            yield f"(no answer: {error})"


if __name__ == "__main__":
    for answer in chat(sys.argv[1], sys.stdin):
        print(answer)
