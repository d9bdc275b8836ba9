# ruff: noqa: PLC0415 - what is heavy is imported by the command that needs it
"""`sfumato shell`: a prompt for questions. Each shows its preview first, and is asked only after a yes."""

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli.ask_commands import Analyst, Confidence, parse_amounts
from sfumato.cli.refusals import Usage, refusals
from sfumato.cli.reported_charges import refuse_closed_output, reporting
from sfumato.cli.shell_completion import complete_word, list_declared
from sfumato.cli.show import is_interactive, print_answer, print_preview, print_table, say, working
from sfumato.errors import SfumatoError

if TYPE_CHECKING:
    from sfumato.curator import Curator

HELP = (
    ("SELECT ... ;", "Preview a question, then ask it if you say yes. It may take several lines; ; ends it."),
    ("\\epsilon 0.5", "What the next questions may spend."),
    ("\\margin n=20", "Let the next questions spend the least that gives this margin. \\margin n=20 rows=500 for AVG."),
    ("\\tables", "The tables and their privacy units."),
    ("\\columns TABLE", "The columns of a table, with their bounds."),
    ("\\budget", "What is spent and what is left."),
    ("\\explain SELECT ... ;", "How a question would be answered. Free."),
    ("\\quit", "Leave. So does Ctrl-D."),
)
COMMANDS = tuple(shown.split()[0] for shown, _ in HELP if shown.startswith("\\"))
HISTORY = 1_000  # lines
BEGIN = "End a question with ; and Enter. \\help lists the commands."


def shell(
    context: typer.Context,
    *,
    epsilon: Annotated[str, typer.Option(help="What one question may spend, to begin with.", metavar="E")] = "0.1",
    confidence: Confidence = "0.95",
    analyst: Analyst = "analyst",
) -> None:
    """A prompt for questions, with history and completion. Each is previewed, and asked only after a yes."""
    with refusals(as_json=False):
        with _keep_interrupts_here():
            from sfumato.opening import open_folder

            opened = open_folder(context.obj)
        with opened as curator:
            session = Session(curator, analyst, confidence, epsilon)
            session.set_epsilon(epsilon)
            with _LineEditor(curator):
                session.run(input)


@dataclass
class Session:
    """What the prompt remembers between questions: the price, and the lines of a question that is not complete."""

    curator: "Curator"
    analyst: str
    confidence: str
    epsilon: str | None
    margin: dict[str, float] | None = None
    assumed: dict[str, float] | None = None

    def run(self, read: Callable[[str], str]) -> None:
        """Read and do, until the end of the input. Ctrl-C drops what was typed."""
        say(f"{self.curator.dataset.name}: {', '.join(self.curator.tables)}. {BEGIN}", "bold")
        lines: list[str] = []
        while True:
            try:
                line = read(self._write_prompt(bool(lines)))
            except EOFError:
                if is_interactive():
                    say("")
                return
            except KeyboardInterrupt:
                lines = []
                say("")
                continue
            lines.append(line)
            text = "\n".join(lines).strip()
            if not text or (not text.endswith(";") and not _is_whole(text)):
                lines = lines if text else []
                continue
            lines = []
            if text.rstrip(";").strip() in ("\\quit", "\\q", "quit", "exit"):
                return
            with suppress(typer.Exit):  # a refusal was shown; the prompt goes on
                self._do(text.rstrip().rstrip(";"), read)

    def _write_prompt(self, within: bool) -> str:
        if not is_interactive():
            return ""
        return "   ... " if within else f"{self.curator.dataset.name} ({self._describe_price()})> "

    def _describe_price(self) -> str:
        if self.margin is None:
            return f"ε {self.epsilon}"
        return ", ".join(f"±{width:g} of {name}" for name, width in self.margin.items())

    def _do(self, text: str, read: Callable[[str], str]) -> None:
        with refusals(as_json=False), reporting(self.curator, as_json=False):
            if text.startswith("\\") or text.strip() == "help":
                self._run_command(text.strip())
            else:
                self._ask(text, read)

    def _ask(self, sql: str, read: Callable[[str], str]) -> None:
        """Preview, confirm, ask. A stored answer is free, so it needs no confirmation."""
        options = {"margin": self.margin, "confidence": self.confidence, "analyst": self.analyst}
        with working("Previewing"):
            found = self.curator.preview(sql, self.epsilon, assume=self.assumed, **options)  # type: ignore[arg-type]
        if not found.cached:
            print_preview(found)
            if not found.fits:
                say("It is not asked. Lower \\epsilon, or ask for a wider \\margin.", "yellow")
                return
            try:
                said = read(f"Ask it for {found.cost}? [y/N] " if is_interactive() else "")
            except EOFError:
                said = ""
            if said.strip().casefold() not in ("y", "yes"):
                say("Nothing was spent.")
                return
        refuse_closed_output()
        assumed = self.assumed if self.margin is not None else None
        with working("Asking"):
            answer = self.curator.ask(sql, self.epsilon, assume=assumed, **options)  # type: ignore[arg-type]
        print_answer(answer)

    def set_epsilon(self, text: str) -> None:
        """What the next questions may spend."""
        from sfumato.number_arguments import read_privacy_amount

        read_privacy_amount(text, "epsilon")
        self.epsilon, self.margin, self.assumed = text, None, None

    def _set_margin(self, words: list[str]) -> None:
        amounts = parse_amounts("margin", words)
        rows = amounts.pop("rows", None)
        if not amounts:
            raise Usage("\\margin takes columns and widths.", "For example \\margin n=20.")
        self.epsilon, self.margin = None, amounts
        self.assumed = None if rows is None else {"n": rows}

    def _run_command(self, text: str) -> None:
        name, *words = text.split()
        match name:
            case "\\epsilon" if len(words) == 1:
                self.set_epsilon(words[0])
                say(f"The next questions spend ε = {words[0]}.")
            case "\\margin" if words:
                self._set_margin(words)
                say(f"The next questions spend the least that gives {self._describe_price()}.")
            case "\\tables" | "\\t":
                print_table(["table", "columns", "privacy unit"], self.curator.tables.list_rows())
            case "\\columns" | "\\d":
                shown = self.curator.tables[words[0]] if words else self.curator.columns
                print_table(["column", "type", "bounds or values", "nullable"], shown.list_rows())
            case "\\budget" | "\\b":
                for _, amounts in self.curator.budget.list_gauges():
                    say(f"{amounts}.")
                own = self.curator.ledger().read_own_remaining(self.analyst)
                if own is not None:
                    from sfumato.answers.answer import Cost

                    say(f"Your own limit: {Cost.from_loss(own).describe_left()} is left.")
            case "\\explain" if words:
                sql = text.removeprefix(name)
                found = self.curator.preview(
                    sql, self.epsilon, margin=self.margin, assume=self.assumed, confidence=self.confidence,
                    analyst=self.analyst,
                )  # fmt: skip
                say(found.explain())
            case "\\help" | "help" | "\\?":
                print_table(["type", "to"], [list(pair) for pair in HELP])
            case _:
                raise Usage(f"There is no command {text}.", "\\help lists the commands.")


@contextmanager
def _keep_interrupts_here() -> Iterator[None]:
    """Let threads that begin inside, such as the engine's, take no Ctrl-C: the prompt of this thread waits for it."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _is_whole(text: str) -> bool:
    """Commands end with their line, except for one that holds a question."""
    if text.startswith("\\explain"):
        return False
    return text.startswith("\\") or text in ("help", "quit", "exit")


class _LineEditor:
    """History and completion at a terminal, where Python has readline."""

    def __init__(self, curator: "Curator") -> None:
        self._tables = list_declared(curator.dataset)
        self._found: list[str] = []

    def __enter__(self) -> None:
        if not is_interactive():
            return
        with suppress(ImportError):
            import readline

            path = _find_history()
            with suppress(OSError):
                readline.read_history_file(path)
            readline.set_history_length(HISTORY)
            readline.set_completer_delims(" \t\n,()=<>+-*/;'")
            readline.set_completer(self._complete)
            readline.parse_and_bind("tab: complete")

    def __exit__(self, *_: object) -> None:
        if "readline" not in sys.modules or not is_interactive():
            return
        import readline

        from sfumato.private_files import FOR_THE_OWNER, make_private, make_private_folder

        path = _find_history()
        with suppress(OSError, SfumatoError):
            make_private_folder(path.parent)
            make_private(path)
            readline.write_history_file(path)
            path.chmod(FOR_THE_OWNER)

    def _complete(self, word: str, number: int) -> str | None:
        if number == 0:
            import readline

            line = readline.get_line_buffer()[: readline.get_endidx()]
            self._found = complete_word(word, line, self._tables, COMMANDS)
        return self._found[number] if number < len(self._found) else None


def _find_history() -> Path:
    from sfumato.ledger.keyring import find_home

    return find_home() / "shell_history"
