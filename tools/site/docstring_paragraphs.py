"""An extension of mkdocstrings: a line of a docstring that begins with a name or a label begins a paragraph."""

import re

import griffe

BEGINS = re.compile(r"(?<=[.:)])\n(?=`|[A-Z][a-z]+(?: [a-z]+)?: |\d\. )")


class DocstringParagraphs(griffe.Extension):
    """In a terminal, each line reads by itself. Markdown would join the lines."""

    def on_object(self, *, obj: griffe.Object, **_: object) -> None:
        if obj.docstring is not None:
            obj.docstring.value = BEGINS.sub("\n\n", obj.docstring.value)
