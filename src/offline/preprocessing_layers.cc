#include "offline/preprocessing_layers.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/option_words.h"
#include "offline/faq.h"
#include "ops/elementwise.h"
#include "ops/gathering.h"
#include "ops/shaping.h"

namespace lamina {
namespace {

/// Axis k of what has the letters `to` is axis order[k] of what has `from`.
Ints order_between(const LayoutRequest& r, const std::string& from, const std::string& to) {
  Ints order;
  for (std::size_t k = 0; k < to.size(); ++k) {
    const auto at = to[k] == '?' && from[k] == '?' ? k : from.find(to[k]);
    const bool again =
        at != std::string::npos && std::count(order.begin(), order.end(), static_cast<std::int64_t>(at));
    if (at == std::string::npos || (to[k] == '?' && from[k] != '?') || again)
      fail(ErrorCode::bad_option, "layout {}->{}{}{}: wanted the same letters on both sides", r.source,
           r.target, r.name.empty() ? "" : " of ", r.name);
    order.push_back(static_cast<std::int64_t>(at));
  }
  return order;
}

Tensor i64s(const Ints& values) { return Tensor::of(Dims{std::ssize(values)}, values); }

class PreprocessingLayers {
 public:
  PreprocessingLayers(Graph& graph, const PreprocessingRequest& request) : graph_(graph), request_(request) {
    for (const auto v : graph.inputs()) {
      before_.push_back(v);
      own_.push_back(graph.type(v));
    }
  }

  std::vector<std::string> made() && {
    check_names();
    const auto means = by_input(request_.means, "mean", 61), scales = by_input(request_.scales, "scale", 62);
    for (std::size_t i = 0; i < before_.size(); ++i) add(i, means[i], scales[i]);
    for (std::size_t r = 0; r < graph_.results().size(); ++r) {
      transpose_result(r);
      convert_result(r);
    }
    if (request_.reverse_channels && reversed_ == 0)
      notes_.push_back("--reverse_input_channels: no input has 3 channels, nothing is reversed");
    graph_.infer_types();
    return std::move(notes_);
  }

 private:
  using Numbers = std::vector<double>;
  const std::string& name(std::size_t i) const { return graph_.value(before_[i]).name; }
  const TensorType& type(std::size_t i) const { return graph_.type(before_[i]); }

  [[noreturn]] void no_input(const char* what, const std::string& wanted, int question) const {
    std::vector<std::string> names;
    for (const auto v : before_) names.push_back(graph_.value(v).name);
    fail_faq(ErrorCode::bad_option, question, "{}: there is no input \"{}\", the inputs are {}", what, wanted,
             fmt::join(names, ", "));
  }

  void check_names() const {
    for (const auto& l : request_.layouts) {
      bool known = l.name.empty();
      for (const auto v : before_) known |= graph_.value(v).name == l.name;
      for (const auto& r : graph_.results()) known |= r.name == l.name;
      if (!known) no_input("layout", l.name, 83);
    }
  }

  /// The numbers of each input: by name, else the lists are those of all inputs in their order.
  std::vector<Numbers> by_input(const std::vector<NamedNumbers>& lists, const char* what,
                                int question) const {
    std::vector<Numbers> out(before_.size());
    if (lists.empty()) return out;
    if (lists[0].name.empty() && lists.size() != before_.size())
      fail_faq(ErrorCode::bad_option, question,
               "{} lists of {} values for {} inputs, wanted one for each, or NAME[...] for some",
               lists.size(), what, before_.size());
    for (std::size_t k = 0; k < lists.size(); ++k) {
      std::size_t i = k;
      if (!lists[k].name.empty()) {
        for (i = 0; i < before_.size() && name(i) != lists[k].name; ++i) continue;
        if (i == before_.size()) no_input(what, lists[k].name, 83);
      }
      if (!out[i].empty())
        fail_faq(ErrorCode::bad_option, question, "two lists of {} values for input \"{}\"", what, name(i));
      out[i] = lists[k].numbers;
    }
    return out;
  }

  std::string letters(std::size_t i, const Shape& shape) const {
    return letters_of(request_.layouts, name(i), shape.rank());
  }

  std::size_t channels(std::size_t i, const Shape& shape, std::size_t count) const {
    const auto said = shape.ranked() ? letters(i, shape) : std::string();
    return channel_axis(shape, said, count, request_.channels_last);
  }

  void add(std::size_t i, const Numbers& mean, const Numbers& scale) {
    auto running = before_[i];
    const auto first = static_cast<std::uint32_t>(graph_.node_slots());
    const bool numbers = has_numbers(i, mean, scale);
    running = transposed(i, converted(i, running, numbers));
    running = reversed(i, running, mean.size() == 3 || scale.size() == 3);
    if (numbers) running = with_numbers(i, running, mean, scale);
    if (graph_.type(running).element != own_[i].element)
      running = node(i, "back", Convert{.destination_type = own_[i].element}, {running});
    if (running == before_[i]) return;
    // Other readers of the input than the first of the new nodes read the new nodes' result.
    const auto uses = graph_.value(before_[i]).uses;
    for (const auto& use : uses)
      if (use.node.index < first) graph_.set_input(use.node, use.input, running);
    for (std::size_t r = 0; r < graph_.results().size(); ++r)
      if (graph_.results()[r].value == before_[i]) graph_.set_result(r, running);
  }

  ValueId node(std::size_t i, const char* what, Op op, std::vector<ValueId> inputs) {
    const auto called = name(i) + "/" + what;
    const auto kind = op.name();
    const auto id = graph_.add_node(std::move(op), std::move(inputs), called);
    graph_.set_sources(id, {graph_.add_source(called, kind)});
    return graph_.node(id).outputs[0];
  }

  /// From the type of the written input to that in which the numbers are used: halves would round them.
  ValueId converted(std::size_t i, ValueId v, bool numbers) {
    const auto own = own_[i].element;
    const auto computed = numbers && bits_of(own) < 32 ? ElementType::f32 : own;
    const auto wanted = request_.types.find(name(i));
    if (wanted != request_.types.end()) graph_.set_type(v, {wanted->second, type(i).shape});
    if (type(i).element == computed) return v;
    return node(i, "convert", Convert{.destination_type = computed}, {v});
  }

  const LayoutRequest* change_of(const std::string& port) const {
    const LayoutRequest* out = nullptr;
    for (const auto& l : request_.layouts)
      if (!l.target.empty() && (l.name == port || (l.name.empty() && !out))) out = &l;
    return out;
  }

  /// The input in the layout of the file that is written.
  ValueId transposed(std::size_t i, ValueId v) {
    const auto* change = change_of(name(i));
    const auto& shape = type(i).shape;
    if (!change || !shape.ranked()) return v;
    const auto from = spread_layout(change->target, shape.rank()),
               to = spread_layout(change->source, shape.rank());
    if ((!from || !to) && change->name.empty()) return v;  // of inputs with another number of axes
    if (!from || !to)
      fail(ErrorCode::bad_option, "layout {}->{}: input \"{}\" is {}", change->source, change->target,
           name(i), to_string(type(i)));
    const auto order = order_between(*change, *from, *to);
    if (std::is_sorted(order.begin(), order.end())) return v;
    std::vector<Dim> dims(order.size());
    for (std::size_t k = 0; k < order.size(); ++k) dims[static_cast<std::size_t>(order[k])] = shape[k];
    for (const auto at : {before_[i], v}) graph_.set_type(at, {graph_.type(at).element, Shape(dims)});
    return node(i, "layout", Transpose{}, {v, graph_.add_constant(i64s(order), name(i) + "/layout/order")});
  }

  void transpose_result(std::size_t r) {
    const auto result = graph_.results()[r];
    const LayoutRequest* change = nullptr;
    for (const auto& l : request_.layouts)
      if (l.name == result.name && !l.target.empty()) change = &l;
    const auto& shape = graph_.type(result.value).shape;
    if (!change || graph_.value(result.value).kind == ValueKind::input || !shape.ranked()) return;
    const auto from = spread_layout(change->source, shape.rank()),
               to = spread_layout(change->target, shape.rank());
    if (!from || !to)
      fail(ErrorCode::bad_option, "layout {}->{}: output \"{}\" is {}", change->source, change->target,
           result.name, to_string(graph_.type(result.value)));
    const auto order = order_between(*change, *from, *to);
    const auto called = result.name + "/layout";
    const auto id = graph_.add_node(
        Transpose{}, {result.value, graph_.add_constant(i64s(order), called + "/order")}, called);
    graph_.set_sources(id, {graph_.add_source(called, "Transpose")});
    graph_.set_result(r, graph_.node(id).outputs[0]);
  }

  void convert_result(std::size_t r) {
    const auto result = graph_.results()[r];
    const auto wanted = request_.result_types.find(result.name);
    if (wanted == request_.result_types.end() || graph_.type(result.value).element == wanted->second) return;
    const auto called = result.name + "/convert";
    const auto id = graph_.add_node(Convert{.destination_type = wanted->second}, {result.value}, called);
    graph_.set_sources(id, {graph_.add_source(called, "Convert")});
    graph_.set_result(r, graph_.node(id).outputs[0]);
  }

  /// `three`: so many numbers are there for its channels, should their number be open.
  ValueId reversed(std::size_t i, ValueId v, bool three) {
    const auto& shape = own_[i].shape;
    if (!request_.reverse_channels || !shape.ranked()) return v;
    const bool said = letters(i, shape).find('C') != std::string::npos;
    if (!said && shape.rank() != 4 && shape.rank() != 5) return v;
    const auto axis = channels(i, shape, 3);
    if (axis == std::string::npos || !(shape[axis].is(3) || (three && shape[axis].fits(3)))) return v;
    ++reversed_;
    const auto order = graph_.add_constant(i64s({2, 1, 0}), name(i) + "/reverse_input_channels/order");
    const auto at = graph_.add_constant(Tensor::scalar(static_cast<std::int64_t>(axis)),
                                        name(i) + "/reverse_input_channels/axis");
    return node(i, "reverse_input_channels", Gather{}, {v, order, at});
  }

  bool scaled(std::size_t i) const {
    return request_.scale && is_float(own_[i].element) &&
           !std::count(request_.unscaled.begin(), request_.unscaled.end(), name(i));
  }

  bool has_numbers(std::size_t i, const Numbers& mean, const Numbers& scale) const {
    const bool any = !mean.empty() || !scale.empty() || request_.mean_image.valid();
    if (any && !is_float(own_[i].element))
      fail(ErrorCode::bad_option, "means and scales: input \"{}\" is {}, wanted floats", name(i),
           to_string(own_[i]));
    return any || scaled(i);
  }

  ValueId with_numbers(std::size_t i, ValueId v, const Numbers& mean, const Numbers& scale) {
    const auto& own = own_[i];
    const auto computed = graph_.type(v).element;
    const auto put = [&](const char* what, Op op, const Values& values) {
      v = node(i, what, std::move(op), {v, constant(i, what, computed, values)});
    };
    if (request_.mean_image.valid()) put("mean", Subtract{}, image_for(own));
    if (!mean.empty()) put("mean", Subtract{}, along(i, computed, mean, 61));
    if (!scale.empty()) put("scale", Divide{}, along(i, computed, scale, 62));
    if (scaled(i)) put("scale", Divide{}, along(i, computed, {*request_.scale}, 62));
    return v;
  }

  struct Values {
    Dims dims;
    std::vector<double> numbers;
  };

  ValueId constant(std::size_t i, const char* what, ElementType element, const Values& values) {
    const auto data = convert(Tensor::of(values.dims, values.numbers), element);
    return graph_.add_constant(data, fmt::format("{}/{}/values", name(i), what));
  }

  /// T: the type that computes with these finite numbers.
  template <class T>
  static void require_in_range(const Numbers& numbers, bool divides) {
    for (const auto n : numbers) {
      const auto computed_with = static_cast<T>(n);
      if (!std::isfinite(computed_with)) fail_faq(ErrorCode::bad_option, 59, "{} is more than f32 has", n);
      if (divides && std::abs(computed_with) < std::numeric_limits<T>::min())
        fail_faq(ErrorCode::bad_option, 59, "a scale of {} divides nothing", n);
    }
  }

  Values along(std::size_t i, ElementType computed, const Numbers& numbers, int question) const {
    const bool divides = question == 62;
    const auto& own = own_[i];
    if (computed == ElementType::f64)
      require_in_range<double>(numbers, divides);
    else
      require_in_range<float>(numbers, divides);
    Dims dims(own.shape.ranked() ? own.shape.rank() : 0, 1);
    if (numbers.size() > 1) {
      const auto axis = channels(i, own.shape, numbers.size());
      if (axis == std::string::npos)
        fail_faq(ErrorCode::bad_option, 60,
                 "{} {} values: input \"{}\" is {}, which has another number of channels", numbers.size(),
                 divides ? "scale" : "mean", name(i), to_string(own));
      dims[axis] = std::ssize(numbers);
    }
    return {dims, {numbers.begin(), numbers.end()}};
  }

  Values image_for(const TensorType& own) const {
    const auto& image = request_.mean_image;
    Dims dims{1};
    dims.insert(dims.end(), image.shape().begin(), image.shape().end());
    if (auto sizes = own.shape.known() ? own.shape.sizes() : Dims();
        sizes.empty() || Dims(sizes.begin() + 1, sizes.end()) != image.shape())
      fail_faq(ErrorCode::bad_option, 10, "a mean image of {} for an input of {}", to_string(image.shape()),
               to_string(own));
    const auto numbers = image.data<float>();
    return {dims, {numbers.begin(), numbers.end()}};
  }

  Graph& graph_;
  const PreprocessingRequest& request_;
  std::vector<ValueId> before_;
  std::vector<TensorType> own_;  // of these, in the model
  std::size_t reversed_ = 0;
  std::vector<std::string> notes_;
};

}  // namespace

std::size_t channel_axis(const Shape& shape, const std::string& letters, std::size_t count, bool last_only) {
  const auto npos = std::string::npos;
  if (!shape.ranked() || shape.rank() == 0) return npos;
  const auto fits = [&](std::size_t axis) {
    return axis < shape.rank() && (count == 1 || shape[axis].fits(static_cast<std::int64_t>(count)));
  };
  if (const auto c = letters.find('C'); c != npos) return fits(c) ? c : npos;
  const std::size_t first = std::min<std::size_t>(1, shape.rank() - 1), last = shape.rank() - 1;
  if (last_only) return fits(last) ? last : npos;
  const bool first_unknown =
      first != last && !shape[first].known() && shape[last].is(static_cast<std::int64_t>(count));
  if (fits(first) && !first_unknown) return first;
  return fits(last) ? last : npos;
}

std::string letters_of(const std::vector<LayoutRequest>& layouts, const std::string& input,
                       std::size_t rank) {
  std::string out;
  for (const auto& l : layouts) {
    if (!l.name.empty() && l.name != input) continue;
    const auto letters = spread_layout(l.source, rank);
    if (letters && (out.empty() || !l.name.empty())) out = *letters;
    if (!letters && !l.name.empty())
      fail(ErrorCode::bad_option, "layout {}: input \"{}\" has {} axes", l.source, input, rank);
  }
  return out;
}

std::vector<std::string> add_preprocessing(Graph& graph, const PreprocessingRequest& request) {
  return PreprocessingLayers(graph, request).made();
}

}  // namespace lamina
