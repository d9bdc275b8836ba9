"""Which keys of GROUP BY may be NULL. Rows with such a key are in no group, and answers say so."""

from collections.abc import Iterable

from sfumato.kernel.expressions import Call, Expression
from sfumato.query.query import Typed

COMPARED = ("=", "<>", "<", "<=", ">", ">=", "like")


def has_null_key(keys: Iterable[Typed], filters: Iterable[Expression]) -> bool:
    """May a key be NULL in a row that meets all filters? True where it is not known."""
    conditions = tuple(filters)
    return any(
        key.nullable and not any(_excludes(condition, key.expression) for condition in conditions) for key in keys
    )


def _excludes(condition: Expression, key: Expression) -> bool:
    """Is the condition never true where the key is NULL? False where it is not known."""
    match condition:
        case Call("and", parts):
            return any(_excludes(part, key) for part in parts)
        case Call("or", parts):
            return all(_excludes(part, key) for part in parts)
        case Call("not", (Call("is null", (tested,)),)):
            return tested == key
        case Call("not", (Call(function, parts),)) | Call(function, parts):
            return function in COMPARED and key in parts
    return False
