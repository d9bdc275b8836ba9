"""The reference of errors by code: cause and fix by hand, messages and hints from the code."""

import ast
from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from error_causes import CAUSES

from sfumato.local.survey.survey_refusals import REFUSALS

ROOT = Path(__file__).resolve().parents[2]
KINDS = (
    "SfumatoError", "MissingExtra", "QueryError", "UnsupportedSyntax", "UnknownName", "MissingBounds", "CatalogError",
    "PermissionDenied", "LedgerError",
)  # fmt: skip
FIXED = {  # errors whose code is set by their own class
    "invalid-parameter": "InvalidParameter",
    "budget-exceeded": "BudgetExceeded",
    "engine-failed": "EngineFailed",
    "kernel-fault": "KernelFault",
    "usage": "Usage",
    "request-running": "StillRunning",
}
HEAD = """# Errors by code

Every error has a code, a message that says what is wrong, and a hint that says what to do.
No error contains a value from the data.
In Python, all of them are `sf.errors.SfumatoError`; the type in the table is the class below it.
With `--json`, a command prints `{"error": CODE, "message": ..., "hint": ...}` on stderr.
Over HTTP, an error is a problem document with the same three fields.

```python
import sfumato as sf

try:
    sf.Laplace(sensitivity=1, epsilon=0)
except sf.errors.SfumatoError as refused:
    print(refused.code, "|", refused.message)
```

This page is generated from the code. In a message, … stands for a name, a number or a list.

"""
MOST_SHOWN = 12


@dataclass(frozen=True)
class Told:
    """One place in the code that raises an error."""

    kind: str
    message: str
    hint: str


def write_errors() -> str:
    """The page in Markdown."""
    found = find_errors()
    lines = [HEAD, "| Code | Type | Cause |", "|---|---|---|"]
    for code in sorted(found):
        kinds = " ".join(sorted({f"`{told.kind}`" for told in found[code]}))
        lines.append(f"| [{code}](#{code}) | {kinds} | {CAUSES[code][0]} |")
    for code in sorted(found):
        cause, fix = CAUSES[code]
        lines += [f"\n## {code}\n", f"**Cause.** {cause}\n", f"**Fix.** {fix}\n"]
        texts = sorted({(told.message, told.hint) for told in found[code] if told.message.strip("… ")})
        if texts:
            shown = texts[:MOST_SHOWN]
            title = "Messages" if len(shown) == len(texts) else f"{len(shown)} of its {len(texts)} messages"
            lines += [f'??? note "{title}"\n']
            lines += [
                f"    - {_escape(message)}{' *' + _escape(hint) + '*' if hint.strip('… ') else ''}"
                for message, hint in shown
            ]
    lines += ["", "## Over HTTP only", "", "| Code | Status | Message |", "|---|---:|---|"]
    lines += [f"| `{code}` | {status} | {_escape(message)} |" for code, status, message in find_problems()]
    return "\n".join(lines) + "\n"


def find_problems() -> list[tuple[str, int, str]]:
    """The refusals of the service itself, which no Python user sees."""
    found = set()
    for path in sorted((ROOT / "src" / "sfumato" / "service").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            named = isinstance(node, ast.Call) and getattr(node.func, "id", "") in (
                "write_problem",
                "refuse",
                "Refused",
            )
            match node.args[:3] if named and isinstance(node, ast.Call) else ():
                case [ast.Constant(value=int(status)), ast.Constant(value=str(code)), message]:
                    found.add((code, status, _read(message)))
    return sorted(found)


@cache
def find_errors() -> dict[str, list[Told]]:
    """Each code with the places that raise it."""
    found: dict[str, list[Told]] = defaultdict(list)
    for path in sorted((ROOT / "src" / "sfumato").rglob("*.py")):
        tree = ast.parse(path.read_text())
        named = {
            target.id: node.value
            for node in tree.body
            if isinstance(node, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and getattr(node.func, "id", None) in KINDS and node.args:
                code, *texts = [_read(named.get(getattr(argument, "id", ""), argument)) for argument in node.args]
                if isinstance(node.args[0], ast.Constant):
                    found[code].append(Told(node.func.id, *[*texts, "", ""][:2]))
            elif isinstance(node, ast.Call) and getattr(node.func, "id", None) == "InvalidParameter":
                parameter, rule, *rest = [*(_read(argument) for argument in node.args), "", "", ""]
                hint = rest[1] if len(node.args) > 3 else ""
                if rule.strip("… "):
                    found["invalid-parameter"].append(Told("InvalidParameter", f"`{parameter}` {rule}; got ….", hint))
    for code, kind in FIXED.items():
        found[code].append(Told(kind, "", ""))
    for code, (message, hint) in REFUSALS.items():
        found[code].append(Told("CatalogError", message, hint))
    return dict(found)


def _read(node: ast.AST) -> str:
    """The text of an argument, with … for what is computed."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(part.value if isinstance(part, ast.Constant) else "…" for part in parts)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _read(left) + _read(right)
        case ast.Starred():
            return ""
        case _:
            return "…"


def _escape(text: str) -> str:
    return text.replace("*", "\\*").replace("_", "\\_").replace("<", "&lt;").replace("[", "\\[").strip()
