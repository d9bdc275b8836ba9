"""Coins that a device can toss again: bytes from HMAC-SHA256 of its secret, for one survey, renewal and answer."""

import hmac
from hashlib import sha256

import numpy as np

from sfumato.kernel.entropy import ByteArray
from sfumato.local.survey.canonical_json import canonical
from sfumato.local.survey.domains import Answer

PURPOSE = "sfumato permanent report 1"


class MemoStream:
    """An `Entropy` whose bytes are a function of the secret and what the report is about, and fair to all others.

    Block i is HMAC(key, i) with the number in eight bytes, highest first, and key = HMAC(secret, the canonical JSON of
    what it is about). Surveys are named by the digest of all that they say, so no two tables ever share a coin.
    """

    def __init__(self, secret: bytes, digest: str, renewal: int, answer: Answer) -> None:
        about = canonical({"purpose": PURPOSE, "survey": digest, "renewal": renewal, "answer": answer})
        self._key = hmac.digest(secret, about, sha256)
        self._next = 0
        self._left = b""

    def take(self, count: int) -> ByteArray:
        blocks = [self._left]
        for _ in range(-(-max(0, count - len(self._left)) // 32)):
            blocks.append(hmac.digest(self._key, self._next.to_bytes(8, "big"), sha256))
            self._next += 1
        whole = b"".join(blocks)
        self._left = whole[count:]
        return np.frombuffer(whole[:count], np.uint8)
