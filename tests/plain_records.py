"""A simple parser of CSV records, one byte at a time. Tests compare the fast reader with it."""


def parse_plainly(data, columns, end, quoted_newlines=True, delimiter=b","):
    """The grammar, one byte at a time. Lists of fields; a malformed record ends the list with None.

    Where quoted fields hold no line breaks, a record is a line, and a malformed line is None among the others.
    """
    if not quoted_newlines:
        found = []
        lines = data.split(b"\n")
        for number, line in enumerate(lines):
            if number == len(lines) - 1:
                if line:
                    found.append(one_line(line, columns, delimiter))
            elif end == b"\r\n" and not line.endswith(b"\r"):
                found.append(None)
            else:
                body = line[:-1] if end == b"\r\n" else line
                if body or columns == 1:
                    found.append(one_line(body, columns, delimiter))
        return found
    found, at = [], 0
    while at < len(data):
        if data.startswith(end, at) and columns > 1:
            at += len(end)
            continue
        fields, at = one_record(data, at, end, delimiter)
        if fields is None or len(fields) != columns or not utf8(fields):
            return [*found, None]
        found.append(fields)
    return found


def one_line(body, columns, delimiter):
    if b"\n" in body or b"\r" in body:
        return None
    fields, at = one_record(body, 0, b"\n", delimiter)
    return fields if fields is not None and at == len(body) and len(fields) == columns and utf8(fields) else None


def one_record(data, at, end, delimiter):
    fields = []
    while True:
        if data[at : at + 1] == b'"':
            value, at = b"", at + 1
            while True:
                if at >= len(data) or data[at] == 0:
                    return None, at
                if data[at : at + 2] == b'""':
                    value, at = value + b'"', at + 2
                elif data[at : at + 1] == b'"':
                    at += 1
                    break
                else:
                    value, at = value + data[at : at + 1], at + 1
        else:
            begin = at
            while at < len(data) and data[at : at + 1] not in (delimiter, b'"', b"\r", b"\n", b"\0"):
                at += 1
            value = data[begin:at]
        fields.append(value)
        if at >= len(data):
            return fields, at
        if data.startswith(delimiter, at):
            at += 1
        elif data.startswith(end, at):
            return fields, at + len(end)
        else:
            return None, at


def utf8(fields):
    try:
        b"".join(fields).decode()
    except UnicodeDecodeError:
        return False
    return True


def swallows_record(data, columns, end, delimiter=b","):
    """Is a line that begins inside quotes a record by itself? For data in which plainly() finds nothing malformed."""
    inside = False
    for body in data.split(b"\n")[:-1]:
        line = body + b"\n"
        alone = parse_plainly(line, columns, end, delimiter=delimiter) if line.endswith(end) else [None]
        if inside and len(alone) == 1 and alone != [None]:
            return True
        inside ^= line.count(b'"') % 2 == 1
    return False
