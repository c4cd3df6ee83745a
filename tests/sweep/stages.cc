#include "tests/sweep/stages.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numbers>

#include <fmt/format.h>

#include "base/random.h"

namespace lamina::sweep {
namespace {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double soft_plus(double x) { return x > 30 ? x : std::log1p(std::exp(x)); }

struct Unary {
  std::string text;  ///< of the operator on {}
  std::function<double(double)> of;
};

const std::map<std::string, Unary>& unaries() {
  static const std::map<std::string, Unary> all{
      {"relu", {"Relu({})", [](double x) { return std::max(x, 0.0); }}},
      {"clamp", {"Clamp({}) min=-0.5 max=1.5", [](double x) { return std::clamp(x, -0.5, 1.5); }}},
      {"hswish", {"HSwish({})", [](double x) { return x * std::clamp(x + 3, 0.0, 6.0) / 6; }}},
      {"hsigmoid", {"HSigmoid({})", [](double x) { return std::clamp(x + 3, 0.0, 6.0) / 6; }}},
      {"sigmoid", {"Sigmoid({})", sigmoid}},
      {"swish", {"Swish({})", [](double x) { return x * sigmoid(x); }}},
      {"gelu", {"Gelu({})", [](double x) { return x / 2 * (1 + std::erf(x / std::numbers::sqrt2)); }}},
      {"tanh", {"Tanh({})", [](double x) { return std::tanh(x); }}},
      {"elu", {"Elu({}) alpha=0.7", [](double x) { return x > 0 ? x : 0.7 * std::expm1(x); }}},
      {"mish", {"Mish({})", [](double x) { return x * std::tanh(soft_plus(x)); }}},
      {"abs", {"Abs({})", [](double x) { return std::fabs(x); }}},
      {"negative", {"Negative({})", [](double x) { return -x; }}}};
  return all;
}

struct Binary {
  std::string text;  ///< of the running value and the operand
  enum class Reads { number, channels, tensor } reads;
  std::function<double(double, double)> of;
};

const std::map<std::string, Binary>& binaries() {
  using enum Binary::Reads;
  const auto add = [](double x, double y) { return x + y; };
  const auto times = [](double x, double y) { return x * y; };
  static const std::map<std::string, Binary> all{
      {"half", {"Multiply({}, {})", number, times}},
      {"plus", {"Add({}, {})", number, add}},
      {"scale", {"Multiply({}, {})", channels, times}},
      {"shift", {"Add({}, {})", channels, add}},
      {"prelu", {"PRelu({}, {})", channels, [](double x, double y) { return x < 0 ? x * y : x; }}},
      {"sum", {"Add({}, {})", tensor, add}},
      {"minus", {"Subtract({}, {})", tensor, [](double x, double y) { return x - y; }}},
      {"times", {"Multiply({}, {})", tensor, times}}};
  return all;
}

constexpr float kStep = 0.03125F, kZero = 100;  ///< of to_u8; to_i8 has its zero point at 0

double quantized(double x, bool is_signed) {
  const double low = is_signed ? -128 : 0, zero = is_signed ? 0 : kZero;
  return std::clamp(std::nearbyint(x / kStep) + zero, low, low + 255);
}

}  // namespace

bool is_stage(const std::string& word) {
  return unaries().count(word) || binaries().count(word) || word == "to_bf16" || word == "to_u8" ||
         word == "to_i8";
}

const std::vector<std::string>& all_stages() {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> words;
    for (const auto& [word, unary] : unaries()) words.push_back(word);
    for (const auto& [word, binary] : binaries()) words.push_back(word);
    return words;
  }();
  return all;
}

bool reads_tensor(const std::string& word) {
  const auto it = binaries().find(word);
  return it != binaries().end() && it->second.reads == Binary::Reads::tensor;
}

bool reads_channels(const std::string& word) {
  const auto it = binaries().find(word);
  return it != binaries().end() && it->second.reads == Binary::Reads::channels;
}

std::string text_of(const std::string& word, const std::string& from, const std::string& to,
                    const std::string& channel_dims, const std::string& extra) {
  if (const auto it = unaries().find(word); it != unaries().end())
    return fmt::format("{} = {}\n", to, fmt::format(fmt::runtime(it->second.text), from));
  if (word == "to_bf16") return fmt::format("{} = Convert({}) destination_type=bf16\n", to, from);
  if (word == "to_u8" || word == "to_i8")
    return fmt::format(
        "{0}_s = const f32[] fill(0)\n{0}_z = const {1}[] fill(0)\n{0} = Quantize({2}, {0}_s, {0}_z) "
        "destination_type={1}\n",
        to, word.substr(3), from);
  const auto& binary = binaries().at(word);
  std::string constant, operand = extra;
  if (binary.reads != Binary::Reads::tensor) {
    operand = to + "_c";
    constant = fmt::format("{} = const f32{} fill(0)\n", operand,
                           binary.reads == Binary::Reads::number ? "[]" : channel_dims);
  }
  return fmt::format("{}{} = {}\n", constant, to, fmt::format(fmt::runtime(binary.text), from, operand));
}

std::vector<Tensor> constants_of(const std::string& word, const Dims& channel_dims, std::uint64_t seed) {
  if (word == "half") return {Tensor::of({}, std::vector<float>{0.5F})};
  if (word == "plus") return {Tensor::of({}, std::vector<float>{0.25F})};
  if (word == "to_u8")
    return {Tensor::of({}, std::vector<float>{kStep}),
            Tensor::of({}, std::vector<std::uint8_t>{static_cast<std::uint8_t>(kZero)})};
  if (word == "to_i8")
    return {Tensor::of({}, std::vector<float>{kStep}), Tensor::of({}, std::vector<std::int8_t>{0})};
  if (!reads_channels(word)) return {};
  return {seeded_tensor(ElementType::f32, channel_dims, seed)};
}

Expected applied(const std::string& word, Expected x, double operand) {
  constexpr double kRounding = 0x1p-22, kApproximation = 1e-5, kLeast = 1e-5;
  if (word == "to_u8" || word == "to_i8") {
    const double value = quantized(x.value, word == "to_i8");
    const double low = quantized(x.value - x.error, word == "to_i8"),
                 high = quantized(x.value + x.error, word == "to_i8");
    return {value, std::max(value - low, high - value)};
  }
  if (word == "to_bf16") return {x.value, x.error + 0x1p-8 * (std::fabs(x.value) + x.error)};
  const auto unary = unaries().find(word);
  const auto f = [&](double v) {
    return unary != unaries().end() ? unary->second.of(v) : binaries().at(word).of(v, operand);
  };
  const double value = f(x.value);
  const double spread =
      std::max(std::fabs(f(x.value - x.error) - value), std::fabs(f(x.value + x.error) - value));
  const bool is_exact =
      unary == unaries().end() || word == "relu" || word == "clamp" || word == "abs" || word == "negative";
  return {value, spread + (is_exact ? kRounding * (std::fabs(value) + std::fabs(x.value) + std::fabs(operand))
                                    : kApproximation * std::fabs(value) + kLeast)};
}

ElementType type_behind(const std::string& word, ElementType before) {
  if (word == "to_bf16") return ElementType::bf16;
  if (word == "to_u8") return ElementType::u8;
  if (word == "to_i8") return ElementType::i8;
  return before;
}

}  // namespace lamina::sweep
