#pragma once
/// Examples of operators with windows, and of those that move elements (operator_examples.h).
#include <string_view>

namespace lamina::testing {

inline constexpr std::string_view kExamplesOfMovement[] = {
    // windows
    R"(graph (x: f32[1,4,8,8]) -> (y) {
  w = const f32[4,2,3,3] seed(1)
  y = Convolution(x, w) strides=[1,2] dilations=[1,1] pads_begin=[1,1] pads_end=[1,1] auto_pad=explicit groups=2
})",
    R"(graph (x: f32[1,4,8]) -> (y) {
  w = const f32[6,4,3] seed(1)
  y = Convolution(x, w) strides=[2] dilations=[2] auto_pad=same_upper
})",
    R"(graph (x: f32[1,4,5,5]) -> (y) {
  w = const f32[4,2,3,3] seed(1)
  y = ConvolutionBackpropData(x, w) strides=[2,1] dilations=[1,1] pads_begin=[1,0] pads_end=[1,0] output_padding=[1,0] groups=2
})",
    R"(graph (x: f32[1,4,5,5]) -> (y) {
  w = const f32[4,2,3,3] seed(1)
  s = const i64[2] {10,7}
  y = ConvolutionBackpropData(x, w, _, s) strides=[2,1] dilations=[1,1] auto_pad=same_upper groups=2
})",
    R"(graph (x: f32[1,4,6,6]) -> (y) {
  w = const u1[4,4,3,3] seed(1)
  y = BinaryConvolution(x, w) strides=[1,1] dilations=[1,1] pads_begin=[1,1] pads_end=[1,1] pad_value=-1.0 groups=1
})",
    R"(graph (x: f32[1,4,6,6], o: f32[1,18,6,6], m: f32[1,9,6,6]) -> (y) {
  w = const f32[4,2,3,3] seed(1)
  y = DeformableConvolution(x, o, w, m) strides=[1,1] dilations=[1,1] pads_begin=[1,1] pads_end=[1,1] group=2 deformable_group=1
})",
    R"(graph (x: f32[1,4,8,8]) -> (y, i) {
  y, i = MaxPool(x) strides=[2,1] dilations=[1,2] pads_begin=[1,0] pads_end=[0,1] kernel=[3,2] axis=2 storage_order=1
})",
    R"(graph (x: f32[1,4,8,8]) -> (y) {
  y = MaxPool(x) strides=[2,1] pads_begin=[1,0] pads_end=[0,1] kernel=[3,2] rounding_type=ceil
})",
    R"(graph (x: f32[1,4,8,8]) -> (y) {
  y = AvgPool(x) strides=[2,1] dilations=[1,1] pads_begin=[1,0] pads_end=[0,1] kernel=[3,2] "exclude-pad"=true rounding_type=ceil
})",
    R"(graph (x: f32[1,4,8,8]) -> (y) {
  s = const i64[2] {3,5}
  y = AdaptiveAvgPool(x, s)
})",
    R"(graph (x: f32[1,4,8,8]) -> (y, i) {
  s = const i64[2] {3,5}
  y, i = AdaptiveMaxPool(x, s)
})",
    R"(graph (x: f32[1,2,5,6]) -> (y) {
  y = ExtractImagePatches(x) sizes=[2,3] strides=[1,2] rates=[1,1] auto_pad=valid
})",
    R"(graph (x: f32[1,3,4,5]) -> (y) {
  s = const i64[2] {6,7}
  a = const i64[2] {2,3}
  y = Interpolate(x, s, a) mode=linear_onnx pads_begin=[0,0,0,0] pads_end=[0,0,1,1]
})",
    R"(graph (x: f32[1,3,4,5]) -> (y) {
  s = const f32[2] {1.5,2}
  a = const i64[2] {2,3}
  y = Interpolate(x, s, a) mode=cubic shape_calculation_mode=scales coordinate_transformation_mode=asymmetric antialias=true
})",
    R"(graph (x: f32[1,2,4,4], g: f32[1,3,3,2]) -> (y) {
  y = GridSample(x, g) mode=bicubic padding_mode=reflection
})",
    // shapes
    R"(graph (x: f32[5,2]) -> (a, b, n) {
  s = const i64[2] {2,3}
  t = const i64[] {5}
  l, n = CheckSizes(s, t) rule=sum what="split"
  z = const i64[] {0}
  a, b = VariadicSplit(x, z, l)
})",
    R"(graph (x: f32[2,3,4]) -> (y) {
  o = const i64[3] {2,0,1}
  y = Transpose(x, o)
})",
    R"(graph (x: f32[2,3,4]) -> (y) {
  p = const i64[3] {0,-1,2}
  y = Reshape(x, p) special_zero=true
})",
    R"(graph (x: f32[2,1,4,1]) -> (y) {
  a = const i64[2] {1,-1}
  y = Squeeze(x, a) allow_axis_skip=false
})",
    R"(graph (x: f32[2,3]) -> (y) {
  a = const i64[2] {0,-1}
  y = Unsqueeze(x, a)
})",
    R"(graph (x: f32[2,1,3]) -> (y) {
  t = const i64[3] {2,4,3}
  y = Broadcast(x, t)
})",
    R"(graph (x: f32[3,4]) -> (y) {
  t = const i64[4] {2,3,5,4}
  a = const i64[2] {1,3}
  y = Broadcast(x, t, a) mode=explicit
})",
    R"(graph (x: f32[2,3]) -> (y) {
  r = const i64[3] {2,1,2}
  y = Tile(x, r)
})",
    R"(graph (x: f32[1,8,3,2]) -> (y) {
  y = DepthToSpace(x) mode=depth_first block_size=2
})",
    R"(graph (x: f32[1,2,4,6]) -> (y) {
  y = SpaceToDepth(x) block_size=2
})",
    R"(graph (x: f32[2,6,3]) -> (y) {
  y = ShuffleChannels(x) axis=1 group=3
})",
    R"(graph (x: f32[4,2,3,1]) -> (y) {
  b = const i64[4] {1,1,2,1}
  c = const i64[4] {0,0,1,0}
  d = const i64[4] {0,0,0,0}
  y = BatchToSpace(x, b, c, d)
})",
    R"(graph (x: f32[1,2,3,4]) -> (y) {
  b = const i64[4] {1,1,2,2}
  c = const i64[4] {0,0,1,0}
  d = const i64[4] {0,0,0,2}
  y = SpaceToBatch(x, b, c, d)
})",
    R"(graph (x: f32[2,3,4], z: f32[2,1,4]) -> (y) {
  y = Concat(x, z) axis=1
})",
    R"(graph (x: f32[2,6,4]) -> (y, z) {
  a = const i64[] {1}
  y, z = Split(x, a) num_splits=2
})",
    R"(graph (x: f32[2,6,4]) -> (y, z) {
  a = const i64[] {1}
  l = const i64[2] {2,-1}
  y, z = VariadicSplit(x, a, l)
})",
    R"(graph (x: f32[4,6,5]) -> (y) {
  b = const i64[2] {1,-1}
  e = const i64[2] {4,0}
  s = const i64[2] {2,-1}
  a = const i64[2] {1,2}
  y = Slice(x, b, e, s, a)
})",
    R"(graph (x: f32[4,6,5]) -> (y) {
  b = const i64[3] {1,0,-1}
  e = const i64[3] {4,6,0}
  s = const i64[3] {2,1,-1}
  y = StridedSlice(x, b, e, s) begin_mask=[0,1,0] end_mask=[0,1,0] new_axis_mask=[0,0,0] shrink_axis_mask=[0,0,0] ellipsis_mask=[0,0,0]
})",
    R"(graph (x: f32[2,3,4]) -> (y) {
  b = const i64[3] {0,1,2}
  e = const i64[3] {1,-1,0}
  y = Pad(x, b, e) pad_mode=constant
})",
    R"(graph (x: f32[2,3,4]) -> (y) {
  b = const i64[3] {0,1,2}
  e = const i64[3] {1,2,0}
  y = Pad(x, b, e) pad_mode=reflect
})",
    R"(graph (x: f32[2,3,4]) -> (y) {
  s = const i64[2] {1,-2}
  a = const i64[2] {2,-2}
  y = Roll(x, s, a)
})",
    R"(graph (x: f32[2,3,4]) -> (y) {
  l = const i64[2] {1,3}
  y = ReverseSequence(x, l) batch_axis=0 seq_axis=1
})",
    // places
    R"(graph (x: f32[3,4,2]) -> (y) {
  i = const i64[2] {0,-1}
  a = const i64[] {1}
  y = Gather(x, i, a)
})",
    R"(graph (x: f32[2,4,3]) -> (y) {
  i = const i64[2,2] {0,1,2,3}
  a = const i64[] {1}
  y = Gather(x, i, a) batch_dims=1
})",
    R"(graph (x: f32[2,3]) -> (y) {
  i = const i64[2,2] {0,2,1,1}
  y = GatherElements(x, i) axis=1
})",
    R"(graph (x: f32[2,3,4]) -> (y) {
  i = const i64[2,1] {2,0}
  y = GatherND(x, i) batch_dims=1
})",
    R"(graph (s: i32[2,1,2]) -> (y) {
  p = const i32[2,1,2] {0,0,1,0}
  l = const i32[1] {2}
  e = const i32[] {9}
  y = GatherTree(s, p, l, e)
})",
    R"(graph (x: f32[3,4]) -> (y) {
  i = const i64[2] {0,2}
  u = const f32[2,4] seed(1)
  a = const i64[] {0}
  y = ScatterUpdate(x, i, u, a)
})",
    R"(graph (x: f32[3,4]) -> (y) {
  i = const i64[1,2] {0,2}
  u = const f32[1,2] seed(1)
  a = const i64[] {1}
  y = ScatterElementsUpdate(x, i, u, a) reduction=sum
})",
    R"(graph (x: f32[3,4]) -> (y) {
  i = const i64[2,1] {0,2}
  u = const f32[2,4] seed(1)
  y = ScatterNDUpdate(x, i, u) reduction=sum
})",
    R"(graph (x: f32[2,5]) -> (y, i) {
  k = const i64[] {2}
  y, i = TopK(x, k) axis=-1 mode=min sort=index
})",
    R"(graph (x: f32[2,3]) -> (y, i, j, n) {
  a = const i64[] {1}
  y, i, j, n = Unique(x, a)
})",
    R"(graph (x: f32[4]) -> (y) {
  v = const f32[3] seed(1)
  s = const f32[4] {-1,0,1,2}
  y = SearchSorted(s, x)
})",
    R"(graph (x: f32[2,3]) -> (y) {
  b = const f32[3] {-1,0,1}
  y = Bucketize(x, b)
})",
    R"(graph (x: f32[2,3]) -> (y) {
  y = NonZero(x)
})",
};

}  // namespace lamina::testing
