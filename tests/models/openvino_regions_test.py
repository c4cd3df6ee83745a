"""Regions and suppression by class in IR: random layers beside OpenVINO.

Scores and boxes are random, so no two scores are equal. Left out is where OpenVINO differs from its own
specification: see the generators.
"""

import sys

import numpy as np
from openvino_cases import Cases, main


class Regions(Cases):
    names = ("deformable_psroi_pooling", "multiclass_nms", "multiclass_nms_of_classes", "matrix_nms")
    strict = False  # OpenVINO's suppressions refuse to find nothing

    def boxes(self, count: int, size: float) -> np.ndarray:
        start = self.uniform(count, 2, low=0, high=0.6)
        return np.concatenate([start, start + self.uniform(count, 2, low=0.05, high=0.5)], 1) * np.float32(size)

    def deformable_psroi_pooling(self):
        pick = self.draw
        groups, out, images = pick.randint(1, 3), pick.choice([1, 2, 4]), pick.randint(1, 2)
        x = self.input(self.uniform(images, out * groups**2, pick.randint(4, 9), pick.randint(4, 9)))
        count, scale = pick.randint(1, 4), pick.choice([1.0, 0.5])
        rois = np.concatenate([self.rng.randint(0, images, (count, 1)), self.boxes(count, 9 / scale)], 1)
        made = {
            "output_dim": out,
            "spatial_scale": scale,
            "group_size": groups,
            "part_size": groups,  # the layer's CPU code takes parts of another size than the groups differently
            "spatial_bins_x": pick.randint(1, 3),
            "spatial_bins_y": pick.randint(1, 3),
            "trans_std": pick.choice([0.1, 1.0]),
        }
        if pick.random() < 0.6:
            classes = pick.choice([c for c in (1, 2) if out % c == 0])
            made["offsets"] = self.input(self.uniform(count, 2 * classes, groups, groups))
        return self.opset(15).deformable_psroi_pooling(x, self.input(rois.astype("f4")), **made)

    def suppression(self) -> dict:
        pick = self.draw
        return {
            "sort_result_type": pick.choice(["classid", "score", "none"]),
            "sort_result_across_batch": pick.random() < 0.5,
            "output_type": pick.choice(["i32", "i64"]),
            "score_threshold": pick.choice([0.0, 0.3]),
            "nms_top_k": pick.choice([-1, 2, 5]),
            "keep_top_k": pick.choice([-1, 3, 6]),
            "background_class": pick.choice([-1, 0]),
        }

    def boxes_and_scores(self, size: float) -> list:
        pick = self.draw
        images, classes, count = pick.randint(1, 3), pick.randint(1, 4), pick.randint(1, 9)
        boxes = np.stack([self.boxes(count, size) for _ in range(images)])
        return [self.input(boxes, (0, 1)), self.input(self.uniform(images, classes, count, low=0), (0, 1, 2))]

    def multiclass_nms(self):
        size, made = self.draw.choice([1.0, 20.0]), self.suppression()
        made |= {"normalized": size == 1, "iou_threshold": self.draw.choice([0.1, 0.3, 0.6])}
        made["nms_eta"] = self.draw.choice([1.0, 0.9])
        return self.opset(9).multiclass_nms(*self.boxes_and_scores(size), None, **made)

    def multiclass_nms_of_classes(self):
        pick, made = self.draw, self.suppression()
        counts = np.array([pick.randint(0, 4) for _ in range(pick.randint(1, 3))] + [1], "i8")
        classes, total = pick.randint(1, 3), int(counts.sum())
        boxes = np.stack([self.boxes(total, 1.0) for _ in range(classes)])
        scores = self.uniform(classes, total, low=0)
        made["iou_threshold"] = pick.choice([0.1, 0.3, 0.6])
        return self.opset(9).multiclass_nms(*map(self.input, (boxes, scores, counts)), **made)

    def matrix_nms(self):
        size, made = self.draw.choice([1.0, 20.0]), self.suppression()
        made |= {
            "normalized": size == 1,
            "decay_function": self.draw.choice(["gaussian", "linear"]),
            "gaussian_sigma": self.draw.choice([0.5, 2.0]),
            "post_threshold": self.draw.choice([0.0, 0.2]),
        }
        return self.opset(8).matrix_nms(*self.boxes_and_scores(size), **made)


if __name__ == "__main__":
    sys.exit(main(Regions))
