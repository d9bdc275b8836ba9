"""Noise that a test can repeat: the bytes of kernel/entropy.py under a key that follows from a name and a seed.

A test that checks a sample of a distribution would otherwise fail at random, in one of many runs, and nobody could
repeat the failure. `SFUMATO_SEED` chooses another run: any text, or `random` for the system's entropy.
"""

import hashlib
import os

from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CTR

from sfumato.kernel import entropy

DEFAULT = "0"
SEED = os.environ.get("SFUMATO_SEED", DEFAULT)


def repeat_noise(name):
    """From here on, this process draws the bytes that belong to `name` and the seed."""
    entropy.SYSTEM._start_over()
    if SEED != "random":
        key = hashlib.sha512(f"{SEED} {name}".encode()).digest()
        entropy.SYSTEM._stream._cipher = Cipher(AES(key[:32]), CTR(key[32:48])).encryptor()
        entropy.SYSTEM._stream._left = entropy.BYTES_PER_KEY
