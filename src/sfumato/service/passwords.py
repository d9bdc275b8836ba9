"""Passwords, stored with argon2."""

import threading

from sfumato.errors import InvalidParameter
from sfumato.extras import imported

LEAST_LETTERS, MOST_LETTERS = 12, 1000  # of a password
_CHECKING = threading.BoundedSemaphore(2)  # each check takes 64 MiB
NOBODY = (  # the hash of a random password that nobody knows
    "$argon2id$v=19$m=65536,t=3,p=4$BZpxvLvcnmxj5vGTdfjEPQ$kjW6Ttlqgv3vUcHTUhoY5Py4xtStGnn0O9UIWcmMKWs"
)


def hash_password(password: str) -> str:
    """The hash under which a password is stored."""
    if not LEAST_LETTERS <= len(password) <= MOST_LETTERS:
        rule = f"must have at least {LEAST_LETTERS} characters, and at most {MOST_LETTERS:,}"
        raise InvalidParameter("password", rule, "another number of them", "Several words are easy to remember.")
    return str(imported("argon2", "serve").PasswordHasher().hash(password))


def verify_password(stored: str, password: str) -> bool:
    """Whether the password is the one that was stored."""
    password = password[: MOST_LETTERS + 1]
    argon2 = imported("argon2", "serve")
    try:
        with _CHECKING:
            return bool(argon2.PasswordHasher().verify(stored, password))
    except argon2.exceptions.Argon2Error:
        return False
