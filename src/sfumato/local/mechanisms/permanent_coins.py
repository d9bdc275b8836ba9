"""The coins of a permanent report: the device can derive the same bytes again from its secret.

Part of the trusted perimeter.
"""

import hmac
from hashlib import sha256

import numpy as np

from sfumato.kernel.entropy import ByteArray


class PermanentCoins:
    """An `Entropy` whose bytes are a function of the device's secret and of `purpose`: HMAC-SHA256 in counter mode.

    Block i is HMAC(key, i) with i in eight bytes, highest first; key = HMAC(secret, purpose).
    """

    def __init__(self, secret: bytes, purpose: bytes) -> None:
        self._key = hmac.digest(secret, purpose, sha256)
        self._next = 0
        self._left = b""

    def take(self, count: int) -> ByteArray:
        """Return the next bytes.

        Claim: K-47. Without the secret, the bytes of one purpose cannot be told from fair bytes that are independent of
            those of every other purpose, if HMAC-SHA256 is a pseudorandom function.
        Requires: a secret of 32 fair bytes that never leaves the device (caller); purposes that differ for different
            surveys, renewals and answers (caller).
        Relies on: K-04.
        Checked by: tests/local/test_device.py::test_the_stream_is_hmac_of_the_secret_and_of_what_it_is_about
        """
        blocks = [self._left]
        for _ in range(-(-max(0, count - len(self._left)) // 32)):
            blocks.append(hmac.digest(self._key, self._next.to_bytes(8, "big"), sha256))
            self._next += 1
        whole = b"".join(blocks)
        self._left = whole[count:]
        return np.frombuffer(whole[:count], np.uint8)
