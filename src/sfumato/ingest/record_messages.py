"""What is wrong with a record, and what to do about it. No text quotes what a file holds."""

OTHER_ENCODING = 'Declare the file\'s encoding (--encoding): encoding = "latin-1", "windows-1252" or "utf-16".'
NO_MARK = 'Declare encoding = "utf-16-le" or "utf-16-be" (--encoding), or convert the file to UTF-8.'
TO_UTF8 = "Remove the stray byte; or convert the file to UTF-8, if its characters are right."
SHIFTED = "a byte is missing or too many, so that its line end is not at a character"
NOT_UTF8 = "it is not UTF-8 text"
NOT_WELL_FORMED = "it is not well-formed"
BAD_HEADER = "the header line is not well-formed"
IN_QUOTES = "a quoted field holds line {:,}, which is a record by itself"
DECLARE_NEWLINES = (
    "Repair the unclosed quote, or declare quoted_newlines = true (--quoted-newlines) if a field holds such lines."
)
REPAIR = (
    "Repair the record: a field that holds a delimiter, a double quote or a line break stands in double quotes, and "
    "each double quote inside it is doubled."
)
SKIP = (
    'If no field holds a line break, quoted_newlines = false and on_error = "skip" (command line: '
    "--no-quoted-newlines --on-error skip) drop such records and count them."
)
