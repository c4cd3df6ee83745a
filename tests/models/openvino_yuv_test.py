"""Pictures in NV12 and I420 in IR: random ones beside OpenVINO."""

import sys

from openvino_cases import Cases, main


class Yuv(Cases):
    names = ("nv12", "i420")

    def picture(self) -> tuple[int, int, int]:
        return self.draw.randint(1, 2), 2 * self.draw.randint(1, 9), 2 * self.draw.randint(1, 9)

    def plane(self, kind: str, *shape: int):
        value = self.rng.randint(0, 256, shape).astype(kind)
        return self.input(value if kind == "u1" else value + self.uniform(*shape, low=0).astype(kind), (0, 1, 2))

    def nv12(self):
        n, h, w = self.picture()
        kind, to = self.draw.choice(["u1", "f4"]), self.draw.choice(["nv12_to_rgb", "nv12_to_bgr"])
        if self.draw.random() < 0.5:
            return getattr(self.opset(8), to)(self.plane(kind, n, h * 3 // 2, w, 1))
        return getattr(self.opset(8), to)(self.plane(kind, n, h, w, 1), self.plane(kind, n, h // 2, w // 2, 2))

    def i420(self):
        n, h, w = self.picture()
        kind, to = self.draw.choice(["u1", "f4"]), self.draw.choice(["i420_to_rgb", "i420_to_bgr"])
        if self.draw.random() < 0.5:
            return getattr(self.opset(8), to)(self.plane(kind, n, h * 3 // 2, w, 1))
        colours = [self.plane(kind, n, h // 2, w // 2, 1) for _ in range(2)]
        return getattr(self.opset(8), to)(self.plane(kind, n, h, w, 1), *colours)


if __name__ == "__main__":
    sys.exit(main(Yuv))
