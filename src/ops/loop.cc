#include <algorithm>
#include <cstring>

#include "base/cancellation.h"
#include "ops/bodies.h"
#include "ops/control.h"
#include "ops/packed.h"
#include "ops/require.h"
#include "ops/walk.h"

namespace lamina {

using namespace control;

namespace {

/// How one input is cut into slices, with the defaults filled in.
struct SliceRule {
  std::int64_t axis, start, end, stride, part;
};

std::int64_t at_or(const Ints& list, std::size_t i, std::int64_t otherwise) {
  return list.empty() ? otherwise : list[i];
}

SliceRule slice_rule(const Loop& op, std::size_t i) {
  SliceRule r{op.slice_axes[i], 0, 0, 1, at_or(op.slice_part_sizes, i, 1)};
  r.stride = at_or(op.slice_strides, i, r.part);
  r.start = at_or(op.slice_starts, i, r.stride > 0 ? 0 : -1);
  r.end = at_or(op.slice_ends, i, r.stride > 0 ? -1 : 0);
  return r;
}

/// The part of an axis that is cut, and how often.
struct Cut {
  std::int64_t low, high, count;
};

/// Nothing when the rule leaves an axis of this size.
std::optional<Cut> cut_of(const SliceRule& r, std::int64_t size) {
  const auto place = [&](std::int64_t v) { return v < 0 ? v + size + 1 : v; };
  const auto low = std::min(place(r.start), place(r.end)), high = std::max(place(r.start), place(r.end));
  if (low < 0 || high > size) return std::nullopt;
  return Cut{low, high, (high - low) / r.part};
}

/// Where inputs and results of a loop are.
struct Places {
  std::size_t carried, last, sliced, concatenated;
  std::size_t first_slice() const { return 2 + carried; }
};

Places checked_places(const Loop& op, const InferContext& c) {
  constexpr std::int64_t kMost = 1 << 20;
  c.require(op.carried >= 0 && op.carried <= kMost && op.last >= 0 && op.last <= kMost,
            "carried is {}, last {}, wanted 0 or more", op.carried, op.last);
  const Places p{static_cast<std::size_t>(op.carried), static_cast<std::size_t>(op.last),
                 op.slice_axes.size(), op.concat_axes.size()};
  c.require(c.bodies().size() == 1, "{} bodies, wanted 1", c.bodies().size());
  c.require(c.inputs() >= 2 + p.carried + p.sliced, "{} inputs, wanted at least {}", c.inputs(),
            2 + p.carried + p.sliced);
  const auto results = c.bodies()[0].results().size(), wanted = p.carried + p.last + p.concatenated;
  c.require(results == wanted + 1, "the body has {} results, wanted {}", results, wanted + 1);
  c.require(c.outputs() == wanted, "{} outputs, wanted {}", c.outputs(), wanted);
  for (const auto* list : {&op.slice_starts, &op.slice_ends, &op.slice_strides, &op.slice_part_sizes})
    c.require(list->empty() || list->size() == p.sliced, "a list {} for {} sliced inputs", to_string(*list),
              p.sliced);
  c.require(op.concat_strides.empty() || op.concat_strides.size() == p.concatenated,
            "a list {} for {} concatenated outputs", to_string(op.concat_strides), p.concatenated);
  for (std::size_t i = 0; i < p.sliced; ++i) {
    const auto r = slice_rule(op, i);
    c.require(r.part >= 1 && (r.stride == r.part || r.stride == -r.part),
              "slices of {} at a stride of {}, wanted the same size", r.part, r.stride);
  }
  return p;
}

/// Iterations that the slices of one input make.
Dim slice_count(const InferContext& c, const SliceRule& r, const Shape& shape) {
  if (!shape.ranked()) return Dim();
  c.require(shape.rank() > 0, "a scalar is sliced, wanted at least one axis");
  const auto& size = shape[normalize_axis(r.axis, shape.rank(), "slice axis")];
  if (!size.known())
    return r.part == 1 && std::min(r.start, r.end) == -1 && std::max(r.start, r.end) == 0 ? size : Dim();
  const auto cut = cut_of(r, size.size());
  c.require(cut.has_value(), "slices from {} to {} leave an axis of {}", r.start, r.end, size.size());
  return Dim(cut->count);
}

/// Whether the body goes on whatever happens: a constant, or the condition handed on.
bool always_goes_on(const InferContext& c, const Graph& body) {
  if (c.has(1)) {
    const auto first = c.ints(1);
    if (!first || first->size() != 1 || first->front() == 0) return false;
  }
  const auto v = body.results()[0].value;
  if (v == body.inputs()[1]) return true;
  const auto* t = body.constant(v);
  return t && t->size() == 1 && !is_float(t->element_type()) && to_ints(*t)[0] != 0;
}

Dim iterations(const Loop& op, const InferContext& c, const Places& p) {
  Dim most;
  for (std::size_t i = 0; i < p.sliced; ++i) {
    const auto n = slice_count(c, slice_rule(op, i), c.shape(p.first_slice() + i));
    c.require(most.fits(n), "sliced inputs give {} and {} iterations, wanted the same number",
              to_string(most), to_string(n));
    if (!most.known()) most = n;
  }
  bool exact = p.sliced > 0;
  if (c.has(0)) {
    const auto trips = known_int(c, 0, "trip count");
    if (!trips) {
      exact = false;
      most = Dim(0, most.high());
    } else if (*trips >= 0) {
      exact = !exact || most.known();
      most = most.known() || p.sliced == 0 ? Dim(std::min(*trips, most.high())) : Dim(0, *trips);
    }
  }
  if (c.has(1))
    if (const auto first = c.ints(1); first && first->size() == 1 && first->front() == 0) return Dim(0);
  return exact && always_goes_on(c, c.bodies()[0]) ? most : Dim(0, most.high());
}

/// The type that the body declares for its counter or condition, as long as it holds one element.
TensorType single(const InferContext& c, const TensorType& declared, ElementType otherwise) {
  TensorType out{declared.element == ElementType::undefined ? otherwise : declared.element,
                 Shape(std::vector<Dim>{})};
  c.require(is_integer(out.element) || out.element == ElementType::boolean,
            "the body's iteration or condition has type {}, wanted an integer or boolean",
            name_of(out.element));
  if (!declared.shape.ranked()) return out;
  c.require(declared.shape.rank() <= 8, "the body's iteration or condition has shape {}, wanted one element",
            to_string(declared.shape));
  for (const auto& d : declared.shape.dims())
    c.require(d.fits(1), "the body's iteration or condition has shape {}, wanted one element",
              to_string(declared.shape));
  out.shape = Shape(std::vector<Dim>(declared.shape.rank(), Dim(1)));
  return out;
}

std::vector<TensorType> parameter_types(const Loop& op, const InferContext& c, const Places& p) {
  const auto& body = c.bodies()[0];
  c.require(body.inputs().size() == c.inputs(), "the body has {} parameters, wanted {}", body.inputs().size(),
            c.inputs());
  std::vector<TensorType> out{single(c, body.type(body.inputs()[0]), ElementType::i64),
                              single(c, body.type(body.inputs()[1]), ElementType::boolean)};
  for (auto i = out.size(); i < c.inputs(); ++i) out.push_back(c.type(i));
  for (std::size_t i = 0; i < p.sliced; ++i) {
    const auto r = slice_rule(op, i);
    auto& shape = out[p.first_slice() + i].shape;
    if (shape.ranked()) shape[normalize_axis(r.axis, shape.rank(), "slice axis")] = Dim(r.part);
  }
  return out;
}

/// Widens the types of carried values until an iteration leaves them as they are.
std::vector<TensorType> stable_results(const InferContext& c, const Places& p,
                                       std::vector<TensorType>& parameters) {
  std::vector<TensorType> results;
  for (int pass = 0; pass < 4; ++pass) {
    results = types_of_results(c, c.bodies()[0], parameters, true);
    bool stable = true;
    for (std::size_t i = 0; i < p.carried; ++i) {
      auto joined = common_type(c, parameters[2 + i], results[1 + i], fmt::format("carried value {}", i));
      if (joined == parameters[2 + i]) continue;
      stable = false;
      if (pass > 0) joined.shape = Shape();  // dimensions alone did not do
      parameters[2 + i] = std::move(joined);
    }
    for (std::size_t i = 0; i < p.carried && pass == 2 && !stable; ++i) parameters[2 + i].shape = Shape();
    if (stable) break;
  }
  return results;
}

}  // namespace

void Loop::infer(InferContext& c) const {
  const auto p = checked_places(*this, c);
  if (c.has(1)) require_condition(c, 1);
  const auto count = iterations(*this, c, p);
  auto parameters = parameter_types(*this, c, p);
  auto results = stable_results(c, p, parameters);
  const auto& go_on = results[0];
  c.require(go_on.element == ElementType::undefined || go_on.element == ElementType::boolean ||
                is_integer(go_on.element),
            "the body's condition has type {}, wanted boolean", name_of(go_on.element));
  for (std::size_t i = 0; i < p.carried; ++i)
    c.set(i, count.is(0) ? c.type(2 + i) : (count.low() > 0 ? results[1 + i] : parameters[2 + i]));
  for (std::size_t i = p.carried; i < p.carried + p.last; ++i) c.set(i, results[1 + i]);
  for (std::size_t i = 0; i < p.concatenated; ++i) {
    auto type = results[1 + p.carried + p.last + i];
    if (type.shape.ranked()) {
      c.require(type.shape.rank() > 0, "concatenated value {} is a scalar, wanted at least one axis", i);
      auto& along = type.shape[normalize_axis(concat_axes[i], type.shape.rank(), "concatenation axis")];
      along = along * count;
    }
    c.set(p.carried + p.last + i, std::move(type));
  }
}

namespace {

/// [begin, begin + size) of one axis.
Tensor part_of(const Tensor& x, std::size_t axis, std::int64_t begin, std::int64_t size) {
  auto dims = x.shape();
  const auto inner =
      volume(dims, axis + 1, dims.size()) * static_cast<std::int64_t>(element_bytes(x.element_type()));
  const auto outer = volume(dims, 0, axis), whole = dims[axis];
  dims[axis] = size;
  Tensor out(x.element_type(), dims);
  if (out.size() == 0) return out;
  for (std::int64_t o = 0; o < outer; ++o)
    std::memcpy(out.raw() + o * size * inner, x.raw() + (o * whole + begin) * inner,
                static_cast<std::size_t>(size * inner));
  return out;
}

Tensor joined(const std::vector<Tensor>& parts, std::int64_t axis_value, bool backwards) {
  auto dims = parts[0].shape();
  const auto axis = normalize_axis(axis_value, dims.size(), "concatenation axis");
  dims[axis] = 0;
  for (const auto& part : parts) {
    auto rest = part.shape();
    if (rest.size() == dims.size()) {
      dims[axis] += rest[axis];
      rest[axis] = dims[axis];
    }
    if (rest != dims || part.element_type() != parts[0].element_type())
      fail(ErrorCode::bad_input,
           "iterations give values of shapes {} and {}, which cannot be joined on axis {}",
           to_string(parts[0].shape()), to_string(part.shape()), axis);
  }
  const auto type = parts[0].element_type();
  Tensor out(unpacked_type(type), dims);
  const auto inner = volume(dims, axis + 1, dims.size()) *
                     static_cast<std::int64_t>(element_bytes(out.element_type())),
             outer = volume(dims, 0, axis);
  std::int64_t begin = 0;
  StopPoints points(1 << 19);
  for (std::size_t i = 0; i < parts.size() && out.size() > 0; ++i) {
    const auto part = unpacked(parts[backwards ? parts.size() - 1 - i : i]);
    const auto bytes = part.shape()[axis] * inner;
    for (std::int64_t o = 0; o < outer; points(bytes + 64), ++o)
      std::memcpy(out.raw() + o * dims[axis] * inner + begin, part.raw() + o * bytes,
                  static_cast<std::size_t>(bytes));
    begin += bytes;
  }
  return is_packed(type) ? packed_as(type, out) : out;
}

/// One run of a loop on tensors.
class LoopRunner {
 public:
  LoopRunner(const Loop& op, EvalContext& c) : op_(op), c_(c), body_(c.bodies()[0]) {
    limit_ = INT64_MAX;
    if (c.has(0))
      if (const auto trips = c.ints(0).at(0); trips >= 0) limit_ = trips;
    for (std::size_t i = 0; i < op.slice_axes.size(); ++i) {
      const auto& x = c.in(first_slice() + i);
      const auto rule = slice_rule(op, i);
      const auto axis = normalize_axis(rule.axis, x.rank(), "slice axis");
      const auto cut = cut_of(rule, x.shape()[axis]);
      if (!cut)
        fail(ErrorCode::bad_input, "slices from {} to {} leave an axis of {}", rule.start, rule.end,
             x.shape()[axis]);
      limit_ = std::min(limit_, cut->count);
      sliced_.push_back(unpacked(x));
    }
    for (std::size_t i = 0; i < carried(); ++i) state_.push_back(c.in(2 + i));
    collected_.resize(op.concat_axes.size());
  }

  void run() {
    bool go_on = !c_.has(1) || is_true(c_.in(1));
    const auto most = StopScope::loop_iterations();
    for (std::int64_t i = 0; i < limit_ && go_on; ++i) {
      if (i >= most)
        fail(ErrorCode::over_limit, "the loop has not ended after {} iterations (LIMIT_LOOP_ITERATIONS)",
             most);
      stop_point();
      auto results = c_.run(body_, parameters(i, go_on));
      go_on = is_true(results.at(0));
      take(results);
      ++done_;
    }
    put();
  }

 private:
  std::size_t carried() const { return static_cast<std::size_t>(op_.carried); }
  std::size_t last() const { return static_cast<std::size_t>(op_.last); }
  std::size_t first_slice() const { return 2 + carried(); }

  /// A number in the type that the body declares for a parameter.
  Tensor single_value(std::size_t parameter, ElementType otherwise, std::int64_t value) const {
    const auto& type = body_.type(body_.inputs()[parameter]);
    const Dims dims(type.shape.ranked() ? type.shape.rank() : 0, 1);
    return from_ints(type.element == ElementType::undefined ? otherwise : type.element, dims, {value});
  }

  Tensor slice(std::size_t i, std::int64_t iteration) const {
    const auto& x = sliced_[i];
    const auto type = c_.in(first_slice() + i).element_type();
    const auto rule = slice_rule(op_, i);
    const auto axis = normalize_axis(rule.axis, x.rank(), "slice axis");
    const auto cut = *cut_of(rule, x.shape()[axis]);
    auto part = part_of(
        x, axis, rule.stride > 0 ? cut.low + iteration * rule.part : cut.high - (iteration + 1) * rule.part,
        rule.part);
    return is_packed(type) ? packed_as(type, part) : part;
  }

  std::vector<Tensor> parameters(std::int64_t iteration, bool go_on) const {
    std::vector<Tensor> out{single_value(0, ElementType::i64, iteration),
                            single_value(1, ElementType::boolean, go_on)};
    out.insert(out.end(), state_.begin(), state_.end());
    for (std::size_t i = 0; i < op_.slice_axes.size(); ++i) out.push_back(slice(i, iteration));
    for (auto i = out.size(); i < c_.inputs(); ++i) out.push_back(c_.in(i));
    return out;
  }

  void take(std::vector<Tensor>& results) {
    const auto first = results.begin() + 1;
    for (std::size_t i = 0; i < carried(); ++i) state_[i] = std::move(first[static_cast<std::ptrdiff_t>(i)]);
    last_.assign(first + static_cast<std::ptrdiff_t>(carried()),
                 first + static_cast<std::ptrdiff_t>(carried() + last()));
    for (std::size_t i = 0; i < collected_.size(); ++i)
      collected_[i].push_back(first[static_cast<std::ptrdiff_t>(carried() + last() + i)]);
  }

  void put() {
    for (std::size_t i = 0; i < carried(); ++i) c_.set(i, std::move(state_[i]));
    for (auto i = carried(); i < c_.outputs() && done_ == 0; ++i)
      if (!c_.results()[i].valid())
        fail(ErrorCode::bad_input, "no iteration runs, and the shape of output {} is not known without one",
             i);
    if (done_ == 0) return;  // outputs are zeros, or empty
    for (std::size_t i = 0; i < last(); ++i) c_.set(carried() + i, std::move(last_[i]));
    for (std::size_t i = 0; i < collected_.size(); ++i)
      c_.set(carried() + last() + i,
             joined(collected_[i], op_.concat_axes[i], at_or(op_.concat_strides, i, 1) < 0));
  }

  const Loop& op_;
  EvalContext& c_;
  const Graph& body_;
  std::int64_t limit_ = 0, done_ = 0;
  std::vector<Tensor> sliced_;  ///< of one byte or more per element
  std::vector<Tensor> state_, last_;
  std::vector<std::vector<Tensor>> collected_;
};

}  // namespace

void Loop::evaluate(EvalContext& c) const { LoopRunner(*this, c).run(); }

}  // namespace lamina
