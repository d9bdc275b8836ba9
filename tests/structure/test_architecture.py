"""ARCHITECTURE.md matches the code: what it names exists, and the path of one question has the order of the code."""

import ast
import inspect
import re
from pathlib import Path

import pytest

from sfumato.answering import ask, certified_plans, charged_draws, desk, plan_digests, present_answer
from sfumato.curator import Curator
from sfumato.query import bound_question

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "sfumato"
TEXT = (ROOT / "ARCHITECTURE.md").read_text()
MOST_LINES = 66  # one page
STEP = re.compile(r"^\| *(\d*) *\| (.*) \| `([\w/]+\.py)` \| (.*) \|$", re.MULTILINE)
STEPS = STEP.findall(TEXT)


def defined_in(path):
    """The functions and classes of a file, methods as Class.method and by their own name, and what it imports."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.ClassDef):
            found |= {
                node.name,
                *(f"{node.name}.{member.name}" for member in node.body if isinstance(member, ast.FunctionDef)),
            }
        elif isinstance(node, ast.ImportFrom):
            found |= {alias.name for alias in node.names}
    return found


def test_it_is_one_page():
    assert len(TEXT.splitlines()) <= MOST_LINES


def test_every_package_and_root_module_is_on_the_map():
    places = {path.name for path in SOURCE.glob("*.py")} - {"__init__.py"}
    places |= {f"{path.name}/" for path in SOURCE.iterdir() if (path / "__init__.py").exists()}
    first_cells = [line.split("|")[1] for line in TEXT.splitlines() if line.startswith("| `")]
    assert sorted(name for cell in first_cells for name in re.findall(r"`([^`]+)`", cell)) == sorted(places)


def test_the_map_is_in_the_order_of_imports():
    """Every package imports only packages above it in the table, or in the same row."""
    rows = [re.findall(r"`([^`]+)`", line.split("|")[1]) for line in TEXT.splitlines() if line.startswith("| `")]
    place = {name.removesuffix(".py").rstrip("/"): number for number, row in enumerate(rows) for name in row}
    for path in SOURCE.rglob("*.py"):
        name = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        for imported in re.findall(r"^\s*(?:from|import) sfumato\.(\w+)", path.read_text(), re.MULTILINE):
            if name != "__init__":
                assert place[imported] <= place[name], f"{path} imports {imported}"


@pytest.mark.parametrize("step", STEPS, ids=lambda step: f"{step[0]} {step[3]}")
def test_the_functions_of_the_path_exist(step):
    _, _, path, functions = step
    defined = defined_in(SOURCE / path)
    names = re.findall(r"`([\w.]+)`", functions)
    assert names
    assert set(names) <= defined, path


def test_the_steps_are_those_of_the_code_in_their_order():
    assert [number for number, *_ in STEPS] == ["1", "2", "3", "4", "5", "", "6", "7", "8", "9", "10", "11"]
    in_order(Curator.ask, "at_desk", "ask(")
    in_order(ask.ask, "bind_question(", "answer_query(")
    in_order(bound_question.bind_question, "parse(", "_REMEMBERED[key] =")
    in_order(bound_question._bind_tree, "bind(")
    in_order(ask.answer_query, "desk.plan(", "certify_plan(", "desk.answer(", "present_answer(")
    in_order(certified_plans.certify_plan, "certify_and_name(")
    in_order(plan_digests.certify_and_name, "certify(")
    in_order(desk.Desk.answer, "find_stored(", "charge_and_release(")
    released = "certified.release(", "ledger.store("
    in_order(charged_draws.charge_and_release, "engine.check(", "ledger.charge(", *released, "draw_once(engine")
    in_order(charged_draws.draw_once, "engine.aggregate(", "draw(exact)", "_close(ledger, reservation)")
    in_order(charged_draws._close, "ledger.void(")
    in_order(present_answer.present_answer, "make_answer(")


def test_a_wrong_order_is_noticed():
    """Negative control."""
    with pytest.raises(AssertionError):
        in_order(charged_draws.charge_and_release, "ledger.charge(", "engine.check(")


def in_order(function, *calls):
    text = inspect.getsource(function).partition("):\n" if ") ->" not in inspect.getsource(function) else ") ->")[2]
    places = [text.find(call) for call in calls]
    assert -1 not in places, calls
    assert places == sorted(places), calls


def test_other_names_exist():
    """Words in backticks outside the tables: functions and classes of the package, and files."""
    defined = set().union(*(defined_in(path) for path in SOURCE.rglob("*.py")))
    prose = "\n".join(line for line in TEXT.splitlines() if not line.startswith("|"))
    for name in re.findall(r"`(\w+)`", prose):
        assert name in defined, name


def test_the_files_outside_of_the_package_exist():
    outside = TEXT.partition("## Outside of `src/`")[2]
    names = re.findall(r"`([\w/]+/|\w+\.py)`", outside)
    assert {"tools/site/", "check_site.py", "clients/js/"} <= set(names)
    for name in names:
        assert (ROOT / name).is_dir() or (ROOT / "tools" / "site" / name).is_file(), name
