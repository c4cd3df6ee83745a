"""Bags of embeddings and Col2Im in IR: random layers beside OpenVINO."""

import sys

import numpy as np
from openvino_cases import Cases, main


class Embedding(Cases):
    names = (
        "embedding_bag_offsets_sum",
        "embedding_bag_offsets",
        "embedding_bag_packed_sum",
        "embedding_bag_packed",
        "embedding_segments_sum",
        "col2im",
    )

    def table(self):
        """A table, and how many rows it has."""
        rows = self.draw.randint(1, 9)
        value = self.uniform(rows, *self.rng.randint(1, 5, self.draw.randint(1, 3)))
        if self.draw.random() < 0.25:
            return self.constant(value), rows
        return self.input(value, tuple(range(value.ndim))), rows

    def indices(self, rows: int, *shape: int):
        return self.input(self.rng.randint(0, rows, shape).astype(self.integer), tuple(range(len(shape))))

    @property
    def integer(self) -> str:
        return self.draw.choice(["i4", "i8"])

    def further(self, rows: int, integer: str, *shape: int, weighted: bool = True, low: int = -1) -> list:
        """A default index, and weights: both, the former alone, or none."""
        if (kind := self.draw.randint(0, 2)) == 0:
            return []
        made = [self.constant(np.array(self.draw.randint(low, rows - 1), integer))]
        return [*made, self.input(self.uniform(*shape))] if kind == 2 and weighted else made

    def bags(self, weighted: bool) -> list:
        integer = self.integer
        table, rows = self.table()
        count = self.draw.randint(1, 8)
        # an offset is one of an index
        first = self.rng.randint(0, count, self.draw.randint(1, 4))
        offsets = np.sort(np.concatenate([[0], first])).astype(integer)
        indices = self.input(self.rng.randint(0, rows, count).astype(integer), (0,))
        made = self.constant(offsets) if self.draw.random() < 0.25 else self.input(offsets, (0,))
        return [table, indices, made, *self.further(rows, integer, count, weighted=weighted)]

    def embedding_bag_offsets_sum(self):
        return self.opset(3).embedding_bag_offsets_sum(*self.bags(True))

    def embedding_bag_offsets(self):
        mean = self.draw.random() < 0.5
        return self.opset(15).embedding_bag_offsets(*self.bags(not mean), reduction="mean" if mean else "sum")

    def packed(self, weighted: bool) -> list:
        table, rows = self.table()
        shape = self.draw.randint(1, 4), self.draw.randint(1, 4)
        weights = [self.input(self.uniform(*shape))] if weighted and self.draw.random() < 0.5 else []
        return [table, self.indices(rows, *shape), *weights]

    def embedding_bag_packed_sum(self):
        return self.opset(3).embedding_bag_packed_sum(*self.packed(True))

    def embedding_bag_packed(self):
        mean = self.draw.random() < 0.5
        return self.opset(15).embedding_bag_packed(*self.packed(not mean), reduction="mean" if mean else "sum")

    def embedding_segments_sum(self):
        integer = self.integer
        table, rows = self.table()
        count, segments = self.draw.randint(1, 8), self.draw.randint(1, 5)
        ids = np.sort(self.rng.randint(0, segments, count)).astype(integer)
        indices = self.input(self.rng.randint(0, rows, count).astype(integer), (0,))
        # That -1 means zeros its code does not know here; nor that the number may be missing.
        made = [self.constant(np.array(segments, integer)), *self.further(rows, integer, count, low=0)]
        return self.opset(3).embedding_segments_sum(table, indices, self.input(ids, (0,)), *made)

    def col2im(self):
        pick = self.draw
        pairs = {
            "strides": [pick.randint(1, 3), pick.randint(1, 3)],
            "dilations": [pick.randint(1, 2), pick.randint(1, 2)],
            "pads_begin": [pick.randint(0, 2), pick.randint(0, 2)],
            "pads_end": [pick.randint(0, 2), pick.randint(0, 2)],
        }
        block = [pick.randint(1, 3), pick.randint(1, 3)]
        image, blocks = [], 1
        for i in range(2):
            span = pairs["dilations"][i] * (block[i] - 1) + 1
            image.append(max(span - pairs["pads_begin"][i] - pairs["pads_end"][i], 1) + pick.randint(0, 5))
            room = image[i] + pairs["pads_begin"][i] + pairs["pads_end"][i] - span
            blocks *= room // pairs["strides"][i] + 1
        shape = [pick.randint(1, 3), block[0] * block[1] * pick.randint(1, 3), blocks][pick.randint(0, 1) :]
        x = self.input(self.uniform(*shape), (0,) if len(shape) == 3 else ())
        return self.opset(15).col2im(x, np.array(image), np.array(block), **pairs)


if __name__ == "__main__":
    sys.exit(main(Embedding))
