"""Detectron's stages in IR: random layers beside OpenVINO."""

import sys

import numpy as np
from openvino_cases import Cases, main


class Detectron(Cases):
    names = (
        "generate_proposals",
        "generate_proposals_of_one_image",
        "detection_output",
        "prior_grid",
        "region_features",
        "top_regions",
    )

    def layer(self, name: str, inputs: list, **attributes):
        from openvino.utils.node_factory import NodeFactory

        return NodeFactory("opset6").create("ExperimentalDetectron" + name, [x.output(0) for x in inputs], attributes)

    def boxes(self, *shape: int, size: float) -> np.ndarray:
        start = self.uniform(*shape, 2, low=-0.1, high=0.7)
        return np.concatenate([start, start + self.uniform(*shape, 2, low=0.05, high=0.5)], -1) * np.float32(size)

    def limits(self) -> dict:
        pick = self.draw
        return {
            "min_size": pick.choice([0.0, 3.0]),
            "nms_threshold": pick.choice([0.3, 0.6]),
            "pre_nms_count": pick.choice([5, 1000]),
            "post_nms_count": pick.choice([2, 4, 20]),
        }

    def anchors(self) -> tuple[int, int, int, float, float]:
        """Anchors per place, places, and the size of the picture."""
        pick = self.draw
        return pick.randint(1, 3), pick.randint(1, 4), pick.randint(1, 4), pick.randint(20, 40), pick.randint(20, 40)

    def generate_proposals(self):
        pick = self.draw
        (a, h, w, height, width), n = self.anchors(), pick.randint(1, 3)
        scales = [pick.choice([1.0, 2.0]) for _ in range(pick.randint(1, 2))]
        image = self.input(np.array([[height, width, *scales]] * n, "f4"), (0,))
        values = [
            (self.boxes(h, w, a, size=min(height, width)), (0, 1, 2)),
            (self.uniform(n, 4 * a, h, w, low=-0.5, high=0.5), (0, 2, 3)),
            (self.uniform(n, a, h, w, low=0), (0, 1)),
        ]
        made = {"normalized": pick.random() < 0.5, "roi_num_type": pick.choice(["i32", "i64"])} | self.limits()
        return self.opset(9).generate_proposals(image, *[self.input(v, u) for v, u in values], **made)

    def generate_proposals_of_one_image(self):
        a, h, w, height, width = self.anchors()
        values = [
            (np.array([height, width, 2], "f4"), ()),
            (self.boxes(h * w * a, size=min(height, width)), (0,)),
            (self.uniform(4 * a, h, w, low=-0.5, high=0.5), (1, 2)),
            (self.uniform(a, h, w, low=0), (0, 1, 2)),
        ]
        inputs = [self.input(v, u) for v, u in values]
        # boxes that are too small all have the score 0, their order is anybody's
        self.comparable = lambda outputs: [outputs[0] * (outputs[1] != 0)[:, None], outputs[1]]
        return self.layer("GenerateProposalsSingleImage", inputs, **self.limits())

    def detection_output(self):
        pick = self.draw
        count, classes = pick.randint(1, 8), pick.randint(2, 4)
        values = [
            (self.boxes(count, size=40), (0,)),
            (self.uniform(count, 4 * classes), (0,)),
            (self.uniform(count, classes, low=0), (0,)),
            (np.array([[30, 40, 1]], "f4"), ()),
        ]
        made = {
            "score_threshold": pick.choice([0.05, 0.4]),
            "nms_threshold": pick.choice([0.2, 0.5]),
            "num_classes": classes,
            "post_nms_count": pick.choice([2, 100]),
            "max_detections_per_image": pick.choice([3, 10, 40]),
            "class_agnostic_box_regression": False,
            "max_delta_log_wh": pick.choice([4.135, 0.05]),
            "deltas_weights": pick.choice([[10.0, 10.0, 5.0, 5.0], [2.0, 4.0, 1.0, 3.0]]),
        }
        return self.layer("DetectionOutput", [self.input(v, u) for v, u in values], **made)

    def prior_grid(self):
        pick = self.draw
        feature = (1, 2, pick.randint(1, 4), pick.randint(1, 4))
        image = (1, 3, feature[2] * pick.randint(3, 9), feature[3] * pick.randint(3, 9))
        inputs = [self.input(self.boxes(pick.randint(1, 3), size=20), (0,))]
        inputs += [self.input(self.uniform(*shape), (2, 3)) for shape in (feature, image)]
        made = {
            "flatten": pick.random() < 0.6,
            "h": pick.choice([0, feature[2]]),  # its code knows no others
            "w": pick.choice([0, feature[3]]),
            "stride_x": pick.choice([0.0, 4.0]),
            "stride_y": pick.choice([0.0, 6.5]),
        }
        return self.layer("PriorGridGenerator", inputs, **made)

    def region_features(self):
        pick = self.draw
        levels, channels = pick.randint(1, 4), pick.randint(1, 3)
        rois = self.boxes(pick.randint(1, 5), size=pick.choice([100, 400, 2000]))
        inputs = [self.input(rois, (0,))]
        for _ in range(levels):
            inputs.append(self.input(self.uniform(1, channels, pick.randint(3, 20), pick.randint(3, 20)), (2, 3)))
        made = {
            "output_size": pick.randint(1, 4),
            "sampling_ratio": pick.choice([0, 1, 2]),
            "pyramid_scales": [8, 16, 32, 64][:levels],
            "aligned": pick.random() < 0.5,
        }
        return self.layer("ROIFeatureExtractor", inputs, **made)

    def top_regions(self):
        count = self.draw.randint(1, 9)  # of fewer than max_rois its code makes up the rest
        inputs = [self.input(self.boxes(count, size=20), (0,)), self.input(self.uniform(count), (0,))]
        return self.layer("TopKROIs", inputs, max_rois=self.draw.randint(1, count))


if __name__ == "__main__":
    sys.exit(main(Detectron))
