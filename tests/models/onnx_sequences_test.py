"""Sequences, loops and branches of ONNX models against ONNX Runtime: lengths, positions, ranks and axes that show when the model runs.

onnx_sequences_test.py [--only TEXT]
Each case runs through the plan and by the reference interpreter. Where ONNX Runtime refuses a run lamina must, too.
"""

import argparse
import concurrent.futures
import importlib.util
import itertools
import os
import sys
from collections.abc import Iterator

import numpy as np

if importlib.util.find_spec("onnx") is None or importlib.util.find_spec("onnxruntime") is None:
    print("onnx and onnxruntime are not there: nothing is compared")
    sys.exit(77)

import onnx.parser
from peers import run_lamina, run_onnxruntime, unlike

Arrays = dict[str, np.ndarray]
Case = tuple[str, str, Arrays]  # name, text of the graph, inputs
G = np.random.default_rng(0)


def f(*shape: int) -> np.ndarray:
    return G.standard_normal(shape).astype(np.float32)


def i(*values: int) -> np.ndarray:
    """One number, or a list."""
    return np.array(values if len(values) != 1 else values[0], np.int64)


def splits() -> Iterator[Case]:
    x = {"x": f(5, 6, 7)}
    for axis, part, at in itertools.product((0, 1, -1), (1, 2, 3), (0, 1, -1)):
        yield f"split_{axis}_{part}_{at}", f"""g (float[a,b,c] x) => (float[d,e,h] y) <int64 p={{{part}}}, int64 i={{{at}}}> {{
            s = SplitToSequence<axis={axis}>(x,p) y = SequenceAt(s,i) }}""", x
    for axis, keep, other, new in itertools.product((0, 1, -1), (0, 1), (0, 1, -1), (0, 1)):
        dims = ",".join("qrst"[:2 + keep + new])
        yield f"rows_{axis}_{keep}_{other}_{new}", f"""g (float[a,b,c] x) => (float[{dims}] y, int64 n) {{
            s = SplitToSequence<axis={axis},keepdims={keep}>(x) y = ConcatFromSequence<axis={other},new_axis={new}>(s) n = SequenceLength(s) }}""", x
    given = """g (float[a,b] x, int64[%s] p) => (float[c,d] y, int64 n, float[e,h] z, float[k,l] w) <int64 i={-2}> {
        s = SplitToSequence<axis=1>(x,p) y = SequenceAt(s,i) n = SequenceLength(s) z = ConcatFromSequence<axis=1>(s)
        e = SequenceErase(s,i) w = ConcatFromSequence<axis=1>(e) }"""
    yield "lengths_computed", given % "n", {"x": f(3, 9), "p": i(2, 4, 3)}
    yield "lengths_counted", given % "3", {"x": f(3, 9), "p": i(2, 4, 3)}
    yield "lengths_wrong", given % "n", {"x": f(3, 9), "p": i(2, 4, 2)}
    for k, lengths in itertools.product(("n", "3"), ((4, 6, -1), (-1, 4, 5), (11, -2, 0), (9, 0, 0), (9, 0, 1))):
        yield f"lengths_{k}_{'_'.join(map(str, lengths))}", given % k, {"x": f(3, 9), "p": i(*lengths)}
    for k, lengths in itertools.product(("n", "1"), ((4,), (3,), (-1,), (-4,))):
        feed = {"x": f(4, 3), "r": np.array(lengths, np.float32)}
        yield f"length_{k}_{lengths[0]}", f"""g (float[n,3] x, float[{k}] r) => (float[a,3] y) <int64 i={{0}}> {{
            z = Neg(x) p = Cast<to=7>(r) s = SplitToSequence<axis=0>(z,p) e = SequenceAt(s,i) y = Neg(e) }}""", feed
        yield f"split_one_{k}_{lengths[0]}", f"""g (float[n,3] x, float[{k}] r) => (float[a,3] y) {{
            z = Neg(x) p = Cast<to=7>(r) e = Split<axis=0>(z,p) y = Neg(e) }}""", feed
    for k, lengths in itertools.product(("n", "2"), ((3, 1), (5, -1), (-1, 5), (2, 1))):
        yield f"number_of_parts_{k}_{lengths[0]}_{lengths[1]}", f"""g (float[a,3] x, int64[{k}] p) => (int64 n) {{
            s = SplitToSequence<axis=0>(x,p) n = SequenceLength(s) }}""", {"x": f(4, 3), "p": i(*lengths)}
    for size in (3, 5):
        yield f"number_of_known_parts_{size}", """g (float[a,3] x) => (int64 n) <int64[2] p={3, 1}> {
            s = SplitToSequence<axis=0>(x,p) n = SequenceLength(s) }""", {"x": f(size, 3)}
    for size in (3, 0, -1):
        yield f"number_of_even_parts_{size}", """g (float[a,3] x, int64 p) => (int64 n) {
            s = SplitToSequence<axis=0>(x,p) n = SequenceLength(s) }""", {"x": f(4, 3), "p": i(size)}
    for lengths in ((3, 1), (5, -1), (-1, 5), (2, 1)):
        yield f"split_two_{lengths[0]}_{lengths[1]}", """g (float[n,3] x, int64[2] p) => (float[a,3] y) {
            z = Neg(x) a, b = Split<axis=0>(z,p) e = Concat<axis=0>(a,b) y = Neg(e) }""", {"x": f(4, 3), "p": i(*lengths)}
    for size in (4, 5):
        yield f"split_even_{size}_opset13", """g (float[n,3] x) => (float[a,3] y) {
            z = Neg(x) a, b = Split<axis=0>(z) e = Concat<axis=0>(a,b) y = Neg(e) }""", {"x": f(size, 3)}
    for part in (4, 100, 0, -1, -2):
        yield f"part_{part}", "g (float[n,3] x, int64 p) => (int64 n) { s = SplitToSequence<axis=0>(x,p) n = SequenceLength(s) }", {
            "x": f(9, 3), "p": i(part)}
    yield "part_computed", """g (float[a,b] x, int64 p, int64 i) => (float[c,d] z) {
        s = SplitToSequence<axis=1>(x,p) y = SequenceAt(s,i) t = SequenceInsert(s,y) u = SequenceInsert(t,x,i)
        z = ConcatFromSequence<axis=-1>(u) }""", {"x": f(3, 9), "p": i(4), "i": i(1)}


def places() -> Iterator[Case]:
    for at in range(-4, 5):
        feed = {"x": f(3, 3), "i": i(at)}
        head = "g (float[a,3] x, int64 i) => (float[c,d] z, int64 n) { s = SplitToSequence<axis=0>(x)"
        tail = "n = SequenceLength(u) z = ConcatFromSequence<axis=0>(u) }"
        yield f"insert_{at}", f"{head} e = Mul(x,x) u = SequenceInsert(s,e,i) {tail}", feed
        yield f"erase_{at}", f"{head} u = SequenceErase(s,i) {tail}", feed
        yield f"at_{at}", f"{head} z = SequenceAt(s,i) n = SequenceLength(s) }}", feed
        yield f"at_list_{at}", """g (float[2,3] x, float[4,3] y, int64 i) => (float[n,3] z) {
            s = SequenceConstruct(x,y) z = SequenceAt(s,i) }""", {"x": f(2, 3), "y": f(4, 3), "i": i(at)}


    for at in (-1, 0, 1, 7):
        yield f"insert_into_none_{at}", f"""g (float[a,3] x, int64 i) => (float[c,d] z, int64 n) <int64 p={{{at}}}> {{
            s = SequenceConstruct(x) e = SequenceErase(s,i) u = SequenceInsert(e,x,p) n = SequenceLength(u) z = ConcatFromSequence<axis=0>(u) }}""", {
            "x": f(2, 3), "i": i(0)}
    for shape in ("4", "3", "-1"):
        yield f"reshape_{shape}", f"""g (float[n] x) => (int64[a,b] y) <int64[2] p={{1,{shape}}}> {{
            z = NonZero(x) e = Reshape(z,p) y = Neg(e) }}""", {"x": f(4)}


def loops() -> Iterator[Case]:
    loop = """g (float[n,3] x, int64 m) => (float[k,l] y, int64 n) <bool go={{1}}, int64 one={{1}}, int64 zero={{0}}, int64[1] ax={{0}}> {{
        {before} r = Loop(m, go, e) <body = b (int64 i, bool c, seq(float[]) s) => (bool d, seq(float[]) t) {{ d = Identity(c) {body} }}>
        n = SequenceLength(r) y = ConcatFromSequence<axis={axis}>(r) }}"""
    row = "a = Gather<axis=0>(x,i) row = Unsqueeze(a,ax)"
    some = {
        "append": f"{row} t = SequenceInsert(s,row)",
        "append_twice": f"{row} u = SequenceInsert(s,row) t = SequenceInsert(u,x)",
        "put_first": f"{row} t = SequenceInsert(s,row,zero)",
        "grow": "j = Add(i,one) e1 = Unsqueeze(j,ax) e0 = Unsqueeze(zero,ax) part = Slice(x,e0,e1,ax) t = SequenceInsert(s,part)",
        "sometimes": f"""two = Constant<value_int=2>() k = Mod(i,two) kb = Cast<to=9>(k)
            t = If(kb)<then_branch = tb () => (seq(float[]) u) {{ {row} u = SequenceInsert(s,row) }},
                       else_branch = eb () => (seq(float[]) v) {{ v = Identity(s) }}>""",
    }
    filled = {
        "turn": "a = SequenceAt(s,zero) a2 = Add(a,a) s2 = SequenceErase(s,zero) t = SequenceInsert(s2,a2)",
        "read": "a = SequenceAt(s,zero) n = SequenceLength(s) nf = Cast<to=1>(n) a2 = Mul(a,nf) t = SequenceInsert(s,a2)",
    }
    befores = {"empty": "e = SequenceEmpty<dtype=1>()", "one": "e = SequenceConstruct(x)", "two": "e = SequenceConstruct(x,x)",
               "open": "e = SplitToSequence<axis=0>(x)"}
    for (start, before), (name, body) in itertools.product(befores.items(), (some | filled).items()):
        if start != "empty" or name in some:
            yield f"loop_{name}_{start}", loop.format(before=before, body=body, axis=0), {"x": f(5, 3), "m": i(4)}
    columns = "j = Add(i,one) e1 = Unsqueeze(j,ax) e0 = Unsqueeze(zero,ax) a1 = Unsqueeze(one,ax) part = Slice(x,e0,e1,a1) t = SequenceInsert(s,part)"
    yield "loop_columns", loop.format(before=befores["empty"], body=columns, axis=1), {"x": f(5, 3), "m": i(3)}
    yield "loop_none", """g (float[n,3] x, int64 m) => (int64 n) <bool go={1}> { e = SequenceEmpty<dtype=1>()
        r = Loop(m, go, e) <body = b (int64 i, bool c, seq(float[]) s) => (bool d, seq(float[]) t) {
            d = Identity(c) a = Gather<axis=0>(x,i) t = SequenceInsert(s,a) }>
        n = SequenceLength(r) }""", {"x": f(5, 3), "m": i(0)}
    for inner, before in itertools.product(("t = SequenceInsert(s,a)", "t = SequenceInsert(s,a,zero)", "b = Neg(a) u = SequenceInsert(s,a) t = SequenceInsert(u,b)"), (
            "e = SequenceEmpty<dtype=1>()", "e = SequenceConstruct(y0)")):
        yield f"loop_nested_{len(inner)}_{len(before)}", f"""g (float[n,3] x, int64 m) => (float[k] y, int64 n) <bool go={{1}}, int64 zero={{0}}> {{
            y0 = Gather<axis=0>(x,zero) {before}
            r = Loop(m, go, e) <body = b (int64 i, bool c, seq(float[]) s0) => (bool d, seq(float[]) t0) {{
                d = Identity(c) row = Gather<axis=0>(x,i)
                t0 = Loop(m, go, s0) <body = b2 (int64 j, bool c2, seq(float[]) s) => (bool d2, seq(float[]) t) {{
                    d2 = Identity(c2) row2 = Gather<axis=0>(x,j) a = Add(row,row2) {inner} }}> }}>
            n = SequenceLength(r) y = ConcatFromSequence<axis=0>(r) }}""", {"x": f(5, 3), "m": i(3)}
    yield "loop_rank", """g (float[n] x, int64 m) => (y) <bool go={1}, int64[1] ax={0}> {
        y = Loop(m, go, x)<body = b (int64 i, bool c, float[] s) => (bool d, float[] t) { d = Identity(c) a = Add(s,s) t = Unsqueeze(a,ax) }> }""", {
        "x": f(3), "m": i(3)}


def branches() -> Iterator[Case]:
    for c, other in itertools.product((False, True), ("x,y", "x", "x,y,x")):
        yield f"if_{c}_{other}", f"""g (float[n,3] x, bool c) => (float[k,3] y) {{
            s = If(c)<then_branch = tb () => (seq(float[]) u) {{ u = SequenceConstruct(x,x) }},
                      else_branch = eb () => (seq(float[]) v) {{ y = Neg(x) v = SequenceConstruct({other}) }}>
            y = ConcatFromSequence<axis=0>(s) }}""", {"x": f(2, 3), "c": np.array(c)}
    yield "if_empty", """g (float[n,3] x, bool c) => (int64 y) {
        s = If(c)<then_branch = tb () => (seq(float[]) u) { u = SequenceEmpty<dtype=1>() }, else_branch = eb () => (seq(float[]) v) { v = SequenceConstruct(x) }>
        y = SequenceLength(s) }""", {"x": f(2, 3), "c": np.array(True)}
    yield "if_reads", """g (float[n,3] x, bool c, int64 i) => (float[k,3] y) {
        s = SplitToSequence<axis=0>(x) q = SequenceConstruct(x,x)
        y = If(c)<then_branch = tb () => (float[a,3] u) { u = SequenceAt(s,i) }, else_branch = eb () => (float[b,3] v) { v = SequenceAt(q,i) }> }""", {
        "x": f(2, 3), "c": np.array(True), "i": i(1)}
    body = "r0 = Add(x,x)"
    for level in range(1, 21):
        body = f"""r{level} = If({"c" if level % 2 else "d"})<then_branch = t{level} () => (float[n] r{level - 1}) {{ {body} }},
            else_branch = e{level} () => (float[n] q{level}) {{ q{level} = Neg(x) }}>"""
    yield "if_deep", f"g (float[n] x, bool c, bool d) => (float[n] r20) {{ {body} }}", {"x": f(3), "c": np.array(True), "d": np.array(True)}
    yield "if_rank", """g (float[n] x, bool c) => (y) <int64[1] ax={0}> {
        z = If(c)<then_branch = tb () => (float[a,b] u) { u = Unsqueeze(x,ax) }, else_branch = eb () => (float[a] v) { v = Neg(x) }>
        y = Relu(z) }""", {"x": f(3), "c": np.array(True)}


def maps() -> Iterator[Case]:
    for made in ("SequenceConstruct(x,x)", "SplitToSequence<axis=0>(x)"):
        yield f"map_{made[:5]}", f"""g (float[n,3] x, float[2,3] z) => (float[p,3] y) {{ s = {made}
            m = SequenceMap(s, z)<body = b (float[a,3] e, float[2,3] f) => (float[q,3] o) {{ g1 = Add(e,f) o = Mul(g1, x) }}>
            y = ConcatFromSequence<axis=0>(m) }}""", {"x": f(2, 3), "z": f(2, 3)}
    yield "map_two", """g (float[n,3] x) => (float[p,3] y, int64 l) { s = SplitToSequence<axis=0>(x)
        m, k = SequenceMap(s, s)<body = b (float[a,3] e, float[b,3] f) => (float[q,3] o, float[q,3] r) { o = Add(e,f) r = Mul(o, f) }>
        y = ConcatFromSequence<axis=0>(k) l = SequenceLength(m) }""", {"x": f(4, 3)}


def reductions() -> Iterator[Case]:
    names = ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceL2", "ReduceL1", "ReduceLogSumExp", "ReduceSumSquare", "ReduceProd")
    for name, keep, noop, axes in itertools.product(names, (0, 1), (0, 1), ((), (1,), (0, -1))):
        yield f"{name}_{keep}_{noop}_{len(axes)}", f"""g (float[a,b,c] x, int64[n] axes) => (z) {{
            y = {name}<keepdims={keep},noop_with_empty_axes={noop}>(x,axes) z = Abs(y) }}""", {"x": f(2, 3, 4), "axes": np.array(axes, np.int64)}


def axes() -> Iterator[Case]:
    x = f(2, 3, 4)
    for chosen, mode in itertools.product(((1,), (0, 2), (-1, 0)), ("constant", "edge", "reflect", "wrap")):
        feed = {"x": x, "p": np.ones(2 * len(chosen), np.int64), "axes": np.array(chosen, np.int64)}
        name = f"pad_{mode}_{len(chosen)}_{chosen[0]}"
        yield f"{name}_computed", f'g (float[a,b,c] x, int64[n] p, int64[m] axes) => (y) {{ y = Pad<mode="{mode}">(x,p,,axes) }}', feed
        known = ",".join(map(str, chosen))
        yield f"{name}_known", f"""g (float[a,b,c] x, int64[n] p) => (y) <int64[{len(chosen)}] axes={{{known}}}> {{
            y = Pad<mode="{mode}">(x,p,,axes) }}""", {"x": x, "p": feed["p"]}
    yield "crop_pad", "g (float[a,b,c] x, int64[n] k) => (y) { y = CenterCropPad(x,k) }", {"x": x, "k": i(3, 2, 4)}
    yield "crop_pad_axes", "g (float[a,b,c] x, int64[2] k) => (y) { y = CenterCropPad<axes=[-1,0]>(x,k) }", {"x": x, "k": i(1, 5)}
    pooled = "p, q = MaxPool<kernel_shape=[2,2],strides=[2,2]>(x)"
    for size in (4, 5):
        yield f"unpool_{size}", f"""g (float[n,3,h,w] x) => (y) {{ {pooled} y = MaxUnpool<kernel_shape=[2,2],strides=[2,2]>(p,q) }}""", {"x": f(2, 3, 4, size)}
    for size, window in itertools.product(((4, 4), (5, 7)), ("kernel_shape=[2,2],strides=[2,2]", "kernel_shape=[3,3],strides=[2,2],pads=[1,1,1,1]")):
        yield f"unpool_to_{size[0]}_{len(window)}", f"""g (float[n,c,h,w] x) => (y) {{
            p, q = MaxPool<{window}>(x) s = Shape(x) y = MaxUnpool<{window}>(p,q,s) }}""", {"x": f(2, 3, *size)}
    for size in (4, 6, 3):
        yield f"unpool_to_given_{size}", """g (float[1,1,4,4] x, int64[4] s) => (y) {
            p, q = MaxPool<kernel_shape=[2,2],strides=[2,2]>(x) y = MaxUnpool<kernel_shape=[2,2],strides=[2,2]>(p,q,s) }""", {
            "x": np.arange(16, 0, -1, dtype=np.float32).reshape(1, 1, 4, 4), "s": i(1, 1, size, 4)}
    for pads in ((1, -1), (-1, 1), (-2, 3), (3, -2)):
        name = f"pad_wrap_{pads[0]}_{pads[1]}"
        yield name, 'g (float[a,b,c] x, int64[2] p) => (y) <int64[1] axes={2}> { y = Pad<mode="wrap">(x,p,,axes) }', {"x": x, "p": i(*pads)}
        yield f"{name}_known", f"""g (float[a,b,c] x) => (y) <int64[2] p={{{pads[0]},{pads[1]}}}, int64[1] axes={{2}}> {{
            y = Pad<mode="wrap">(x,p,,axes) }}""", {"x": x}
    of_any_rank = "g (float[a,b,c] x, int64[n] k) => (y) {{ z = Reshape(x,k) {} }}"
    for name, node in {"flatten": "y = Flatten<axis=-1>(z)", "flatten_2": "y = Flatten<axis=-2>(z)", "pad": "p = Shape(z) q = Concat<axis=0>(p,p) y = Pad(z,q)",
                       "unsqueeze": "a = Constant<value_ints=[0,-1]>() w = Unsqueeze(z,a) y = Relu(w)", "transpose": "y = Transpose(z)"}.items():
        yield f"rank_{name}", of_any_rank.format(node), {"x": x, "k": i(2, 3, -1)}
    for name, axis in itertools.product(("Softmax", "LogSoftmax", "Flatten"), (0, 1, 2, 3, 4, -1, -3, -4)):
        yield f"rank_{name}_{axis}_opset12", of_any_rank.format(f"y = {name}<axis={axis}>(z)"), {"x": x, "k": i(2, 3, -1)}


def verdict(case: Case) -> str:
    """What is wrong; nothing when ONNX Runtime agrees."""
    name, text, feed = case
    opset = int(name.rpartition("_opset")[2]) if "_opset" in name else 19
    model = onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["" : {opset}]>\n{text}')
    for port in model.graph.output:
        if not port.type.HasField("tensor_type"):
            port.type.tensor_type.elem_type = onnx.TensorProto.FLOAT
    proto = model.SerializeToString()
    try:
        wanted = run_onnxruntime(proto, feed)
    except Exception as e:  # noqa: BLE001
        wanted, why = {}, str(e)
    for way in ([], ["--reference"]):
        problem, got = run_lamina(proto, feed, *way)
        if not wanted:
            if not problem or "unsupported" in problem or "internal" in problem:
                return f"is not refused at run time, ONNX Runtime says {why[-160:]}; {problem}"
            continue
        if problem:
            return problem
        for name, w in wanted.items():
            other = unlike(got[name], w)
            if other or not np.allclose(got[name], w, rtol=1e-4, atol=1e-5, equal_nan=True):
                return f"{way} {name} {other or 'has other numbers'}"
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    cases = [c for kind in (splits, places, loops, branches, maps, reductions, axes) for c in kind() if options.only in c[0]]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        verdicts = list(pool.map(verdict, cases))
    for case, why in zip(cases, verdicts, strict=True):
        if why:
            print(f"{case[0]}: {why}")
    wrong = sum(map(bool, verdicts))
    print(f"{len(cases)} cases, {wrong} wrong")
    return 1 if wrong or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
