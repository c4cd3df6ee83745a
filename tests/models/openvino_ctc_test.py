"""CTCLoss in IR: random layers beside OpenVINO."""

import sys

import numpy as np
from openvino_cases import Cases, main


class Ctc(Cases):
    names = ("ctc_loss",)

    def ctc_loss(self):
        pick = self.draw
        integer = pick.choice(["i4", "i8"])
        batch, steps, classes = pick.randint(1, 3), pick.randint(1, 7), pick.randint(2, 5)
        blank = pick.choice([None, pick.randint(0, classes - 1)])
        others = [label for label in range(classes) if label != (classes - 1 if blank is None else blank)]
        labels = self.rng.choice(others, (batch, steps))
        made = {
            "preprocess_collapse_repeated": pick.random() < 0.5,
            "ctc_merge_repeated": pick.random() < 0.5,
            "unique": pick.random() < 0.5,
        }
        lengths = self.rng.randint(1, steps + 1, batch)
        counts = np.array([self.rng.randint(1, length + 1) for length in lengths])
        inputs = [self.input(self.uniform(batch, steps, classes, low=-3, high=3), (0, 1, 2))]
        inputs += [self.input(value.astype(integer), tuple(range(value.ndim))) for value in (lengths, labels, counts)]
        if blank is not None:
            inputs.append(self.constant(np.array(blank, integer)))
        return self.opset(4).ctc_loss(*inputs, **made)


if __name__ == "__main__":
    sys.exit(main(Ctc))
