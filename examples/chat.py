"""A waiter who remembers you: the 60-second proof of sentinel_memory.

    python examples/chat.py          # talk, /exit, start it again: it still knows your allergy

There is no model behind it, and nothing goes over the network. The waiter knows a few English
sentences, and answers from nothing but ``get_context(...)``, the text that a model would be given.
What you say of yourself is important and stays; everything else is small talk and makes room for
newer small talk. Every line is one memory, kept in your own words.
"""

from __future__ import annotations

import argparse
import io
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

from sentinel_memory import (
    Context,
    ConversationIndex,
    DamagedStoreError,
    Entry,
    Memory,
    StoreConflictError,
    one_line,
)

MENU = {
    "satay": ("chicken", "peanuts", "coconut milk"),
    "pad thai": ("rice noodles", "egg", "peanuts", "fish sauce"),
    "tom yum": ("shellfish", "lemongrass", "mushrooms", "spicy chilli"),
    "green curry": ("chicken", "coconut milk", "basil", "spicy chilli"),
    "mango rice": ("mango", "sticky rice", "coconut milk"),
}

# ---- What guests say of themselves: the first pattern that fits is the kind of a line

SMALL_TALK, NOTE = 0.1, 0.9  # the importance of everything else, and of /remember
BEGIN = r"(?:^|[.,;:!] *|\b(?:and|but|because) )I (?:(?:also|really) )?"  # no question
FACTS = (
    ("allergy", 1.0, r"\b(?:I(?:'m| am)|my \w+(?:'s| is)) (?:(?:also|very) )?allergic to (.+)"),
    ("allergy", 1.0, r"\b(?:I have|my \w+ has) an? (.{1,40}?) allergy"),
    ("allergy", 1.0, r"\b(?:I|my \w+) (?:can't|cannot|mustn't) eat (?!here|now|it\b|any)(.+)"),
    ("name", 0.9, r"\bmy name(?:'s| is) ([^\s.,;:!?]+)"),
    (
        "name",
        0.9,
        r"^(?:(?:hello|hi|hey|good \w+)\W+)?I(?:'m| am) ((?-i:[A-ZÀ-Ž])\w+)(?:\W*$| and )",
    ),
    ("dislikes", 0.7, rf"{BEGIN}(?:don't like|do not like|dislike|hate) ([^.,;!?]+)"),
    ("likes", 0.7, rf"{BEGIN}(?:like|love) ([^.,;!?]+)"),
)
NO_LONGER = re.compile(
    r"\b(?:not|no longer|never) (?:\w+ )?allergic\b|n't (?:\w+ )?allergic\b", re.IGNORECASE
)


def fact_in(line: str) -> tuple[str, float, str] | None:
    """The kind of fact that a line states, its importance, and the statement."""
    if not NO_LONGER.search(line):
        for kind, importance, pattern in FACTS:
            if found := re.search(pattern, line.replace("’", "'"), re.IGNORECASE):
                return kind, importance, found[1].strip(" .!?")
    return None


# ---- What the waiter answers: out of the guest's line and the context, and nothing else


def known(context: Context, kind: str) -> list[str]:
    """The lines of the context of one kind, oldest first, without their keys."""
    lines = (line.partition(": ") for line in context.text.split("\n"))
    return [text for key, _, text in lines if f"{key}:".startswith(f"{kind}:")]


def stated(line: str) -> str:
    """The statement of a line; of one that another program wrote, the line."""
    fact = fact_in(line)
    return fact[2] if fact else line


def guest(context: Context) -> str:
    """``, Jakub``, if the context says so."""
    return "".join(f", {stated(line)}" for line in known(context, "name")[-1:])


def in_common(dish: str, lines: Sequence[str]) -> list[str]:
    """The parts of a dish that the lines speak of; ``nuts`` are in ``peanuts``, too."""
    words = re.findall(r"\w{3,}", " ".join(map(stated, lines)).lower())
    return [part for part in MENU[dish] if any(word.removesuffix("s") in part for word in words)]


def your_name(_: str, context: Context) -> str:
    """The name that the guest gave last."""
    return f"Your name is {name[2:]}." if (name := guest(context)) else "I do not know your name."


def whether_safe(line: str, context: Context) -> str:
    """The reasons against a dish; never a plain yes, for the menu does not say everything."""
    allergies = known(context, "allergy")
    dish = next((dish for dish in MENU if dish in line.lower()), "")
    answer = f"The {dish} is made of {', '.join(MENU[dish])}. " if dish else ""
    if dish and (clash := in_common(dish, allergies)):
        answer = f"No{guest(context)}! The {dish} has {' and '.join(clash)} in it. "
    if any(key.startswith("allergy:") for key in context.left_out):
        return answer + "I cannot see all my notes on allergies: please ask the kitchen."
    if not allergies:
        return answer + "I know of no allergy of yours; please tell me if there is one."
    return answer + " ".join(f"You said: {line}" for line in allergies)


def what_to_eat(_: str, context: Context) -> str:
    """A dish with what the guest likes, and without what the guest cannot or will not eat."""
    likes = known(context, "likes")
    avoid = known(context, "allergy") + known(context, "dislikes")
    dishes = [dish for dish in MENU if not in_common(dish, avoid)]
    if not dishes:
        return "There is nothing on the menu for you, but let me talk to the chef."
    dish = max(dishes, key=lambda dish: len(in_common(dish, likes)))
    wish = (
        f"You like {' and '.join(map(stated, likes))}, so" if in_common(dish, likes) else "Perhaps"
    )
    without = f" I see no {' or '.join(map(stated, avoid))} in it." if avoid else ""
    return f"{wish} the {dish}: {', '.join(MENU[dish])}.{without}"


def menu(_: str, context: Context) -> str:
    """Every dish."""
    return "; ".join(f"{dish}: {', '.join(parts)}" for dish, parts in MENU.items()) + "."


def small_talk(line: str, context: Context) -> str:
    """Everything else. A single word brings back what was said with it."""
    word = line.strip(" .!?？").lower()
    for said in (remembered.partition(": ")[2] for remembered in context.text.split("\n")):
        if len(word) > 3 and " " not in word and word in said.lower() and said != line:
            return f"You said: {said}"
    if any(letter.isalpha() and not letter.isascii() for letter in line):
        return "I am sorry, I know only a little English. If it matters, /remember keeps it."
    return "I could not say, I was in the kitchen." if line.rstrip().endswith("?") else "I see."


QUESTIONS: tuple[tuple[str, str, Callable[[str, Context], str]], ...] = (
    (r"\bmy name\b|\bwho am I\b", "name", your_name),
    (r"\brecommend|\bsuggest|\bshould I\b", "allergy likes dislikes", what_to_eat),
    (r"\bsafe\b|\ballerg|\bcan I eat\b|" + "|".join(MENU), "allergy", whether_safe),
    (r"\bmenu\b", "", menu),
)


def asked(line: str) -> tuple[str, Callable[[str, Context], str]]:
    """The words by which to look for the answer to a line, and the answer."""
    for pattern, look_for, answer in QUESTIONS:
        if re.search(pattern, line, re.IGNORECASE):
            return look_for, answer
    return line, small_talk


# ---- The waiter


class Waiter:
    """A waiter hears, looks up, answers through ``say``, and remembers."""

    def __init__(self, memory: Memory, budget: int, say: Callable[[str], object]) -> None:
        self.memory, self.budget, self.say = memory, budget, say
        self.question = ""
        self.prompt: Context | None = None  # of the last answer, unless a command changed something
        self.shown: list[Entry] = []  # the numbers of /memories stand for these
        self.unsaved = self.leaving = False

    def hear(self, line: str) -> None:
        """One turn. A fact is remembered before the answer, which may depend on it."""
        if not re.search(r"\w", line):  # such as a key that the terminal did not take
            self.say("Pardon?")
            return
        fact, self.question = fact_in(line), line
        look_for, answer = asked(line)
        if fact is not None and self.remember(fact[0], line, fact[1]):
            self.say("Thank you for telling me. I will remember that.")
        self.prompt = self.look_up(look_for)
        if (fact is None or "?" in line) and not self.offered_to_forget(line):
            self.say(answer(line, self.prompt))
        if fact is None:
            self.remember("chat", line, SMALL_TALK)

    def look_up(self, query: str) -> Context:
        """The text that a model would be given; ``one_line`` lets no memory pass for two."""
        return self.memory.get_context(self.budget, query=query, format=one_line)

    def remember(self, kind: str, text: str, importance: float) -> bool:
        """Remember a line, a new name in place of the old one; whether it is kept and saved."""
        same = [entry.key for entry in self.memory if (entry.kind, entry.data) == (kind, text)]
        key = "name" if kind == "name" else same[0] if same and kind != "chat" else None
        pinned = kind == "allergy" or None

        def change() -> bool:
            if key is None:
                done = self.memory.add(text, kind=kind, importance=importance, pinned=pinned)
            else:
                done = self.memory.remember(key, text, importance=importance, pinned=pinned)
            for entry in done.compaction.evicted if done.compaction else ():
                if entry.importance > SMALL_TALK:
                    self.say(f"(My memory is full, I had to forget {one_line(entry)})")
            return done.kept

        return self.saved(change)

    def saved(self, change: Callable[[], object]) -> bool:
        """Make a change; whether it was made, and is in the file. If not, say why."""
        problem, done = "", False
        try:
            done = change() is not False
        except StoreConflictError:
            problem = "another program has written to my file; start me again to read it"
        except ValueError as error:  # no room for one more pin
            self.say(f"(Not kept: {error}.)")
            return False
        except OSError as error:
            problem = error.strerror or str(error)
        if problem and not self.unsaved:
            self.say(f"(Not saved: {problem}. We can go on, but I may not know it next time.)")
        elif self.unsaved and not problem:
            self.say("(Now everything is saved.)")
        self.unsaved = bool(problem)
        return done

    def offered_to_forget(self, line: str) -> bool:
        """Show the commands that forget what is no longer so; to decide is for the guest."""
        told = set(re.findall(r"\w{3,}", line.lower())) if NO_LONGER.search(line) else set()
        told -= {"not", "longer", "never", "allergic"}
        self.shown, offered = list(self.memory) if told else self.shown, False
        for number, entry in enumerate(self.shown, 1):
            if entry.kind == "allergy" and told & set(re.findall(r"\w+", str(entry.data).lower())):
                self.say(f"To make me forget {one_line(entry)} type /forget {number}")
                offered = True
        return offered

    # Commands

    def command(self, line: str) -> None:
        """Do as a line says that begins with ``/``."""
        name, argument = (*line.split(maxsplit=1), "")[:2]
        takes, _, run = COMMANDS.get(name, ("", "", None))
        if run is None:
            self.say(f"There is no command {name}; /help shows all.")
        elif argument and not takes:
            self.say(f"{name} stands alone; /help shows all.")
        elif not argument and takes in ("N", "TEXT"):
            self.say(f"It is: {name} {takes}")
        else:
            run(self, argument.strip())

    def help(self, _: str) -> None:
        """All commands."""
        for name, (takes, purpose, _run) in COMMANDS.items():
            self.say(f"{f'{name} {takes}':<20}{purpose}")

    def show_context(self, question: str) -> None:
        """The prompt of the last answer, or that for ``question``."""
        self.question = question or self.question
        if question or self.prompt is None:
            self.prompt = self.look_up(asked(self.question)[0])
        context = self.prompt
        asked_for = f" for: {self.question}" if self.question else ""
        self.say(f"--- The prompt{asked_for}\n{context.text}")
        self.say(f"--- {context.tokens} of {self.budget} tokens (estimated)")
        self.say(f"--- Left out: {', '.join(map(repr, context.left_out)) or 'nothing'}")

    def note(self, text: str) -> None:
        """Keep a line that the guest says is important."""
        kind, importance, _ = fact_in(text) or ("note", NOTE, "")
        if self.remember(kind, text, importance):
            self.say("I will remember that.")
        self.prompt = None

    def show_memories(self, _: str) -> None:
        """All memories, oldest first."""
        self.shown = list(self.memory)
        self.say(f"{len(self.shown)} of {self.memory.stats().limit} places taken.")
        for number, entry in enumerate(self.shown, start=1):
            about = "pinned" if entry.pinned else f"importance {entry.importance:g}"
            self.say(f"{number}. {one_line(entry)} ({about})")

    def forget(self, number: str) -> None:
        """Forget one memory: here, and in the file."""
        self.shown = self.shown or list(self.memory)
        entry = {str(place): entry for place, entry in enumerate(self.shown, 1)}.get(number)
        if entry is None:
            self.say(f"There is no number {number}; /memories shows the numbers.")
        elif self.memory.entry(entry.key) != entry:
            self.say("That one is gone, or has changed; /memories shows the new numbers.")
        else:
            self.saved(lambda: self.memory.forget(entry.key))
            self.question, self.prompt = "", None
            self.say(f"Forgotten{self.but_not_saved()}: {one_line(entry)}")

    def clear(self, _: str) -> None:
        """Forget everything."""
        self.saved(self.memory.clear)
        self.question, self.prompt, self.shown = "", None, []
        self.say(f"I have forgotten everything{self.but_not_saved()}.")

    def but_not_saved(self) -> str:
        """The file loses a memory when the change is saved, and not before."""
        return ", but what is in the file stays there until I can save" if self.unsaved else ""

    def leave(self, _: str) -> None:
        """The end of the conversation; so is the end of the input."""
        self.leaving = True


COMMANDS: dict[str, tuple[str, str, Callable[[Waiter, str], None]]] = {
    "/context": ("[QUESTION]", "the prompt, and what is left out of it", Waiter.show_context),
    "/remember": ("TEXT", "keep something that matters to you", Waiter.note),
    "/memories": ("", "everything I remember, numbered", Waiter.show_memories),
    "/forget": ("N", "forget number N of /memories", Waiter.forget),
    "/clear": ("", "forget everything", Waiter.clear),
    "/help": ("", "these lines", Waiter.help),
    "/exit": ("", "leave, as bye does; what I remember stays in the file", Waiter.leave),
}
WORDS = {"help": "/help", "?": "/help"} | dict.fromkeys(("bye", "exit", "quit", "q"), "/exit")

# ---- In and out

ESCAPES = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|O.|.?)")  # keys that the terminal did not take
CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def say(text: str) -> None:
    """Print at once; characters that could play tricks with a terminal are shown as escapes."""
    print(CONTROLS.sub(lambda found: ascii(found[0])[1:-1], text), flush=True)


def lines() -> Iterator[str]:
    """The lines that the guest types or pastes, or that come through a pipe and are printed."""
    if sys.stdin is not None and sys.stdin.isatty():
        with suppress(ImportError):
            import readline  # noqa: F401  (arrow keys)
        interrupted = False
        while True:
            try:
                text = input("> ")
            except EOFError:
                print()
                return
            except KeyboardInterrupt:
                if interrupted:
                    raise
                interrupted = True
                say("\n(Dropped. Ctrl-C again leaves.)")
                continue
            interrupted = False
            yield from ESCAPES.sub("", text).split("\n")  # a paste may have several lines
    for line in sys.stdin or ():
        line = line.removesuffix("\n").removesuffix("\r")
        say(f"> {line}")
        yield line


def talk(waiter: Waiter) -> int:
    """Until the guest leaves; the exit code says whether everything is saved."""
    back = ", welcome back" if len(waiter.memory) else ""
    name = guest(waiter.look_up("name"))
    say(f"Good evening{name}{back}! What may I bring you? (/help shows the commands.)")
    for line in lines():
        word = line.strip(" .!").lower()
        if word in WORDS or line.strip().startswith("/"):
            waiter.command(WORDS.get(word, line))
        elif line.strip():
            waiter.hear(line)
        if waiter.leaving:
            break
    if waiter.unsaved and not waiter.saved(waiter.memory.save):
        say("(What has changed since the last save is lost.)")
    say(f"Goodbye{guest(waiter.look_up('name'))}!")
    return int(waiter.unsaved)


def main(arguments: Sequence[str]) -> int:
    """Open the memory and talk."""
    parser = argparse.ArgumentParser(description="A waiter who remembers you.", allow_abbrev=False)
    add = parser.add_argument
    add("--memory", metavar="PATH", default="waiter.json", help="the file (%(default)s)")
    add("--limit", metavar="N", type=int, default=8, help="room for N memories (%(default)s)")
    add("--budget", metavar="N", type=int, default=60, help="a prompt's tokens (%(default)s)")
    options = parser.parse_args(arguments)
    if options.limit < 1:
        parser.error(f"argument --limit: must be at least 1, not {options.limit}")
    if not 0 <= options.budget <= 1_000_000:
        parser.error(f"argument --budget: must be from 0 to 1000000, not {options.budget}")
    try:
        memory = Memory.open(
            options.memory, limit=options.limit, load=False, index=ConversationIndex()
        )
    except ValueError as error:
        parser.error(f"argument --memory: {error}")
    try:
        loaded = memory.load()
    except (OSError, DamagedStoreError) as error:
        print(f"chat.py: {error}", file=sys.stderr)
        return 1
    say(f"My memory: {options.memory}, {len(memory)} of {memory.stats().limit} places taken.")
    for raw, reason in loaded.rejected:
        say(f"(Not valid in the file, where it stays unused: {reason}: {raw!r:.200})")
    if loaded.compaction and loaded.compaction.evicted:
        room = len(memory) + len(loaded.compaction.evicted)
        say(f"({len(loaded.compaction.evicted)} more will be gone when I save; I have no room.")
        say(f" To keep them, /exit now and start me again with --limit {room}.)")
    return talk(Waiter(memory, options.budget, say))


if __name__ == "__main__":
    # No byte that comes in, and no character that goes out, ends the conversation.
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="replace")
        if not sys.stdin.isatty():
            sys.stdin.reconfigure(encoding="utf-8", errors="replace", newline="\n")
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        code = main(sys.argv[1:])
    except KeyboardInterrupt:
        say("\nGoodbye!")
        code = 130
    except OSError as error:  # in print: nobody reads it any more, as after `| head`
        if not isinstance(error, BrokenPipeError):
            print(f"chat.py: {error}", file=sys.stderr)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 1
    sys.exit(code)
