"""benchmarks/robustness/replicas.py: what counts as lost, and the balancer's configuration."""

from pathlib import Path

from benchmarks.robustness.load_service import BROKEN, Reply
from benchmarks.robustness.replicas import Asked, configuration, summary


def asked(began, at, status=200, foreign=False):
    return Asked(began, Reply(at, status, at - began, foreign))


def test_only_what_was_in_flight_may_be_lost():
    fine = [asked(0.0, 1.0), asked(9.5, 11.0), asked(11.0, 12.0)]
    found = summary([*fine, asked(9.9, 10.1, 502)], killed=10.0, gone=10.05)
    assert (found["answered"], found["in_flight_at_the_kill"], found["lost_in_flight"]) == (3, 2, 1)
    assert found["passed"]
    late = summary([*fine, asked(10.5, 10.6, BROKEN)], killed=10.0, gone=10.05)
    assert late["lost_otherwise"] == 1
    assert not late["passed"]
    early = summary([*fine, asked(1.0, 2.0, 500)], killed=10.0, gone=10.05)
    assert not early["passed"]
    foreign = summary([*fine, asked(1.0, 2.0, foreign=True)], killed=10.0, gone=10.05)
    assert not foreign["passed"]


def test_nothing_asked_after_the_kill_proves_nothing():
    assert not summary([asked(0.0, 1.0)], killed=10.0, gone=10.05)["passed"]


def test_the_balancer_listens_here_alone_and_sends_again_only_if_told():
    urls = ["http://127.0.0.1:5001", "http://127.0.0.1:5002"]
    plain = configuration(Path("/x"), 5000, urls, resend=False)
    assert "listen 127.0.0.1:5000;" in plain
    assert all(f"server {url.removeprefix('http://')} max_fails=1" in plain for url in urls)
    assert "non_idempotent" not in plain
    assert "http_503 non_idempotent;" in configuration(Path("/x"), 5000, urls, resend=True)
