"""The cases of this folder, for pytest."""

from toolyard.testing import pytest_generate_tests, test_case

__all__ = ["pytest_generate_tests", "test_case"]
