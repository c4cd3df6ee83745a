"""Random cases of ai.onnx.ml's operators."""

import dataclasses

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from peers import RandomBase

TYPES = {"f": TensorProto.FLOAT, "d": TensorProto.DOUBLE, "i": TensorProto.INT32, "l": TensorProto.INT64, "e": TensorProto.FLOAT16}
TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")


@dataclasses.dataclass
class Case:
    """One node of ai.onnx.ml."""

    op: str
    inputs: list[np.ndarray]
    attributes: dict
    outputs: dict[str, int]  # names and element types
    version: int = 3
    oracle: str = "ort"  # or "reference": ONNX's own implementation, where ONNX Runtime has none or another meaning
    atol: float = 1e-5

    def model(self) -> onnx.ModelProto:
        names = [f"x{i}" for i in range(len(self.inputs))]
        graph = helper.make_graph(
            [helper.make_node(self.op, names, list(self.outputs), domain="ai.onnx.ml", **self.attributes)], "g",
            [helper.make_tensor_value_info(n, TYPES[a.dtype.char], [None, *a.shape[1:]]) for n, a in zip(names, self.inputs, strict=True)],
            [helper.make_value_info(name, helper.make_tensor_type_proto(kind, None)) for name, kind in self.outputs.items()])
        return helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid("ai.onnx.ml", self.version)])

    def feed(self) -> dict[str, np.ndarray]:
        return {f"x{i}": a for i, a in enumerate(self.inputs)}


class Random(RandomBase):
    """What cases are made of."""

    def numbers(self, count: int, low: float = -1, high: float = 1) -> list[float]:
        return [float(v) for v in self.g.uniform(low, high, count).astype(np.float32)]

    def labels(self, count: int) -> list[int]:
        return list(range(count)) if self.flag() else [int(v) for v in self.g.permutation(50)[:count] - 20]

    def rows(self, features: int, types: str = "fffdil", nan: float = 0.0) -> np.ndarray:
        """Some features are on a coarse grid, so that thresholds are met exactly."""
        n = self.pick(1, 1, self.size(2, 9), self.size(10, 90))
        x = np.where(self.g.random((n, features)) < 0.5, np.round(self.floats(n, features) * 2) / 2, self.floats(n, features) * 2)
        kind = self.pick(*types)
        if kind in "fd":
            x = np.where(self.g.random(x.shape) < nan, np.nan, x)
        return x.astype(kind)


def tree(r: Random, features: int, modes: tuple[str, ...], depth: int) -> list[dict]:
    """Nodes of a tree in the file's form, in random order behind the root."""
    nodes = [{}]
    pending = [(0, 0)]
    while pending:
        at, level = pending.pop()
        if level >= depth or (level > 0 and r.flag(0.2)):
            nodes[at] = {"mode": "LEAF", "feature": 0, "value": 0.0, "true": 0, "false": 0, "nan": 0}
            continue
        children = len(nodes), len(nodes) + 1
        nodes[at] = {"mode": r.pick(*modes), "feature": r.size(0, features - 1), "value": float(np.round(r.g.standard_normal() * 2) / 2),
                     "true": children[0], "false": children[1], "nan": int(r.flag())}
        nodes += [{}, {}]
        pending += [(children[0], level + 1), (children[1], level + 1)]
    return nodes


MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")


def forest(r: Random, features: int, of: str, votes, wide: bool) -> dict:
    """Attributes of the nodes and the votes; `votes` gives a leaf's targets and weights."""
    modes = r.pick(("BRANCH_LEQ",), ("BRANCH_LT",), MODES)
    rows: dict[str, list] = {key: [] for key in ("treeids", "nodeids", "featureids", "modes", "values", "truenodeids", "falsenodeids", "missing_value_tracks_true")}
    target: dict[str, list] = {key: [] for key in ("treeids", "nodeids", "ids", "weights")}
    for number in range(r.pick(1, r.size(2, 6), r.size(7, 40))):
        nodes = tree(r, features, modes, r.size(0, 6))
        order = [0, *(int(i) + 1 for i in r.g.permutation(len(nodes) - 1))]
        for i in order:
            n = nodes[i]
            for key, value in zip(rows, (number, i, n["feature"], n["mode"], n["value"], n["true"], n["false"], n["nan"]), strict=True):
                rows[key].append(value)
            if n["mode"] == "LEAF":
                for t, w in votes():
                    for key, value in zip(target, (number, i, t, w), strict=True):
                        target[key].append(value)
    if r.flag(0.3):
        rows["missing_value_tracks_true"] = []
    out = {f"nodes_{key}": values for key, values in rows.items() if values}
    out |= {f"{of}_{key}": values for key, values in target.items()}
    if wide:
        for name in ("nodes_values", f"{of}_weights"):
            out[f"{name}_as_tensor"] = numpy_helper.from_array(np.array(out.pop(name), np.float64), name)
    return out


def tree_regressor(r: Random) -> Case:
    features, targets = r.size(1, 9), r.pick(1, 1, r.size(2, 5))
    x = r.rows(features, "fffd", nan=r.pick(0.0, 0.2))
    some = r.flag(0.2)

    def votes():
        chosen = range(targets) if not some else sorted({r.size(0, targets - 1) for _ in range(targets)})
        return [(t, float(r.floats())) for t in chosen]

    wide = x.dtype.char == "d" and r.flag(0.7)
    attributes = forest(r, features, "target", votes, wide)
    attributes |= {"n_targets": targets, "aggregate_function": r.pick("SUM", "AVERAGE", "MIN", "MAX"), "post_transform": r.pick("NONE", "NONE", *TRANSFORMS)}
    if not some and r.flag():  # ONNX Runtime forgets the base of a target without votes
        base = r.numbers(targets)
        attributes |= {"base_values_as_tensor": numpy_helper.from_array(np.array(base), "base_values")} if wide else {"base_values": base}
    return Case("TreeEnsembleRegressor", [x], attributes, {"y0": TensorProto.FLOAT}, atol=1e-4)


def tree_classifier(r: Random) -> Case:
    """A classifier of two classes as converters write it: one class has all votes; for the reference both have votes."""
    features, classes = r.size(1, 9), r.pick(2, 2, r.size(3, 6))
    x = r.rows(features, nan=r.pick(0.0, 0.2))
    positive, some = r.flag(), classes > 2 and r.flag(0.3)
    low = 0 if positive else -1
    both = classes == 2 and r.flag(0.25)

    def votes():
        chosen = (0, 1) if both else (0,) if classes == 2 else range(classes) if not some else sorted({r.size(0, classes - 1) for _ in range(2)})
        return [(t, float(np.float32(r.g.uniform(low, 1)) / 8)) for t in chosen]

    wide = x.dtype.char == "d" and r.flag(0.7)
    attributes = forest(r, features, "class", votes, wide)
    transform = r.pick("NONE", "LOGISTIC") if both or classes == 2 else r.pick("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO")
    attributes |= {"classlabels_int64s": r.labels(classes), "post_transform": transform}
    if r.flag():
        base = r.numbers(1 if classes == 2 and not both else classes)
        attributes |= {"base_values_as_tensor": numpy_helper.from_array(np.array(base), "base_values")} if wide else {"base_values": base}
    if both:
        x[:] = np.nan_to_num(x)
        if attributes.get("nodes_modes") and wide:
            return tree_classifier(r)
    return Case("TreeEnsembleClassifier", [x], attributes, {"y0": TensorProto.INT64, "y1": TensorProto.FLOAT}, oracle="reference" if both else "ort", atol=1e-4)


def tree_ensemble(r: Random) -> Case:
    features, targets = r.size(1, 9), r.pick(1, r.size(2, 5))
    x = r.rows(features, "ffd", nan=r.pick(0.0, 0.2))
    inner: dict[str, list] = {key: [] for key in ("featureids", "modes", "splits", "truenodeids", "trueleafs", "falsenodeids", "falseleafs", "missing_value_tracks_true")}
    leaf_targets, leaf_weights, roots, members = [], [], [], []
    with_members = r.flag(0.4)
    for _ in range(r.pick(1, r.size(2, 20))):
        nodes = tree(r, features, MODES[: r.pick(1, 6)], r.size(1, 5))
        if nodes[0]["mode"] == "LEAF":
            continue
        # Parents, then all below "true": ONNX's reference reads the sets of members in this order, others by the nodes' numbers.
        order, below = [], [0]
        while below:
            order.append(below.pop())
            n = nodes[order[-1]]
            below += [] if n["mode"] == "LEAF" else [n["false"], n["true"]]
        places = {}
        for i in order:
            n = nodes[i]
            if n["mode"] == "LEAF":
                places[i] = len(leaf_targets), 1
                leaf_targets.append(r.size(0, targets - 1))
                leaf_weights.append(float(r.floats()))
            else:
                places[i] = len(inner["modes"]) + sum(1 for v in places.values() if not v[1]), 0
        roots.append(places[0][0])
        for i in order:
            n = nodes[i]
            if n["mode"] == "LEAF":
                continue
            member = with_members and r.flag(0.5)
            if member:
                members += [float(v) or 2.5 for v in np.round(r.g.standard_normal(r.size(1, 5)) * 2) / 2] + [float("nan")]  # a 0 ends the reference's set
            (t, t_leaf), (f, f_leaf) = places[n["true"]], places[n["false"]]
            values = (n["feature"], 6 if member else MODES.index(n["mode"]), n["value"], t, t_leaf, f, f_leaf, n["nan"])
            for key, value in zip(inner, values, strict=True):
                inner[key].append(value)
    if not roots:
        return tree_ensemble(r)
    kind = x.dtype
    attributes = {f"nodes_{key}": values for key, values in inner.items()}
    attributes["nodes_modes"] = numpy_helper.from_array(np.array(inner["modes"], np.uint8), "modes")
    attributes["nodes_splits"] = numpy_helper.from_array(np.array(inner["splits"], kind), "splits")
    attributes |= {"leaf_targetids": leaf_targets, "leaf_weights": numpy_helper.from_array(np.array(leaf_weights, kind), "weights"), "tree_roots": roots,
                   "n_targets": targets, "aggregate_function": r.pick(0, 1, 1, 2, 3), "post_transform": r.pick(0, 0, 0, 3, 4) if targets > 1 else 0}  # ONNX Runtime takes 1 for 2
    if members:  # ONNX Runtime knows few sets, and errs in some
        attributes["membership_values"] = numpy_helper.from_array(np.array(members, kind), "members")
        attributes |= {"aggregate_function": r.pick(0, 1), "post_transform": 0}
    return Case("TreeEnsemble", [x], attributes, {"y0": TYPES[kind.char]}, version=5, oracle="reference" if members else "ort", atol=1e-4)


def linear_regressor(r: Random) -> Case:
    features, targets = r.size(1, 9), r.pick(1, r.size(2, 5))
    attributes = {"coefficients": r.numbers(features * targets), "targets": targets, "post_transform": r.pick("NONE", *TRANSFORMS)}
    if r.flag(0.8):
        attributes["intercepts"] = r.numbers(targets)
    return Case("LinearRegressor", [r.rows(features, "f")], attributes, {"y0": TensorProto.FLOAT}, atol=1e-4)


def linear_classifier(r: Random) -> Case:
    features, classes = r.size(1, 9), r.size(2, 5)
    scores = 1 if classes == 2 and r.flag(0.7) else classes
    transform = r.pick(*TRANSFORMS[:4])
    attributes = {"coefficients": r.numbers(features * scores), "intercepts": r.numbers(scores), "classlabels_ints": r.labels(classes), "post_transform": transform,
                  "multi_class": r.size(0, 1)}
    return Case("LinearClassifier", [r.rows(features)], attributes, {"y0": TensorProto.INT64, "y1": TensorProto.FLOAT}, atol=1e-4)


def kernel(r: Random) -> dict:
    return {"kernel_type": r.pick("LINEAR", "POLY", "RBF", "SIGMOID"), "kernel_params": [float(np.float32(r.g.uniform(0.05, 0.5))), float(np.float32(r.g.uniform(-0.5, 0.5))), float(r.size(1, 3))]}


def svm_regressor(r: Random) -> Case:
    features, vectors = r.size(1, 9), r.size(1, 20)
    attributes = kernel(r) | {"coefficients": r.numbers(vectors), "support_vectors": r.numbers(vectors * features), "n_supports": vectors, "rho": r.numbers(1),
                              "one_class": int(r.flag(0.3)), "post_transform": "NONE"}
    if r.flag(0.2):
        attributes |= {"coefficients": r.numbers(features), "n_supports": 0, "kernel_type": "LINEAR", "support_vectors": []}
        del attributes["support_vectors"]
    return Case("SVMRegressor", [r.rows(features, "f")], attributes, {"y0": TensorProto.FLOAT}, atol=1e-3)


def svm_classifier(r: Random) -> Case:
    features, classes = r.size(1, 9), r.size(2, 5)
    counts = [r.size(1, 6) for _ in range(classes)]
    pairs = classes * (classes - 1) // 2
    attributes = kernel(r) | {"vectors_per_class": counts, "support_vectors": r.numbers(sum(counts) * features), "coefficients": r.numbers((classes - 1) * sum(counts)),
                              "rho": r.numbers(pairs), "classlabels_ints": r.labels(classes), "post_transform": r.pick(*TRANSFORMS[:4])}
    if r.flag():
        attributes |= {"prob_a": r.numbers(pairs, -2, -0.5), "prob_b": r.numbers(pairs)}
    if r.flag(0.2):
        for name in ("vectors_per_class", "support_vectors", "prob_a", "prob_b"):
            attributes.pop(name, None)
        attributes |= {"coefficients": r.numbers(classes * features), "rho": r.numbers(1)}
    return Case("SVMClassifier", [r.rows(features)], attributes, {"y0": TensorProto.INT64, "y1": TensorProto.FLOAT}, atol=1e-3)


def scaler(r: Random) -> Case:
    features = r.size(1, 9)
    attributes = {"offset": r.numbers(r.pick(1, features)), "scale": r.numbers(r.pick(1, features))}
    if len(attributes["offset"]) != len(attributes["scale"]):
        attributes["scale"] = r.numbers(len(attributes["offset"]))
    return Case("Scaler", [r.rows(features)], attributes, {"y0": TensorProto.FLOAT})


def normalizer(r: Random) -> Case:
    x = r.rows(r.size(1, 9))
    x[0] = 0 if r.flag(0.3) else x[0]
    return Case("Normalizer", [x], {"norm": r.pick("MAX", "L1", "L2")}, {"y0": TensorProto.FLOAT}, atol=1e-4)


def imputer(r: Random) -> Case:
    features = r.size(1, 9)
    count = r.pick(1, features)
    if r.flag():
        x = r.rows(features, "f", nan=0.3)
        missing = r.pick(float("nan"), 0.0)
        return Case("Imputer", [x], {"imputed_value_floats": r.numbers(count), "replaced_value_float": missing}, {"y0": TensorProto.FLOAT})
    return Case("Imputer", [r.rows(features, "l")], {"imputed_value_int64s": [r.size(-9, 9) for _ in range(count)], "replaced_value_int64": r.size(-1, 1)}, {"y0": TensorProto.INT64})


def binarizer(r: Random) -> Case:
    return Case("Binarizer", [r.rows(r.size(1, 9), "f")], {"threshold": float(r.pick(0.0, 0.5, -1.0))}, {"y0": TensorProto.FLOAT})


def array_feature_extractor(r: Random) -> Case:
    x = r.rows(r.size(1, 9), "fdil")
    return Case("ArrayFeatureExtractor", [x, r.g.integers(0, x.shape[1], r.size(1, 6)).astype(np.int64)], {}, {"y0": TYPES[x.dtype.char]})


def feature_vectorizer(r: Random) -> Case:
    n, kind = r.size(1, 9), r.pick("f", "d", "l")
    inputs = [(r.floats(n, r.size(1, 5)) * 4).astype(kind) for _ in range(r.size(1, 4))]
    return Case("FeatureVectorizer", inputs, {"inputdimensions": [max(1, a.shape[1] + r.size(-1, 1)) for a in inputs]}, {"y0": TensorProto.FLOAT})


def one_hot_encoder(r: Random) -> Case:
    categories = [int(v) for v in r.g.permutation(9)[: r.size(1, 6)] - 4]
    return Case("OneHotEncoder", [r.rows(r.size(1, 4), "fl")], {"cats_int64s": categories, "zeros": 1}, {"y0": TensorProto.FLOAT})


def label_encoder(r: Random) -> Case:
    count = r.size(1, 8)
    keys = [int(v) for v in r.g.integers(-4, 5, count)]
    kinds = {"f": ("floats", np.float32, TensorProto.FLOAT), "l": ("int64s", np.int64, TensorProto.INT64)}
    key, value = r.pick("f", "l"), r.pick("f", "l")
    x = r.rows(r.size(1, 4), key, nan=0.1)
    values = r.numbers(count) if value == "f" else [r.size(-99, 99) for _ in range(count)]
    keys = [float(k) for k in keys] if key == "f" else keys
    if key == "f" and r.flag(0.3):
        keys[0] = float("nan")
    if r.flag(0.4):
        tensors = {"keys_tensor": (keys, kinds[key][1]), "values_tensor": (values, kinds[value][1]), "default_tensor": (values[:1], kinds[value][1])}
        return Case("LabelEncoder", [x], {name: numpy_helper.from_array(np.array(v, kind), name) for name, (v, kind) in tensors.items()}, {"y0": kinds[value][2]}, version=4)
    attributes = {f"keys_{kinds[key][0]}": keys, f"values_{kinds[value][0]}": values}
    if r.flag():
        attributes["default_float" if value == "f" else "default_int64"] = 0.25 if value == "f" else 77
    return Case("LabelEncoder", [x], attributes, {"y0": kinds[value][2]}, version=r.pick(2, 4))


GENERATORS = {
    "TreeEnsembleRegressor": (tree_regressor, 40), "TreeEnsembleClassifier": (tree_classifier, 40), "TreeEnsemble5": (tree_ensemble, 30),
    "LinearRegressor": (linear_regressor, 10), "LinearClassifier": (linear_classifier, 20),
    "SVMRegressor": (svm_regressor, 12), "SVMClassifier": (svm_classifier, 30),
    "Scaler": (scaler, 8), "Normalizer": (normalizer, 10), "Imputer": (imputer, 10), "Binarizer": (binarizer, 5),
    "ArrayFeatureExtractor": (array_feature_extractor, 8), "FeatureVectorizer": (feature_vectorizer, 8), "OneHotEncoder": (one_hot_encoder, 8), "LabelEncoder": (label_encoder, 16),
}
