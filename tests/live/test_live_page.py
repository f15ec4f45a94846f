"""The local page: what it shows, and whom it answers."""

import io
from http.client import HTTPConnection
from urllib.parse import urlsplit

import numpy as np
import pytest
from PIL import Image

from primaldepth.core.errors import InputError
from primaldepth.live.page import Page, Screen
from primaldepth.live.simulated import Simulated
from primaldepth.live.view import live_picture
from primaldepth.session import Session


@pytest.fixture(scope="module")
def outcome():
    with Session(method="bilinear", device="cpu") as session:
        return session.push_item(Simulated(size=(48, 64), scale=2).frame(0)).outcome


def asked(page: Page, path: str, host: str | None = None):
    link = HTTPConnection("127.0.0.1", page.port, timeout=20)
    link.request("GET", path, headers={} if host is None else {"Host": host})
    return link, link.getresponse()


def test_picture_has_image_depth_and_cloud(outcome):
    picture = live_picture(outcome, 0)
    assert picture.shape == (48, 3 * 64, 3)
    image, depth, cloud = np.split(picture, 3, axis=1)
    assert not np.array_equal(image, depth)
    near = np.abs(cloud.astype(int) - image).max(axis=-1) <= 1
    assert near.mean() > 0.9  # from the camera's own place, points lie where they were seen
    turned = live_picture(outcome, 30)[:, 128:]
    assert np.abs(turned.astype(int) - cloud).mean() > 5


def test_page_and_stream(outcome):
    screen = Screen()
    with Page(screen, "a <camera>") as page:
        root = urlsplit(page.address).path
        link, answer = asked(page, root)
        text = answer.read().decode()
        assert answer.status == 200
        assert "&#60;camera" in text
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
        link.close()
        screen.show(outcome)
        link, answer = asked(page, f"{root}stream")
        assert answer.readline() == b"--frame\r\n"
        assert answer.readline() == b"Content-Type: image/jpeg\r\n"
        length = int(answer.readline().split()[1])
        answer.readline()
        assert Image.open(io.BytesIO(answer.read(length))).size == (192, 48)
        link.close()


def test_strangers_get_nothing(outcome):
    screen = Screen()
    screen.show(outcome)
    with Page(screen, "camera") as page:
        root = urlsplit(page.address).path
        assert page.address.startswith("http://127.0.0.1:")
        for path, host, status in (
            ("/", None, 404),
            ("/stream", None, 404),
            (f"{root}../x", None, 404),
            (root, "evil.example", 421),
            (f"{root}stream", "evil.example", 421),
        ):
            link, answer = asked(page, path, host)
            assert answer.status == status
            link.close()


def test_a_taken_port_is_told():
    with Page(Screen(), "camera") as page, pytest.raises(InputError, match="--port"):
        Page(Screen(), "camera", page.port)


def test_waiting_ends_with_the_screen(outcome):
    screen = Screen()
    screen.show(outcome)
    number, _ = screen.picture_after(0)
    screen.close()
    assert screen.picture_after(number) is None
