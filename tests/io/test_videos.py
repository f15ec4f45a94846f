"""Videos of unknown origin: nothing but the file itself is opened, and every failure is ours."""

import os
import socket

import numpy as np
import pytest

import recording_files as layouts
from primaldepth.core.errors import FileFormatError, InputError, TooLargeError
from primaldepth.io.formats.base import size_limit
from primaldepth.io.sequences.video import Video

av = pytest.importorskip("av")


@pytest.fixture
def film(tmp_path):
    layouts.write_film(tmp_path / "film.mp4")
    return tmp_path / "film.mp4"


@pytest.fixture
def listener():
    """A server that nobody should call."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        yield server


def refused(path, match="not a readable video"):
    for action in (lambda video: video.frame(0), lambda video: video.count()):
        with pytest.raises(FileFormatError, match=match) as caught:
            action(Video(path))
        assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    "name", ["concat:a|b.mp4", "http:a.mp4", "tcp:1.mp4", "-a.mp4", "a%20?b#c.mp4", "%05d.mp4"]
)
def test_names_are_files_whatever_they_look_like(film, name):
    film = film.rename(film.with_name(name))
    frame = Video(film).frame(1)
    assert abs(frame.astype(float) - layouts.image_of(1)).mean() < 2.0
    assert Video(film).count() == layouts.COUNT


def test_relative_names_are_files(film, monkeypatch):
    monkeypatch.chdir(film.parent)
    os.rename("film.mp4", "http:film.mp4")
    assert Video(type(film)("http:film.mp4")).count() == layouts.COUNT


@pytest.mark.parametrize("extension", [".mp4", ".m3u8", ".avi"])
def test_playlists_are_not_followed(film, listener, extension):
    """Neither to another file nor to an address."""
    port = listener.getsockname()[1]
    playlist = film.with_name(f"list{extension}")
    head = "#EXTM3U\n#EXT-X-VERSION:3\n#EXT-X-TARGETDURATION:1\n"
    for target in (film.name, film.as_uri(), f"http://127.0.0.1:{port}/a.ts"):
        playlist.write_text(f"{head}#EXTINF:1.0,\n{target}\n#EXT-X-ENDLIST\n")
        refused(playlist)
        playlist.write_text(f"ffconcat version 1.0\nfile '{target}'\n")
        refused(playlist)
        playlist.write_text(
            f"v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\nm=video {port} RTP/AVP 96\n"
        )
        refused(playlist)
    with pytest.raises(BlockingIOError):
        listener.accept()


def test_pipes_are_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "film.mp4")
    with pytest.raises(InputError, match="is not a regular file"):
        Video(tmp_path / "film.mp4").frame(0)
    with pytest.raises(InputError, match="no such file"):
        Video(tmp_path / "none.mp4").count()


def test_frames_larger_than_images_may_be(film):
    with size_limit(pixels=100, side=100), pytest.raises(TooLargeError, match="claims 32x24 pixels"):
        Video(film).frame(0)


def test_notes_that_are_no_text(tmp_path):
    path = tmp_path / "film.mkv"
    with av.open(str(path), "w") as container:
        container.metadata["title"] = "TITLETITLE"
        stream = container.add_stream("mpeg4", rate=30)
        stream.width, stream.height, stream.pix_fmt = 32, 24, "yuv420p"
        for packet in [*stream.encode(av.VideoFrame.from_ndarray(layouts.image_of(0))), *stream.encode()]:
            container.mux(packet)
    data = path.read_bytes()
    assert b"TITLETITLE" in data
    path.write_bytes(data.replace(b"TITLETITLE", b"\xff\xfe\x80\x81TITLE\xff"))
    assert Video(path).frame(0).shape == (24, 32, 3)


@pytest.mark.parametrize("fill", [b"\0", b"\xff", b"\x7f"])
def test_turns_that_are_no_angle(film, fill):
    """The matrix that turns the picture, in the header of a track, holds nonsense."""
    data = bytearray(film.read_bytes())
    place = data.find(b"tkhd") + 4 + 40
    data[place : place + 36] = fill * 36
    film.write_bytes(data)
    assert Video(film).frame(0).shape[2] == 3


def test_a_film_without_pictures(tmp_path):
    path = tmp_path / "sound.mp4"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("aac", rate=8000)
        frame = av.AudioFrame.from_ndarray(np.zeros((1, 1024), np.float32), format="fltp", layout="mono")
        frame.rate = 8000
        for packet in [*stream.encode(frame), *stream.encode()]:
            container.mux(packet)
    refused(path)


def test_frames_after_damage_are_refused_without_another_try(film, monkeypatch):
    video, opened = Video(film), []
    real = video._open

    def broken():
        opened.append(1)
        for number, frame in enumerate(real()):
            if number == 1:
                raise FileFormatError(f"{film}: damaged")
            yield frame

    monkeypatch.setattr(video, "_open", broken)
    for _ in range(3):
        for index in (1, 2):
            with pytest.raises(FileFormatError, match="damaged"):
                video.frame(index)
    assert len(opened) == 1
    assert video.frame(0).shape == (24, 32, 3)


def test_damage_anywhere_is_told(film):
    good = film.read_bytes()
    for place in range(0, len(good), 97):
        film.write_bytes(good[:place] + b"\xff\xff\xff\xff" + good[place + 4 :])
        for action in (lambda video: video.frame(2), lambda video: video.count()):
            try:
                action(Video(film))
            except InputError:
                continue
