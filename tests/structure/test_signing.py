"""One module makes keys and checks signatures."""

import pytest

from sfumato.signing import make_secret, public_key_of, read_key, sign, verify_signature


def test_a_signature_is_of_one_message_and_one_key():
    key, other = read_key(make_secret()), read_key(make_secret())
    signature, public = sign(key, b"entry 1"), public_key_of(key)
    assert verify_signature(b"entry 1", signature, public)
    assert not verify_signature(b"entry 2", signature, public)
    assert not verify_signature(b"entry 1", signature, public_key_of(other))
    assert not verify_signature(b"entry 1", sign(other, b"entry 1"), public)


@pytest.mark.parametrize("wrong", ["", "zz", "0" * 64, "0" * 128, None, 5, b"0" * 128], ids=str)
def test_what_is_no_key_or_signature_is_refused(wrong):
    key = read_key(make_secret())
    assert not verify_signature(b"x", wrong, public_key_of(key))
    assert not verify_signature(b"x", sign(key, b"x"), wrong)
    spaced = sign(key, b"x")[:64] + " " + sign(key, b"x")[64:]
    assert not verify_signature(b"x", spaced, public_key_of(key))
    assert not verify_signature(b"x", sign(key, b"x").upper(), public_key_of(key))


def test_secrets_are_different():
    assert len({make_secret() for _ in range(100)}) == 100
