#pragma once
/// Examples of operators that compute: reductions, norms, products, networks, boxes (operator_examples.h).
#include <string_view>

namespace lamina::testing {

inline constexpr std::string_view kExamplesOfArithmetic[] = {
    // reductions and norms
    R"(graph (x: f32[2,3,4]) -> (y) {
  a = const i64[2] {1,-1}
  y = ReduceSum(x, a) keep_dims=false
})",
    R"(graph (x: f32[2,3,4]) -> (y) {
  a = const i64[1] {1}
  y = ReduceMax(x, a) keep_dims=true
})",
    R"(graph (x: f32[2,3,4]) -> (y) {
  y = Softmax(x) axis=1
})",
    R"(graph (x: f32[2,3,4]) -> (y) {
  y = LogSoftmax(x) axis=-1
})",
    R"(graph (x: f32[2,3,4]) -> (y) {
  a = const i64[] {1}
  y = CumSum(x, a) exclusive=true
})",
    R"(graph (x: f32[2,3,4]) -> (y) {
  a = const i64[] {1}
  y = CumProd(x, a) reverse=true
})",
    R"(graph (x: f32[2,3,3]) -> (y) {
  y = Determinant(x)
})",
    R"(graph (x: f32[2,4,3,3]) -> (y) {
  s = const f32[4,3] seed(1)
  b = const f32[4] seed(2)
  y = ScaleShift(x, s, b) axis=1
})",
    R"(graph (x: f32[2,4,3,3]) -> (y) {
  a = const i64[1] {1}
  y = LRN(x, a) size=3
})",
    R"(graph (x: f32[2,4,3,3]) -> (y) {
  a = const i64[2] {2,3}
  y = MVN(x, a)
})",
    R"(graph (x: f32[2,4,3,3]) -> (y) {
  a = const i64[1] {1}
  y = NormalizeL2(x, a)
})",
    R"(graph (x: f32[2,4,3]) -> (y) {
  s = const f32[4,3] seed(1)
  y = LayerNormalization(x, s) axis=1
})",
    R"(graph (x: f32[2,4,3]) -> (y) {
  y = RMSNormalization(x) axis=-1
})",
    R"(graph (x: f32[2,4,3]) -> (y) {
  s = const f32[4] seed(1)
  b = const f32[4] seed(2)
  y = GroupNormalization(x, s, b) num_groups=2
})",
    R"(graph (x: f32[2,4,3]) -> (y) {
  y = GRN(x) bias=1.0
})",
    R"(graph (x: f32[2,4,3]) -> (y) {
  g = const f32[4] seed(1)
  v = const f32[4] fill(2)
  y = BatchNormInference(x, g, g, g, v)
})",
    // quantisation, products
    R"(graph (x: f32[2,4,3]) -> (y) {
  s = const f32[4] fill(0.5)
  y = Quantize(x, s) axis=1 destination_type=i8
})",
    R"(graph (x: u8[2,4,3]) -> (y) {
  s = const f32[2,2,3] fill(0.5)
  y = Dequantize(x, s) axis=1 block_size=2
})",
    R"(graph (x: f32[2,4,3]) -> (y) {
  c = ConvertSmallFloat(x) destination_type=f8e5m2 saturate=false
  y = Convert(c) destination_type=f32
})",
    R"(graph (x: f32[2,4,3]) -> (y) {
  y = BitCast(x) destination_type=i32
})",
    R"(graph (x: f32[2,4,3]) -> (y) {
  l = const f32[4,1] fill(-1)
  h = const f32[4,1] fill(1)
  y = FakeQuantize(x, l, h, l, h) levels=16
})",
    R"(graph (x: f32[2,4,3]) -> (y) {
  w = const f32[5,4] seed(1)
  y = MatMul(x, w) transpose_a=true transpose_b=true
})",
    R"(graph (x: f32[2,3]) -> (y) {
  w = const f32[3,4] seed(1)
  y = Einsum(x, w) equation="ij,jk->ik"
})",
    R"(graph (q: f32[2,4,5,3], k: f32[2,2,5,3], v: f32[2,2,5,6], s: f32[2,2,3,6], b: f32[2,2,5,1]) -> (y, t) {
  y, t = LinearAttention(q, k, v, s, _, b)
})",
    R"(graph (q: f32[1,2,3], k: f32[1,4,3], v: f32[1,4,5]) -> (y) {
  y = ScaledDotProductAttention(q, k, v) causal=true
})",
    // recurrent
    R"(graph (x: f32[2,3], h: f32[2,4], c: f32[2,4]) -> (y, z) {
  w = const f32[16,3] seed(1)
  r = const f32[16,4] seed(2)
  b = const f32[16] seed(3)
  y, z = LSTMCell(x, h, c, w, r, b) hidden_size=4 activations=["sigmoid","tanh","tanh"] activations_alpha=[1.0] activations_beta=[1.0] clip=1.0
})",
    R"(graph (x: f32[2,3], h: f32[2,4]) -> (y) {
  w = const f32[12,3] seed(1)
  r = const f32[12,4] seed(2)
  y = GRUCell(x, h, w, r) hidden_size=4 activations=["sigmoid","tanh"]
})",
    R"(graph (x: f32[2,3], h: f32[2,4]) -> (y) {
  w = const f32[4,3] seed(1)
  r = const f32[4,4] seed(2)
  y = RNNCell(x, h, w, r) hidden_size=4 activations=["tanh"]
})",
    R"(graph (x: f32[2,5,3]) -> (y, h, c) {
  w = const f32[2,16,3] seed(1)
  r = const f32[2,16,4] seed(2)
  l = const i64[2] {5,3}
  y, h, c = LSTMSequence(x, _, _, l, w, r) hidden_size=4 direction=bidirectional
})",
    R"(graph (x: f32[2,5,3]) -> (y, h) {
  w = const f32[1,12,3] seed(1)
  r = const f32[1,12,4] seed(2)
  y, h = GRUSequence(x, _, _, w, r) hidden_size=4 direction=reverse
})",
    R"(graph (x: f32[2,5,3]) -> (y, h) {
  w = const f32[1,4,3] seed(1)
  r = const f32[1,4,4] seed(2)
  l = const i64[2] {5,3}
  y, h = RNNSequence(x, _, l, w, r) hidden_size=4
})",
    // generated
    R"(graph (x: i64[3]) -> (y) {
  d = const i64[] {4}
  o = const f32[] {1}
  z = const f32[] {0}
  y = OneHot(x, d, o, z) axis=-1
})",
    R"(graph (x: f32[2,2]) -> (y, x2) {
  r = const i64[] {3}
  c = const i64[] {2}
  d = const i64[] {1}
  b = const i64[1] {2}
  y = Eye(r, c, d, b)
  x2 = Relu(x)
})",
    R"(graph (x: f32[2,3,3]) -> (y) {
  k = const i64[] {1}
  y = Trilu(x, k)
})",
    R"(graph (x: i64[1]) -> (y) {
  s = const i64[] {0}
  t = const i64[] {9}
  d = const i64[] {2}
  r = Range(s, t, d) output_type=i64
  y = Add(r, x)
})",
    R"(graph (x: f32[2,4,2]) -> (y) {
  a = const i64[2] {0,1}
  s = const i64[2] {2,-1}
  y = DFT(x, a, s)
})",
    R"(graph (x: f32[2,4,2]) -> (y) {
  a = const i64[2] {0,1}
  s = const i64[2] {2,-1}
  y = IDFT(x, a, s)
})",
    R"(graph (x: f32[2,4]) -> (y) {
  a = const i64[1] {1}
  s = const i64[1] {6}
  y = RDFT(x, a, s)
})",
    R"(graph (x: f32[2,3,2]) -> (y) {
  a = const i64[1] {1}
  s = const i64[1] {4}
  y = IRDFT(x, a, s)
})",
    R"(graph (x: f32[2,9]) -> (y) {
  w = const f32[3] seed(1)
  n = const i64[] {4}
  s = const i64[] {2}
  y = STFT(x, w, n, s)
})",
    // detectors
    R"(graph (x: f32[1,2,4,4]) -> (y) {
  r = const f32[2,5] {0,0,0,2,3,0,1,1,2,2}
  y = ROIPooling(x, r) pooled_h=2 pooled_w=2 spatial_scale=1.0
})",
    R"(graph (x: f32[1,2,4,4]) -> (y) {
  r = const f32[2,4] {0,0,2,3,1,1,2,2}
  i = const i64[2] {0,0}
  y = ROIAlign(x, r, i) pooled_h=2 pooled_w=2 sampling_ratio=2
})",
    R"(graph (x: f32[1,4,4,4]) -> (y) {
  r = const f32[2,5] {0,0,0,2,3,0,1,1,2,2}
  y = PSROIPooling(x, r) output_dim=1 group_size=2
})",
    R"(graph (x: f32[1,4,4,4], o: f32[2,2,2,2]) -> (y) {
  r = const f32[2,5] {0,0,0,2,3,0,1,1,2,2}
  y = DeformablePSROIPooling(x, r, o) output_dim=1 group_size=2 part_size=2
})",
    R"(graph (x: f32[1,12,2,2]) -> (y) {
  y = RegionYolo(x) axis=1 coords=4 classes=1 end_axis=3 num=2 do_softmax=true mask=[0,1]
})",
    R"(graph (x: f32[1,4,4,4]) -> (y) {
  y = ReorgYolo(x) stride=[2]
})",
    R"(graph (b: f32[1,3,4], s: f32[1,2,3]) -> (y, z, n) {
  m = const i64[] {2}
  t = const f32[] {0.5}
  y, z, n = NonMaxSuppression(b, s, m, t, t)
})",
    R"(graph (p: f32[3,2,4]) -> (y) {
  m = const f32[3,2] {1,1,1,1,1,0}
  y = CTCGreedyDecoder(p, m)
})",
    R"(graph (p: f32[2,3,4]) -> (y, l) {
  n = const i64[2] {2,3}
  b = const i64[] {3}
  y, l = CTCGreedyDecoderSeqLen(p, n, b)
})",
    R"(graph (x: u8[1,6,4,1]) -> (y) {
  y = YuvToRgb(x) order=bgr
})",
    R"(graph (x: f32[1,4,4,1], u: f32[1,2,2,1], v: f32[1,2,2,1]) -> (y) {
  y = YuvToRgb(x, u, v) format=i420
})",
    R"(graph (p: f32[2,3,4]) -> (y) {
  n = const i64[2] {2,3}
  l = const i64[2,3] {0,1,0,1,1,2}
  m = const i64[2] {2,3}
  b = const i64[] {3}
  y = CTCLoss(p, n, l, m, b) unique=true
})",
    R"(graph (l: f32[1,12], c: f32[1,6]) -> (y) {
  p = const f32[1,2,12] seed(1)
  y = DetectionOutput(l, c, p) background_label_id=0 top_k=3 keep_top_k=[2] normalized=true input_height=1 input_width=1
})",
    R"(graph (c: f32[1,2,2,2], d: f32[1,4,2,2]) -> (y, z) {
  i = const f32[3] {8,8,1}
  y, z = Proposal(c, d, i) base_size=4 pre_nms_topn=4 post_nms_topn=3 nms_thresh=0.5 feat_stride=4 min_size=1 ratio=[1.0] scale=[1.0]
})",
    R"(graph (s: f32[1,2,3]) -> (y, p, n) {
  b = const f32[1,3,4] {0,0,1,1,0,0,1,2,2,2,3,3}
  y, p, n = MulticlassNms(b, s) nms_top_k=2 keep_top_k=3 background_class=0 iou_threshold=0.5
})",
    R"(graph (b: f32[2,3,4]) -> (y, p, n) {
  s = const f32[2,3] {0.5,0.25,0.75,0.5,0.5,0.5}
  n2 = const i64[2] {1,2}
  y, p, n = MulticlassNms(b, s, n2) sort_result_type=classid
})",
    R"(graph (s: f32[1,2,3]) -> (y, p, n) {
  b = const f32[1,3,4] {0,0,1,1,0,0,1,2,2,2,3,3}
  y, p, n = MatrixNms(b, s) nms_top_k=2 keep_top_k=3 decay_function=gaussian
})",
    R"(graph (d: f32[1,4,2,2], s: f32[1,1,2,2]) -> (y, z, n) {
  i = const f32[1,3] {8,8,1}
  a = const f32[2,2,1,4] seed(1)
  y, z, n = GenerateProposals(i, a, d, s) nms_threshold=0.5 pre_nms_count=4 post_nms_count=3
})",
    R"(graph (d: f32[4,2,2], s: f32[1,2,2]) -> (y, z) {
  i = const f32[3] {8,8,1}
  a = const f32[4,4] seed(1)
  y, z = ExperimentalDetectronGenerateProposalsSingleImage(i, a, d, s) nms_threshold=0.5 pre_nms_count=4 post_nms_count=3
})",
    R"(graph (d: f32[2,8], s: f32[2,2]) -> (y, l, z) {
  r = const f32[2,4] {0,0,2,3,1,1,2,2}
  i = const f32[1,3] {8,8,1}
  y, l, z = ExperimentalDetectronDetectionOutput(r, d, s, i) num_classes=2 post_nms_count=2 max_detections_per_image=3 max_delta_log_wh=4.0 deltas_weights=[10.0,10.0,5.0,5.0]
})",
    R"(graph (a: f32[1,2,4,4], b: f32[1,2,2,2]) -> (y, z) {
  r = const f32[2,4] {0,0,2,3,1,1,2,2}
  y, z = ExperimentalDetectronROIFeatureExtractor(r, a, b) output_size=2 sampling_ratio=2 pyramid_scales=[1,2] aligned=true
})",
    R"(graph (x: f32[1]) -> (y, x2) {
  s = const i64[2] {2,2}
  i = const i64[2] {8,8}
  y = PriorBox(s, i) min_size=[4.0] max_size=[6.0] aspect_ratio=[2.0] step=4.0 offset=0.5 variance=[0.1]
  x2 = Relu(x)
})",
    R"(graph (x: f32[1]) -> (y, x2) {
  s = const i64[2] {2,2}
  i = const i64[2] {8,8}
  y = PriorBoxClustered(s, i) width=[2.0,3.0] height=[2.0,3.0] step=4.0 offset=0.5 variance=[0.1]
  x2 = Relu(x)
})",
    // one element by one
    R"(graph (x: f32[2,3]) -> (y) {
  a = Elu(x) alpha=0.5
  b = Clamp(a) min=-1.0 max=2.0
  c = Gelu(b) approximation_mode=tanh
  d = Round(c) mode=half_away_from_zero
  e = PowerStatic(d) power=2.0 scale=0.5 shift=1.0
  y = Convert(e) destination_type=i32
})",
    R"(graph (x: i32[2,3], z: i32[3]) -> (y) {
  y = Divide(x, z) m_pythondiv=false
})",
    R"(graph (x: f32[2,3]) -> (y) {
  y = IsInf(x) detect_negative=false
})",
    R"(graph (x: f32[2,3]) -> (y) {
  y = ShapeOf(x) output_type=i32
})",
    // control
    R"(graph (x: f32[2,3]) -> (y, z) {
  n = const i64[] {2}
  s = const f32[4,3] seed(1)
  y, z = Loop(n, _, x, s) carried=1 last=0 slice_axes=[0] slice_starts=[0] slice_ends=[-1] slice_strides=[2] slice_part_sizes=[2] concat_axes=[0] concat_strides=[1] {
    body graph (i: i64[], c: boolean[], a: f32[2,3], b: f32[2,3]) -> (t, u, v) {
      t = const boolean[] {true}
      u = Add(a, b)
      v = Relu(u)
    }
  }
})",
    // decision trees and pairs of classes
    R"(graph (x: f32[3,2]) -> (y) {
  n = const i32[2,5] {0, 0, 1, -3, 1, 1, 2, -1, -2, 0}
  t = const f32[2] {0.5, -0.25}
  r = const i32[2] {0, -2}
  l = const i32[4] {0, 1, 3, 4}
  v = const i32[4] {0, 1, 0, 1}
  w = const f32[4] {1, 2, 3, 4}
  b = const f32[2] {0.5, 0.25}
  y = TreeEnsemble(x, n, t, r, l, v, w, b) targets=2 aggregate=max unvoted=-1
})",
    R"(graph (x: f32[3,3]) -> (y) {
  s = Sigmoid(x)
  p = Clamp(s) min=0.01 max=0.99
  y = PairwiseCoupling(p) classes=3
})",
};

}  // namespace lamina::testing
