/// Recipes as text, and kernels made from them.
#include "base/error.h"
#include "base/numbers.h"
#include "kernels/kernel.h"

namespace lamina {
namespace {

std::string to_text(const std::vector<Layout>& layouts) {
  std::string out;
  for (const auto l : layouts) out += (out.empty() ? "" : ",") + std::string(name_of(l));
  return out.empty() ? "-" : out;
}

/// Words between spaces; a label may hold some ("+stages", "decomposed: ..."), so it stands last.
class Words {
 public:
  explicit Words(std::string_view text) : whole_(text), rest_(text) {}
  std::string next() {
    const auto space = rest_.find(' ');
    if (space == std::string_view::npos) wrong();
    const std::string word(rest_.substr(0, space));
    rest_.remove_prefix(space + 1);
    return word;
  }
  std::string rest() const { return std::string(rest_); }
  [[noreturn]] void wrong() const {
    fail(ErrorCode::bad_input, "\"{}\": wanted KERNEL LAYOUTS -> LAYOUTS STAGES LABEL", whole_);
  }

 private:
  std::string_view whole_, rest_;
};

std::vector<Layout> layouts_of(const std::string& text, const Words& words) {
  std::vector<Layout> out;
  for (std::size_t at = 0; text != "-" && at <= text.size();) {
    const auto comma = std::min(text.find(',', at), text.size());
    const auto name = std::string_view(text).substr(at, comma - at);
    const auto layout = layout_named(name);
    if (!layout) words.wrong();
    out.push_back(*layout);
    at = comma + 1;
  }
  return out;
}

}  // namespace

std::string to_text(const Recipe& r) {
  return fmt::format("{} {} -> {} {} {}", r.kernel, to_text(r.inputs), to_text(r.outputs),
                     r.stages == SIZE_MAX ? "all" : std::to_string(r.stages), r.label);
}

Recipe recipe_of(std::string_view text) {
  Words words(text);
  Recipe r;
  r.kernel = words.next();
  r.inputs = layouts_of(words.next(), words);
  if (words.next() != "->") words.wrong();
  r.outputs = layouts_of(words.next(), words);
  if (const auto stages = words.next(); stages != "all") {
    const auto count = parse_integer<std::size_t>(stages);
    if (!count) words.wrong();
    r.stages = *count;
  }
  r.label = words.rest();
  if (r.label.empty()) words.wrong();
  return r;
}

Offer::Offer(const NodeView& v, std::string name, Layout layout) {
  label = std::move(name);
  inputs.assign(v.inputs(), Layout::plain);
  if (!inputs.empty()) inputs[0] = layout;
  outputs.assign(v.outputs(), layout);
}

Offer offer_of(const NodeView& view, const Recipe& recipe) {
  for (auto& offer : ask_kernels(view, recipe.kernel).offers)
    if (static_cast<const Recipe&>(offer) == recipe) return std::move(offer);
  fail(ErrorCode::unsupported, "{} has no offer \"{}\" for this {}", recipe.kernel, to_text(recipe),
       view.node().op.name());
}

}  // namespace lamina
