"""Constants of 1, 2 and 4 bits in IR, outside and inside bodies of loops and branches: the order of their bits is OpenVINO's."""

import sys

import numpy as np
from openvino_cases import Cases, main


class Packed(Cases):
    names = ("plain", "loop", "branch", "sliced")

    def packed(self, *shape: int):
        """A constant of a type of less than a byte, and its numbers."""
        import openvino

        name, low, high = self.draw.choice([("u1", 0, 1), ("u2", 0, 3), ("u2", 0, 3), ("u4", 0, 15), ("i4", -8, 7)])
        numbers = self.rng.randint(low, high + 1, shape).astype("i1" if name == "i4" else "u1")
        return self.opset(13).constant(numbers, dtype=getattr(openvino.Type, name)), numbers.astype("f4")

    def wide(self, value):
        return self.opset(13).convert(value, "f32")

    def plain(self):
        """Computed by OpenVINO itself."""
        shape = [self.draw.randint(1, 5) for _ in range(self.draw.randint(1, 3))]
        return self.opset(13).add(self.input(self.uniform(*shape)), self.wide(self.packed(*shape)[0]))

    def sliced(self):
        """The packed numbers are moved before anything widens them."""
        ops, (rows, columns) = self.opset(13), (self.draw.randint(2, 6), self.draw.randint(1, 7))
        value, numbers = self.packed(rows, columns)
        x = self.uniform(columns, rows - 1)
        part = ops.slice(value, [1], [rows], [1], [0])
        y = ops.add(self.input(x), self.wide(ops.transpose(part, [1, 0])))
        return y, [x + numbers[1:].T]

    def loop(self):
        """A constant of the body, and one from around it."""
        import openvino

        ops, (rows, columns, times) = self.opset(13), (self.draw.randint(1, 4), self.draw.randint(1, 5), self.draw.randint(1, 3))
        inner, inner_numbers = self.packed(rows, columns)
        outer, outer_numbers = self.packed(rows, columns)
        x = self.uniform(rows, columns)
        state, around = (ops.parameter([rows, columns], np.float32) for _ in range(2))
        body_constant = ops.add(ops.multiply(state, self.wide(inner)), around)
        body = openvino.Model([body_constant, ops.constant(True)], [state, around], "body")
        loop = ops.loop(ops.constant(np.int64(times)), ops.constant(True))
        loop.set_function(body)
        loop.set_special_body_ports([-1, 1])
        loop.set_merged_input(state, self.input(x).output(0), body_constant.output(0))
        loop.set_invariant_input(around, self.wide(outer).output(0))
        y = loop.get_iter_value(body_constant.output(0), -1)
        wanted = x
        for _ in range(times):
            wanted = wanted * inner_numbers + outer_numbers
        return ops.add(y, ops.constant(np.float32(0))), [wanted]

    def branch(self):
        import openvino

        ops, shape = self.opset(13), (self.draw.randint(1, 4), self.draw.randint(1, 5))
        x, chosen, bodies, wanted, parameters = self.uniform(*shape), self.draw.random() < 0.5, [], [], []
        for _ in range(2):
            value, numbers = self.packed(*shape)
            parameters.append(ops.parameter(list(shape), np.float32))
            bodies.append(openvino.Model([ops.add(parameters[-1], self.wide(value))], [parameters[-1]], "branch"))
            wanted.append(x + numbers)
        made = ops.if_op(self.input(np.array(chosen)).output(0))
        made.set_then_body(bodies[0])
        made.set_else_body(bodies[1])
        made.set_input(self.input(x).output(0), *parameters)
        y = made.set_output(bodies[0].results[0], bodies[1].results[0])
        return ops.add(y, ops.constant(np.float32(0))), [wanted[0 if chosen else 1]]


if __name__ == "__main__":
    sys.exit(main(Packed))
