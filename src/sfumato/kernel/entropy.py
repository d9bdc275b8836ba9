"""The only source of randomness in the program."""

import os
import threading
from typing import Protocol

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CTR

ByteArray = npt.NDArray[np.uint8]

BYTES_PER_KEY = 1 << 30
_BLOCK = 16
_MOST_AT_ONCE = 1 << 20
_ZEROS = memoryview(bytes(_MOST_AT_ONCE))


class Entropy(Protocol):
    """A source of random bytes for samplers. Tests script one; no public function accepts one."""

    def take(self, count: int) -> ByteArray:
        """The next `count` bytes. No byte is given out twice."""
        ...


class _Stream:
    """The stream of one process: AES-256 in counter mode, with a new key after BYTES_PER_KEY."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self.lock = threading.Lock()
        self._cipher: CipherContext | None = None
        self._left = 0

    def take(self, count: int) -> ByteArray:
        """The next bytes. Only the holder of the lock may call this."""
        drawn = np.empty(count + _BLOCK - 1, np.uint8)
        view, done = drawn.data, 0
        while done < count:
            if self._cipher is None or self._left == 0:
                self._cipher = Cipher(AES(os.urandom(32)), CTR(os.urandom(_BLOCK))).encryptor()
                self._left = BYTES_PER_KEY
            step = min(count - done, self._left, _MOST_AT_ONCE)
            self._cipher.update_into(_ZEROS[:step], view[done : done + step + _BLOCK - 1])
            self._left -= step
            done += step
        return drawn[:count]


class SystemEntropy:
    """AES-256 in counter mode under a key from the operating system; a new key after a fork and after BYTES_PER_KEY."""

    def __init__(self) -> None:
        self._start_over()
        os.register_at_fork(after_in_child=self._start_over)

    def _start_over(self) -> None:
        """Forget key and lock: when the object is made, and in the child of a fork before it runs other code."""
        self._stream = _Stream()

    def take(self, count: int) -> ByteArray:
        """The next `count` bytes of the stream.

        Claim: K-04. Bytes are independent and uniform to anyone who cannot break AES-256, and no byte is given out
            twice: not to two threads, not to parent and child of a fork, not after BYTES_PER_KEY under one key.
        Requires: count >= 0.
        Relies on: os.urandom; AES-256 as a pseudorandom permutation; os.register_at_fork.
        Checked by: tests/kernel/test_entropy.py::test_forked_children_never_share_bytes
        """
        stream = self._stream
        if stream.process != os.getpid():  # a fork that bypassed Python's hooks
            stream = self._stream = _Stream()
        if not stream.lock.acquire(blocking=False):  # another thread, or a signal handler that interrupted this one
            return np.frombuffer(os.urandom(count), np.uint8)
        try:
            return stream.take(count)
        finally:
            stream.lock.release()


SYSTEM = SystemEntropy()
