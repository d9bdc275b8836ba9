"""The keys of ledgers that tests make are kept away from the keys of whoever runs the tests."""

import os
import tempfile

os.environ["SFUMATO_HOME"] = tempfile.mkdtemp(prefix="sfumato-tests-")
