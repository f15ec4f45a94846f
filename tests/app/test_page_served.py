"""The whole service in a process of its own: the page beside the interface, in a browser, and how it ends."""

import re
import shutil

import httpx2
import pytest

pytest.importorskip("gradio", reason="the extra 'app' is not installed")

from benchmarks.pages.browse_page import browse, upload_and_run, wrong_file
from benchmarks.service_process import children, running

from processes import lives
from waiting import wait_until


def test_the_page_names_no_other_machine(served):
    answer = httpx2.get(f"{served.url}/")
    assert answer.status_code == 200
    elsewhere = r"<(?:script|link|img|iframe)[^>]+(?:src|href)=[\"']?(?:https?:)?//(?!127\.0\.0\.1)"
    assert re.findall(elsewhere, answer.text) == []
    policy = answer.headers["content-security-policy"]
    assert "default-src 'self'" in policy
    assert "http" not in policy


WRONG_VERB = [("GET", "/v1/upsample"), ("POST", "/healthz")]
NO_ADDRESS = [
    *(("GET", path) for path in ("/v1/nothing", "/v1/", "/nothing", "/gradio_api/nothing")),
    ("POST", "/nothing/at/all"),
]


@pytest.mark.parametrize(("verb", "path"), [*WRONG_VERB, *NO_ADDRESS])
def test_the_page_does_not_answer_for_the_interface(served, verb, path):
    answer = httpx2.request(verb, f"{served.url}{path}")
    expected = (405, "method_not_allowed") if (verb, path) in WRONG_VERB else (404, "not_found")
    assert (answer.status_code, answer.json()["error"]["code"]) == expected
    assert answer.json()["error"]["hint"]
    assert httpx2.get(f"{served.url}/v1/methods").status_code == 200


def test_a_token_is_asked_for_before_an_address_is_looked_for(tmp_path):
    (tmp_path / "token").write_text("0123456789abcdef")
    options = ("--method", "nearest", "--device", "cpu", "--token-file", str(tmp_path / "token"))
    with running(*options) as service:
        assert httpx2.get(f"{service.url}/nothing").status_code == 401
        known = {"Authorization": "Bearer 0123456789abcdef"}
        answer = httpx2.get(f"{service.url}/nothing", headers=known)
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, "not_found")


@pytest.mark.parametrize("path", ["/", "/config", "/theme.css", "/robots.txt", "/gradio_api/info"])
def test_what_the_page_has_is_still_answered_by_it(served, path):
    assert httpx2.get(f"{served.url}{path}").status_code == 200


def test_the_page_takes_every_camera_file_that_can_be_read(served):
    components = httpx2.get(f"{served.url}/config").json()["components"]
    files = [each["props"] for each in components if each["type"] == "file"]
    [cameras] = [props for props in files if (props["label"] or "").startswith("Cameras")]
    assert set(cameras["file_types"]) == {".json", ".txt", ".yaml", ".yml"}


@pytest.mark.slow
def test_the_page_works_on_a_phone_without_a_network(served):
    pytest.importorskip("playwright", reason="playwright is not installed")
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("no chromium on this machine")
    rows = browse(served.url, chromium, ["phone"], checks=(upload_and_run, wrong_file))
    assert [row for row in rows if row["problem"]] == []


def test_told_to_end_it_closes_the_port_and_leaves_no_process():
    with running("--no-page", "--method", "nearest", "--device", "cpu") as service:
        workers = children(service.process.pid)
        assert workers
        service.tell_to_end()
        assert service.process.wait(timeout=60) == 0
        with pytest.raises(httpx2.ConnectError):
            httpx2.get(f"{service.url}/healthz")
        wait_until(lambda: not any(lives(pid) for pid in workers))
