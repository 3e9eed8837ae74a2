"""Links of the playground, each of which holds whole scenarios.

The fragment of a link is `p1=` and the texts, one for each discipline, joined by a record separator, compressed with
raw DEFLATE (RFC 1951) and written as base64url without padding (RFC 4648 section 5). `web/playground/src/link.js`
writes and reads the same. Nothing is fetched: a link is read as a text. Its scenarios name no files: who follows a link
reads and executes nothing of his own machine.
"""

from __future__ import annotations

import base64
import zlib

from penstock.mistake import MistakeError
from penstock.scenario import MOST_BYTES, Scenario

MARK = "p1="
BETWEEN = "\x1e"
MOST_SCENARIOS = 100  # of one link
FILE = "playground.toml"  # the name of the file in messages, as in the playground; the default of the scenario's name
_RAW = -15  # DEFLATE without header and checksum


class LinkError(MistakeError):
    """A link that does not hold a scenario."""


def is_link(text: str) -> bool:
    """Returns true for an address whose fragment holds scenarios, and for such a fragment alone."""
    return f"#{MARK}" in text or text.startswith(MARK)


def scenarios(text: str) -> list[Scenario]:
    """Returns the scenarios in a link, one for each discipline, in the order of the playground."""
    return [Scenario(one, FILE, confined=True) for one in decode(text)]


def decode(text: str) -> list[str]:
    """Returns the texts in a link or in a fragment."""
    code = text.partition(MARK)[2].strip()
    try:
        packed = base64.b64decode(code + "=" * (-len(code) % 4), altchars=b"-_", validate=True)
        inflater = zlib.decompressobj(_RAW)
        whole = inflater.decompress(packed, MOST_BYTES)
        if inflater.unconsumed_tail:
            raise LinkError(f"this link holds more than {MOST_BYTES} bytes; a scenario has at most that")
        if not inflater.eof or inflater.unused_data:
            raise zlib.error("cut off, or something follows")
        texts = whole.decode("utf-8").split(BETWEEN)
        if len(texts) > MOST_SCENARIOS:
            raise LinkError(f"this link holds {len(texts)} scenarios; at most {MOST_SCENARIOS} are run")
        return texts
    except LinkError:
        raise
    except (zlib.error, ValueError):  # damaged base64, DEFLATE or UTF-8
        raise LinkError(
            f"this link is damaged: what follows {MARK!r} holds no scenario; copy it again as a whole, in quotes"
        ) from None


def encode(texts: list[str]) -> str:
    """Returns the fragment that holds these texts, without `#`."""
    deflater = zlib.compressobj(9, zlib.DEFLATED, _RAW)
    packed = deflater.compress(BETWEEN.join(texts).encode()) + deflater.flush()
    return MARK + base64.urlsafe_b64encode(packed).decode().rstrip("=")
