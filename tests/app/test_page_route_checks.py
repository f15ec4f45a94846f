"""The page under attack: files of the server, addresses to fetch, and routes of Gradio that nobody needs."""

import secrets
import socket
import threading

import httpx2
import pytest
from malformed import depth_bytes, guide_bytes
from visitor import Visitor

from primaldepth.app.page.abandoned_visitors import _MOST_OPEN
from waiting import wait_until

SECRET = "quartz-zebra-4711"  # noqa: S105 - a word to look for


@pytest.fixture
def visitor(served):
    with Visitor(served.url, secrets.token_hex(6)) as found:
        yield found


@pytest.fixture
def good(visitor):
    """The values of a run that works, by the labels of the inputs."""
    return {
        "depth": visitor.file("d.png", depth_bytes()),
        "image": visitor.file("g.png", guide_bytes()),
    }


@pytest.fixture
def outside(tmp_path):
    """Files of the server that a run could read: a picture and a text."""
    (tmp_path / "photo.png").write_bytes(depth_bytes())
    (tmp_path / "notes.txt").write_text(f"{SECRET} and more\n")
    return tmp_path


@pytest.fixture
def elsewhere():
    """The address of a server, and what has connected to it."""
    found = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def accept():
            while True:
                try:
                    line, _ = listener.accept()
                except OSError:
                    return
                found.append(line.recv(100))
                line.close()

        threading.Thread(target=accept, daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", found
        listener.shutdown(socket.SHUT_RDWR)


def refused(answer):
    """Whether an answer is a refusal in the words of the service."""
    error = answer.json()["error"]
    return 400 <= answer.status_code < 500 and set(error) == {"code", "message", "hint"}


def test_what_was_uploaded_is_computed_and_can_be_downloaded(visitor, good):
    assert visitor.join(visitor.values(**good)).status_code == 200
    outputs = visitor.result()
    assert "8 x 6 to 16 x 12" in outputs[0]
    for file in outputs[-1]:
        answer = httpx2.get(file["url"])
        assert answer.status_code == 200
        assert len(answer.content) == file["size"]
        assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("label", ["depth", "image", "confidence", "cameras"])
def test_a_file_of_the_server_is_not_read(visitor, good, outside, label):
    path = outside / ("notes.txt" if label == "cameras" else "photo.png")
    answer = visitor.join(visitor.values(**good | {label: visitor.named(str(path))}))
    assert refused(answer)
    assert SECRET not in answer.text


def test_a_path_that_leads_out_of_the_uploads_is_not_followed(visitor, good, outside):
    inside = good["depth"]["path"].rsplit("/", 1)[0]
    for path in (
        f"{inside}/../../../../../{outside}/photo.png",
        f"file://{outside}/photo.png",
        "photo.png",
        "",
    ):
        assert refused(visitor.join(visitor.values(**good | {"depth": visitor.named(path)}))), path


@pytest.mark.parametrize("shape", ["list", "nested", "no meta", "text", "stream"])
def test_a_file_in_another_shape_is_not_read(visitor, good, outside, shape):
    path = str(outside / "photo.png")
    value = {
        "list": [visitor.named(path)],
        "nested": {"value": visitor.named(path)},
        "no meta": {"path": path},
        "text": path,
        "stream": visitor.named(path, is_stream=True),
    }[shape]
    assert refused(visitor.join(visitor.values(**good | {"depth": value})))
    assert refused(visitor.join(visitor.values(**good | {"method": value})))


def test_what_is_not_an_input_of_the_page_is_refused(visitor, good):
    values = visitor.values(**good)
    assert refused(visitor.join(values[:-1]))
    assert refused(visitor.join([*values, None]))
    assert refused(visitor.join(values, fn_index=999))
    assert refused(visitor.join(values, session_hash="../x"))
    assert refused(visitor.join(visitor.values(**good | {"method": SECRET})))
    assert refused(visitor.join([None], fn_index=visitor.event("select"), event_data=None))
    assert refused(visitor.client.post("/gradio_api/queue/join", content=b"[" * 50_000))
    assert refused(visitor.client.post("/gradio_api/queue/join", content=b" " * 100_000))


def test_no_address_is_fetched(visitor, good, elsewhere):
    url, asked = elsewhere
    address = f"{url}/depth.png"
    assert refused(visitor.join(visitor.values(**good | {"depth": visitor.named(address)})))
    uploaded = {**good["depth"], "url": address, "is_stream": False}
    assert visitor.join(visitor.values(**good | {"depth": uploaded})).status_code == 200
    assert "8 x 6 to 16 x 12" in visitor.result()[0]
    for path in (f"file={address}", f"proxy={address}", f"file/{address}"):
        assert refused(visitor.client.get(f"/gradio_api/{path}"))
    assert asked == []


def test_only_uploads_and_results_are_handed_out(visitor, outside):
    for path in (outside / "photo.png", "/etc/hostname", "/proc/self/environ", "../../etc/hostname", "."):
        answer = visitor.client.get(f"/gradio_api/file={path}")
        assert refused(answer)
        assert answer.status_code == 404


def test_a_part_of_a_file_is_the_whole_file_and_no_header_comes_back(visitor, good):
    """Gradio sends the headers of a request for a range back as those of its answer."""
    path = f"/gradio_api/file={good['depth']['path']}"
    headers = {"Range": "bytes=0-4", "X-Marker": SECRET}
    answer = visitor.client.get(path, headers=headers)
    assert (answer.status_code, answer.content) == (200, depth_bytes())
    assert SECRET not in str(answer.headers)
    assert visitor.client.get(path, headers={"Range": "bytes=1-2-3"}).status_code == 200


CLOSED = {
    "GET": (
        "dev/reload",
        "custom_component/a/client/b/c",
        "app_id",
        "token",
        "user",
        "deep_link?session_hash=a",
        "queue/status",
        "queue/data?session_hash=nobody",
        "startup-events",
        "openapi.json",
        "runs",
        "stream/a/b/1/playlist.m3u8",
        "call/run/a",
    ),
    "POST": (
        "run/run",
        "api/run",
        "call/run",
        "call/v2/run",
        "component_server",
        "process_recording",
        "vibe-edit",
        "cancel",
        "stream/a",
    ),
}


@pytest.mark.parametrize(("verb", "path"), [(verb, path) for verb, paths in CLOSED.items() for path in paths])
def test_routes_that_the_page_does_not_use_are_closed(served, verb, path):
    body = {"json": {"data": [], "session_hash": "a", "fn_index": 0}} if verb == "POST" else {}
    answer = httpx2.request(verb, f"{served.url}/gradio_api/{path}", **body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "not_found")


@pytest.mark.parametrize("path", ["/login", "/logout", "/monitoring", "/pwa_icon/9", "/svelte/a", "/docs"])
def test_pages_of_gradio_that_are_not_ours_are_closed(served, path):
    assert httpx2.get(f"{served.url}{path}").status_code == 404


def test_what_the_page_refuses_is_json_and_not_in_the_log(visitor, served_log):
    assert visitor.upload(f"{SECRET}.exe", b"x").json()["error"]["code"] == "unsupported_format"
    assert refused(visitor.client.post("/gradio_api/upload", files={"files": (None, SECRET)}))
    assert refused(visitor.client.get(f"/gradio_api/file={SECRET}"))
    assert refused(visitor.join(visitor.values(method=SECRET)))
    depth = visitor.file("d.npy", SECRET.encode())
    assert visitor.join(visitor.values(depth=depth, image=depth)).status_code == 200
    assert SECRET not in str(visitor.result())
    assert visitor.client.get("/v1/methods").status_code == 200
    wait_until(lambda: "GET /v1/methods 200" in served_log.read_text())
    assert SECRET not in served_log.read_text()
    assert "Traceback" not in served_log.read_text()


def test_names_of_uploads_cannot_be_guessed_and_lead_nowhere(visitor):
    answers = [visitor.upload(name, b"x").json() for name in ("../../a.png", "a b\r\n\0c.png", "ä/ö.PNG")]
    folders = set()
    for [path] in answers:
        folder, name = path.rsplit("/", 1)
        folders.add(folder)
        assert name.isascii()
        assert name.endswith(".png")
        assert not set(name) & set("\r\n\0 /")
    assert len(folders) == 3
    assert len(folder.rsplit("/", 1)[1]) == 64


SAFE = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "SAMEORIGIN",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
}


@pytest.mark.parametrize("path", ["/", "/v1/methods", "/nothing", "/gradio_api/dev/reload", "/theme.css"])
def test_every_answer_tells_browsers_to_be_careful(served, path):
    answer = httpx2.get(f"{served.url}{path}", headers={"Origin": "http://evil.example"})
    assert SAFE.items() <= dict(answer.headers).items()
    assert answer.headers["cache-control"] == "no-store"
    assert "frame-ancestors" in answer.headers["content-security-policy"]
    assert not [name for name in answer.headers if name.startswith("access-control-")]


def test_heartbeats_that_are_kept_open_keep_nobody_out(served, served_log):
    """Whoever opens so many connections that there is no place left loses the oldest of them."""
    host, port = served.url.removeprefix("http://").split(":")
    lines, before = [], served_log.read_text()
    for _ in range(_MOST_OPEN + 1):
        lines.append(socket.create_connection((host, int(port)), timeout=60))
        name = secrets.token_hex(6)
        lines[-1].sendall(f"GET /gradio_api/heartbeat/{name} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        assert lines[-1].recv(100).startswith(b"HTTP/1.1 200")
    while lines[0].recv(10_000):  # ends with the connection
        pass
    for line in lines:
        line.close()
    assert served_log.read_text() == before
