"""The keys of the tests' ledgers are in a folder of their own, not among the keys of the user who runs the tests."""

import os
import tempfile

os.environ["SFUMATO_HOME"] = tempfile.mkdtemp(prefix="sfumato-tests-")
