"""The packages are as thin as they say."""

import subprocess
import sys
from pathlib import Path


def test_packages_are_below_their_caps():
    command = [sys.executable, "tests/thin.py", "-v", "--caps"]
    root = Path(__file__).parents[1]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True)
    assert not done.returncode, done.stderr + done.stdout
