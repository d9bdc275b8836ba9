"""Settings of all tests: keys of ledgers in a folder of their own, and no limit on the time of an example.

How long an example takes depends on what else the machine does. A limit would make tests fail at random.
"""

import os
import tempfile

from hypothesis import HealthCheck, settings

os.environ["SFUMATO_HOME"] = tempfile.mkdtemp(prefix="sfumato-tests-")
settings.register_profile("sfumato", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("sfumato")
