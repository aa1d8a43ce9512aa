"""A figure as SVG that can stand in a page among others.

>>> file = '<?xml?><svg width="72pt"><g id="axes"><path id="p1"/><use href="#p1"/></g></svg>'
>>> head, body = inline(file, "loss", "A loss").split("<g", 1)
>>> head
'<svg style="max-width:96px" role="img" aria-label="A loss">'
>>> body
'><path id="loss-p1"/><use href="#loss-p1"/></g></svg>'
"""

import re
from html import escape

POINT = 4 / 3  # CSS pixels


def inline(text: str, prefix: str, label: str) -> str:
    """The element alone, as wide as there is room, with names that no other figure has.

    Args:
      text: a file as matplotlib writes it.
      prefix: of the names.
      label: what a reader who cannot see it is told.
    """
    text = text[text.index("<svg") :].strip()
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.DOTALL)
    used = set(re.findall(r'(?:href="#|url\(#)([^")]+)', text))

    def rename(match: re.Match) -> str:
        return f' id="{prefix}-{match[1]}"' if match[1] in used else ""

    text = re.sub(r'\sid="([^"]*)"', rename, text)
    text = re.sub(r'(href="#|url\(#)', rf"\g<1>{prefix}-", text)
    head, body = text.split(">", 1)
    width = re.search(r'width="([\d.]+)pt"', head)
    head = re.sub(r'\s(?:width|height)="[\d.]+pt"', "", head)
    limit = f' style="max-width:{float(width[1]) * POINT:.0f}px"' if width else ""
    return f'{head}{limit} role="img" aria-label="{escape(label)}">{body}'
