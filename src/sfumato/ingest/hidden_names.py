"""The names that Sfumato adds to a database: hidden columns and tables. A catalog cannot declare such a name.

Every hidden name begins with HIDDEN. Names that end in _ are prefixes: the name of a column or a number follows.
"""

from sfumato.kernel import expressions

HIDDEN = "__sfumato"

# columns of a snapshot
UNIT = expressions.UNIT  # the id of the row's privacy unit; never NULL
ROWS_OF_UNIT = f"{HIDDEN}_rows"  # how many rows of the snapshot belong to that unit; 1 if max_rows_per_unit or fewer
MET = f"{HIDDEN}_met"  # TRUE: joins of private tables and groups of undeclared keys read this row
STEPS = f"{HIDDEN}_steps_"  # the column in steps of the grid of its declared bounds

EMPTY = f"{HIDDEN}_empty_"  # a catalog of empty tables, beside a snapshot

# columns of a query that measures a plan
HELD = f"{HIDDEN}_held"  # the divisor of a row's weight, where rows come from several tables
KEY = f"{HIDDEN}_key_"  # the value of a key; GROUP BY must mean this alias and no declared column
BIN = f"{HIDDEN}_bin"
PAIRS = f"{HIDDEN}_pairs"  # a table of one query: units with their keys or values; _ and a number follow
OF_UNITS = f"{HIDDEN}_of_units"  # a table of one query: how many of these pairs a unit has; the same number
UNIT_NUMBER = f"{HIDDEN}_unit_number"  # of a unit: it decides which of too many keys the unit is counted in
NAMED = f"{HIDDEN}_named"  # a table of the connection that counts: keys with their numbers
DIFFERENT = f"{HIDDEN}_different_"  # a value that is counted once, however many rows have it
NUMBER = f"{HIDDEN}_number_"  # of a pivot: which of its conditions the row belongs to
SCALED = f"{HIDDEN}_scaled_"
ROUNDED = f"{HIDDEN}_rounded_"

# columns and tables that exist while a table is pinned
PEOPLE = f"{HIDDEN}_people"  # one row for each unit, and one with NULL for the rows without a unit
OWNER = f"{HIDDEN}_owner"  # the unit's id, where another table names the units of a source
OUTCOME = f"{HIDDEN}_outcome_"
PARSED = f"{HIDDEN}_parsed_"
ABSENT = f"{HIDDEN}_absent_"
VALUE = f"{HIDDEN}_value"
COUNTED = f"{HIDDEN}_counted"  # of a counts table: the count of a record, as it was read
TIMES = f"{HIDDEN}_times"  # how many people the record stands for
COPIES, COPY = f"{HIDDEN}_copies", f"{HIDDEN}_copy"
CONTENT = f"{HIDDEN}_content"
PLACE = f"{HIDDEN}_place"
ANEW = f"{HIDDEN}_anew"
FRAME = f"{HIDDEN}_frame"
ATTACHED = f"{HIDDEN}_source"
SOURCE_ROWS = f"{HIDDEN}_source_rows"  # of a database server

# tables of a snapshot file
PINNED = f"{HIDDEN}_pinned"  # the declaration and the version of each pinned table
FACTS = f"{HIDDEN}_public"  # what was read from public tables
MULTIPLICITIES = f"{HIDDEN}_multiplicities"  # of public tables: the most rows with one value, by column
STORED = f"{HIDDEN}_stored"  # where the rows of a table are, if they are in a database: one place for each version
SOURCES = f"{HIDDEN}_sources"  # the state of each source when it was pinned
