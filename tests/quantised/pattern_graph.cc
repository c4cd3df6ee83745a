/// Graphs of the pattern, and what they are given.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "ops/eval.h"
#include "tests/quantised/pattern.h"

namespace lamina::testing {
namespace {

/// Mostly the largest, so that sums grow.
int extreme_byte(SplitMix& random) { return random.below(8) == 0 ? 0 : 255; }

/// Writes the graph, line by line.
class Writer {
 public:
  explicit Writer(const Pattern& p)
      : p_(p), kernel_(kernels()[p.kernel]), random_(p.seed), float_(name_of(p.cast)) {}

  std::string text() {
    const auto x = source(), w = weights();
    auto y = product(x, w);
    for (const auto& step : p_.epilogue) y = stage(step, y);
    const auto result = stored(y);
    return fmt::format("graph ({}) -> ({}) {{\n{}}}\n", fmt::join(inputs_, ", "), result, lines_);
  }

  std::string sums() {
    const auto x = input("x", std::string(name_of(p_.source)), kernel_.x);
    const bool given = p_.weights == Weights::s8_given || !kernel_.constant_weights;
    const auto type = p_.weights == Weights::u8_zero ? ElementType::u8 : ElementType::i8;
    const std::string word(name_of(type));
    const auto w = given ? input("w", word, kernel_.w)
                         : constant("w", word, kernel_.w, integers(type, element_count(kernel_.w)));
    const auto zero_point = [&](ElementType of, std::size_t count) {
      return constant("zero", std::string(name_of(of)), vector_of(count), zeros(of, count));
    };
    const bool weights_too = p_.weights == Weights::u8_zero || p_.weights == Weights::s8_zero;
    std::string zeros = kernel_.op == "ConvolutionBackpropData" ? ", _, _" : ", _";
    zeros += ", " + (p_.source_zero ? zero_point(p_.source, 1) : "_");
    if (weights_too) zeros += ", " + zero_point(type, p_.weights_by_channel ? channels() : 1);
    if (!p_.source_zero && !weights_too) zeros.clear();
    lines_ += fmt::format(" y = {}({}, {}{}) {}\n", kernel_.op, x, w, zeros, kernel_.attributes);
    return fmt::format("graph ({}) -> (y) {{\n{}}}\n", fmt::join(inputs_, ", "), lines_);
  }

 private:
  double between(double low, double high) { return low + (high - low) * (0.5 * random_.uniform() + 0.5); }
  std::int64_t below(std::int64_t n) {
    return static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(n)));
  }
  std::string name(const std::string& of) { return fmt::format("{}{}", of, count_++); }
  std::string line(const std::string& of, const std::string& what) {
    const auto made = name(of);
    lines_ += fmt::format(" {} = {}\n", made, what);
    return made;
  }
  std::string input(const std::string& of, const std::string& type, const Dims& dims) {
    const auto made = name(of);
    inputs_.push_back(fmt::format("{}: {}[{}]", made, type, fmt::join(dims, ",")));
    return made;
  }
  std::string constant(const std::string& of, const std::string& type, const Dims& dims,
                       const std::vector<double>& values) {
    std::vector<float> floats(values.begin(), values.end());
    return line(of, fmt::format("const {}[{}] {{{}}}", type, fmt::join(dims, ","), fmt::join(floats, ",")));
  }
  std::string constant(const std::string& of, const std::string& type, const Dims& dims, double low,
                       double high) {
    std::vector<double> values(element_count(dims));
    for (auto& v : values) v = between(low, high);
    return constant(of, type, dims, values);
  }

  double scale(double near) {
    return p_.powers_of_two ? std::exp2(std::round(std::log2(near))) : near * between(0.7, 1.4);
  }
  std::vector<double> scales(double near, std::size_t count) {
    std::vector<double> out(count);
    for (auto& s : out) s = scale(near);
    return out;
  }
  /// None is 0, and with powers of two all are odd.
  std::vector<double> zeros(ElementType type, std::size_t count, std::int64_t spread = 250) {
    std::vector<double> out(count);
    for (auto& z : out) {
      z = static_cast<double>(below(spread) - spread / 2 + (type == ElementType::u8 ? 128 : 0));
      if (z == 0 || (p_.powers_of_two && std::fmod(z, 2) == 0)) ++z;
    }
    return out;
  }
  std::vector<double> integers(ElementType type, std::size_t count) {
    std::vector<double> out(count);
    for (auto& v : out)
      v = static_cast<double>(p_.extreme ? extreme_byte(random_) : below(256)) -
          (type == ElementType::i8 ? 128 : 0);
    return out;
  }
  static Dims vector_of(std::size_t count) {
    return count == 1 ? Dims{} : Dims{static_cast<std::int64_t>(count)};
  }
  std::size_t channels() const { return static_cast<std::size_t>(kernel_.y[channel_axis()]); }
  std::size_t channel_axis() const { return kernel_.op == "MatMul" ? kernel_.y.size() - 1 : 1; }
  Dims by_channel() const {
    Dims dims(kernel_.y.size(), 1);
    dims[channel_axis()] = kernel_.y[channel_axis()];
    return dims;
  }

  std::string cast(const std::string& v, ElementType from) {
    return from == p_.cast ? v : line("cast", fmt::format("Convert({}) destination_type={}", v, float_));
  }

  std::string dequantised(const std::string& v, ElementType type, const std::vector<double>& by,
                          const std::vector<double>& zero, std::size_t axis) {
    const auto s = constant("scale", "f32", vector_of(by.size()), by);
    std::string z;
    if (!zero.empty()) z = ", " + constant("zero", std::string(name_of(type)), vector_of(zero.size()), zero);
    return line("number", fmt::format("Dequantize({}, {}{}) axis={}", v, s, z, axis));
  }

  std::string source() {
    const auto x = input("x", std::string(name_of(p_.source)), kernel_.x);
    const auto zero = p_.source_zero ? zeros(p_.source, 1) : std::vector<double>{};
    return cast(dequantised(x, p_.source, {scale(0.02)}, zero, 1), ElementType::f32);
  }

  std::string weights() {
    const auto count = element_count(kernel_.w);
    const auto parts =
        p_.weights_by_channel ? static_cast<std::size_t>(kernel_.w[kernel_.outputs]) : std::size_t{1};
    const auto by = scales(1.5 / (0.02 * 74 * 90 * std::sqrt(static_cast<double>(kernel_.products))), parts);
    const auto done = [&](const std::string& q, ElementType type, const std::vector<double>& zero) {
      return cast(dequantised(q, type, by, zero, kernel_.outputs), ElementType::f32);
    };
    switch (p_.weights) {
      case Weights::s8:
      case Weights::s8_zero:
      case Weights::u8_zero: {
        const auto type = p_.weights == Weights::u8_zero ? ElementType::u8 : ElementType::i8;
        const auto zero = p_.weights == Weights::s8 ? std::vector<double>{} : zeros(type, parts);
        return done(constant("w", std::string(name_of(type)), kernel_.w, integers(type, count)), type, zero);
      }
      case Weights::s8_given:
        return done(input("w", "i8", kernel_.w), ElementType::i8, {});
      case Weights::quantised:
      case Weights::quantised_given: {
        const double most = 127 * *std::max_element(by.begin(), by.end());
        std::string w;
        if (p_.weights == Weights::quantised) {
          w = constant("w", "f32", kernel_.w, -most, most);
        } else {  // inputs lie between -2 and 2
          const auto k = constant("k", "f32", {}, {most / 2});
          w = line("w", fmt::format("Multiply({}, {})", input("w", "f32", kernel_.w), k));
        }
        const auto s = constant("scale", "f32", vector_of(by.size()), by);
        const auto q =
            line("q", fmt::format("Quantize({}, {}) axis={} destination_type=i8", w, s, kernel_.outputs));
        return done(q, ElementType::i8, {});
      }
    }
    return {};
  }

  std::string product(const std::string& x, const std::string& w) {
    std::string bias;
    if (p_.bias != ElementType::undefined) {
      const Dims dims = p_.bias_is_added ? by_channel() : Dims{static_cast<std::int64_t>(channels())};
      const std::string type(name_of(p_.bias));
      std::vector<double> values(channels());
      for (auto& v : values) v = p_.powers_of_two ? static_cast<double>(below(17) - 8) / 8 : between(-1, 1);
      bias =
          cast(p_.bias_is_given ? input("bias", type, dims) : constant("bias", type, dims, values), p_.bias);
    }
    const bool inside = !bias.empty() && !p_.bias_is_added;
    const auto y = line(
        "c", fmt::format("{}({}, {}{}) {}", kernel_.op, x, w, inside ? ", " + bias : "", kernel_.attributes));
    return bias.empty() || inside ? y : line("c", fmt::format("Add({}, {})", y, bias));
  }

  std::string operand(const Step& step) {
    const bool divisor = step.op == "Divide" && !step.swapped;
    const double low = divisor ? 0.5 : -2;
    switch (step.operand) {
      case Operand::tensor:
        return constant("k", float_, {}, low, 2);
      case Operand::channel:
        return constant("k", float_, by_channel(), low, 2);
      case Operand::full:
        return input(divisor ? "divisor" : "t", float_, kernel_.y);
      default: {
        const auto type = below(2) == 0 || divisor ? ElementType::u8 : ElementType::i8;
        const auto zero = below(2) == 0 && !divisor ? zeros(type, 1) : std::vector<double>{};
        return cast(
            dequantised(input("t", std::string(name_of(type)), kernel_.y), type, {scale(0.015)}, zero, 1),
            ElementType::f32);
      }
    }
  }

  std::string stage(const Step& step, const std::string& y) {
    const auto number = [&](double v) { return constant("k", float_, {}, {v}); };
    if (step.operand != Operand::none) {
      const auto k = operand(step);
      return line("e", fmt::format("{}({}, {})", step.op, step.swapped ? k : y, step.swapped ? y : k));
    }
    if (step.op == "Clamp") return line("e", fmt::format("Clamp({}) min=-0.7 max=1.3", y));
    if (step.op == "Elu") return line("e", fmt::format("Elu({}) alpha=0.8", y));
    if (step.op == "LeakyRelu") return line("e", fmt::format("PRelu({}, {})", y, number(0.1)));
    if (step.op == "HardSigmoid") {
      const auto a = number(0.3), b = number(0.4);
      return line("e", fmt::format("HardSigmoid({}, {}, {})", y, a, b));
    }
    if (step.op == "Square") return line("e", fmt::format("Multiply({}, {})", y, y));
    return line("e", fmt::format("{}({})", step.op, y));
  }

  std::string stored(const std::string& y) {
    if (p_.stored == Stored::as_it_is) return y;
    const std::string type(name_of(p_.destination));
    if (p_.stored == Stored::converted)
      return line("y", fmt::format("Convert({}) destination_type={}", y, type));
    const auto x =
        p_.cast == ElementType::f32 ? y : line("wide", fmt::format("Convert({}) destination_type=f32", y));
    const auto parts = p_.destination_by_channel ? channels() : std::size_t{1};
    const auto s = constant("scale", "f32", vector_of(parts), scales(p_.step, parts));
    std::string z;
    if (p_.destination_zero)
      z = ", " + constant("zero", type, vector_of(parts), zeros(p_.destination, parts, 60));
    return line("y",
                fmt::format("Quantize({}, {}{}) axis={} destination_type={}", x, s, z, channel_axis(), type));
  }

  const Pattern& p_;
  const Kernel& kernel_;
  SplitMix random_;
  std::string float_, lines_;
  std::vector<std::string> inputs_;
  int count_ = 0;
};

}  // namespace

std::string text_of(const Pattern& p) { return Writer(p).text(); }
std::string sums_of(const Pattern& p) { return Writer(p).sums(); }

std::vector<Tensor> pattern_inputs(const Graph& graph, const Pattern& p) {
  std::vector<Tensor> out;
  for (const auto v : graph.inputs()) {
    SplitMix random(p.seed * 977 + v.index);
    const auto& type = graph.type(v);
    Tensor t(type.element, type.shape.sizes());
    if (is_float(type.element)) {
      const bool divisor = graph.value(v).name.starts_with("divisor");
      std::vector<double> values(t.size());
      for (auto& x : values) x = divisor ? 1.25 + 0.75 * random.uniform() : 2.0 * random.uniform();
      t = from_doubles(type.element, t.shape(), values);
    } else {
      const int shift = type.element == ElementType::i8 ? 128 : 0;
      for (std::size_t i = 0; i < t.bytes(); ++i)
        t.raw()[i] = static_cast<std::byte>(p.extreme ? extreme_byte(random) - shift
                                                      : static_cast<int>(random.below(256)));
    }
    out.push_back(t);
  }
  return out;
}

}  // namespace lamina::testing
