"""What the tracer wrote is understood: files by their real names, addresses, and which are strange."""

import pytest

pytest.importorskip("fastapi", reason="the extra 'app' is not installed")

from benchmarks.attack.trace import CallTrace, strangers

LOG = """\
10 openat(AT_FDCWD</work>, "/own/a.png", O_RDONLY|O_CLOEXEC) = 5</own/a.png>
10 openat(AT_FDCWD</work>, "/own/link.png", O_RDONLY) = 5</secret/depth.png>
10 openat(AT_FDCWD</work>, "/etc/none", O_RDONLY) = -1 ENOENT (No such file or directory)
11 openat(AT_FDCWD</work>, "/proc/11/statm", O_RDONLY) = 7</proc/11/statm>
10 openat(AT_FDCWD</work>, "/secret/pipe", O_RDONLY <unfinished ...>
11 connect(9<socket:[1]>, {sa_family=AF_INET, sin_port=htons(80), sin_addr=inet_addr("192.0.2.1")}, 16) = -1
11 connect(9<socket:[1]>, {sa_family=AF_UNIX, sun_path="/run/x"}, 110) = -1 ENOENT (No such file or directory)
12 connect(9<TCP:[2]>, {sa_family=AF_INET6, sin6_port=htons(443), inet_pton(AF_INET6, "::1", &a)}, 28) = 0
"""


@pytest.fixture
def trace(tmp_path):
    (tmp_path / "trace.log").write_text(LOG)
    return CallTrace(tmp_path / "trace.log")


def test_files_are_told_by_where_a_link_leads(trace):
    assert trace.opened(0) == {"/own/a.png", "/secret/depth.png", "/proc/N/statm", "/secret/pipe"}


def test_addresses_are_told_and_sockets_of_the_machine_are_not(trace):
    assert trace.called(0) == {"192.0.2.1:80", "::1:443"}


def test_what_was_opened_before_or_is_the_services_own_is_not_strange(trace, tmp_path):
    from pathlib import Path

    found = strangers(trace.opened(0), {"/proc/N/statm"}, [Path("/own")])
    assert found == ["/secret/depth.png", "/secret/pipe"]
    assert strangers({"/owner/a"}, set(), [Path("/own")]) == ["/owner/a"]
