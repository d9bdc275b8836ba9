"""Ed25519 keys and signatures, as hexadecimal text. Keys are made of the kernel's entropy."""

import re
from functools import lru_cache

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from sfumato.kernel.entropy import SYSTEM

_PUBLIC_KEY = re.compile(r"[0-9a-f]{64}")
_SIGNATURE = re.compile(r"[0-9a-f]{128}")


def make_secret() -> str:
    """The secret of a new key."""
    return SYSTEM.take(32).tobytes().hex()


def read_key(secret: str) -> Ed25519PrivateKey:
    """The key of this secret. Raises ValueError for a text that is none."""
    return Ed25519PrivateKey.from_private_bytes(bytes.fromhex(secret.strip()))


def public_key_of(key: Ed25519PrivateKey) -> str:
    """The public key, which anyone may have."""
    return key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw).hex()


def sign(key: Ed25519PrivateKey, message: bytes) -> str:
    """The signature of a message."""
    return key.sign(message).hex()


def verify_signature(message: bytes, signature: object, public_key: object) -> bool:
    """Whether the holder of this key signed this message. Anything that is not a key or a signature is refused."""
    if not (isinstance(signature, str) and _SIGNATURE.fullmatch(signature)):
        return False
    if not (isinstance(public_key, str) and _PUBLIC_KEY.fullmatch(public_key)):
        return False
    try:
        _read_public_key(public_key).verify(bytes.fromhex(signature), message)
    except (InvalidSignature, ValueError):  # ValueError: no point of the curve
        return False
    return True


@lru_cache(maxsize=64)
def _read_public_key(public_key: str) -> Ed25519PublicKey:
    return Ed25519PublicKey.from_public_bytes(bytes.fromhex(public_key))
