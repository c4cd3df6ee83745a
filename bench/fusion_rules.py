"""The rules that bench/fusions measures: what the page says of each, and on which shapes."""

from collections.abc import Sequence
from dataclasses import dataclass

from fusion_blocks import ATTENTION, BINARY_LAYERS, BRANCHES
from fusion_cases import (
    AFTER,
    BEFORE,
    BIAS,
    CHAINS,
    FC,
    FC_SUM,
    GROUPS,
    HOISTED,
    IDENTITY,
    NORMS,
    PADS,
    POOL_PADS,
    POOLING,
    SIGNS,
    SIMPLE,
    SUM,
    Case,
)
from fusion_pairs import DEPTHWISE


@dataclass(frozen=True)
class RulePage:
    name: str
    does: str
    refused: str
    cases: Sequence[Case]


RULES: tuple[RulePage, ...] = (
    RulePage(
        "fuse-linear",
        "Arithmetic with constants (changes of sign, too), any number of steps, goes into the weights and bias"
        " of the convolution (of any kind, groups included) or matrix product behind or before which it stands."
        " In front of a border of zeros the factor goes and what is left of a shift stays; a matrix product"
        " takes what stands in front of the Reshape that flattens its input. Rounded once.",
        "An operand is no constant, or has another extent than one value or one per channel (which axis is the"
        " channels' is decided by numpy's alignment, not by the number of values); something else reads the"
        " result and cannot take the arithmetic, too; an epilogue stands between; the arithmetic is in"
        " integers; the weights to be scaled are no constants; a number is not finite; scaled weights"
        " become too small for f32 where they counted; what is added is large beside what is left of it when it"
        " is taken away again, so that the model may mean to round.",
        (*BIAS, *AFTER, *BEFORE),
    ),
    RulePage(
        "fuse-conv-simple",
        "Activations, scales, shifts, powers, PReLU and FakeQuantize join the epilogue of the convolution (of"
        " any kind) before them, up to 128 in any order; so does what is rounded to 8 bits or to a half and"
        " comes back; last of them a conversion, a Quantize to 8 bits or a comparison, whose results have"
        " another element type. A result times itself is Power first (`fuse-square`).",
        "Something else reads the convolution's result, or it is an output of the model; an operand is no"
        " constant, or is neither one value nor one per channel, or would make the result larger; element-wise"
        " operators compute with what has changed its type: then they are one pass.",
        SIMPLE,
    ),
    RulePage(
        "fuse-fc-activation",
        "The same behind a matrix product, whose channels are the last axis.",
        "As for convolutions; an operand with one value per row is none per channel, even where both are as"
        " many.",
        FC,
    ),
    RulePage(
        "hoist-activation",
        "Activations, FakeQuantize and arithmetic with one number are hoisted above the Reshapes, Transposes"
        " and the like before them, where the epilogue of a convolution, matrix product or pooling takes them.",
        "Something else reads what lies between, or it is an output; an operand is more than one number.",
        HOISTED,
    ),
    RulePage(
        "hoist-activation-over-concat",
        "An activation behind a Concat of convolutions or matrix products is hoisted above it, into the"
        " epilogue of each of them.",
        "One of the joined values is no result of a convolution or matrix product, or is read by others too;"
        " the activation has an operand per channel; integers.",
        BRANCHES,
    ),
    RulePage(
        "fuse-conv-sum",
        "The sum of a convolution's result and another tensor is taken in the convolution's epilogue.",
        "Something else reads the convolution's result; the shapes are not provably the same.",
        SUM,
    ),
    RulePage(
        "fuse-fc-sum",
        "The same behind a matrix product.",
        "As for convolutions.",
        FC_SUM,
    ),
    RulePage(
        "fuse-conv-depthwise",
        "A convolution and the depthwise convolution behind it run as one node: the tensor between is never"
        " written to memory.",
        "Something else reads the tensor between; group, channels and multiplier do not match. The plan does"
        " it where its cost model says that it is faster. *Bound*: the two apart, on as few rows at a time as"
        " keep the tensor between in cache, all rows one after the other. Wanted are 80 % of it, or 1.3 times"
        " where a 1x1 convolution at least doubles the channels and the tensor between exceeds half of the"
        " processor's last cache. With several threads the bound says little: few rows do not keep them busy."
        " AVX2 computes half as fast, so that less of the time is memory's.",
        DEPTHWISE,
    ),
    RulePage(
        "fuse-pooling-fakequantize",
        "A FakeQuantize, an activation or a scale joins the epilogue of the pooling before it; so does a"
        " Quantize to 8 bits. An activation behind a maximum could go before it into the convolution there, when"
        " it never falls (ReLU, Clamp, Sigmoid, Tanh, ...; not Swish, Gelu, Mish, Abs). It stays behind: there"
        " any activation is right, and it works on the fewer elements that are left, in the pass that writes"
        " them. Measured on three shapes, with AVX2 and AVX-512, that takes as long as before the maximum (ReLU,"
        " Clamp: 0.98 to 1.02) or less (Tanh, Sigmoid: 0.83 to 0.96).",
        "Something else reads the pooling's result; the ranges are neither one value nor one per channel; the"
        " pooling has a second output, which tells where the maximum was.",
        POOLING,
    ),
    RulePage(
        "fuse-group-conv",
        "Equal convolutions of the parts of one Split, joined by a Concat, become one grouped convolution.",
        "Parts in another order, missing or used twice; another axis than the channels'; attributes, weights'"
        " shapes or biases that differ; a result that something else reads.",
        GROUPS,
    ),
    RulePage(
        "fuse-pad-convolution",
        "A Pad of zeros becomes the padding of the convolution behind it.",
        "It pads batch or channels, or with something else than zeros; something else reads its result.",
        PADS,
    ),
    RulePage(
        "fuse-pad-pooling",
        "A Pad becomes the padding of the pooling behind it.",
        "As for convolutions; a maximum over zeros is not one over padding; an average that does not count "
        "its padding.",
        POOL_PADS,
    ),
    RulePage(
        "recognise-binary-convolution",
        "A convolution of two-valued inputs by weights of one magnitude per channel counts bits.",
        "The input is no FakeQuantize with two levels that give -1 and 1 (or 0 and 1); weights of several "
        "magnitudes; groups.",
        SIGNS,
    ),
    RulePage(
        "binarise-once",
        "Where binary convolutions read what another one makes, or several read the same, the signs are made"
        " once, as booleans; `fuse-binary-signs` lets the convolution before make them, which compares its"
        " counts of bits, or sums of integers, with a threshold per channel where its epilogue only rises.",
        "Something else than binary convolutions reads the value.",
        BINARY_LAYERS,
    ),
    RulePage(
        "fuse-binary-signs",
        "The convolution of bits or integers before makes the signs that the next binary one reads.",
        "Something else than binary convolutions reads the signs; they are compared with something else than"
        " one value per channel.",
        BINARY_LAYERS,
    ),
    RulePage(
        "binarise-by-sign",
        "A FakeQuantize with two levels before a binary convolution is a subtraction, or nothing: the"
        " convolution asks for the sign itself.",
        "The levels do not differ in sign; the ranges are no finite numbers; it falls in some channels only"
        " and the picture's border is not 0.",
        BINARY_LAYERS,
    ),
    RulePage(
        "remove-identity",
        "What changes nothing goes: multiplication by 1, addition of 0, powers of 1, reshapes and transposes"
        " that keep everything as it is.",
        "The constant would make the result larger; its input is an input of the model and its result an"
        " output.",
        IDENTITY,
    ),
    RulePage(
        "fuse-elementwise",
        "Element-wise operators that feed each other and that no convolution or product took become one node"
        " with a single pass over memory.",
        "Something outside the group reads a result within; sizes are unknown; more than 16 tensors are"
        " read.",
        CHAINS,
    ),
    RulePage(
        "recognise-layer-norm",
        "The operators that make up a layer normalisation become one.",
        "Axes, exponent or the constants are others.",
        NORMS,
    ),
    RulePage(
        "recognise-attention",
        "Softmax of a scaled product of queries and keys, plus a mask, times the values, is one node whose"
        " scores are never written whole. The plan decomposes it where its cost model says that its parts"
        " are faster.",
        "The scale is not one number; the mask would make the scores larger; the keys are not transposed;"
        " something else reads the scores.",
        ATTENTION,
    ),
)
