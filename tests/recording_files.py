"""Tiny recordings in the layouts people have: 3 shots of 8x6 depth and a 32x24 image."""

import io
import json
import zipfile
from pathlib import Path

import numpy as np
from PIL import Image

from primaldepth.io import DepthMap, write_depth

COUNT = 3
LOW, HIGH = (6, 8), (24, 32)


def depth_of(shot: int) -> np.ndarray:
    """(6, 8) metres, whole millimetres."""
    return np.random.default_rng(shot).integers(1000, 1100, LOW) / 1000.0 + shot


def image_of(shot: int) -> np.ndarray:
    """(24, 32, 3): smooth, so that a video keeps it."""
    ramp = np.linspace(40, 200, HIGH[1])[None, :, None] + np.linspace(0, 30, HIGH[0])[:, None, None]
    return np.broadcast_to(ramp + 5 * shot, (*HIGH, 3)).astype(np.uint8)


def save_image(path: Path, shot: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(image_of(shot)).save(path)


def save_depth(path: Path, shot: int, unit: str = "mm") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_depth(path, DepthMap.from_array(depth_of(shot), unit=unit))  # type: ignore[arg-type]


def write_tum(root: Path) -> None:
    """Images 5 ms after the depth; the last depth map has none."""
    depths, images = ["# timestamp filename"], ["# timestamp filename"]
    for shot in range(COUNT):
        time = 100.0 + shot / 30
        save_depth(root / "depth" / f"{time:.6f}.png", shot, "5000")
        save_image(root / "rgb" / f"{time + 0.005:.6f}.png", shot)
        depths.append(f"{time:.6f} depth/{time:.6f}.png")
        images.append(f"{time + 0.005:.6f} rgb/{time + 0.005:.6f}.png")
    save_depth(root / "depth" / "200.png", 0, "5000")
    depths.append("200.000000 depth/200.png")
    (root / "depth.txt").write_text("\n".join(depths))
    (root / "rgb.txt").write_text("\n".join(images))


def write_stray_scanner(root: Path, *, film: bool = False) -> None:
    for shot in range(COUNT):
        save_depth(root / "depth" / f"{shot:06d}.png", shot)
        trust = root / "confidence" / f"{shot:06d}.png"
        trust.parent.mkdir(exist_ok=True)
        Image.fromarray(np.full(LOW, 2, np.uint8)).save(trust)
        if not film:
            save_image(root / "rgb" / f"{shot:06d}.jpg", shot)
    if film:
        write_film(root / "rgb.mp4")
    (root / "camera_matrix.csv").write_text("30.0, 0.0, 15.5\n0.0, 30.0, 11.5\n0.0, 0.0, 1.0\n")


def write_record3d(root: Path) -> None:
    for shot in range(COUNT):
        save_depth(root / "depth" / f"{shot}.exr", shot, "m")
        save_image(root / "rgb" / f"{shot}.jpg", shot)
    values = {"w": 64, "h": 48, "fps": 30, "K": [60.0, 0.0, 0.0, 0.0, 60.0, 0.0, 31.5, 23.5, 1.0]}
    (root / "metadata.json").write_text(json.dumps(values))


def write_film(path: Path, count: int = COUNT) -> None:
    """Needs the package av."""
    import av

    path.parent.mkdir(parents=True, exist_ok=True)
    with av.open(str(path), "w") as container:
        stream = container.add_stream("mpeg4", rate=30)
        stream.width, stream.height, stream.pix_fmt = HIGH[1], HIGH[0], "yuv420p"
        stream.bit_rate = 4_000_000
        for shot in range(count):
            for packet in stream.encode(av.VideoFrame.from_ndarray(image_of(shot), format="rgb24")):
                container.mux(packet)
        for packet in stream.encode():
            container.mux(packet)


def _image_message(types, header, pixels: np.ndarray, encoding: str):
    data = np.ascontiguousarray(pixels).view(np.uint8).ravel()
    step = data.size // pixels.shape[0]
    Message = types.types["sensor_msgs/msg/Image"]
    return Message(header, pixels.shape[0], pixels.shape[1], encoding, 0, step, data)


ALIGNED, RAW = "/camera/aligned_depth_to_color/image_raw", "/camera/depth/image_raw"
BAG_DEPTHS = {ALIGNED: "16UC1", RAW: "16UC1"}
COLOR = "/camera/color/image_raw"


def _compressed_message(types, header, pixels: np.ndarray, encoding: str):
    """As the transports of ROS pack them: JPEG, or a PNG after 12 bytes."""
    stream, is_depth = io.BytesIO(), encoding == "16UC1"
    Image.fromarray(pixels.astype("<u2") if is_depth else pixels).save(stream, "PNG" if is_depth else "JPEG")
    kind = "16UC1; compressedDepth" if is_depth else "bgr8; jpeg compressed bgr8"
    data = np.frombuffer(bytes(12 * is_depth) + stream.getvalue(), np.uint8)
    return types.types["sensor_msgs/msg/CompressedImage"](header, kind, data)


def write_bag(
    root: Path,
    *,
    ros: int = 2,
    depths=BAG_DEPTHS,
    color: str = COLOR,
    lens=("plumb_bob", ()),
    compressed: bool = False,
    options=None,
    prepare=lambda writer: None,
    change=lambda name, shot, data: data,
    **camera,
) -> None:
    """Needs rosbags: colour as bgr8 10 ms after the depth, its camera, and depth in mm.

    Args:
        depths: topic -> encoding; the first has the depth, the others numbers that are 500 larger.
        lens: distortion_model and D of the camera.
        compressed: the images are CompressedImages.
        options: of the writer of ROS 2.
        prepare: called with the writer before it is opened.
        change: (topic, number, bytes of a message) -> the bytes to write.
        camera: the rest of it, as `_camera_message` takes it.
    """
    from rosbags.rosbag1 import Writer as Writer1
    from rosbags.rosbag2 import Writer as Writer2
    from rosbags.typesys import Stores, get_typestore

    types = get_typestore(Stores.ROS1_NOETIC if ros == 1 else Stores.ROS2_HUMBLE)
    Time, Header = types.types["builtin_interfaces/msg/Time"], types.types["std_msgs/msg/Header"]
    writer = Writer1(root) if ros == 1 else Writer2(root, version=9, **options or {})
    prepare(writer)
    kind_of, image = ("CompressedImage", _compressed_message) if compressed else ("Image", _image_message)
    pack = types.serialize_ros1 if ros == 1 else types.serialize_cdr
    info = f"{color.rpartition('/')[0]}/camera_info"
    with writer:
        topics = {
            name: writer.add_connection(name, f"sensor_msgs/msg/{kind}", typestore=types)
            for name, kind in (*((name, kind_of) for name in (*depths, color)), (info, "CameraInfo"))
        }

        def write(name: str, time: int, message) -> None:
            shot = (time - 1_000_000_000) // 100_000_000
            writer.write(topics[name], time, change(name, shot, bytes(pack(message, message.__msgtype__))))

        for shot in range(COUNT):
            time = 1_000_000_000 + shot * 100_000_000
            seq = (shot,) if ros == 1 else ()
            header = Header(*seq, Time(1, 0), "camera")
            stored = np.rint(depth_of(shot) * 1000).astype("<u2")
            for index, (name, encoding) in enumerate(depths.items()):
                write(name, time, image(types, header, stored + 500 * (index > 0), encoding))
            later = time + 10_000_000
            pixels = image_of(shot) if compressed else image_of(shot)[..., ::-1]
            write(color, later, image(types, header, pixels, "bgr8"))
            write(info, later, _camera_message(types, header, *lens, **camera))


def _camera_message(
    types,
    header,
    model: str,
    coefficients: tuple[float, ...],
    size=HIGH,
    K=(30.0, 15.5, 30.0, 11.5),
    region=(0, 0, 0, 0),
    binning=(0, 0),
):
    """K is fx, cx, fy, cy; region is x, y, width, height."""
    Info, Region = types.types["sensor_msgs/msg/CameraInfo"], types.types["sensor_msgs/msg/RegionOfInterest"]
    K = np.array([K[0], 0, K[1], 0, K[2], K[3], 0, 0, 1.0])
    P = np.array([28.0, 0, 15.5, 0, 0, 28.0, 11.5, 0, 0, 0, 1.0, 0])
    x, y, width, height = region
    region = Region(x, y, height, width, False)
    D = np.array(coefficients or (0.0,) * 5)
    return Info(header, *size, model, D, K, np.eye(3).ravel(), P, *binning, region)


SDK_DEPTH, SDK_COLOR = "/device_0/sensor_0/Depth_0", "/device_0/sensor_1/Color_0"


def write_sdk_bag(
    path: Path, *, units: float | None = 0.001, own_units: bool = True, late: float = 0.01, tf: bool = True
) -> None:
    """Needs rosbags: a bag as the RealSense SDK records it; the colour camera is 5 cm to the right.

    Args:
        units: metres of a step of depth, as an option of the sensor; None leaves it out.
        own_units: each image ends with its step of depth, as newer versions write it.
        late: seconds from depth to colour, by the device's time stamps; the time of recording is 10 s off.
        tf: whether the transforms are there.
    """
    from rosbags.rosbag1 import Writer
    from rosbags.typesys import Stores, get_typestore

    types = get_typestore(Stores.ROS1_NOETIC).types
    Time, Header = types["builtin_interfaces/msg/Time"], types["std_msgs/msg/Header"]
    Info, Region = types["sensor_msgs/msg/CameraInfo"], types["sensor_msgs/msg/RegionOfInterest"]
    Vector, Turn = types["geometry_msgs/msg/Vector3"], types["geometry_msgs/msg/Quaternion"]
    store = get_typestore(Stores.ROS1_NOETIC)
    step = units or 0.001
    with Writer(path) as writer:

        def write(topic: str, time: float, message, tail: bytes = b"") -> None:
            kind = message.__msgtype__
            if topic not in known:
                known[topic] = writer.add_connection(topic, kind, typestore=store)
            writer.write(known[topic], int(time * 1e9), bytes(store.serialize_ros1(message, kind)) + tail)

        known: dict = {}
        for home, size, focal, model in (
            (SDK_DEPTH, LOW, 8.0, "Brown Conrady"),
            (SDK_COLOR, HIGH, 32.0, "Inverse Brown Conrady"),
        ):
            K = np.array([focal, 0, (size[1] - 1) / 2, 0, focal, (size[0] - 1) / 2, 0, 0, 1.0])
            header = Header(0, Time(0, 0), "0")
            whole = Region(0, 0, 0, 0, False)
            D = np.zeros(5)
            write(
                f"{home}/info/camera_info",
                1,
                Info(header, *size, model, D, K, np.eye(3).ravel(), np.zeros(12), 0, 0, whole),
            )
        if tf:  # both seen from the depth stream, the reference
            still = Turn(0.0, 0.0, 0.0, 1.0)
            Transform = types["geometry_msgs/msg/Transform"]
            write(f"{SDK_DEPTH}/tf/0", 1, Transform(Vector(0.0, 0.0, 0.0), still))
            write(f"{SDK_COLOR}/tf/0", 1, Transform(Vector(-0.05, 0.0, 0.0), still))
        if units is not None:
            write("/device_0/sensor_0/option/Depth Units/value", 1, types["std_msgs/msg/Float32"](units))
        for shot in range(COUNT):
            stored = np.rint(depth_of(shot) / step).astype("<u2")
            for home, pixels, encoding, after, place in (
                (SDK_DEPTH, stored, "mono16", 0.0, 2.0),
                (SDK_COLOR, image_of(shot), "rgb8", late, 12.0),
            ):
                time = 1_600_000_000 + shot + after
                stamp = Time(int(time), round(1e9 * (time % 1.0)))
                message = _image_message(
                    store, Header(shot, stamp, "1" if own_units else "0"), pixels, encoding
                )
                tail = np.float32(step if home == SDK_DEPTH else 0).tobytes() if own_units else b""
                write(f"{home}/image/data", place + shot, message, tail)


def write_seven_scenes(root: Path) -> None:
    """frame-000000.depth.png, .color.png and .pose.txt; 65535 where nothing was measured."""
    root.mkdir(parents=True, exist_ok=True)
    for shot in range(COUNT):
        stored = np.rint(depth_of(shot) * 1000).astype(np.uint16)
        stored[0, 0] = 65535
        Image.fromarray(stored).save(root / f"frame-{shot:06d}.depth.png")
        save_image(root / f"frame-{shot:06d}.color.png", shot)
        (root / f"frame-{shot:06d}.pose.txt").write_text("1 0 0 0\n0 1 0 0\n0 0 1 0\n0 0 0 1\n")


def write_polycam(root: Path, *, corrected: bool = True) -> None:
    """Raw data of Polycam, whose cameras describe images of twice the size."""
    kind = "corrected_" if corrected else ""
    home = root / "keyframes"
    for name in (f"{kind}cameras", "confidence"):
        (home / name).mkdir(parents=True, exist_ok=True)
    for shot in range(COUNT):
        save_depth(home / "depth" / f"{1000 + shot}.png", shot)
        save_image(home / f"{kind}images" / f"{1000 + shot}.jpg", shot)
        Image.fromarray(np.full(LOW, 255, np.uint8)).save(home / "confidence" / f"{1000 + shot}.png")
        values = {"fx": 60.0, "fy": 60.0, "cx": 31.5, "cy": 23.5, "width": 64, "height": 48, "t_00": 1.0}
        (home / f"{kind}cameras" / f"{1000 + shot}.json").write_text(json.dumps(values))


def write_scanner_app(root: Path) -> None:
    """All data of 3D Scanner App."""
    for shot in range(COUNT):
        save_depth(root / f"depth_{shot:05d}.png", shot)
        save_image(root / f"frame_{shot:05d}.jpg", shot)
        Image.fromarray(np.full(LOW, 2, np.uint8)).save(root / f"conf_{shot:05d}.png")
        values = {"intrinsics": [30.0, 0, 15.5, 0, 30.0, 11.5, 0, 0, 1], "frame_index": shot}
        (root / f"frame_{shot:05d}.json").write_text(json.dumps(values))


def write_r3d(path: Path, **metadata: object) -> None:
    """Needs the package lzfse."""
    import lzfse

    values = {"w": 64, "h": 48, "dw": LOW[1], "dh": LOW[0], "fps": 60, **metadata}
    values |= {"K": [60.0, 0.0, 0.0, 0.0, 60.0, 0.0, 31.5, 23.5, 1.0]}
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("metadata", json.dumps({k: v for k, v in values.items() if v is not None}))
        for shot in range(COUNT):
            picture = io.BytesIO()
            Image.fromarray(image_of(shot)).save(picture, "JPEG", quality=95)
            archive.writestr(f"rgbd/{shot}.jpg", picture.getvalue())
            depth = depth_of(shot).astype("<f4")
            depth[0, 0] = np.nan
            archive.writestr(f"rgbd/{shot}.depth", lzfse.compress(depth.tobytes()))
            archive.writestr(f"rgbd/{shot}.conf", lzfse.compress(np.full(LOW, 1, np.uint8).tobytes()))
