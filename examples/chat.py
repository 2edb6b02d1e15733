"""A waiter who remembers you: the 60-second proof of sentinel_memory.

    python examples/chat.py          # talk, /exit, start it again: it still knows your allergy
    python examples/chat.py --demo   # the same in one go, without typing

There is no model behind it, and nothing goes over the network. The waiter knows a few English
sentences from the tables below, and answers from nothing but ``get_context(...)``, the text that
a model would be given. What you say of yourself is important and stays; everything else is small
talk and makes room for newer small talk. Every line is one memory, kept in your own words.
"""

from __future__ import annotations

import argparse
import io
import os
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import NamedTuple

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

# ---- What guests say of themselves


class Fact(NamedTuple):
    """A kind of sentence that matters; the group in its pattern is what the guest states."""

    key: str
    importance: float
    pattern: str
    reply: str


SMALL_TALK, NOTE = 0.1, 0.9  # the importance of everything else, and of /remember
THANKS = "Thank you for telling me. I will remember that you are allergic to {}."
OPENING = r"(?:^|[.,;:!] *|\b(?:and|but|because) )"  # "Would I like it?" states nothing
LIKE, DISLIKE = r"(?:(?:also|really) )?(?:like|love)", r"(?:(?:don't|do not) like|dislike|hate)"
FACTS = (  # a line that states several is kept under the first of them
    Fact("user:allergy", 1.0, r"\bI(?:'m| am) (?:(?:also|very) )?allergic to (.+)", THANKS),
    Fact("user:allergy", 1.0, r"\bI have an? (.{1,40}?) allergy", THANKS),
    Fact("user:name", 0.9, r"\bmy name is ([^\s.,;:!?]+)", "Pleased to meet you, {}."),
    Fact("user:dislikes", 0.7, rf"{OPENING}I {DISLIKE} ([^.,;!?]+)", "No {} for you, then."),
    Fact("user:likes", 0.7, rf"{OPENING}I {LIKE} ([^.,;!?]+)", "You like {}: very well."),
)


def stated(fact: Fact, line: str) -> str:
    """What ``line`` says of that kind; empty for nothing."""
    found = re.search(fact.pattern, line.replace("’", "'"), re.IGNORECASE)
    return found[1].strip(" .!?") if found else ""


def fact_in(line: str) -> Fact | None:
    """The first kind of fact that ``line`` states."""
    return next((fact for fact in FACTS if stated(fact, line)), None)


# ---- What the waiter answers: out of the guest's line and the context, and nothing else


def known(context: Context, key: str) -> list[str]:
    """What the text of the context says of one kind, oldest first."""
    found: list[str] = []
    for line in context.text.split("\n"):
        kept_under, _, text = line.partition(": ")
        statements = [stated(fact, text) for fact in FACTS if fact.key == key]
        if not any(statements) and (kept_under + ":").startswith(key + ":"):
            statements = [text]
        found += [statement for statement in statements if statement not in ("", *found)]
    return found


def guest(context: Context) -> str:
    """``, Jakub``, if the context says so."""
    return "".join(f", {name}" for name in known(context, "user:name")[-1:])


def in_common(dish: str, statements: Sequence[str]) -> list[str]:
    """The parts of a dish that the statements speak of; ``nuts`` are in ``peanuts``, too."""
    words = re.findall(r"\w{3,}", " ".join(statements).lower())
    return [part for part in MENU[dish] if any(word.removesuffix("s") in part for word in words)]


def your_name(_: str, context: Context) -> str:
    """The name that the guest gave last."""
    names = known(context, "user:name")
    return f"Your name is {names[-1]}." if names else "I do not know your name."


def whether_safe(line: str, context: Context) -> str:
    """What speaks against a dish; never a plain yes, for the menu does not say everything."""
    allergies = known(context, "user:allergy")
    dish = next((dish for dish in MENU if dish in line.lower()), None)
    if dish and in_common(dish, allergies):
        clash = " and ".join(in_common(dish, allergies))
        verdict = f"No{guest(context)}! The {dish} has {clash} in it. "
    else:
        verdict = f"The {dish} is made of {', '.join(MENU[dish])}. " if dish else ""
    if any(key.startswith("user:allergy") for key in context.left_out):
        return verdict + "I cannot see all my notes on your allergies: please ask the kitchen."
    if not allergies:
        return verdict + "I know of no allergy of yours; please tell me if there is one."
    return verdict + f"You told me that you are allergic to {', and to '.join(allergies)}."


def what_to_eat(_: str, context: Context) -> str:
    """A dish with what the guest likes, and without what the guest cannot or will not eat."""
    likes = known(context, "user:likes")
    avoid = known(context, "user:allergy") + known(context, "user:dislikes")
    dishes = [dish for dish in MENU if not in_common(dish, avoid)]
    if not dishes:
        return "There is nothing on the menu for you, but let me talk to the chef."
    dish = max(dishes, key=lambda dish: len(in_common(dish, likes)))
    why = f"You like {' and '.join(likes)}, so" if in_common(dish, likes) else "Perhaps"
    without = f" I see no {' or '.join(avoid)} in it." if avoid else ""
    return f"{why} the {dish}: {', '.join(MENU[dish])}.{without}"


def welcome(_: str, context: Context) -> str:
    """A greeting, or a wish."""
    return f"With pleasure{guest(context)}."


def small_talk(line: str, context: Context) -> str:
    """Everything else. A single word brings back what was said with it."""
    word = line.strip(" .!?？").lower()
    for remembered in context.text.split("\n"):
        said = remembered.partition(": ")[2]
        if len(word) > 3 and " " not in word and word in said.lower() and said != line:
            return f"You said: {said}"
    if any(letter.isalpha() and not letter.isascii() for letter in line):
        return "I am sorry, I know only a little English. If it matters, /remember keeps it."
    if line.rstrip().endswith("?"):
        return ("I could not say, I was in the kitchen.", "Who can say?")[len(line) % 2]
    return ("I see.", "As you say.", "Indeed.")[len(line) % 3]


class Question(NamedTuple):
    """A kind of question, the words by which to look for its answer, and the answer."""

    pattern: str
    look_for: str
    answer: Callable[[str, Context], str]


ALLERGY = r"\bsafe\b|\ballerg|\bcan I eat\b|" + "|".join(MENU)
QUESTIONS = (
    Question(r"\bmy name\b|\bwho am I\b", "name", your_name),
    Question(r"\brecommend|\bsuggest|\bshould I\b", "allergy likes dislikes", what_to_eat),
    Question(ALLERGY, "allergy", whether_safe),
    Question(r"^(?:hello|hi|good \w+)\b|\bplease\b", "name", welcome),
)


def asked(line: str) -> Question:
    """The kind of question that ``line`` is; small talk looks for its own words."""
    for question in QUESTIONS:
        if re.search(question.pattern, line, re.IGNORECASE):
            return question
    return Question("", line, small_talk)


# ---- The waiter


class Waiter:
    """Hears, looks up, answers through ``say``, remembers."""

    def __init__(
        self, memory: Memory, budget: int, say: Callable[[str], object], clock: Callable[[], float]
    ) -> None:
        self.memory, self.budget, self.say, self.clock = memory, budget, say, clock
        self.limit = memory.stats().limit
        # For comparison. Where nothing is more important than the rest, the last lines stay; like
        # the list of messages in most programs it is not in a file, and empty after a restart.
        self.last_lines = Memory(limit=self.limit, clock=clock)
        self.chats = self.last_number("chat")
        self.question = ""
        self.prompt: Context | None = None  # for the question, unless a command changed something
        self.shown: list[Entry] = []  # what the numbers of /memories stand for
        self.unsaved = self.leaving = False

    def look_up(self, line: str, memory: Memory | None = None) -> Context:
        """The text that a model would be given; ``one_line`` lets no memory pass for two."""
        memory = self.memory if memory is None else memory
        return memory.get_context(self.budget, query=asked(line).look_for, format=one_line)

    def hear(self, line: str) -> None:
        """One turn. A fact is remembered before the answer, which may depend on it."""
        fact = fact_in(line)
        replies = []
        if fact is not None and self.remember_fact(fact, line):
            replies.append(fact.reply.format(stated(fact, line)))
        self.question, self.prompt = line, self.look_up(line)
        if fact is None or "?" in line:
            replies.append(asked(line).answer(line, self.prompt))
        if replies:
            self.say(" ".join(replies))
        if fact is None:
            self.chats += 1
            self.remember(f"chat:{self.chats}", line, SMALL_TALK)

    def remember_fact(self, fact: Fact, line: str) -> bool:
        """A new name replaces the old one; a second allergy is kept beside the first."""
        key = fact.key
        if key != "user:name" and key in self.memory:
            same = [e.key for e in self.memory if e.data == line and e.key.startswith(key)]
            key = same[0] if same else f"{key}:{max(self.last_number(key), 1) + 1}"
        return self.remember(key, line, fact.importance)

    def last_number(self, kind: str) -> int:
        """The highest N of the keys ``kind:N``: numbers go on after a restart."""
        keys = [re.fullmatch(kind + ":([0-9]{1,9})", entry.key) for entry in self.memory]
        return max([int(key[1]) for key in keys if key], default=0)

    def remember(self, key: str, text: str, importance: float) -> bool:
        """Remember, say what of importance had to go for it, and return whether it was kept."""
        self.last_lines.remember(key, text)
        compaction = None
        with self.saving():
            compaction = self.memory.remember(key, text, importance=importance).compaction
        for entry in compaction.evicted if compaction else ():
            if entry.importance > SMALL_TALK:
                self.say(f"(My memory is full, I had to forget {one_line(entry)})")
        return key in self.memory

    @contextmanager
    def saving(self) -> Iterator[None]:
        """A change that cannot be saved is made all the same: say so, and go on."""
        problem = ""
        try:
            yield
        except StoreConflictError:
            problem = "another program has written to my file, and I do not overwrite that;"
            problem += " start me again to read it"
        except OSError as error:
            problem = error.strerror or str(error)
        if problem and not self.unsaved:
            self.say(f"(Not saved: {problem}. We can go on, but I may not know it next time.)")
        elif self.unsaved and not problem:
            self.say("(Now everything is saved.)")
        self.unsaved = bool(problem)

    # Commands

    def command(self, line: str) -> None:
        """Do what a line that begins with ``/`` says."""
        name, argument = (*line.split(maxsplit=1), "")[:2]
        if name not in COMMANDS:
            self.say(f"There is no command {name}; /help shows all.")
            return
        takes, _, run = COMMANDS[name]
        if argument and not takes:
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
        """The prompt of the last answer, or that for ``question``, and what a list would have."""
        if question or self.prompt is None:
            self.question = question or self.question
            self.prompt = self.look_up(self.question)
        asked_for = f" for: {self.question}" if self.question else ""
        left_out = ", ".join(map(shown, self.prompt.left_out)) or "nothing"
        lost = [
            shown(entry.key)
            for entry in self.memory
            if entry.importance > SMALL_TALK and entry.key not in self.last_lines
        ]
        self.say(f"--- The prompt{asked_for}\n{self.prompt.text}")
        self.say(f"--- {self.prompt.tokens} of {self.budget} tokens (estimated)")
        self.say(f"--- Left out: {left_out}")
        if len(self.last_lines):
            self.say(f"--- A list of the last lines, at most {self.limit}, would keep instead")
            for entry in self.last_lines:
                self.say(one_line(entry))
            self.say(f"--- and would lose: {', '.join(lost) or 'nothing of importance, yet'}")

    def note(self, text: str) -> None:
        """Keep what the guest says is important."""
        fact = fact_in(text)
        if fact is not None:
            kept = self.remember_fact(fact, text)
        else:
            kept = self.remember(f"note:{self.last_number('note') + 1}", text, NOTE)
        if kept:
            self.say("I will remember that.")
        self.prompt = None

    def show_memories(self, _: str) -> None:
        """All there is, oldest first."""
        now = self.clock()
        self.shown = list(self.memory)
        self.say(f"{len(self.shown)} of {self.limit} places taken.")
        for number, entry in enumerate(self.shown, start=1):
            age, expiry = duration(now - entry.updated_at), "never expires"
            if entry.expires_at is not None:
                expiry = f"expires in {duration(entry.expires_at - now)}"
            about = f"importance {entry.importance:g}, {age} old, {expiry}"
            self.say(f"{number}. {one_line(entry)} ({about})")

    def forget(self, number: str) -> None:
        """Forget one: out of the memory, and out of its file."""
        self.shown = self.shown or list(self.memory)
        entry = {str(place): entry for place, entry in enumerate(self.shown, 1)}.get(number)
        if entry is None:
            self.say(f"There is no number {number}; /memories shows the numbers.")
        elif self.memory.entry(entry.key) != entry:
            self.say("That one is gone, or has changed; /memories shows the new numbers.")
        else:
            with self.saving():
                self.memory.forget(entry.key)
            self.last_lines.forget(entry.key)
            self.question, self.prompt = "", None
            self.say(f"Forgotten{self.but_not_saved()}: {one_line(entry)}")

    def clear(self, _: str) -> None:
        """Forget everything."""
        with self.saving():
            self.memory.clear()
        self.last_lines.clear()
        self.question, self.prompt, self.shown = "", None, []
        self.say(f"I have forgotten everything{self.but_not_saved()}.")

    def but_not_saved(self) -> str:
        """What was in the file is gone from it when the memory is saved, and not before."""
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


def duration(seconds: float) -> str:
    """``5 min``, in the largest unit of which there is a whole one."""
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= size:
            return f"{seconds // size:.0f} {unit}"
    return f"{max(0, seconds):.0f} s"


# ---- In and out


CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def escaped(found: re.Match[str]) -> str:
    """A character by its number."""
    return found[0].encode("unicode_escape").decode("ascii")


def shown(key: str) -> str:
    """A key in a list of keys: on one line, whatever is in it."""
    return re.sub(r"[\n\t\u2028\u2029]", escaped, key)


def say(text: str) -> None:
    """Print at once; characters that could play tricks with a terminal are shown as escapes."""
    print(CONTROLS.sub(escaped, text), flush=True)


def lines() -> Iterator[str]:
    """What the guest types, or what comes through a pipe, printed as if it had been typed."""
    if sys.stdin is not None and sys.stdin.isatty():
        with suppress(ImportError):
            import readline  # noqa: F401  (arrow keys)
        while True:
            try:
                line = input("> ")
            except EOFError:
                print()
                return
            yield line
    for line in sys.stdin or ():
        line = line.removesuffix("\n").removesuffix("\r")
        say(f"> {line}")
        yield line


def talk(waiter: Waiter) -> int:
    """Until the guest leaves; the exit code says whether everything is saved."""
    back = ", welcome back" if len(waiter.memory) else ""
    name = guest(waiter.look_up("What is my name?"))
    say(f"Good evening{name}{back}! What may I bring you? (/help shows the commands.)")
    for line in lines():
        if line.strip().startswith("/"):
            waiter.command(line)
        elif line.strip(" .!").lower() in ("bye", "exit", "quit"):
            waiter.command("/exit")
        elif line.strip():
            waiter.hear(line)
        if waiter.leaving:
            break
    if waiter.unsaved:
        with waiter.saving():
            waiter.memory.save()
    if waiter.unsaved:
        say("(What has changed since the last save is lost.)")
    say(f"Goodbye{guest(waiter.look_up('What is my name?'))}!")
    return int(waiter.unsaved)


SCENE = """\
My name is Jakub.
I am allergic to peanuts.
Terrible weather today, isn't it?
The traffic on the bridge was a nightmare.
Did you see the football last night?
That joke on the wall is awful.
How long have you worked here?
The music is a bit loud."""


def demo() -> int:
    """Eight lines, a minute apart, and room for five: what is kept, and what it is good for."""
    now = time.time()
    clock = lambda: now  # noqa: E731
    waiter = Waiter(Memory(limit=5, clock=clock), 60, say=lambda _: None, clock=clock)
    for line in SCENE.split("\n"):
        waiter.hear(line)
        now += 60
    question = "Is the satay safe for me?"
    say(f"A guest says eight things, and there is room for five.\n\n{SCENE}")
    for name, memory in (
        ("sentinel_memory", waiter.memory),
        ("keep-the-last-5", waiter.last_lines),
    ):
        say(f"\nKept by {name}, newest first:")
        for entry in memory.get_recent():
            say(f"    {one_line(entry)}")
        say(f"> {question}\n{asked(question).answer(question, waiter.look_up(question, memory))}")
    return 0


def main(arguments: Sequence[str]) -> int:
    """Play the demo, or open the memory and talk."""
    parser = argparse.ArgumentParser(description="A waiter who remembers you.", allow_abbrev=False)
    add = parser.add_argument
    add("--memory", metavar="PATH", default="waiter.json", help="the file (%(default)s)")
    add("--limit", metavar="N", type=int, default=8, help="room for N memories (%(default)s)")
    add("--budget", metavar="N", type=int, default=60, help="a prompt's tokens (%(default)s)")
    add("--demo", action="store_true", help="play a scene without a file; no other option")
    options = parser.parse_args(arguments)
    if options.demo:
        return demo() if len(arguments) == 1 else parser.error("--demo takes no other option")
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
    say(f"My memory: {options.memory}, {len(memory)} of {options.limit} places taken.")
    if loaded.dropped:
        say(f"(Not valid in the file: {loaded.dropped}; it stays there, unused.)")
    if loaded.compaction and loaded.compaction.evicted:
        room = len(memory) + len(loaded.compaction.evicted)
        say(f"({len(loaded.compaction.evicted)} more will be gone when I save; I have no room.")
        say(f" To keep them, /exit now and start me again with --limit {room}.)")
    return talk(Waiter(memory, options.budget, say, time.time))


if __name__ == "__main__":
    # No byte that comes in, and no character that goes out, ends the conversation.
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="replace")
        if not sys.stdin.isatty():
            # nothing but "\n" ends a line
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
