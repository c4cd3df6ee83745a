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
        "Arithmetic with constants, in any number of steps (changes of sign included), is folded into the"
        " weights and bias of the convolution (of any kind, groups included) or matrix product before or after"
        " it. If a convolution with a border of zeros comes after the arithmetic, the factor is folded and the"
        " rest of a shift stays. A matrix product also takes arithmetic before the Reshape that flattens its"
        " input. After a layer, Transposes and Reshapes may stand between, as they do after channels-last"
        " convolutions and products over more than two axes, if no other node reads them and it is certain"
        " which axis holds the channels. Weights are rounded once.",
        "An operand is not a constant, or has neither one value nor one per channel (numpy's alignment"
        " decides which axis is the channels', not the number of values); another node reads the result and"
        " cannot take the arithmetic, too; an epilogue stands between; the arithmetic is in integers; the"
        " weights to be scaled are not constants; a number is not finite; scaled weights would underflow in"
        " f32; a large number is added and subtracted again, so that the model may do it in order to round.",
        (*BIAS, *AFTER, *BEFORE),
    ),
    RulePage(
        "fuse-conv-simple",
        "Activations, scales, shifts, powers, PReLU and FakeQuantize join the epilogue of the convolution (of"
        " any kind) before them, up to 128 in any order. So does a conversion to 8 bits or to a half type and"
        " back. The last stage may be a conversion, a Quantize to 8 bits or a comparison, whose results have"
        " another element type. A value multiplied by itself becomes Power first (`fuse-square`).",
        "Another node reads the convolution's result, or it is an output of the model; an operand is not a"
        " constant, or has neither one value nor one per channel, or would make the result larger;"
        " element-wise operators compute with the converted value: then they run as one pass.",
        SIMPLE,
    ),
    RulePage(
        "fuse-fc-activation",
        "What `fuse-conv-simple` does, for a matrix product, whose channels are the last axis.",
        "As for convolutions; an operand with one value per row does not count as one per channel, even if"
        " there are as many rows as channels.",
        FC,
    ),
    RulePage(
        "hoist-activation",
        "Activations, FakeQuantize and arithmetic with one number are hoisted above Reshapes, Transposes and"
        " similar operators before them, if the epilogue of a convolution, matrix product or pooling can take"
        " them there.",
        "Another node reads a value between, or that value is an output; an operand is more than one number.",
        HOISTED,
    ),
    RulePage(
        "hoist-activation-over-concat",
        "An activation after a Concat of results of convolutions or matrix products is hoisted above it, into"
        " the epilogue of each of them.",
        "One of the concatenated values is not the result of a convolution or matrix product, or has other"
        " readers; the activation has an operand per channel; the values are integers.",
        BRANCHES,
    ),
    RulePage(
        "fuse-conv-sum",
        "The sum of a convolution's result and another tensor is computed in the convolution's epilogue.",
        "Another node reads the convolution's result; the shapes are not provably the same.",
        SUM,
    ),
    RulePage(
        "fuse-fc-sum",
        "What `fuse-conv-sum` does, for a matrix product.",
        "As for convolutions.",
        FC_SUM,
    ),
    RulePage(
        "fuse-conv-depthwise",
        "A convolution and the depthwise convolution after it run as one node: the tensor between them is"
        " never written to memory.",
        "Another node reads the tensor between; group, channels and multiplier do not match. The plan uses"
        " the fused node if its cost model says that it is faster. *Bound* is the time of the two layers run"
        " separately on so few rows at a time that the tensor between stays in cache. The goal is 80 % of it,"
        " or 1.3 times if a 1x1 convolution at least doubles the channels and the tensor between exceeds half"
        " of the processor's last cache. With several threads the bound means little: few rows do not keep"
        " them busy. AVX2 computes half as fast, so memory takes a smaller share of the time.",
        DEPTHWISE,
    ),
    RulePage(
        "fuse-pooling-fakequantize",
        "A FakeQuantize, an activation or a scale joins the epilogue of the pooling before it; so does a"
        " Quantize to 8 bits. An activation after a max pooling could be moved before it, into the convolution"
        " there, if it is non-decreasing (ReLU, Clamp, Sigmoid, Tanh, ...; not Swish, Gelu, Mish, Abs). lamina"
        " leaves it after the pooling: there any activation is correct, and it works on fewer elements, in the"
        " pass that writes them. Measured on three shapes, with AVX2 and AVX-512, that takes as long as before"
        " the maximum (ReLU, Clamp: 0.98 to 1.02) or less (Tanh, Sigmoid: 0.83 to 0.96).",
        "Another node reads the pooling's result; the ranges have neither one value nor one per channel; the"
        " pooling has a second output, the indices of the maxima.",
        POOLING,
    ),
    RulePage(
        "fuse-group-conv",
        "Equal convolutions of the parts of one Split, joined by a Concat, become one grouped convolution.",
        "Parts are in another order, missing or used twice; Split or Concat is along another axis than the"
        " channels'; attributes, weights' shapes or biases differ; another node reads a result.",
        GROUPS,
    ),
    RulePage(
        "fuse-pad-convolution",
        "A Pad of zeros becomes the padding of the convolution after it.",
        "It pads batch or channels, or with a value other than zero; another node reads its result.",
        PADS,
    ),
    RulePage(
        "fuse-pad-pooling",
        "A Pad becomes the padding of the pooling after it.",
        "As for convolutions; the pooling is a maximum and the Pad adds zeros, which the maximum would count;"
        " the pooling is an average that does not count its padding.",
        POOL_PADS,
    ),
    RulePage(
        "recognise-binary-convolution",
        "A convolution of inputs with two values by weights of one magnitude per channel is computed by"
        " counting bits.",
        "The input is not a FakeQuantize with two levels that gives -1 and 1 (or 0 and 1); the weights of a"
        " channel have several magnitudes; there are groups.",
        SIGNS,
    ),
    RulePage(
        "binarise-once",
        "If binary convolutions read the result of another one, or several read the same value, the signs are"
        " made once, as booleans. `fuse-binary-signs` lets the convolution before make them: it compares its"
        " counts of bits, or its sums of integers, with a threshold per channel if its epilogue is"
        " non-decreasing.",
        "Another operator than a binary convolution reads the value.",
        BINARY_LAYERS,
    ),
    RulePage(
        "fuse-binary-signs",
        "The preceding convolution of bits or integers makes the signs that the next binary convolution"
        " reads.",
        "Another operator than a binary convolution reads the signs; they are compared with something other"
        " than one value per channel.",
        BINARY_LAYERS,
    ),
    RulePage(
        "binarise-by-sign",
        "A FakeQuantize with two levels before a binary convolution becomes a subtraction, or is removed: the"
        " convolution takes the sign itself.",
        "The levels do not differ in sign; the ranges are not finite numbers; it is decreasing in some"
        " channels only and the border of the convolution is not 0.",
        BINARY_LAYERS,
    ),
    RulePage(
        "remove-identity",
        "Operators without effect are removed: multiplication by 1, addition of 0, powers of 1, Reshapes and"
        " Transposes that change nothing.",
        "The constant would make the result larger; the operator's input is an input of the model and its result"
        " an output; the operator may fail when the model runs (a Reshape to a size that the input may not have, a"
        " split into one part of a length that is computed).",
        IDENTITY,
    ),
    RulePage(
        "fuse-elementwise",
        "Connected element-wise operators that no convolution or product has taken become one node with a"
        " single pass over memory.",
        "A node outside the group reads an inner result; sizes are unknown; more than 16 tensors are read.",
        CHAINS,
    ),
    RulePage(
        "recognise-layer-norm",
        "The operators that make up a layer normalisation become one.",
        "Axes, exponent or constants are not those of a layer normalisation.",
        NORMS,
    ),
    RulePage(
        "recognise-attention",
        "Softmax of a scaled product of queries and keys, plus a mask, times the values, becomes one node"
        " that never writes all scores to memory. The plan decomposes the node if its cost model says that the"
        " parts are faster.",
        "The scale is not one number; the mask would make the scores larger; the keys are not transposed;"
        " another node reads the scores.",
        ATTENTION,
    ),
)
