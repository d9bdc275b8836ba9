"""Functions of released values: windows, texts, dates and numbers. They are post-processing, so they cost nothing.

`RESULT_SHAPES` lists their nodes and the arguments that are allowed; `RESULT_FUNCTIONS` their names in SQL. DuckDB
computes them from the released rows (released_tables.py). None of them reads a file, a setting or the clock.
"""

from sqlglot import exp

_ONE, _TWO = ("this",), ("this", "expression")
TRIGONOMETRY: tuple[type[exp.Expr], ...] = (
    exp.Sin, exp.Cos, exp.Tan, exp.Asin, exp.Acos, exp.Atan, exp.Sinh, exp.Cosh, exp.Tanh, exp.Degrees, exp.Radians,
    exp.Cbrt,
)  # fmt: skip
RESULT_SHAPES: dict[type[exp.Expr], tuple[str, ...]] = {
    exp.Window: ("this", "partition_by", "order", "spec", "alias", "over"),
    exp.WindowSpec: ("kind", "start", "start_side", "end", "end_side"),
    exp.RowNumber: (), exp.Rank: (), exp.DenseRank: (), exp.PercentRank: (), exp.CumeDist: (), exp.Ntile: _ONE,
    exp.Lag: ("this", "offset", "default"), exp.Lead: ("this", "offset", "default"), exp.FirstValue: _ONE,
    exp.LastValue: _ONE, exp.NthValue: ("this", "offset"), exp.Qualify: _ONE, exp.Offset: ("expression",),
    exp.Intersect: (*_TWO, "distinct", "with_", "order", "limit", "offset"),
    exp.Except: (*_TWO, "distinct", "with_", "order", "limit", "offset"),
    exp.Rollup: ("expressions",), exp.Cube: ("expressions",), exp.GroupingSets: ("expressions",),
    exp.Tuple: ("expressions",), exp.Grouping: ("expressions",), exp.GroupingId: ("expressions",),
    exp.Array: ("expressions", "value_constructor"), exp.Exists: _ONE, exp.Bracket: ("this", "expressions", "offset"),
    exp.Nullif: _TWO, exp.TryCast: ("this", "to", "safe"), exp.DataTypeParam: _ONE,
    exp.Concat: ("expressions", "safe", "coalesce"), exp.ConcatWs: ("expressions", "safe", "coalesce"),
    exp.DPipe: (*_TWO, "safe"), exp.Upper: _ONE, exp.Lower: _ONE, exp.Trim: ("this", "expression", "position"),
    exp.Substring: ("this", "start", "length"), exp.Length: _ONE, exp.Left: _TWO, exp.Right: _TWO,
    exp.Replace: ("this", "expression", "replacement"), exp.Pad: ("this", "expression", "fill_pattern", "is_left"),
    exp.StartsWith: _TWO, exp.EndsWith: _TWO, exp.Contains: _TWO, exp.Initcap: _ONE, exp.ILike: _TWO,
    exp.TimeToStr: ("this", "format"), exp.Format: ("this", "expressions"),
    exp.Greatest: ("this", "expressions", "ignore_nulls"), exp.Least: ("this", "expressions", "ignore_nulls"),
    exp.Sqrt: _ONE, exp.Ln: _ONE, exp.Log: _TWO, exp.Exp: _ONE, exp.Pow: _TWO, exp.Mod: _TWO, exp.IntDiv: _TWO,
    exp.Sign: _ONE, exp.Trunc: ("this", "decimals"),
    exp.StrPosition: ("this", "substr"), **dict.fromkeys(TRIGONOMETRY, _ONE),
    exp.LastDay: _ONE, exp.Kwarg: _TWO, exp.VariancePop: _ONE, exp.StddevPop: _ONE, exp.AnyValue: _ONE,
}  # fmt: skip
RESULT_FUNCTIONS = (
    "ROW_NUMBER", "RANK", "DENSE_RANK", "PERCENT_RANK", "CUME_DIST", "NTILE", "LAG", "LEAD", "FIRST_VALUE",
    "LAST_VALUE", "NTH_VALUE", "NULLIF", "IFNULL", "NVL", "ISNULL", "ZEROIFNULL", "DIV0", "SAFE_DIVIDE", "IF", "IIF",
    "CAST", "TRY_CAST", "SAFE_CAST", "CONCAT", "CONCAT_WS", "UPPER", "LOWER", "TRIM", "LTRIM", "RTRIM", "SUBSTR",
    "SUBSTRING", "LENGTH", "LEFT", "RIGHT", "REPLACE", "LPAD", "RPAD", "STARTS_WITH", "ENDS_WITH", "CONTAINS",
    "STRFTIME", "FORMAT", "GREATEST", "LEAST", "SQRT", "LN", "LOG", "LOG10", "LOG2", "EXP", "POWER", "POW",
    "RATIO_TO_REPORT", "MOD", "SIGN", "TRUNC", "LAST_DAY", "GROUPING", "GROUPING_ID", "SIN", "COS", "TAN",
    "ASIN", "ACOS", "ATAN", "SINH", "COSH", "TANH", "DEGREES", "RADIANS", "CBRT", "DP_INTERVAL_LOW", "DP_INTERVAL_HIGH",
)  # fmt: skip
