"""Chat with a real model that remembers what it is asked to remember, also after a restart.

Any OpenAI-compatible endpoint will do, a local Ollama too:

    python examples/chat_model.py --base-url http://localhost:11434/v1 --model llama3.2
    OPENAI_API_KEY=... python examples/chat_model.py --model gpt-4o-mini --tokenizer tiktoken

Facts are stored only by ``/remember``; of the talk, the last completed turns. A request that
fails, an empty answer or Ctrl-C in the middle of one leaves both as they were. The key is read
from the environment, sent to the endpoint, and neither printed nor stored.
"""

from __future__ import annotations

import argparse
import http.client
import json
import math
import os
import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from io import TextIOWrapper
from typing import Any
from urllib.parse import urlsplit

from sentinel_memory import Memory, SentinelMemoryError, estimate_tokens, one_line
from sentinel_memory.chat import OpenTurn, Prompt, Transcript, build_messages

HELP = "/remember TEXT   /memories   /forget N   /context   /clear   /exit"
INSTRUCTIONS = "You are a helpful assistant. Answer briefly."
THIS_MACHINE = {"localhost", "127.0.0.1", "::1"}
MOST_BYTES = 4_000_000
CONTROLS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]"
)  # also what moves a terminal's cursor


class ModelError(Exception):
    """The model gave no whole answer; the text says why, for the person who asked."""


class Model:
    """One OpenAI-compatible chat endpoint, with nothing but the standard library.

    ``timeout`` is how many seconds it may be silent. A redirect is an error, so the key goes to
    no other host; neither does it travel unencrypted, except inside this machine.
    """

    def __init__(
        self,
        base_url: str,
        name: str,
        *,
        key: str = "",
        timeout: float = 60,
        stream: bool = True,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        url = urlsplit(base_url)
        if url.scheme not in ("http", "https") or not url.hostname:
            raise ModelError(f"--base-url must start with http:// or https://, not {base_url!r}")
        if key and (not key.isascii() or not key.isprintable() or " " in key):
            raise ModelError("OPENAI_API_KEY has characters that no key has")
        if key and url.scheme == "http" and url.hostname not in THIS_MACHINE:
            raise ModelError(
                f"OPENAI_API_KEY is not sent unencrypted to {url.hostname}: use https, or unset it"
            )
        self._address = url.hostname, url.port
        self._secure = url.scheme == "https"
        self._path = f"{url.path.rstrip('/')}/chat/completions"
        self._name, self._key, self._timeout, self._stream = name, key, timeout, stream
        self._sleep = sleep

    def ask(self, messages: list[dict[str, Any]]) -> Iterator[str]:
        """The answer in pieces as they come; ``ModelError`` if it does not come to its end."""
        body = {"model": self._name, "messages": messages, "stream": self._stream}
        try:
            connection, response = self._send(json.dumps(body).encode())
            with closing(connection):
                if "text/event-stream" in response.headers.get("Content-Type", "").lower():
                    yield from self._events(response)
                else:
                    yield self._piece(response.read(MOST_BYTES), "message")[0]
        except TimeoutError:
            raise ModelError(f"no sign of life for {self._timeout:g} seconds") from None
        except (OSError, http.client.HTTPException) as error:
            why = self._safe(str(error) or type(error).__name__)
            raise ModelError(f"the connection failed: {why}") from None

    def _send(self, body: bytes) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        """The successful response; tried twice if the first one is a 429 or a 5xx."""
        headers = {"Content-Type": "application/json"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        kind = http.client.HTTPSConnection if self._secure else http.client.HTTPConnection
        for attempt in (1, 2):
            connection = kind(*self._address, timeout=self._timeout)
            try:
                connection.request("POST", self._path, body, headers)
                response = connection.getresponse()
                if response.status == 200:
                    return connection, response
                problem = self._problem(response)
            except BaseException:
                connection.close()
                raise
            connection.close()
            if attempt == 2 or not (response.status == 429 or response.status >= 500):
                break
            self._sleep(pause_before_retry(response.headers.get("Retry-After")))
        raise ModelError(problem)

    def _events(self, response: http.client.HTTPResponse) -> Iterator[str]:
        ended = False
        while line := response.readline(MOST_BYTES):
            if not line.startswith(b"data:"):
                continue
            data = line.removeprefix(b"data:").strip()
            if data == b"[DONE]":
                return
            text, end = self._piece(data, "delta")
            ended = ended or end
            if text:
                yield text
        if not ended:
            raise ModelError("the answer was cut off")

    def _piece(self, data: bytes, part: str) -> tuple[str, bool]:
        """The text in a response or in one event, and whether it is the last one that has any."""
        try:
            found = json.loads(data)
            if "error" in found:
                raise ModelError(self._safe(f"the model reports: {error_text(found)}"))
            if not found["choices"] and part == "delta":  # such as the event that counts tokens
                return "", False
            choice = found["choices"][0]
            text = choice[part].get("content") or ""
            return "" + text, choice.get("finish_reason") is not None
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
            raise ModelError("the answer is not in the form of OpenAI's chat API") from None

    def _problem(self, response: http.client.HTTPResponse) -> str:
        try:
            said = error_text(json.loads(response.read(MOST_BYTES)))
        except (ValueError, TypeError, LookupError, RecursionError):
            said = response.reason
        return self._safe(f"the model answered {response.status}: {said}")

    def _safe(self, text: str) -> str:
        """For a terminal and for other people's eyes: some servers repeat the key."""
        return (text.replace(self._key, "***") if self._key else text)[:300]


def error_text(found: Any) -> str:
    """What an error response says."""
    error = found["error"]
    return str(error["message"] if isinstance(error, dict) else error)


def pause_before_retry(asked: str | None) -> float:
    """Seconds to wait: what the server asks for, at most 10, and 1 if it asks for nothing."""
    try:
        seconds = float(asked or "")
    except ValueError:
        return 1.0
    return min(seconds, 10.0) if seconds >= 0 else 1.0


def visible(text: str) -> str:
    """Text of others without what a terminal would obey."""
    return CONTROLS.sub("", text)


def repaired(text: str) -> str:
    """Surrogates joined, where a stream cut a character in two, or replaced."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def duration(seconds: float) -> str:
    """About how long, in one unit."""
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size:.0f} {unit}"
    return f"{max(0, seconds):.0f} s"


class Chat:
    """The conversation of one person in one terminal, or pipe."""

    def __init__(
        self,
        memory: Memory,
        transcript: Transcript,
        model: Model,
        *,
        token_budget: float,
        interactive: bool,
    ) -> None:
        self.memory, self.transcript, self.model = memory, transcript, model
        self.token_budget, self.interactive = token_budget, interactive
        self.failed = False
        self.listed: list[str] = []  # the keys that the numbers of /memories stand for
        self.commands: dict[str, Callable[[str], None]] = {
            "/remember": self.remember,
            "/memories": self.memories,
            "/forget": self.forget,
            "/context": self.context,
            "/clear": self.clear,
            "/help": self.help,
        }

    def run(self) -> None:
        """Until the input ends or says ``/exit``."""
        if self.interactive:
            print(f"{HELP}   Ctrl-C stops an answer.")
        while True:
            try:
                line = input("> " if self.interactive else "").strip()
            except EOFError:
                return
            if line == "/exit":
                return
            try:
                self.take(line)
            except KeyboardInterrupt:
                if not self.interactive:
                    raise
                print("\n(stopped)")
            except (ModelError, ValueError) as error:
                self.failed = True
                print(f"({visible(str(error))}; nothing was kept)")
            except (OSError, SentinelMemoryError) as error:
                if isinstance(error, BrokenPipeError):
                    raise
                self.failed = True
                print(f"(kept, but not saved: {error})")

    def take(self, line: str) -> None:
        """One line of input."""
        if line.startswith("/"):
            name, _, rest = line.partition(" ")
            self.commands.get(name, self.help)(rest.strip())
        elif line:
            self.answer(line)

    def answer(self, text: str) -> None:
        """Ask the model, show what it says, and keep the turn if it said all of it."""
        with self.transcript.turn(text) as turn:
            self.stream(turn, self.prompt(text))
        if turn.kept is None:
            raise ModelError("the answer is empty")

    def stream(self, turn: OpenTurn, prompt: Prompt) -> None:
        """The answer, to the terminal and into the turn."""
        pieces = []
        try:
            for piece in self.model.ask(prompt.messages):
                pieces.append(piece)
                print(visible(piece), end="", flush=True)
        finally:
            if pieces:
                print(flush=True)
        turn.answer(repaired("".join(pieces)))

    def prompt(self, text: str) -> Prompt:
        """What is sent for ``text``."""
        return build_messages(
            self.memory,
            self.transcript,
            text,
            token_budget=self.token_budget,
            instructions=INSTRUCTIONS,
            per_message_overhead=4,
        )

    def remember(self, text: str) -> None:
        """Store a fact because the person asks for it."""
        if not text:
            print("/remember TEXT")
            return
        taken = [entry.key for entry in self.memory]
        number = next(n for n in range(1, len(taken) + 2) if f"note:{n}" not in taken)
        done = self.memory.remember(f"note:{number}", text, importance=0.9)
        print("(remembered)" if done.kept else "(the memory is full of more important things)")

    def memories(self, _: str) -> None:
        """List what is remembered, with the numbers for ``/forget``."""
        entries = list(self.memory)
        self.listed = [entry.key for entry in entries]
        now = time.time()
        for number, entry in enumerate(entries, 1):
            left = entry.expires_at
            expiry = "never expires" if left is None else f"expires in {duration(left - now)}"
            print(
                f"{number}. {visible(one_line(entry))}"
                f"  [importance {entry.importance:g}, {duration(now - entry.updated_at)} old,"
                f" {expiry}]"
            )
        if not entries:
            print("(nothing is remembered)")

    def forget(self, number: str) -> None:
        """Forget what had that number in the last list."""
        keys = self.listed or [entry.key for entry in self.memory]
        if not number.isdecimal() or not 1 <= int(number[:9]) <= len(keys):
            print("/forget N, a number of /memories")
        elif self.memory.forget(keys[int(number) - 1]):
            print("(forgotten)")
        else:
            print("(that is forgotten already)")

    def context(self, text: str) -> None:
        """Show what the model would be sent."""
        prompt = self.prompt(text or "(your next message)")
        for message in prompt.messages:
            print(visible(f"{message['role']}: {message['content']}"))
        print(
            f"({prompt.tokens} of {self.token_budget:g} tokens, {prompt.turns_used} turns,"
            f" {len(prompt.left_out)} memories left out)"
        )

    def help(self, _: str) -> None:
        """Say what can be said."""
        print(HELP)

    def clear(self, _: str) -> None:
        """Forget everything, the talk too."""
        self.memory.clear()
        self.listed = []
        print("(everything is forgotten)")


def tokenizer_called(name: str, model: str) -> Callable[[str], int]:
    """The counter of ``--tokenizer``."""
    if name == "estimate":
        return estimate_tokens
    try:
        import tiktoken
    except ImportError:
        raise ModelError("--tokenizer tiktoken needs the package tiktoken") from None
    try:
        encoding = tiktoken.encoding_for_model(model)
    except KeyError:
        encoding = tiktoken.get_encoding("o200k_base")
    return lambda text: len(encoding.encode_ordinary(text))


def positive(text: str) -> float:
    """A command line number above 0."""
    number = float(text)
    if not 0 < number < math.inf:
        raise ValueError
    return number


def main(arguments: list[str] | None = None) -> int:
    """Run the program; 0 if all went well."""
    parser = argparse.ArgumentParser(description="Chat with a model that remembers.")
    default_url = os.environ.get("OPENAI_BASE_URL") or "https://api.openai.com/v1"
    parser.add_argument("--base-url", default=default_url, help="default: %(default)s")
    parser.add_argument("--model", required=True, help="its name at the endpoint")
    parser.add_argument("--file", default="chat_memory.json", help="default: %(default)s")
    parser.add_argument("--token-budget", type=positive, default=4_000, help="for the prompt")
    parser.add_argument("--timeout", type=positive, default=60, help="seconds of silence")
    parser.add_argument("--tokenizer", choices=["estimate", "tiktoken"], default="estimate")
    parser.add_argument("--no-stream", action="store_true", help="wait for the whole answer")
    options = parser.parse_args(arguments)
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="replace")
    try:
        model = Model(
            options.base_url,
            options.model,
            key=os.environ.get("OPENAI_API_KEY", "").strip(),
            timeout=options.timeout,
            stream=not options.no_stream,
        )
        tokenizer = tokenizer_called(options.tokenizer, options.model)
        memory = Memory.open(options.file, tokenizer=tokenizer)
    except (ModelError, SentinelMemoryError, OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    chat = Chat(
        memory,
        Transcript(memory),
        model,
        token_budget=options.token_budget,
        interactive=sys.stdin.isatty(),
    )
    try:
        chat.run()
    except KeyboardInterrupt:
        print()
        return 0 if chat.interactive else 130
    except BrokenPipeError:  # nobody reads any more
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return 1 if chat.failed and not chat.interactive else 0


if __name__ == "__main__":
    sys.exit(main())
