import os
import subprocess
import sys
import threading

import numpy as np
import pytest

from sfumato.kernel import entropy
from sfumato.kernel.entropy import SYSTEM, SystemEntropy

FORKS = """
import os, sys
{prelude}
source.take(5)                                  # a key is drawn before the fork: a shared key would show
pipes = []
for _ in range(8):
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.write(write, bytes(source.take(16)) + bytes(source.take(5000))[:16])
        os._exit(0)
    os.close(write)
    os.waitpid(child, 0)
    pipes.append(os.read(read, 64))
pipes.append(bytes(source.take(16)) + bytes(source.take(5000))[:16])
assert all(len(draw) == 32 for draw in pipes)
print(len({{draw[:16] for draw in pipes}} | {{draw[16:] for draw in pipes}}))
"""


def distinct_after_forks(prelude):
    done = subprocess.run(
        [sys.executable, "-c", FORKS.format(prelude=prelude)], capture_output=True, text=True, check=True, timeout=60
    )
    return int(done.stdout)


def test_forked_children_never_share_bytes():
    assert distinct_after_forks("from sfumato.kernel.entropy import SYSTEM as source") == 18


def test_forks_that_bypass_pythons_hooks_are_noticed():
    prelude = """
import os
os.register_at_fork = lambda **hooks: None      # as when another language forks
from sfumato.kernel.entropy import SYSTEM as source
"""
    assert distinct_after_forks(prelude) == 18


def test_the_fork_check_can_fail():
    """Negative control: numpy's generator, seeded once, repeats itself in every child."""
    prelude = """
import numpy
class source:
    generator = numpy.random.default_rng()
    take = lambda count: source.generator.bytes(count)
"""
    assert distinct_after_forks(prelude) < 18


def test_threads_never_share_bytes():
    taken = []

    def take():
        taken.extend(bytes(SYSTEM.take(16)) for _ in range(2000))

    threads = [threading.Thread(target=take) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(taken)) == 16_000


def test_a_new_key_after_so_many_bytes(monkeypatch):
    keys = []
    urandom = os.urandom

    def recorded(count):
        drawn = urandom(count)
        if count == 32:
            keys.append(drawn)
        return drawn

    monkeypatch.setattr(entropy, "BYTES_PER_KEY", 10_000)
    monkeypatch.setattr(entropy.os, "urandom", recorded)
    source = SystemEntropy()
    drawn = source.take(35_000)
    assert drawn.size == 35_000
    assert len(set(keys)) == len(keys) == 4
    assert len({bytes(drawn[start : start + 16]) for start in range(0, 35_000 - 16, 16)}) == 35_000 // 16


def test_the_stream_is_aes_256_in_counter_mode(monkeypatch):
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    monkeypatch.setattr(entropy.os, "urandom", lambda count: bytes(range(count)))
    source = SystemEntropy()
    drawn = b"".join(bytes(source.take(count)) for count in (3, 1, 1000, 5000, 7, 100_000))
    block = Cipher(algorithms.AES(bytes(range(32))), modes.ECB()).encryptor()
    start = int.from_bytes(bytes(range(16)), "big")
    stream = b"".join(block.update((start + count).to_bytes(16, "big")) for count in range(10_000))
    assert drawn == stream[: len(drawn)]  # each byte once, whatever the sizes of the requests


@pytest.mark.parametrize("count", [0, 1, 1024, 1025, 4096, (1 << 20) + 1])
def test_any_count(count):
    taken = SYSTEM.take(count)
    assert taken.dtype == np.uint8
    assert taken.shape == (count,)


def test_nobody_can_seed_it():
    with pytest.raises(TypeError):
        SystemEntropy(1)


def test_a_signal_handler_may_draw_too():
    """The handler interrupts `take` while it holds the stream: no deadlock, and no byte twice."""
    script = """
import signal
from sfumato.kernel.entropy import SYSTEM
seen = []
signal.signal(signal.SIGALRM, lambda *_: seen.append(bytes(SYSTEM.take(16))))
signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
mine = [bytes(SYSTEM.take(16)) for _ in range(200_000)]
signal.setitimer(signal.ITIMER_REAL, 0)
assert len(seen) > 50
print(len(set(mine) | set(seen)) == len(mine) + len(seen))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "True"


def test_streams_of_one_process_never_share_a_key(monkeypatch):
    """Two threads that notice a raw fork at once: each goes on with its own stream."""
    source = SystemEntropy()
    before = source._stream
    before.process = -1
    one = bytes(source.take(16))
    assert source._stream is not before
    assert one != bytes(before.take(16))
