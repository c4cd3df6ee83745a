#include "api/loaded_model.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "exec/variables.h"
#include "formats/formats.h"

namespace lamina {
namespace {

constexpr std::size_t kName = 60;  // characters of one name among many

std::string type_of(const Unsupported& u) {
  std::string out = (u.domain.empty() ? "" : clipped(u.domain, kName) + ":") + clipped(u.type, kName);
  if (u.version != 0) out += "-" + std::to_string(u.version);
  return out;
}

}  // namespace

std::string to_string(const Unsupported& u) {
  constexpr std::size_t kNodes = 8;
  std::string out = type_of(u) + " (";
  for (std::size_t i = 0; i < std::min(u.nodes.size(), kNodes); ++i)
    out += (i ? ", \"" : "\"") + clipped(u.nodes[i], kName) + "\"";
  if (u.nodes.size() > kNodes) out += fmt::format(" and {} more", u.nodes.size() - kNodes);
  out += ")";
  return one_line(u.reason.empty() ? out : out + ": " + u.reason);
}

LoadedModel::LoadedModel(const ModelSource& source, const ReadOptions& options)
    : path_(source.model()->path()), loaded_(read(source, options.settable)) {
  const auto& g = loaded_.graph;
  for (const auto v : g.inputs()) {
    inputs_.push_back(port_of(g.value(v).name, g.type(v)));
    if (const auto it = loaded_.defaults.find(g.value(v).name); it != loaded_.defaults.end())
      inputs_.back().value = it->second;
  }
  for (const auto& r : g.results()) outputs_.push_back(port_of(r.name, g.type(r.value)));
  for (const auto& w : loaded_.warnings) warnings_.push_back(one_line(w));
  for (const auto& u : loaded_.unsupported) unsupported_.push_back(to_string(u));
  try {
    for (const auto& v : variables_of(g)) variables_.push_back(port_of(v.name, v.type));
  } catch (const Error& e) {
    if (e.code() != ErrorCode::unsupported) throw;
    unsupported_.push_back(e.what());
  }
}

void LoadedModel::require_supported() const {
  if (unsupported_.empty()) return;
  constexpr std::size_t kRoom = 200;  // characters, so that the error is not cut
  std::string text;
  for (const auto& u : unsupported_) text += (text.empty() ? "" : "; ") + u;
  if (text_length(text) > kRoom) {  // the types alone, then as many of them as fit
    text.clear();
    std::size_t named = 0;
    for (const auto& u : loaded_.unsupported) {
      const auto one = printable(fmt::format("{} ({} nodes)", type_of(u), u.nodes.size()));
      if (named != 0 && text_length(text) + text_length(one) > kRoom) break;
      text += (text.empty() ? "" : "; ") + one;
      ++named;
    }
    if (named < unsupported_.size()) text += fmt::format("; and {} more", unsupported_.size() - named);
  }
  fail(ErrorCode::unsupported, "{}: unsupported: {}", path_, text);
}

}  // namespace lamina
