"""Files that a user's containers can replace."""

import pytest

from boathouse_task.agent import host_files


def test_a_file_of_the_expected_size_is_read_and_a_larger_one_is_not(tmp_path):
    host_files.replace(tmp_path / "file", b"12345")
    assert host_files.read(tmp_path / "file", 5) == b"12345"
    with pytest.raises(host_files.UnusableError, match="is larger than 4 bytes"):
        host_files.read(tmp_path / "file", 4)
