/// From a body of element-wise operators to loops: types that are carried, parameters, special cases.
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "kernels/native/stages/code.h"
#include "kernels/native/stages/functions.h"
#include "ops/activation.h"
#include "ops/elementwise.h"
#include "ops/eval.h"
#include "ops/quantization.h"
#include "ops/strided.h"

namespace lamina::stages {
namespace {

constexpr int kNone = -1;

void arrange(View& view, Layout layout, WeightStore* weights) {
  const auto source = view.constant;
  const auto make = [&] { return reordered(source, Layout::plain, layout); };
  view.constant = weights && view.shares ? weights->packed(source, "channels_last", make) : make();
  view.reorders = false;
}

bool half(ElementType type) { return type == ElementType::f16 || type == ElementType::bf16; }
/// What values of a type are kept as between loops: halves as f32, rounded after each stage.
ElementType carrier(ElementType type) { return half(type) ? ElementType::f32 : type; }
std::size_t bytes_of(ElementType type) { return static_cast<std::size_t>(bits_of(type)) / 8; }

class Lowering {
 public:
  Lowering(const Graph& body, const std::vector<Parameter>& parameters, const Target& target, Lowered& out,
           std::string& why)
      : body_(body), parameters_(parameters), target_(target), out_(out), why_(why) {}

  bool run() {
    const auto result = body_.results().at(0).value;
    for (const auto id : needed(result)) {
      const auto value = lower(body_.node(id));
      if (value == kNone) return false;
      made_[body_.node(id).outputs[0]] = {value, body_.type(body_.node(id).outputs[0]).element};
    }
    return finish(result);
  }

 private:
  /// A value of the body: a view (its number) or an operation (counted from kFirstOperation).
  static constexpr int kFirstOperation = 1 << 20;
  struct Made {
    int value = kNone;
    ElementType type = ElementType::undefined;  ///< f16, bf16: still to be rounded
  };

  int refuse(std::string why) {
    why_ = std::move(why);
    return kNone;
  }

  std::vector<NodeId> needed(ValueId result) const {
    std::vector<bool> wanted(body_.node_slots(), false);
    std::vector<ValueId> work{result};
    while (!work.empty()) {
      const auto p = body_.producer(work.back());
      work.pop_back();
      if (!p.valid() || wanted[p.index]) continue;
      wanted[p.index] = true;
      for (auto v : body_.node(p).inputs)
        if (v.valid()) work.push_back(v);
    }
    std::vector<NodeId> out;
    for (const auto id : body_.order())
      if (wanted[id.index]) out.push_back(id);
    return out;
  }

  int operation(Loop loop, std::vector<int> in, std::size_t bytes, double cycles,
                const void* function = nullptr) {
    out_.operations.push_back({loop, function, std::move(in), bytes, cycles});
    return kFirstOperation + static_cast<int>(out_.operations.size()) - 1;
  }
  int unary(Unary u, int x, double cycles = 0.1) {
    return operation(float_loops().unary[static_cast<int>(u)], {x}, 4, cycles);
  }
  int binary(Binary b, int x, int y, double cycles = 0.1) {
    return operation(float_loops().binary[static_cast<int>(b)], {x, y}, 4, cycles);
  }
  int converted(int x, ElementType from, ElementType to) {
    const auto loop = convert_loop(from, to);
    return loop ? operation(loop, {x}, bytes_of(to), 0.2) : x;
  }
  int rounded(int x, ElementType type) {
    if (!half(type)) return x;
    return unary(type == ElementType::f16 ? Unary::round_f16 : Unary::round_bf16, x, 0.3);
  }

  /// One number as an operand.
  int number(double v, ElementType type = ElementType::f32) {
    View view;
    view.constant = from_doubles(type, {}, {v});
    view.bytes = bytes_of(type);
    view.axis_strides.assign(target_.dims.size(), 0);
    return add(std::move(view));
  }
  int add(View view) {
    out_.views.push_back(std::move(view));
    return static_cast<int>(out_.views.size()) - 1;
  }

  /// The value in its carrier type. `placed`: the shape under which it broadcasts, when not its own.
  int read(ValueId v, const Dims* placed = nullptr) {
    if (const auto it = made_.find(v); it != made_.end() && !placed) {
      it->second.value = rounded(it->second.value, it->second.type);
      it->second.type = carrier(it->second.type);
      return it->second.value;
    }
    const auto& type = body_.type(v);
    const Dims dims = placed ? *placed : type.shape.sizes();
    const auto key = std::pair(v, dims);
    if (const auto it = viewed_.find(key); it != viewed_.end()) return it->second;
    if (body_.producer(v).valid())  // never in practice: slopes and scales are parameters or constants
      return refuse(fmt::format("'{}' is computed and not laid out as it is read", body_.value(v).name));
    return viewed_[key] = load(v, type.element, dims);
  }

  int load(ValueId v, ElementType element, const Dims& dims) {
    View view;
    view.axis_strides = strides_to(dims, target_);
    if (const auto* constant = constant_of(v)) {
      view.constant = convert(constant->to_aligned(), carrier(element)).reshaped(dims);
      view.bytes = bytes_of(carrier(element));
      view.reorders = dims.size() == target_.dims.size() && target_.layout != Layout::plain && dims[1] != 1 &&
                      element_count(dims) != static_cast<std::size_t>(dims[0] * dims[1]);
      view.shares = view.constant.raw() == constant->raw();
      if (view.reorders && !target_.later) arrange(view, target_.layout, nullptr);
      return add(std::move(view));
    }
    const auto& p = parameter(v);
    view.input = p.input;
    view.is_tile = p.is_tile;
    view.bytes = bytes_of(element);
    const auto loaded = add(std::move(view));
    return half(element) ? converted(loaded, element, ElementType::f32) : loaded;
  }

  const Parameter& parameter(ValueId v) const {
    const auto& inputs = body_.inputs();
    const auto it = std::find(inputs.begin(), inputs.end(), v);
    LAMINA_CHECK(it != inputs.end(), "'{}' is no parameter", body_.value(v).name);
    return parameters_.at(static_cast<std::size_t>(it - inputs.begin()));
  }
  const Tensor* constant_of(ValueId v) const {
    if (const auto* t = body_.constant(v)) return t;
    return body_.value(v).kind == ValueKind::input ? parameter(v).constant : nullptr;
  }
  std::optional<double> constant_number(ValueId v) const {
    const auto* t = v.valid() ? constant_of(v) : nullptr;
    return t && t->size() == 1 ? std::optional(to_doubles(*t)[0]) : std::nullopt;
  }

  int lower(const Node& n) {
    for (auto v : n.inputs)
      if (v.valid() && bits_of(body_.type(v).element) < 8)
        return refuse(fmt::format("{} is packed", name_of(body_.type(v).element)));
    if (bits_of(body_.type(n.outputs[0]).element) < 8)
      return refuse(fmt::format("{} is packed", name_of(body_.type(n.outputs[0]).element)));
    if (!n.op.has(Trait::elementwise)) return refuse(n.op.name() + " is not element-wise");
    if (n.op.is<Convert>() || n.op.is<ConvertLike>()) return lower_convert(n);
    if (n.op.is<Select>()) return lower_select(n);
    if (const auto* q = n.op.as<FakeQuantize>()) return lower_fake_quantize(n, *q);
    if (const auto* q = n.op.as<Quantize>()) return lower_quantize(n, *q);
    if (const auto* q = n.op.as<Dequantize>()) return lower_dequantize(n, *q);
    const auto type = carrier(body_.type(n.inputs[0]).element);
    if (type == ElementType::f32) return lower_f32(n);
    if (type == ElementType::f64) return lower_f64(n);
    return lower_integer(n, type);
  }

  int lower_convert(const Node& n) {
    const auto from = body_.type(n.inputs[0]).element, to = body_.type(n.outputs[0]).element;
    const auto x = read(n.inputs[0]);
    if (x == kNone || from == to) return x;
    if (half(to)) return converted(x, carrier(from), ElementType::f32);  // rounded where it is read
    return carrier(from) == to ? x : converted(x, carrier(from), to);
  }

  int lower_select(const Node& n) {
    const auto c = read(n.inputs[0]), a = read(n.inputs[1]), b = read(n.inputs[2]);
    if (c == kNone || a == kNone || b == kNone) return kNone;
    const auto bytes = bytes_of(carrier(body_.type(n.inputs[1]).element));
    const int log2 = bytes == 1 ? 0 : bytes == 2 ? 1 : bytes == 4 ? 2 : 3;
    return operation(integer_loops().select[log2], {c, a, b}, bytes, 0.15);
  }

  int lower_fake_quantize(const Node& n, const FakeQuantize& q) {
    const auto type = carrier(body_.type(n.inputs[0]).element);
    std::vector<int> in;
    for (auto v : n.inputs) {
      const auto x = read(v);
      if (x == kNone) return kNone;
      in.push_back(converted(x, carrier(body_.type(v).element), ElementType::f32));
    }
    out_.numbers.push_back(std::make_shared<float>(static_cast<float>(q.levels - 1)));
    const auto y = operation(float_loops().fake_quantize, in, 4, 1, out_.numbers.back().get());
    return converted(y, ElementType::f32, type);
  }

  /// Scale and zero point lie along the axis.
  std::optional<Dims> along(const Node& n, std::size_t input, std::int64_t axis_given) {
    const auto x = body_.type(n.inputs[0]).shape.sizes(), own = body_.type(n.inputs[input]).shape.sizes();
    if (element_count(own) == 1) return Dims{};
    Dims dims(x.size(), 1);
    dims[normalize_axis(axis_given, x.size(), "axis")] = own[0];
    return dims;
  }
  int read_parameter(const Node& n, std::size_t input, std::int64_t axis) {
    const auto dims = along(n, input, axis);
    return read(n.inputs[input], &*dims);
  }

  int lower_quantize(const Node& n, const Quantize& q) {
    if (q.block_size > 0) return refuse("blocked scales");
    const auto from = carrier(body_.type(n.inputs[0]).element), to = q.destination_type;
    const auto x = read(n.inputs[0]), s = read_parameter(n, 1, q.axis);
    if (x == kNone || s == kNone) return kNone;
    const auto scale = converted(s, carrier(body_.type(n.inputs[1]).element), ElementType::f32);
    auto y =
        unary(Unary::round_even, binary(Binary::divide, converted(x, from, ElementType::f32), scale, 0.4));
    // The sum with the zero point is exact in f32 for types of up to 16 bits (beyond, the result saturates).
    const auto sum = bits_of(to) <= 16 ? ElementType::f32 : ElementType::f64;
    y = converted(y, ElementType::f32, sum);
    if (n.inputs.size() > 2 && n.inputs[2].valid()) {
      const auto z = read_parameter(n, 2, q.axis);
      if (z == kNone) return kNone;
      const auto zero = converted(z, to, sum);
      y = sum == ElementType::f32 ? binary(Binary::add, y, zero)
                                  : map(real_functions(Op(Add{}))->real2, ElementType::f64, {y, zero});
    }
    return converted(y, sum, to);
  }

  int lower_dequantize(const Node& n, const Dequantize& q) {
    if (q.block_size > 0) return refuse("blocked scales");
    const auto type = body_.type(n.inputs[0]).element, to = carrier(body_.type(n.outputs[0]).element);
    // Differences of types of up to 16 bits are exact in f32, others wrap in i64.
    const auto difference = bits_of(type) <= 16 ? ElementType::f32 : ElementType::i64;
    const auto x0 = read(n.inputs[0]), s0 = read_parameter(n, 1, q.axis);
    if (x0 == kNone || s0 == kNone) return kNone;
    auto x = converted(x0, type, difference);
    if (n.inputs.size() > 2 && n.inputs[2].valid()) {
      const auto z0 = read_parameter(n, 2, q.axis);
      if (z0 == kNone) return kNone;
      const auto z = converted(z0, type, difference);
      x = difference == ElementType::f32 ? binary(Binary::subtract, x, z)
                                         : integer(Integer::subtract, ElementType::i64, {x, z});
    }
    x = converted(x, difference, ElementType::f32);
    const auto scale = converted(s0, carrier(body_.type(n.inputs[1]).element), ElementType::f32);
    return converted(binary(Binary::multiply, x, scale), ElementType::f32, to);
  }

  /// The inputs of a node, PRelu's slope placed along its axis.
  std::optional<std::vector<int>> operands(const Node& n) {
    std::vector<int> in;
    for (std::size_t i = 0; i < n.inputs.size(); ++i) {
      if (!n.inputs[i].valid()) continue;
      const auto& shape = body_.type(n.inputs[i]).shape;
      int x = kNone;
      if (n.op.is<PRelu>() && i == 1) {
        const auto placed = prelu_slope_shape(body_.type(n.inputs[0]).shape, shape);
        const Dims dims = placed.sizes();
        x = dims == shape.sizes() ? read(n.inputs[i]) : read(n.inputs[i], &dims);
      } else {
        x = read(n.inputs[i]);
      }
      if (x == kNone) return std::nullopt;
      in.push_back(x);
    }
    return in;
  }

  int lower_f32(const Node& n) {
    auto in = operands(n);
    if (!in) return kNone;
    const Op& op = n.op;
    if (op.is<Power>())
      if (const auto e = constant_number(n.inputs[1]))
        if (const auto y = power(in->at(0), *e); y != kNone) return y;
    if (const auto loop = float_unary(op)) {
      for (const double p : parameters_of(op)) in->push_back(number(p));
      if (op.is<Swish>() && in->size() == 1) in->push_back(number(1));
      return operation(float_loops().unary[static_cast<int>(loop->first)], *in, 4, loop->second);
    }
    if (const auto loop = float_binary(op))
      return operation(float_loops().binary[static_cast<int>(loop->first)], *in, 4, loop->second);
    if (const auto c = comparison(op))
      return operation(float_loops().compare[static_cast<int>(*c)], *in, 1, 0.15);
    if (const auto t = test_of(op)) return operation(float_loops().test[static_cast<int>(*t)], *in, 1, 0.15);
    if (const auto f = real_functions(op)) return map_any(*f, ElementType::f32, *in);
    return refuse("no loop for " + op.name());
  }

  /// Powers that are cheaper than logarithms and exact in sign.
  int power(int x, double e) {
    if (e == 2) return unary(Unary::square, x);
    if (e == 3) return unary(Unary::cube, x);
    if (e == 1) return x;
    if (e == 0.5) return unary(Unary::power_half, x, 0.5);
    if (e == -0.5) return unary(Unary::power_minus_half, x, 0.8);
    if (e == -1) return unary(Unary::reciprocal, x, 0.4);
    if (e == std::nearbyint(e) && std::fabs(e) <= 32)
      return operation(float_loops().unary[static_cast<int>(Unary::power_integer)], {x, number(e)}, 4, 0.6);
    return kNone;
  }

  int map(const void* function, ElementType type, std::vector<int> in) {
    const auto loop = is_float(type) ? real_map(type, static_cast<int>(in.size()))
                                     : integer_map(type, static_cast<int>(in.size()));
    return operation(loop, std::move(in), bytes_of(type), 30, function);
  }
  int map_any(const Functions& f, ElementType type, std::vector<int> in) {
    const void* function = in.size() == 1 ? f.real1 : in.size() == 2 ? f.real2 : f.real3;
    if (!function) return refuse(fmt::format("no function of {} operands", in.size()));
    return map(function, type, std::move(in));
  }

  int lower_f64(const Node& n) {
    auto in = operands(n);
    if (!in) return kNone;
    const Op& op = n.op;
    if (const auto t = test_of(op)) {
      const auto y = map(test_function(*t), ElementType::f64, *in);
      return converted(y, ElementType::f64, ElementType::boolean);
    }
    for (const double p : parameters_of(op)) in->push_back(number(p, ElementType::f64));
    if (op.is<Swish>() && in->size() == 1) in->push_back(number(1, ElementType::f64));
    const auto f = real_functions(op);
    if (!f) return refuse("no loop for " + op.name());
    if (comparison(op)) return operation(real_compare(), *in, 1, 5, f->real2);
    return map_any(*f, ElementType::f64, *in);
  }

  int integer(Integer i, ElementType type, std::vector<int> in) {
    return operation(integer_loops().operators[integer_index(type)][static_cast<int>(i)], std::move(in),
                     bytes_of(type), 0.2);
  }

  int lower_integer(const Node& n, ElementType type) {
    auto in = operands(n);
    if (!in) return kNone;
    const Op& op = n.op;
    if (type == ElementType::boolean && comparison(op))  // as bytes, other values than 0 and 1 would differ
      for (auto& x : *in) x = integer(Integer::nonzero, ElementType::u8, {x});
    if (const auto c = comparison(op))
      return operation(integer_loops().compare[integer_index(type)][static_cast<int>(*c)], *in, 1, 0.2);
    if (op.is<Round>()) return in->at(0);
    if (const auto* clamp = op.as<Clamp>()) {
      const auto [least, most] = integer_range(type);
      const auto bound = [&](double v) {
        return static_cast<double>(std::clamp(scalar::rounded(v), least, most));
      };
      // Bounds beyond 2^53 do not survive as numbers of a Clamp either.
      in->push_back(number(bound(std::ceil(clamp->min)), type));
      in->push_back(number(bound(std::floor(clamp->max)), type));
      return integer(Integer::clamp, type, *in);
    }
    if (const auto t = test_of(op)) {
      const auto x = converted(in->at(0), type, ElementType::f32);
      return operation(float_loops().test[static_cast<int>(*t)], {x}, 1, 0.15);
    }
    if (const auto i = integer_operator(op)) return integer(*i, type, *in);
    const auto f = real_functions(op);
    const void* function = !f                ? nullptr
                           : in->size() == 1 ? f->integer1
                           : in->size() == 2 ? f->integer2
                                             : nullptr;
    if (!function) return refuse(fmt::format("no loop for {} of {}", op.name(), name_of(type)));
    return map(function, type, *in);
  }

  /// The result comes from a last operation that nothing else reads, in its own type.
  bool finish(ValueId result) {
    const auto type = body_.type(result).element;
    out_.result_bytes = bytes_of(type);
    int value;
    const auto it = made_.find(result);
    if (half(type) && it != made_.end() && it->second.type == type) {
      value = converted(it->second.value, ElementType::f32, type);  // this rounds
    } else {
      value = read(result);
      if (value == kNone) return false;
      if (half(type)) value = converted(value, ElementType::f32, type);
    }
    const int last = kFirstOperation + static_cast<int>(out_.operations.size()) - 1;
    if (value != last) operation(copy_loop(out_.result_bytes), {value}, out_.result_bytes, 0.1);
    renumber();
    return true;
  }

  void renumber() {
    const int shift = static_cast<int>(out_.views.size()) - kFirstOperation;
    for (auto& o : out_.operations)
      for (auto& x : o.in)
        if (x >= kFirstOperation) x += shift;
  }

  const Graph& body_;
  const std::vector<Parameter>& parameters_;
  const Target& target_;
  Lowered& out_;
  std::string& why_;
  std::map<ValueId, Made> made_;
  std::map<std::pair<ValueId, Dims>, int> viewed_;
};

}  // namespace

void arrange_constants(Code& code, WeightStore& weights) {
  for (auto& view : code.body.views)
    if (view.reorders) arrange(view, code.target.layout, &weights);
}

Dims strides_to(const Dims& dims, const Target& target, std::int64_t row) {
  const auto rank = target.dims.size();
  LAMINA_CHECK(dims.size() <= rank, "{} does not broadcast to {}", to_string(dims), to_string(target.dims));
  auto own = lamina::strides_of(dims, dims.size() == rank ? target.layout : Layout::plain);
  if (row != 0)
    for (std::size_t i = 0; i < own.size(); ++i)
      if (i != 1) own[i] = own[i] / dims[1] * row;
  Dims strides(rank, 0);
  for (std::size_t i = 0; i < dims.size(); ++i)
    if (dims[i] != 1) strides[i + rank - dims.size()] = own[i];
  return strides;
}

bool lower(const Graph& body, const std::vector<Parameter>& parameters, const Target& target, Lowered& out,
           std::string& why) {
  return Lowering(body, parameters, target, out, why).run();
}

}  // namespace lamina::stages
