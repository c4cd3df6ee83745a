#pragma once
/// Graphs with what lamina's operators have beyond OpenVINO's.
#include <string_view>

namespace lamina::testing {

inline constexpr std::string_view kLegalisedExamples[] = {
    // products
    R"(graph (x: f32[1,4,5,5]) -> (y) {
  w = const f32[6,2,3,3] seed(1)
  b = const f32[6] seed(2)
  y = Convolution(x, w, b) groups=2 pads_begin=[1,1] pads_end=[1,1] {
    body graph (p: f32[1,6,5,5]) -> (r) {
      r = Relu(p)
    }
  }
})",
    R"(graph (x: f32[1,4,5,5], w: f32[6,2,3,3]) -> (y) {
  y = Convolution(x, w) groups=2
})",
    R"(graph (x: u8[1,2,5,5]) -> (y) {
  w = const i8[3,2,3,3] seed(1)
  b = const i32[3] {1,-2,3}
  z = const u8[] {3}
  v = const i8[3] {1,0,-1}
  y = Convolution(x, w, b, z, v) pads_begin=[1,1] pads_end=[1,1]
})",
    R"(graph (x: f32[1,4,5,5]) -> (y) {
  w = const f32[4,3,3,3] seed(1)
  b = const f32[6] seed(2)
  y = ConvolutionBackpropData(x, w, b) groups=2 strides=[2,2]
})",
    R"(graph (x: u8[1,4,5,5]) -> (y) {
  w = const i8[4,3,3,3] seed(1)
  z = const u8[] {3}
  v = const i8[6] {1,0,-1,2,-2,3}
  y = ConvolutionBackpropData(x, w, _, _, z, v) groups=2 strides=[2,2]
})",
    R"(graph (x: i8[1,4,5,5]) -> (y) {
  w = const u8[4,3,3,3] seed(1)
  b = const i32[3] {1,-2,3}
  s = const i64[2] {12,11}
  z = const i8[] {3}
  v = const u8[3] {1,128,255}
  y = ConvolutionBackpropData(x, w, b, s, z, v) strides=[2,2] auto_pad=same_upper
})",
    R"(graph (x: f32[1,4,5,5]) -> (y) {
  w = const u1[6,2,3,3] seed(1)
  y = BinaryConvolution(x, w) groups=2 pads_begin=[1,1] pads_end=[1,1] pad_value=0.0
})",
    R"(graph (a: u8[2,3,4]) -> (y) {
  b = const i8[5,4] seed(1)
  z = const u8[3] {1,2,3}
  v = const i8[5] {1,0,-1,2,-2}
  y = MatMul(a, b, _, z, v) transpose_b=true
})",
    R"(graph (a: f32[3,4], s: f32[3,5]) -> (y) {
  b = const f32[4,5] seed(1)
  c = const f32[5] seed(2)
  y = MatMul(a, b, c, _, _, s) {
    body graph (p: f32[3,5], q: f32[3,5]) -> (r) {
      t = Tanh(p)
      r = Add(t, q)
    }
  }
})",
    R"(graph (q: f32[2,4,5,3], k: f32[2,2,5,3], v: f32[2,2,5,6], s: f32[2,2,3,6], d: f32[2,2,5,1], b: f32[2,1,5,1]) -> (y, t) {
  y, t = LinearAttention(q, k, v, s, d, b)
})",
    R"(graph (q: f32[1,2,1,3], k: f32[1,2,1,3], v: f32[1,2,1,6], s: f32[1,2,3,6], d: f32[1,2,1,3]) -> (y, t) {
  y, t = LinearAttention(q, k, v, s, d)
})",
    R"(graph (q: f32[2,3,4,8], k: f32[2,3,5,8], v: f32[2,3,5,6], m: boolean[4,5]) -> (y) {
  s = const f32[] {0.5}
  a = const boolean[1,5] {true,false,false,false,false}
  n = LogicalOr(m, a)
  y = ScaledDotProductAttention(q, k, v, n, s)
})",
    R"(graph (q: f32[2,4,8], k: f32[2,4,8], v: f32[2,4,6]) -> (y) {
  s = const f32[1] {0.5}
  y = ScaledDotProductAttention(q, k, v, _, s) causal=true
})",
    // poolings
    R"(graph (x: f32[1,2,6,8]) -> (y) {
  y = AvgPool(x) kernel=[4,3] strides=[4,3] pads_begin=[2,2] pads_end=[0,2] rounding_type=ceil
})",
    R"(graph (x: f32[1,2,5,5,7]) -> (y) {
  y = AvgPool(x) kernel=[3,1,2] strides=[4,4,3] pads_begin=[2,0,1] pads_end=[0,0,0] rounding_type=ceil_torch
})",
    R"(graph (x: f32[1,2,5]) -> (y) {
  y = AvgPool(x) kernel=[3] strides=[3] pads_begin=[1] pads_end=[2] rounding_type=ceil_torch
})",
    R"(graph (x: f32[1,2,6,6]) -> (y) {
  b = const i64[4] {0,0,1,1}
  e = const i64[4] {0,0,0,0}
  z = const f32[] {0}
  p = Pad(x, b, e, z)
  y = AvgPool(p) kernel=[3,3] strides=[3,2] pads_begin=[0,0] pads_end=[0,0] rounding_type=ceil exclude-pad=true
})",
    R"(graph (x: f32[1,2,9,8]) -> (y) {
  y = AvgPool(x) kernel=[3,2] strides=[2,3] dilations=[2,2] pads_begin=[1,1] pads_end=[2,1] rounding_type=ceil
})",
    R"(graph (x: f32[1,2,5,5]) -> (y, i) {
  y, i = MaxPool(x) kernel=[1,1] strides=[2,3] pads_begin=[0,0] pads_end=[0,0] rounding_type=ceil_torch
})",
    // regions
    R"(graph (x: f32[2,3,7,9]) -> (y) {
  r = const f32[4,4] {0.5,1,5,6.5, -3,-2,4,3, 2,2,12,11, 3,3,3.25,3.5}
  i = const i64[4] {0,1,1,0}
  y = ROIAlign(x, r, i) pooled_h=3 pooled_w=2 sampling_ratio=2 spatial_scale=0.75 mode=max_corner aligned_mode=half_pixel_for_nn
})",
    R"(graph (x: f32[1,2,6,6], r: f32[3,4]) -> (y) {
  i = const i32[3] {0,0,0}
  y = ROIAlign(x, r, i) pooled_h=2 pooled_w=2 sampling_ratio=3 mode=max_corner
})",
    // recurrent
    R"(graph (x: f32[2,5,3]) -> (y, h, c) {
  w = const f32[2,16,3] seed(1)
  r = const f32[2,16,4] seed(2)
  b = const f32[2,16] seed(3)
  p = const f32[2,12] seed(4)
  l = const i32[2] {5,3}
  y, h, c = LSTMSequence(x, _, _, l, w, r, b, p) hidden_size=4 direction=bidirectional clip=0.5 activations=["sigmoid","tanh","tanh","hardsigmoid","softsign","elu"]
})",
    R"(graph (x: f32[2,5,3]) -> (y, h) {
  w = const f32[1,12,3] seed(1)
  r = const f32[1,12,4] seed(2)
  b = const f32[1,16] seed(3)
  l = const i64[2] {2,5}
  y, h = GRUSequence(x, _, l, w, r, b) direction=reverse linear_before_reset=true activations=["affine","leakyrelu"] activations_alpha=[0.5,0.25] activations_beta=[0.125]
})",
    R"(graph (x: f32[2,5,3], s: f32[2,1,4]) -> (y, h) {
  w = const f32[1,4,3] seed(1)
  r = const f32[1,4,4] seed(2)
  y, h = RNNSequence(x, s, _, w, r) activations=["scaledtanh"] activations_alpha=[0.5] activations_beta=[2.0]
})",
    R"(graph (x: f32[2,3], h: f32[2,4]) -> (y) {
  w = const f32[12,3] seed(1)
  r = const f32[12,4] seed(2)
  b = const f32[12] seed(3)
  y = GRUCell(x, h, w, r, b) activations=["softplus","thresholdedrelu"] activations_alpha=[0.0,0.25]
})",
    R"(graph (x: f32[2,3], h: f32[2,4], s: f32[2,4]) -> (y, c) {
  w = const f32[16,3] seed(1)
  r = const f32[16,4] seed(2)
  y, c = LSTMCell(x, h, s, w, r) input_forget=true
})",
    // elements and movement
    R"(graph (x: f32[2,3,4]) -> (y) {
  b = const i64[3] {0,2,-1}
  e = const i64[3] {1,4,3}
  y = Pad(x, b, e) pad_mode=wrap
})",
    R"(graph (x: f32[2,3,4]) -> (y) {
  b = const i64[3] {0,-1,2}
  e = const i64[3] {1,0,-1}
  v = const f32[1] {0.5}
  y = Pad(x, b, e, v)
})",
    R"(graph (x: i64[2,4,3]) -> (y) {
  k = const i64[1] {-1}
  y = Trilu(x, k) upper=false
})",
    R"(graph (x: f32[2,4,3]) -> (y) {
  a = const i64[1] {1}
  y = CumProd(x, a) exclusive=true reverse=true
})",
    R"(graph (x: i32[2,3]) -> (y) {
  d = const i64[1] {4}
  o = const f32[1] {1}
  z = const f32[1] {-1}
  y = OneHot(x, d, o, z) axis=1 negative_indices_mode=normalize
})",
    R"(graph (x: f32[2,3,4]) -> (y) {
  y = Transpose(x)
})",
    R"(graph (x: f32[2,3]) -> (y) {
  y = Identity(x)
})",
    R"(graph (x: f32[2,3,3]) -> (y) {
  y = Einsum(x) equation="...ii -> ...i"
})",
    R"(graph (x: f32[2,6,3]) -> (y) {
  s = const f32[2,3,3] seed(1)
  z = const u8[2,3,3] seed(2)
  a = Abs(s)
  h = const f32[] {0.5}
  t = Add(a, h)
  q = Quantize(x, t, z) axis=1 block_size=2
  y = Dequantize(q, t, z) axis=1 block_size=2
})",
    R"(graph (x: f32[2,6,3], s: f32[1]) -> (a, b, c) {
  n = const f32[1] {-0.02}
  a = Quantize(x, n)
  p = Abs(s)
  m = Subtract(n, p)
  b = Quantize(x, m)
  t = const f32[6] {0.1,0.03,0.001,0.3,0.02,0.7}
  z = const i16[6] {1,-70,3000,0,5,-6}
  c = Quantize(x, t, z) axis=1 destination_type=i16
})",
    R"(graph (x: f32[2,6,3]) -> (y, s, z) {
  y, s, z = DynamicQuantize(x)
})",
    R"(graph (x: f32[2,4,3], s: f32[4]) -> (y) {
  y = ScaleShift(x, s)
})",
    R"(graph (x: f32[2,4,3]) -> (a, b, c, d) {
  a = SoftSign(x)
  b = IsNaN(x)
  c = IsInf(x) detect_positive=false
  d = IsFinite(x)
})",
    // pictures
    R"(graph (x: f32[1,2,5,6]) -> (y) {
  s = const i64[2] {7,9}
  a = const i64[2] {2,3}
  y = Interpolate(x, s, a) mode=cubic coordinate_transformation_mode=half_pixel_symmetric exclude_outside=true
})",
    R"(graph (x: f32[1,2,6,7]) -> (y) {
  s = const f32[2] {0.5,0.6}
  a = const i64[2] {1,2}
  y = Interpolate(x, s, a) mode=linear_onnx shape_calculation_mode=scales antialias=true
})",
    R"(graph (x: f32[1,2,5,6]) -> (y) {
  s = const i64[2] {4,4}
  a = const i64[2] {2,3}
  r = const f32[4] {0.25,-0.5,1.25,0.75}
  y = Interpolate(x, s, a, r) mode=linear_onnx coordinate_transformation_mode=tf_crop_and_resize extrapolation_value=2.5
})",
    R"(graph (x: f32[4,5]) -> (y) {
  s = const i64[2] {8,7}
  y = Interpolate(x, s) mode=nearest
})",
    R"(graph (x: f32[1,2,5,6]) -> (y, i) {
  y, i = MaxPool(x) kernel=[2,2] strides=[2,2] storage_order=1 index_element_type=i32
})",
    // control
    R"(graph (x: f32[2,6,3]) -> (y, z) {
  n = const i64[] {2}
  s = const f32[2,1,3] seed(1)
  y, z = Loop(n, _, s, x) carried=1 last=0 slice_axes=[1] slice_starts=[-1] slice_ends=[0] slice_strides=[-1] slice_part_sizes=[1] concat_axes=[1] concat_strides=[-1] {
    body graph (i: i64[], c: boolean[], a: f32[2,1,3], b: f32[2,1,3]) -> (t, u, v) {
      k = const i64[] {1}
      t = Less(i, k)
      u = Add(a, b)
      w = Select(c, u, a)
      v = Relu(w)
    }
  }
})",
    R"(graph (x: f32[2,6,3]) -> (y, z) {
  s = const f32[2,2,3] seed(1)
  y, z = Loop(_, _, s, x) carried=1 last=0 slice_axes=[1] slice_starts=[0] slice_ends=[-1] slice_strides=[2] slice_part_sizes=[2] concat_axes=[0] {
    body graph (i: i64[], c: boolean[], a: f32[2,2,3], b: f32[2,2,3]) -> (t, u, v) {
      t = const boolean[] {true}
      u = Add(a, b)
      v = Relu(u)
    }
  }
})",
    R"(graph (x: f32[2], c: boolean[1]) -> (y) {
  y = If(c, x, x) {
    body graph (a: f32[2], b: f32[2]) -> (u) {
      u = Relu(b)
    }
    body graph (a: f32[2], b: f32[2]) -> (u) {
      s = const f32[1] {2}
      u = ScaleShift(a, s) axis=0
    }
  }
})",
};

}  // namespace lamina::testing
