#include "ops/generation.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>
#include <random>

#include "base/cancellation.h"
#include "base/limits.h"
#include "graph/op_model.h"
#include "graph/permute.h"
#include "ops/operators.h"
#include "ops/packed.h"
#include "ops/repeated_draws.h"
#include "ops/require.h"
#include "ops/walk.h"

namespace lamina {

namespace {

/// Number of values of start, start + step, ... before stop.
std::int64_t range_count(double start, double stop, double step) {
  const double count = std::ceil((stop - start) / step);
  if (!(step != 0) || !std::isfinite(count) || count > static_cast<double>(Limits::kElements))
    fail(ErrorCode::bad_input, "a range from {} to {} in steps of {} has no end", start, stop, step);
  return count > 0 ? static_cast<std::int64_t>(count) : 0;
}

/// Holds every i64 and every u64.
__extension__ using Wide = __int128;

std::int64_t range_count(Wide start, Wide stop, Wide step) {
  if (step == 0) fail(ErrorCode::bad_input, "a range in steps of 0 has no end");
  if (step > 0 ? start >= stop : start <= stop) return 0;
  const Wide count = step > 0 ? (stop - start - 1) / step + 1 : (start - stop - 1) / -step + 1;
  if (count > Limits::kElements)
    fail(ErrorCode::bad_input, "a range of {} and more values is too long",
         static_cast<std::int64_t>(Limits::kElements));
  return static_cast<std::int64_t>(count);
}

/// The first element; floats truncate.
Wide whole_number(const Tensor& t) {
  if (t.element_type() == ElementType::u64) return to_numbers<std::uint64_t>(t).at(0);
  return to_numbers<std::int64_t>(t).at(0);
}

}  // namespace

void Range::infer(InferContext& c) const {
  c.require(is_float(output_type) || is_integer(output_type), "output_type is {}, wanted a number type",
            name_of(output_type));
  for (std::size_t i = 0; i < 3; ++i)
    require_one_element(c, i, i == 0 ? "start" : (i == 1 ? "stop" : "step"));
  c.set(0, output_type, Shape{Dim()});
  const auto start = c.constant(0), stop = c.constant(1), step = c.constant(2);
  if (start && stop && step) {
    c.require(start->size() == 1 && stop->size() == 1 && step->size() == 1,
              "start, stop or step has no element");
    const auto count = is_integer(output_type)
                           ? range_count(whole_number(*start), whole_number(*stop), whole_number(*step))
                           : range_count(to_doubles(*start)[0], to_doubles(*stop)[0], to_doubles(*step)[0]);
    return c.set(0, output_type, Shape{Dim(count)});
  }
  const auto from = c.ints(0), by = c.ints(2);  // 0, 1, ... below a dimension
  const auto to = c.dims(1);
  if (from && by && to && from->size() == 1 && by->size() == 1 && to->size() == 1 && from->front() == 0 &&
      by->front() == 1 && to->front().low() >= 0)
    c.set(0, output_type, Shape{to->front()});
}

void Range::evaluate(EvalContext& c) const {
  const auto count = c.out().size();
  if (is_integer(output_type)) {
    const auto start = static_cast<std::uint64_t>(whole_number(c.in(0))),
               step = static_cast<std::uint64_t>(whole_number(c.in(2)));
    std::vector<std::uint64_t> out(count);
    for (std::size_t i = 0; i < count; ++i) out[i] = start + i * step;
    return c.store(0, out);
  }
  const double start = c.doubles(0)[0], step = c.doubles(2)[0];
  std::vector<double> out(count);
  for (std::size_t i = 0; i < count; ++i) out[i] = start + static_cast<double>(i) * step;
  c.store(0, out);
}

void OneHot::infer(InferContext& c) const {
  require_integer(c, 0, "indices");
  require_integer(c, 1, "depth");
  require_one_element(c, 1, "depth");
  require_one_element(c, 2, "on_value");
  require_one_element(c, 3, "off_value");
  c.require(c.element(2) == c.element(3) || c.element(2) == ElementType::undefined ||
                c.element(3) == ElementType::undefined,
            "on_value has type {}, off_value {}, wanted the same", name_of(c.element(2)),
            name_of(c.element(3)));
  const auto& indices = c.shape(0);
  if (!indices.ranked()) return c.set(0, c.element(2), Shape());
  const auto at = normalize_axis(axis, indices.rank() + 1, "axis");
  const auto depth = c.dims(1);
  const Dim size = depth && depth->size() == 1 ? depth->front() : Dim();
  c.require(!size.known() || size.size() >= 0, "depth is {}, wanted 0 or more", size.low());
  auto out = indices.dims();
  out.insert(out.begin() + static_cast<std::ptrdiff_t>(at), size);
  c.set(0, c.element(2), std::move(out));
}

void OneHot::evaluate(EvalContext& c) const {
  if (moved_unpacked(c)) return;
  const auto indices = c.ints(0);
  const auto at = normalize_axis(axis, c.dims(0).size() + 1, "axis");
  const auto depth = c.out_dims()[at], inner = volume(c.dims(0), at, c.dims(0).size());
  const auto bytes = element_bytes(c.in(2).element_type());
  auto* out = c.out().raw();
  StopPoints points;
  for (std::size_t i = 0; i < c.out().size(); points(4), ++i)
    std::memcpy(out + i * bytes, c.in(3).raw(), bytes);
  for (std::size_t i = 0; i < indices.size(); ++i) {
    points(8);
    auto v = indices[i];
    if (v < 0 && negative_indices_mode == NegativeIndices::normalize) v += depth;
    if (v < 0 || v >= depth) continue;
    const auto o = static_cast<std::int64_t>(i) / inner, k = static_cast<std::int64_t>(i) % inner;
    std::memcpy(out + static_cast<std::size_t>((o * depth + v) * inner + k) * bytes, c.in(2).raw(), bytes);
  }
}

namespace {

void infer_running(InferContext& c) {
  c.set(0, c.element(0), c.shape(0));
  const auto axis = c.has(1) ? known_int(c, 1, "axis") : 0;
  if (!c.shape(0).ranked()) return;
  c.require(c.shape(0).rank() > 0, "x is a scalar, wanted at least one axis");
  if (axis) normalize_axis(*axis, c.shape(0).rank(), "axis");
}

template <class T, class F>
std::vector<T> running(const std::vector<T>& x, std::int64_t size, std::int64_t inner, bool exclusive,
                       bool reverse, T first, F join) {
  std::vector<T> out(x.size());
  const auto rows = static_cast<std::int64_t>(x.size()) / std::max<std::int64_t>(size * inner, 1);
  StopPoints points;
  for (std::int64_t o = 0; o < rows; ++o)
    for (std::int64_t i = 0; i < inner; ++i) {
      T value = first;
      for (std::int64_t n = 0; n < size; points(), ++n) {
        const auto at = static_cast<std::size_t>((o * size + (reverse ? size - 1 - n : n)) * inner + i);
        if (exclusive) out[at] = value;
        value = join(value, x[at]);
        if (!exclusive) out[at] = value;
      }
    }
  return out;
}

template <class F>
void evaluate_running(EvalContext& c, bool exclusive, bool reverse, int first, F join) {
  const auto& dims = c.dims(0);
  const auto axis = normalize_axis(c.has(1) ? c.ints(1).at(0) : 0, dims.size(), "axis");
  const auto inner = volume(dims, axis + 1, dims.size());
  if (is_float(c.in(0).element_type()))
    return c.store(
        0, running(c.doubles(0), dims[axis], inner, exclusive, reverse, static_cast<double>(first), join));
  // Unsigned, so that results wrap.
  c.store(0, running(c.numbers<std::uint64_t>(0), dims[axis], inner, exclusive, reverse,
                     static_cast<std::uint64_t>(first), join));
}

}  // namespace

void CumSum::infer(InferContext& c) const { infer_running(c); }
void CumSum::evaluate(EvalContext& c) const {
  evaluate_running(c, exclusive, reverse, 0, [](auto a, auto b) { return a + b; });
}

void CumProd::infer(InferContext& c) const { infer_running(c); }
void CumProd::evaluate(EvalContext& c) const {
  evaluate_running(c, exclusive, reverse, 1, [](auto a, auto b) { return a * b; });
}

void Eye::infer(InferContext& c) const {
  c.require(output_type != ElementType::undefined && bits_of(output_type) >= 8,
            "output_type is {}, wanted whole bytes", name_of(output_type));
  known_int(c, 2, "diagonal index");
  std::vector<Dim> out, sides;
  for (std::size_t i = 0; i < 2; ++i) {  // before any return: InferContext::lacks
    require_integer(c, i, i == 0 ? "rows" : "columns");
    require_one_element(c, i, i == 0 ? "rows" : "columns");
    const auto size = c.dims(i);
    sides.push_back(size && size->size() == 1 ? size->front() : Dim());
  }
  if (c.has(3)) {
    require_integer(c, 3, "batch shape");
    require_rank(c, 3, 1, "batch shape");
    const auto batch = c.dims(3);
    if (!batch && (!c.shape(3).ranked() || !c.shape(3)[0].known() || c.shape(3)[0].size() > 64))
      return c.set(0, output_type, Shape());
    out = batch ? *batch : std::vector<Dim>(static_cast<std::size_t>(c.shape(3)[0].size()));
  }
  out.insert(out.end(), sides.begin(), sides.end());
  for (const auto& d : out) c.require(!d.known() || d.size() >= 0, "a size is {}, wanted 0 or more", d.low());
  c.set(0, output_type, std::move(out));
}

void Eye::evaluate(EvalContext& c) const {
  const auto& dims = c.out_dims();
  const auto rows = dims[dims.size() - 2], columns = dims[dims.size() - 1], shift = c.ints(2).at(0);
  std::vector<float> out(c.out().size(), 0.0f);
  const auto per_matrix = static_cast<std::size_t>(rows * columns);
  for (std::size_t m = 0; m < out.size(); m += per_matrix)
    for (std::int64_t r = 0; r < rows; ++r) {
      if (shift >= columns || shift < -rows || r + shift < 0 || r + shift >= columns) continue;
      out[m + static_cast<std::size_t>(r * columns + r + shift)] = 1.0f;
    }
  c.store(0, out);
}

void Trilu::infer(InferContext& c) const {
  c.set(0, c.element(0), c.shape(0));
  if (c.has(1)) known_int(c, 1, "k");
  if (c.shape(0).ranked())
    c.require(c.shape(0).rank() >= 2, "x has shape {}, wanted at least rank 2", to_string(c.shape(0)));
}

void Trilu::evaluate(EvalContext& c) const {
  if (moved_unpacked(c)) return;
  const auto& dims = c.dims(0);
  const auto rows = dims[dims.size() - 2], columns = dims[dims.size() - 1];
  const auto k = std::clamp(c.has(1) ? c.ints(1).at(0) : 0, -rows - 1, columns + 1);
  const auto bytes = element_bytes(c.in(0).element_type());
  StopPoints points;
  for (std::size_t i = 0; i < c.out().size(); ++i) {
    points(8);
    const auto column = static_cast<std::int64_t>(i) % columns,
               row = static_cast<std::int64_t>(i) / columns % rows;
    if (upper ? column - row >= k : column - row <= k)
      std::memcpy(c.out().raw() + i * bytes, c.in(0).raw() + i * bytes, bytes);
  }
}

namespace {

/// The finalizer of SplitMix64: every bit of the result depends on every bit of z.
std::uint64_t scattered(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

std::atomic<int> repeated_draws = 0;

/// Another number at each call, in forked processes too.
std::uint64_t fresh_seed() {
  std::random_device device;
  return (std::uint64_t{device()} << 32) | device();
}

std::uint64_t seed_from_name(const Node& node) {
  std::uint64_t out = 0;
  for (const char letter : node.name) out = (out ^ static_cast<unsigned char>(letter)) * 0x100000001b3u;
  return out;
}

/// SplitMix64: small, and from one seed the same on every machine. Seeds are scattered, since streams whose
/// states differ by a few steps are the same numbers, moved by so many places.
class Random {
 public:
  Random(const Node& node, std::int64_t global_seed, std::int64_t op_seed)
      : state_(scattered(scattered(static_cast<std::uint64_t>(global_seed)) +
                         static_cast<std::uint64_t>(op_seed))) {
    if (global_seed == 0 && op_seed == 0)
      state_ = repeated_draws.load() > 0 ? seed_from_name(node) : fresh_seed();
  }
  std::uint64_t bits() {
    state_ += 0x9e3779b97f4a7c15u;
    return scattered(state_);
  }
  double uniform() { return static_cast<double>(bits() >> 11) * 0x1p-53; }
  double normal() {
    const double radius = std::sqrt(-2 * std::log(1 - uniform()));
    return radius * std::cos(2 * std::numbers::pi * uniform());
  }

 private:
  std::uint64_t state_;
};

void infer_random(InferContext& c, ElementType type) {
  c.require(is_float(type) || is_integer(type), "output_type is {}, wanted a number type", name_of(type));
  require_integer(c, 0, "shape");
  require_rank(c, 0, 1, "shape");
  require_one_element(c, 1, "input 1");
  require_one_element(c, 2, "input 2");
  const auto dims = c.dims(0);
  if (!dims) {
    const auto& s = c.shape(0);
    return c.set(0, type,
                 s.ranked() && s[0].known() && s[0].size() <= 64
                     ? Shape::of_rank(static_cast<std::size_t>(s[0].size()))
                     : Shape());
  }
  for (const auto& d : *dims)
    c.require(!d.known() || d.size() >= 0, "a size is {}, wanted 0 or more", d.low());
  c.set(0, type, *dims);
}

}  // namespace

RepeatedDraws::RepeatedDraws() { ++repeated_draws; }
RepeatedDraws::~RepeatedDraws() { --repeated_draws; }

void RandomUniform::infer(InferContext& c) const { infer_random(c, output_type); }

void RandomUniform::evaluate(EvalContext& c) const {
  Random random(c.node(), global_seed, op_seed);
  if (is_integer(output_type)) {
    const Wide low = whole_number(c.in(1)), high = whole_number(c.in(2));
    if (high <= low || high - low > std::numeric_limits<std::uint64_t>::max())
      fail(ErrorCode::bad_input, "random integers from {} to {}, wanted min < max", static_cast<double>(low),
           static_cast<double>(high));
    std::vector<std::uint64_t> out(c.out().size());
    const auto span = static_cast<std::uint64_t>(high - low);
    StopPoints points;
    for (auto& v : out) points(4), v = static_cast<std::uint64_t>(low) + random.bits() % span;
    return c.store(0, out);
  }
  const double low = c.doubles(1).at(0), high = c.doubles(2).at(0);
  std::vector<double> out(c.out().size());
  StopPoints points;
  for (auto& v : out)
    points(4),
        v = low + (high - low) * (std::floor(random.uniform() * 0x1p24) * 0x1p-24);  // below max in f32 too
  c.store(0, out);
}

void RandomNormal::infer(InferContext& c) const { infer_random(c, output_type); }

void RandomNormal::evaluate(EvalContext& c) const {
  Random random(c.node(), global_seed, op_seed);
  const double mean = c.doubles(1).at(0), deviation = c.doubles(2).at(0);
  std::vector<double> out(c.out().size());
  StopPoints points;
  for (auto& v : out) points(32), v = mean + deviation * random.normal();
  c.store(0, out);
}

Verdict CumSum::permute(PermuteContext& c) const {
  const auto axis = c.node().has(1) ? c.node().ints(1) : Ints{0};
  if (!axis || axis->size() != 1) return not_known("axis");
  c.replace(1, Tensor::scalar(c.axis(axis->front())));
  return Verdict::yes();
}

void register_generation(Registry& r) {
  r.add<Range>();
  r.add<OneHot>();
  r.add<CumSum>();
  r.add<CumProd>();
  r.add<Eye>();
  r.add<Trilu>();
  r.add<RandomUniform>();
  r.add<RandomNormal>();
  r.add<Einsum>();
  r.add<GridSample>();
  r.add<DFT>();
  r.add<IDFT>();
  r.add<RDFT>();
  r.add<IRDFT>();
  r.add<STFT>();
}

}  // namespace lamina
