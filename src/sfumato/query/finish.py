"""The SQL over released rows, as DuckDB runs it, and which of its columns show a released column unchanged."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.dialects import DuckDB

from sfumato.catalog.names import fold
from sfumato.query.date_arithmetic import FORMAT, FORMAT_HINT, convert_format
from sfumato.query.parse import build_syntax_refusal
from sfumato.query.query import Finish, KeyRef, Query
from sfumato.query.released_tables import ROW, check_finish
from sfumato.query.row_expressions import has_aggregate

NUMBER_FORMAT = "Write FORMAT('{:.2f}', x), or ROUND(x, 2): both are free."
RELEASED = "sfumato_released"  # the metadata key of a SELECT of all columns of one release
CLAUSES = ("where", "qualify", "order")
SINGLE = ("group", "distinct", "joins", "having")  # with one of these, a row is not made from one released row


def select_released(number: int, names: Sequence[str]) -> exp.Select:
    """SELECT all columns FROM released0."""
    columns: list[exp.Expr] = [exp.Column(this=quote(name)) for name in names]
    made = exp.Select(expressions=columns, from_=exp.From(this=exp.Table(this=quote(f"released{number}"))))
    made.meta[RELEASED] = True
    return made


def quote(name: str) -> exp.Identifier:
    return exp.Identifier(this=name, quoted=True)


def build_finish(
    tree: exp.Query, queries: Sequence[Query], tables: tuple[tuple[tuple[str, str], ...], ...]
) -> tuple[Finish, bool]:
    """The finish of a question, and whether it selects or sorts rows by noisy values."""
    branches = _list_branches(tree)
    paths = [find_path(branch) for branch in branches]
    known = [path for path in paths if path is not None]
    noisy = [{fold(name) for name, post in query.columns if not isinstance(post, KeyRef)} for query in queries]
    simple = len(known) == len(paths) and _keeps_all(tree)
    width = len(branches[0].expressions)
    unchanged: list[tuple[tuple[int, str], ...]] = [()] * width
    if simple and all(len(branch.expressions) == width for branch in branches):
        for place in range(width):
            traced = ((path.number, path.trace_place(place)) for path in known)
            unchanged[place] = tuple((number, name) for number, name in traced if name is not None)
        for path in known:
            path.add_row_number()
    selects = not simple or _sorts(tree) or any(path.reads_noise(noisy[path.number]) for path in known)
    sql = _print(tree)
    columns = check_finish(sql, tables)
    if simple:
        columns = columns[:-1]
    return Finish(sql, tables, columns, tuple(unchanged) if simple else ((),) * len(columns), simple), selects


def _list_branches(tree: exp.Expr) -> list[exp.Select]:
    bare = tree.unnest() if isinstance(tree, (exp.Subquery, exp.Paren)) else tree
    if isinstance(bare, exp.SetOperation):
        return [*_list_branches(bare.this), *_list_branches(bare.expression)]
    return [bare] if isinstance(bare, exp.Select) else []


def _keeps_all(tree: exp.Expr) -> bool:
    """Is it one SELECT, or a UNION ALL?"""
    bare = tree.unnest() if isinstance(tree, (exp.Subquery, exp.Paren)) else tree
    if not isinstance(bare, exp.SetOperation):
        return True
    plain = isinstance(bare, exp.Union) and not bare.args.get("distinct")
    return plain and _keeps_all(bare.this) and _keeps_all(bare.expression)


def _sorts(tree: exp.Expr) -> bool:
    return isinstance(tree, exp.SetOperation) and tree.args.get("order") is not None


@dataclass(frozen=True, slots=True)
class ReleasedPath:
    """SELECTs inside one another, from the outermost to the one that reads a released table."""

    selects: tuple[exp.Select, ...]
    number: int  # of the released table

    def trace_place(self, place: int) -> str | None:
        """The released column that a column shows unchanged; None if it is computed."""
        node = self.selects[0].expressions[place].unalias()
        return self.trace(node, 0)

    def trace(self, node: exp.Expr, level: int) -> str | None:
        """The released column that a column of the SELECT at this level shows; None if it is computed."""
        if not isinstance(node, exp.Column) or not isinstance(node.this, exp.Identifier):
            return None
        if level == len(self.selects) - 1:
            return str(node.name)
        for inner in self.selects[level + 1].expressions:
            if fold(inner.alias_or_name) == fold(node.name):
                return self.trace(inner.unalias(), level + 1)
        return None

    def add_row_number(self) -> None:
        for select in self.selects:
            select.append("expressions", exp.Column(this=quote(ROW)))

    def reads_noise(self, noisy: set[str]) -> bool:
        """Does a condition or ORDER BY read a noisy column?"""
        for level, select in enumerate(self.selects):
            own = {fold(node.alias): node.unalias() for node in select.expressions if node.alias}
            for clause in CLAUSES:
                part = select.args.get(clause)
                for node in () if part is None else (*part.find_all(exp.Column), *part.find_all(exp.Literal)):
                    meant = node
                    if isinstance(node, exp.Literal):
                        if clause != "order" or node.is_string or not str(node.this).isdigit():
                            continue
                        place = int(str(node.this)) - 1
                        meant = select.expressions[place].unalias() if place < len(select.expressions) else node
                    elif fold(node.name) in own:
                        meant = own[fold(node.name)]
                    names = [self.trace(column, level) for column in meant.find_all(exp.Column)]
                    if any(name is None or fold(name) in noisy for name in names):
                        return True
        return False


def find_path(select: exp.Select) -> ReleasedPath | None:
    """The path of a SELECT in which each row is made from one released row; None if there is none."""
    path = [select]
    while True:
        current = path[-1]
        source = current.args.get("from_")
        plain = not any(current.args.get(clause) for clause in SINGLE)
        starred = any(isinstance(node, exp.Star) or node.name == "*" for node in current.expressions)
        if source is None or not plain or starred or any(map(has_aggregate, current.expressions)):
            return None
        inner = source.this
        if isinstance(inner, exp.Table):
            return ReleasedPath(tuple(path), int(inner.name.removeprefix("released")))
        bare = inner.unnest() if isinstance(inner, exp.Subquery) else inner
        if not isinstance(bare, exp.Select):
            return None
        path.append(bare)


def _print(tree: exp.Expr) -> str:
    """The text for DuckDB. Numbers with a point are doubles, and a cast that fails gives NULL."""
    made = tree.copy()
    for call in list(made.find_all(exp.ToChar, exp.Anonymous)):
        written = _write_date(call)
        if written is not None:
            call.replace(written)
    for node in list(made.find_all(exp.Literal, exp.Cast)):
        if isinstance(node, exp.Literal):
            if not node.is_string and "." in str(node.this) and "e" not in str(node.this).lower():
                node.set("this", f"{node.this}e0")
        elif not isinstance(node, exp.TryCast):
            node.replace(exp.TryCast(this=node.this.copy(), to=node.args["to"].copy(), safe=True))
    return made.sql(dialect=DuckDB, identify=True, comments=False)


def _write_date(node: exp.Expr) -> exp.Expr | None:
    """TO_CHAR(d, 'YYYY-MM'), DATE_FORMAT(d, '%Y-%m') and FORMAT_DATE('%Y-%m', d) -> STRFTIME(d, '%Y-%m')."""
    given = node.expressions if isinstance(node, exp.Anonymous) else [node.this, node.args.get("format")]
    name = str(node.this).upper() if isinstance(node, exp.Anonymous) else "TO_CHAR"
    if name not in ("TO_CHAR", "DATE_FORMAT", "FORMAT_DATE") or len(given) != 2:
        return None
    value, form = given if name != "FORMAT_DATE" else reversed(given)
    if not isinstance(form, exp.Literal) or not form.is_string:
        raise build_syntax_refusal(node, f"{name}[at] needs a constant format", FORMAT_HINT)
    text = str(form.this)
    if name == "TO_CHAR" and not re.search("[A-Z]{2}", text.replace("FM", "")):
        raise build_syntax_refusal(node, "TO_CHAR[at] of a number is not supported", NUMBER_FORMAT)
    text = convert_format(text) if name == "TO_CHAR" else text
    if not FORMAT.fullmatch(text):
        raise build_syntax_refusal(node, f"This format[at] of {name} is not supported", FORMAT_HINT)
    return exp.TimeToStr(this=value.copy(), format=exp.Literal.string(text))
