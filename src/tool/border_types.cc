#include "tool/border_types.h"

#include <algorithm>

#include "base/error.h"

namespace lamina::tool {
namespace {

/// "FP32", "F32", "U8", "bool", "BOOLEAN": in lamina's words.
std::string type_word(std::string word) {
  for (auto& c : word) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  if (word.starts_with("fp")) word.erase(1, 1);
  return word == "boolean" ? "bool" : word;
}

void check_port(const std::string& option, const Port& port, const std::string& wanted) {
  if (name_of(port.type) == type_word(wanted)) return;
  throw UsageError(
      fmt::format("-{} {}: \"{}\" is {} in the model; other types at its border are not supported yet",
                  option, wanted, port.name, name_of(port.type)));
}

void check_named(const std::string& text, const Model& model) {
  for (std::size_t at = 0; at <= text.size();) {
    const auto end = std::min(text.find(',', at), text.size());
    auto pair = text.substr(at, end - at);
    at = end + 1;
    std::erase(pair, ' ');
    const auto colon = pair.rfind(':');
    if (colon == std::string::npos)
      throw UsageError(fmt::format("-iop {}: wanted NAME:TYPE,NAME:TYPE", text));
    const auto name = pair.substr(0, colon);
    const auto in = model.find_input(name), out = model.find_output(name);
    if (!in && !out) fail(ErrorCode::bad_input, "-iop: there is no input or output \"{}\"", name);
    check_port("iop", in ? model.inputs()[*in] : model.outputs()[*out], pair.substr(colon + 1));
  }
}

}  // namespace

void check_border_types(const std::vector<std::string>& types, const Model& model) {
  for (const auto& text : types) {
    const auto equals = text.find('=');
    const auto option = text.substr(0, equals), value = text.substr(equals + 1);
    if (option == "ip")
      for (const auto& p : model.inputs()) check_port(option, p, value);
    else if (option == "op")
      for (const auto& p : model.outputs()) check_port(option, p, value);
    else
      check_named(value, model);
  }
}

}  // namespace lamina::tool
