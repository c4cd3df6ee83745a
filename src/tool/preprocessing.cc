#include "tool/preprocessing.h"

#include <cmath>
#include <map>
#include <utility>

#include "base/error.h"
#include "base/numbers.h"
#include "base/option_words.h"
#include "base/words.h"
#include "lamina/preprocess.h"
#include "tool/layouts.h"
#include "tool/named_lists.h"

namespace lamina::tool {
namespace {

ElementType type_of(const std::string& option, const std::string& text) {
  if (const auto type = element_type_said(text)) return *type;
  throw UsageError(fmt::format("-{} {}: wanted an element type such as f32, f16 or u8", option, text));
}

std::vector<double> numbers_in(const std::string& option, const std::string& list) {
  std::vector<double> out;
  for (const auto piece : pieces_of(list)) {
    const auto number = parse_real<double>(trimmed(piece));
    if (!number || !std::isfinite(*number))
      throw UsageError(fmt::format("{}: \"{}\" is not a number", option, piece));
    out.push_back(*number);
  }
  return out;
}

/// What is asked, input by input.
class Asked {
 public:
  Asked(const Model& model, const BenchmarkCommand& o)
      : o_(o), model_(model), layouts_(o.inputs.image.layout, model.inputs()) {}

  Preprocessing made() && {
    for (const auto& text : o_.types) take_type(text);
    add_values("--mean-values", o_.mean_values, out_.mean_values);
    add_values("--scale-values", o_.scale_values, out_.scale_values);
    for (const auto& port : model_.inputs()) {
      const auto letters = layouts_.of(port.name);
      if (!letters.empty()) out_.layout.push_back({port.name, letters, {}});
      const auto type = out_.input_types.find(port.name);
      if (type != out_.input_types.end() && type->second != port.type && port.value.valid())
        throw UsageError(
            fmt::format("-ip: input \"{}\" has a value in the model: its type stays", port.name));
    }
    return std::move(out_);
  }

 private:
  /// "ip=f32", "op=FP16", "iop=x:f16, y:f32"; names win.
  void take_type(const std::string& text) {
    const auto equals = text.find('=');
    const auto option = text.substr(0, equals), value = text.substr(equals + 1);
    if (option == "iop") return take_named(value);
    const auto type = type_of(option, value);
    for (const auto& port : option == "ip" ? model_.inputs() : model_.outputs())
      (option == "ip" ? out_.input_types : out_.output_types).emplace(port.name, type);
  }

  void take_named(const std::string& text) {
    for (const auto piece : pieces_of(text)) {
      std::string pair(piece);
      std::erase(pair, ' ');
      const auto colon = pair.rfind(':');
      if (colon == std::string::npos)
        throw UsageError(fmt::format("-iop {}: wanted NAME:TYPE,NAME:TYPE", text));
      const auto name = pair.substr(0, colon);
      const auto type = type_of("iop", pair.substr(colon + 1));
      const bool in = model_.find_input(name).has_value(), out = model_.find_output(name).has_value();
      if (!in && !out) fail(ErrorCode::bad_input, "-iop: there is no input or output \"{}\"", name);
      if (in) out_.input_types[name] = type;
      if (out) out_.output_types[name] = type;
    }
  }

  /// Lists without a name are those of all inputs that look like images.
  void add_values(const std::string& option, const std::vector<std::string>& texts,
                  std::vector<ChannelValues>& out) const {
    std::map<std::string, std::vector<double>> by_name;
    for (const auto& text : texts)
      for (const auto& [name, list] : named_lists(option, text)) {
        const auto numbers = numbers_in(option + " " + text, list);
        if (!name.empty()) {
          if (!model_.find_input(name))
            fail(ErrorCode::bad_input, "{}: there is no input \"{}\"", option, name);
          by_name[name] = numbers;
          continue;
        }
        bool any = false;
        for (const auto& port : model_.inputs()) {
          if (!is_image_input(port, numbers.size())) continue;
          by_name[port.name] = numbers;
          any = true;
        }
        if (!any)
          throw UsageError(fmt::format("{} {}: no input has {} channels", option, text, numbers.size()));
      }
    for (auto& [name, numbers] : by_name) out.push_back({name, std::move(numbers)});
  }

  /// An axis for so many channels: where preprocessed() looks for it.
  bool is_image_input(const Port& port, std::size_t channels) const {
    const auto letters = layouts_.of(port.name);
    if (!port.ranked) return false;
    const auto& dims = port.shape;
    const auto fits = [&](std::size_t axis) {
      return axis < dims.size() && (channels == 1 || dims[axis] < 0 || std::cmp_equal(dims[axis], channels));
    };
    if (const auto c = letters.find('C'); c != std::string::npos) return fits(c);
    return dims.size() == 4 && (fits(1) || fits(3));
  }

  const BenchmarkCommand& o_;
  const Model& model_;
  const Layouts layouts_;
  Preprocessing out_;
};

}  // namespace

bool has_preprocessing(const BenchmarkCommand& o) {
  return !o.types.empty() || !o.mean_values.empty() || !o.scale_values.empty();
}

Model with_preprocessing(const Model& model, const BenchmarkCommand& o) {
  if (!has_preprocessing(o)) return model;
  if (!model.unsupported().empty()) return model;  // compiling says so
  try {
    return preprocessed(model, Asked(model, o).made());
  } catch (const Error& e) {
    if (e.code() == ErrorCode::bad_option) throw UsageError(e.what());
    throw;
  }
}

}  // namespace lamina::tool
