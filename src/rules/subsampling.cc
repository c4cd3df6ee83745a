#include "rules/subsampling.h"

#include <algorithm>
#include <limits>
#include <unordered_set>

#include "ops/pooling.h"
#include "rules/pointwise.h"

namespace lamina {
namespace {

constexpr std::size_t kMostValues = 128;  // that are looked at for one strided point
/// Multiply-adds of a convolution in the time in which a pooling takes one element.
constexpr double kPooledElement = 32;
constexpr double kLeastGain = 1e-3;  // of what is not rounding
constexpr double kNever = -std::numeric_limits<double>::infinity();

/// same_upper and same_lower give a window of 1 none.
bool has_pads(const Window& w) {
  return w.auto_pad == AutoPad::explicit_ && !(all_are(w.pads_begin, 0) && all_are(w.pads_end, 0));
}

/// Spatial sizes of a convolution's weights.
std::optional<Dims> kernel_of(const Graph& g, const Node& n) {
  const auto& weights = g.type(n.inputs[1]).shape;
  if (!weights.known() || weights.rank() < 3) return std::nullopt;
  const auto sizes = weights.sizes();
  return Dims(sizes.begin() + 2, sizes.end());
}

bool is_window_of_one(const Graph& g, const Node& n) {
  const auto kernel = kernel_of(g, n);
  return kernel && all_are(*kernel, 1);
}

/// A convolution that takes each position by itself, and all of them.
bool passes_on(const Graph& g, const Node& n) {
  const auto* w = n.bodies.empty() ? convolution_window(n) : nullptr;
  return w && all_are(w->strides, 1) && !has_pads(*w) && is_window_of_one(g, n);
}

bool is_strided(const Window& w) {
  return std::any_of(w.strides.begin(), w.strides.end(), [](auto s) { return s > 1; });
}

/// The search for values that may be computed at every step-th position.
class Search {
 public:
  Search(const Match& match, NodeId point, Ints step)
      : match_(match), g_(match.graph()), picture_(g_.node(point).inputs[0]), step_(std::move(step)) {
    for (const auto s : step_) kept_share_ /= static_cast<double>(s);
  }
  Found<Subsampled> run();

 private:
  /// convolution: it takes each position by itself, or every step-th one.
  enum class Reader : std::uint8_t { point, convolution, pointwise, other };
  struct Seen {
    std::string why_in_full;  ///< empty: every step-th position is all that is wanted of it
    double gain = 0;          ///< of computing it so, in multiply-adds for each position of the full picture
  };

  bool is_point(const Node& n) const;
  Reader reader_of(ValueId v, const Use& use) const;
  /// What the reader makes may be wanted at every step-th position, too.
  bool leads_on(ValueId v, const Use& use) const {
    const auto reader = reader_of(v, use);
    return reader == Reader::pointwise || reader == Reader::convolution;
  }
  std::string why_in_full(ValueId v) const;
  std::vector<ValueId> operands(ValueId v) const;
  bool is_wanted(ValueId v) const {
    const auto it = seen_.find(v);
    return it != seen_.end() && it->second.why_in_full.empty();
  }

  void look_at(ValueId v);
  void explore();
  void compute_refused_in_full();
  void compute_in_full(ValueId v, const std::string& why);
  std::vector<ValueId> joined() const;
  std::vector<ValueId> in_order(const std::vector<ValueId>& values) const;

  std::optional<Window> strided(NodeId conv) const;
  double gain_of_convolution(NodeId conv);
  double cost_of_pooling(ValueId v) const;
  double cost_in_full(ValueId v) const;
  double gain_above(ValueId v);
  std::string gains_nothing(ValueId v) const;
  void drop_what_gains_nothing();
  Subsampled result() const;
  double gain_of(const Subsampled& all) const;

  const Match& match_;
  const Graph& g_;
  ValueId picture_;
  Ints step_;
  double kept_share_ = 1;  // of the positions
  std::unordered_map<ValueId, Seen> seen_;
  std::vector<ValueId> found_;  // the same, in the order in which they were found
  std::unordered_map<NodeId, Window> windows_;
  std::unordered_map<NodeId, double> own_gains_;  // of convolutions
};

bool Search::is_point(const Node& n) const {
  const auto* w = strided_window(g_, n);
  if (!w || has_pads(*w)) return false;
  const auto strides = all_strides(*w, step_.size());
  if (strides.size() != step_.size()) return false;
  for (std::size_t i = 0; i < step_.size(); ++i)
    if (strides[i] % step_[i] != 0) return false;
  return true;
}

Search::Reader Search::reader_of(ValueId v, const Use& use) const {
  const Node& n = g_.node(use.node);
  if (match_.is_exempt(use.node)) return Reader::other;
  if (is_point(n)) return use.input == 0 ? Reader::point : Reader::other;
  const auto& shape = g_.type(v).shape;
  if (passes_on(g_, n)) return use.input == 0 ? Reader::convolution : Reader::other;
  const auto spreads = pointwise(g_, n, step_);
  const bool fits = spreads && (*spreads)[use.input] == Spread::positions && shape.ranked() &&
                    shape.rank() == step_.size() + 2;
  return fits ? Reader::pointwise : Reader::other;
}

std::string Search::why_in_full(ValueId v) const {
  if (g_.constant(v)) return fmt::format("{} is a constant", match_.label(v));
  if (g_.is_result(v)) return fmt::format("{} is an output", match_.label(v));
  for (const auto& use : g_.value(v).uses) {
    if (reader_of(v, use) != Reader::other) continue;
    if (match_.is_exempt(use.node)) return fmt::format("'{}' is exempt", g_.label(use.node));
    return fmt::format("'{}' reads all of {}", g_.label(use.node), match_.label(v));
  }
  return {};
}

/// The operands, with spatial positions, of the node that makes the value; none if it does not compute each
/// position by itself.
std::vector<ValueId> Search::operands(ValueId v) const {
  std::vector<ValueId> out;
  const auto maker = g_.producer(v);
  if (!maker.valid() || match_.is_exempt(maker)) return out;
  const Node& n = g_.node(maker);
  if (passes_on(g_, n)) return {n.inputs[0]};
  const auto spreads = pointwise(g_, n, step_);
  for (std::size_t i = 0; spreads && i < n.inputs.size(); ++i)
    if ((*spreads)[i] == Spread::positions && std::find(out.begin(), out.end(), n.inputs[i]) == out.end())
      out.push_back(n.inputs[i]);
  return out;
}

void Search::look_at(ValueId v) {
  if (seen_.size() < kMostValues && seen_.try_emplace(v).second) found_.push_back(v);
}

/// All values that are joined to the picture by nodes that compute each position by itself.
void Search::explore() {
  look_at(picture_);
  for (std::size_t i = 0; i < found_.size(); ++i) {
    const auto v = found_[i];
    auto& why = seen_.at(v).why_in_full;
    why = why_in_full(v);
    if (!why.empty()) continue;
    for (const auto& use : g_.value(v).uses)
      if (leads_on(v, use)) look_at(g_.node(use.node).outputs[0]);
    for (const auto x : operands(v)) look_at(x);
  }
}

/// Marks the value, and the operands from which it is computed, as needed in full.
void Search::compute_in_full(ValueId v, const std::string& why) {
  std::vector<ValueId> open{v};
  while (!open.empty()) {
    const auto full = open.back();
    open.pop_back();
    for (const auto x : operands(full))
      if (is_wanted(x)) {
        seen_.at(x).why_in_full = why;
        open.push_back(x);
      }
  }
}

void Search::compute_refused_in_full() {
  for (const auto v : found_) {
    auto& why = seen_.at(v).why_in_full;
    if (why.empty() && found_.size() >= kMostValues)
      for (const auto& use : g_.value(v).uses)
        if (leads_on(v, use) && !seen_.contains(g_.node(use.node).outputs[0]))
          why = fmt::format("more than {} values are connected there", kMostValues);
    if (!why.empty()) compute_in_full(v, std::string(why));
  }
}

/// The wanted values that are joined to the picture.
std::vector<ValueId> Search::joined() const {
  std::vector<ValueId> out{picture_};
  std::unordered_set<ValueId> known{picture_};
  const auto add = [&](ValueId v) {
    if (is_wanted(v) && known.insert(v).second) out.push_back(v);
  };
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto v = out[i];
    for (const auto& use : g_.value(v).uses)
      if (leads_on(v, use)) add(g_.node(use.node).outputs[0]);
    for (const auto x : operands(v)) add(x);
  }
  return in_order(out);
}

/// Operands first.
std::vector<ValueId> Search::in_order(const std::vector<ValueId>& values) const {
  std::vector<ValueId> out, open;
  std::unordered_set<ValueId> done;
  for (const auto v : values) {
    open.push_back(v);
    while (!open.empty()) {
      const auto now = open.back();
      const auto before = open.size();
      if (!done.contains(now))
        for (const auto x : operands(now))
          if (is_wanted(x) && !done.contains(x)) open.push_back(x);
      if (open.size() > before) continue;
      open.pop_back();
      if (done.insert(now).second) out.push_back(now);
    }
  }
  return out;
}

/// The convolution's window with the step in its strides.
std::optional<Window> Search::strided(NodeId id) const {
  const Node& n = g_.node(id);
  const auto kernel = kernel_of(g_, n);
  const auto& picture = g_.type(n.inputs[0]).shape;
  if (!n.bodies.empty() || !kernel || kernel->size() != step_.size()) return std::nullopt;
  Window w = *convolution_window(n);
  const bool same = w.auto_pad == AutoPad::same_upper || w.auto_pad == AutoPad::same_lower;
  if (same && !all_are(*kernel, 1)) {
    if (!picture.ranked() || picture.rank() != step_.size() + 2) return std::nullopt;
    const std::vector<Dim> sizes(picture.dims().begin() + 2, picture.dims().end());
    if (!Shape(sizes).known()) return std::nullopt;
    const auto old = resolve(w, sizes, *kernel);
    w.pads_begin = old.pads_begin;
    w.pads_end = old.pads_end;
    w.auto_pad = AutoPad::explicit_;
  }
  w.strides = all_strides(w, step_.size());
  for (std::size_t i = 0; i < step_.size(); ++i) {
    if (w.strides[i] > INT32_MAX / step_[i]) return std::nullopt;
    w.strides[i] *= step_[i];
  }
  return w;
}

double Search::gain_of_convolution(NodeId conv) {
  const auto w = strided(conv);
  if (!w) return kNever;
  windows_.insert_or_assign(conv, *w);
  const auto weights = g_.type(g_.node(conv).inputs[1]).shape.count();
  return own_gains_[conv] = static_cast<double>(weights.size()) * (1 - kept_share_);
}

double Search::cost_of_pooling(ValueId v) const {
  if (g_.constant(v)) return 0;
  const auto maker = g_.producer(v);
  const auto& shape = g_.type(v).shape;
  if ((maker.valid() && match_.is_exempt(maker)) || !shape.ranked() || shape.rank() != step_.size() + 2 ||
      !shape[1].known())
    return -kNever;
  return kPooledElement * kept_share_ * static_cast<double>(shape[1].size());
}

/// What it takes to give the value's readers every step-th position when it is computed in full.
double Search::cost_in_full(ValueId v) const {
  const auto& uses = g_.value(v).uses;
  const bool pooled = std::any_of(uses.begin(), uses.end(), [&](const Use& use) {
    return reader_of(v, use) == Reader::pointwise && is_wanted(g_.node(use.node).outputs[0]);
  });
  return pooled ? cost_of_pooling(v) : 0;
}

/// Gain of computing the value from every step-th position of its operands, where these are counted.
double Search::gain_above(ValueId v) {
  const auto maker = g_.producer(v);
  if (!maker.valid() || match_.is_exempt(maker)) return kNever;
  const bool conv = convolution_window(g_.node(maker)) != nullptr;
  const auto from = operands(v);
  double sum = conv ? gain_of_convolution(maker) : from.empty() ? kNever : 0;
  for (const auto x : from) {
    const auto in_full = conv ? 0 : -cost_of_pooling(x);
    sum += is_wanted(x) ? std::max(seen_.at(x).gain, in_full) : in_full;
  }
  return sum;
}

std::string Search::gains_nothing(ValueId v) const {
  const auto label = match_.label(v);
  if (own_gains_.empty()) return fmt::format("nothing above {} computes less for it", label);
  return fmt::format("the savings above {} are less than the cost of poolings", label);
}

/// Where one pooling costs less than all that is above it, the value is computed in full.
void Search::drop_what_gains_nothing() {
  const auto values = joined();
  for (const auto v : values) seen_.at(v).gain = gain_above(v);
  for (const auto v : values)
    if (auto& seen = seen_.at(v); is_wanted(v) && seen.gain < -cost_in_full(v)) {
      seen.why_in_full = gains_nothing(v);
      compute_in_full(v, std::string(seen.why_in_full));
    }
}

Subsampled Search::result() const {
  Subsampled out;
  out.step = step_;
  std::unordered_set<ValueId> pooled;
  std::unordered_set<NodeId> points;
  out.values = joined();
  for (const auto v : out.values) {
    const auto from = operands(v);
    const bool above = std::any_of(from.begin(), from.end(), [&](ValueId x) { return is_wanted(x); });
    if (const auto conv = windows_.find(g_.producer(v)); conv != windows_.end()) {
      if (!above) out.windows.insert(*conv);
    } else {
      for (const auto x : from)
        if (!is_wanted(x) && !g_.constant(x) && pooled.insert(x).second) out.pooled.push_back(x);
    }
    for (const auto& use : g_.value(v).uses)
      if (reader_of(v, use) == Reader::point && points.insert(use.node).second)
        out.points.push_back(use.node);
  }
  return out;
}

double Search::gain_of(const Subsampled& all) const {
  double gain = 0;
  for (const auto v : all.values)
    if (const auto own = own_gains_.find(g_.producer(v)); own != own_gains_.end()) gain += own->second;
  for (const auto v : all.pooled) gain -= cost_of_pooling(v);
  for (const auto n : all.points)
    if (g_.node(n).op.is<MaxPool>()) gain += cost_of_pooling(g_.node(n).inputs[0]);
  return gain;
}

Found<Subsampled> Search::run() {
  explore();
  compute_refused_in_full();
  if (!is_wanted(picture_)) return Verdict::no("{}", seen_.at(picture_).why_in_full);
  drop_what_gains_nothing();
  if (!is_wanted(picture_)) return Verdict::no("{}", seen_.at(picture_).why_in_full);
  auto all = result();
  if (gain_of(all) > kLeastGain) return all;
  return Verdict::no("{}", gains_nothing(picture_));
}

}  // namespace

const Window* convolution_window(const Node& n) {
  if (const auto* op = n.op.as<Convolution>()) return op;
  return n.op.as<BinaryConvolution>();
}

const Window* strided_window(const Graph& g, const Node& n) {
  if (!n.bodies.empty() || n.outputs.size() != 1) return nullptr;
  if (const auto* pool = n.op.as<MaxPool>()) {
    const bool fits =
        is_strided(*pool) && all_are(pool->kernel, 1) && pool->rounding_type == RoundingType::floor;
    return fits ? pool : nullptr;
  }
  const auto* w = convolution_window(n);
  if (!w || !is_strided(*w)) return nullptr;
  return is_window_of_one(g, n) ? w : nullptr;
}

Ints all_strides(const Window& w, std::size_t axes) { return w.strides.empty() ? Ints(axes, 1) : w.strides; }

Found<Subsampled> subsampled_above(const Match& m, NodeId point) {
  const Node& n = m.graph().node(point);
  if (m.is_exempt(point)) return Verdict::no("'{}' is exempt", m.graph().label(point));
  const auto& shape = m.graph().type(n.inputs[0]).shape;
  const auto* w = strided_window(m.graph(), n);
  if (has_pads(*w)) return Verdict::no("it pads its input");
  if (!shape.ranked() || shape.rank() != w->strides.size() + 2)
    return Verdict::no("the rank of {} is not known", m.label(n.inputs[0]));
  bool small = true;
  for (std::size_t i = 0; i < w->strides.size(); ++i)
    small = small && (w->strides[i] == 1 || shape[i + 2].high() <= 1);
  if (small) return std::nullopt;
  return Search(m, point, w->strides).run();
}

}  // namespace lamina
