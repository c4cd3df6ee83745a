#include "graph/shape.h"

#include <algorithm>
#include <deque>
#include <unordered_map>

#include "base/no_destructor.h"
#include "base/quiescence.h"

namespace lamina {
namespace {

/// Names of dimensions. Entries are never removed, so references stay good. Errors name dimensions outside
/// activities, where fork() does not wait for the thread: so the lock is one that a child finds free, and
/// neither function may be called while the caller is undisturbed itself.
class Symbols {
 public:
  std::uint32_t intern(const std::string& name) {
    const Quiescence::Undisturbed here;
    auto [it, added] = index_.try_emplace(name, static_cast<std::uint32_t>(names_.size()));
    if (added) names_.push_back(name);
    return it->second;
  }
  const std::string& name(std::uint32_t symbol) {
    const Quiescence::Undisturbed here;
    return names_[symbol];
  }

 private:
  std::deque<std::string> names_{""};
  std::unordered_map<std::string, std::uint32_t> index_{{"", 0}};
};

Symbols& symbols() {
  static ProcessLifetime table([] { return Symbols(); });
  return *table;
}

std::int64_t saturated_product(std::int64_t a, std::int64_t b) {
  std::int64_t r = 0;
  if (!__builtin_mul_overflow(a, b, &r)) return r;
  return (a < 0) == (b < 0) ? Dim::kUnbounded : INT64_MIN;
}

std::int64_t saturated_sum(std::int64_t a, std::int64_t b) {
  std::int64_t r = 0;
  if (!__builtin_add_overflow(a, b, &r)) return r;
  return b < 0 ? INT64_MIN : Dim::kUnbounded;
}

std::int64_t saturated_difference(std::int64_t a, std::int64_t b) {
  std::int64_t r = 0;
  if (!__builtin_sub_overflow(a, b, &r)) return r;
  return b < 0 ? Dim::kUnbounded : INT64_MIN;
}

}  // namespace

Dim Dim::named(const std::string& name, std::int64_t low, std::int64_t high) {
  Dim d(low, high);
  if (low != high) d.symbol_ = symbols().intern(name);
  return d;
}

const std::string& Dim::name() const { return symbols().name(symbol_); }

bool Dim::same(const Dim& other) const {
  if (known() && other.known()) return low_ == other.low_;
  return !known() && !other.known() && symbol_ != 0 && symbol_ == other.symbol_;
}

Dim operator+(const Dim& a, const Dim& b) {
  if (a.is(0)) return b;
  if (b.is(0)) return a;
  return {saturated_sum(a.low(), b.low()), saturated_sum(a.high(), b.high())};
}

Dim operator-(const Dim& a, const Dim& b) {
  if (b.is(0)) return a;
  const auto low = b.high() == Dim::kUnbounded ? 0 : saturated_difference(a.low(), b.high());
  const auto high = a.high() == Dim::kUnbounded ? Dim::kUnbounded : saturated_difference(a.high(), b.low());
  if (a.known() && b.known()) return {low, high};
  return {std::max<std::int64_t>(low, 0), std::max<std::int64_t>(high, 0)};
}

Dim operator*(const Dim& a, const Dim& b) {
  if (a.is(1)) return b;
  if (b.is(1)) return a;
  return {saturated_product(a.low(), b.low()), saturated_product(a.high(), b.high())};
}

Dim floor_div(const Dim& a, std::int64_t divisor) {
  if (divisor == 1) return a;
  const auto div = [&](std::int64_t v) {
    return v == Dim::kUnbounded ? v : v / divisor - (v % divisor < 0 ? 1 : 0);
  };
  return {div(a.low()), div(a.high())};
}

void Shape::no_such_axis(std::size_t axis) const {
  fail(ErrorCode::internal, "internal error: axis {} of the shape {}", axis, to_string(*this));
}

bool Shape::known() const {
  return ranked_ && std::all_of(dims_.begin(), dims_.end(), [](const Dim& d) { return d.known(); });
}

Dims Shape::sizes() const {
  LAMINA_CHECK(known(), "sizes of the unknown shape {}", to_string(*this));
  Dims out;
  out.reserve(dims_.size());
  for (const auto& d : dims_) out.push_back(d.size());
  return out;
}

Dim Shape::count() const {
  if (!ranked_) return {};
  if (known()) return static_cast<std::int64_t>(element_count(sizes()));
  Dim product = 1;
  for (const auto& d : dims_) product = product * d;
  return product;
}

bool Shape::same(const Shape& other) const {
  return ranked_ && other.ranked_ && dims_.size() == other.dims_.size() &&
         std::equal(dims_.begin(), dims_.end(), other.dims_.begin(),
                    [](const Dim& a, const Dim& b) { return a.same(b); });
}

bool Shape::fits(const Shape& other) const {
  if (!ranked_ || !other.ranked_) return true;
  return dims_.size() == other.dims_.size() &&
         std::equal(dims_.begin(), dims_.end(), other.dims_.begin(),
                    [](const Dim& a, const Dim& b) { return a.fits(b); });
}

std::string to_string(const Dim& dim) {
  if (dim.known()) return std::to_string(dim.size());
  const bool bounded = dim.low() != 0 || dim.high() != Dim::kUnbounded;
  std::string bounds;
  if (bounded)
    bounds =
        fmt::format("{}..{}", dim.low(), dim.high() == Dim::kUnbounded ? "" : std::to_string(dim.high()));
  if (dim.name().empty()) return bounded ? bounds : "?";
  return bounded ? dim.name() + ":" + bounds : dim.name();
}

std::string to_string(const Shape& shape) {
  if (!shape.ranked()) return "[...]";
  std::string out = "[";
  for (std::size_t i = 0; i < shape.rank(); ++i) out += (i ? "," : "") + to_string(shape[i]);
  return out + "]";
}

std::string to_string(const Dims& dims) { return fmt::format("[{}]", fmt::join(dims, ",")); }

std::string to_string(const TensorType& type) {
  return std::string(name_of(type.element)) + to_string(type.shape);
}

bool fits(const TensorType& type, const Tensor& tensor) {
  if (type.element != ElementType::undefined && tensor.element_type() != type.element) return false;
  const auto& sizes = tensor.shape();
  return !type.shape.ranked() || (sizes.size() == type.shape.rank() &&
                                  std::equal(sizes.begin(), sizes.end(), type.shape.dims().begin(),
                                             [](auto size, const Dim& d) { return d.fits(size); }));
}

void require_fit(std::string_view what, std::string_view name, const Tensor& tensor, const TensorType& type) {
  if (!tensor.valid())
    fail(ErrorCode::bad_input, "{} \"{}\": no tensor, wanted {}", what, name, to_string(type));
  if (!fits(type, tensor))
    fail(ErrorCode::bad_input, "{} \"{}\": {}{}, wanted {}", what, name, name_of(tensor.element_type()),
         to_string(tensor.shape()), to_string(type));
}

std::optional<Shape> broadcast(const Shape& a, const Shape& b) {
  if (!a.ranked() || !b.ranked()) return Shape();
  const auto rank = std::max(a.rank(), b.rank());
  std::vector<Dim> out(rank);
  for (std::size_t i = 0; i < rank; ++i) {
    const Dim x = i + a.rank() < rank ? Dim(1) : a[i + a.rank() - rank];
    const Dim y = i + b.rank() < rank ? Dim(1) : b[i + b.rank() - rank];
    if (x.is(1)) {
      out[i] = y;
    } else if (y.is(1) || x.same(y)) {
      out[i] = x;
    } else if (x.known() && y.known()) {
      return std::nullopt;
    } else if (x.known() || y.known()) {
      out[i] = x.known() ? x : y;  // the unknown one is 1 or the same
    } else {
      out[i] = Dim();
    }
  }
  return Shape(std::move(out));
}

namespace {

/// The intersection of two ranges that overlap, with the name of a, or else of b.
Dim merge(const Dim& a, const Dim& b) {
  const auto low = std::max(a.low(), b.low()), high = std::min(a.high(), b.high());
  const auto is = [&](const Dim& x) { return x.low() == low && x.high() == high; };
  const auto& named = a.name().empty() ? b : a;
  if (is(named)) return named;
  return low == high || named.name().empty() ? Dim(low, high) : Dim::named(named.name(), low, high);
}

}  // namespace

std::optional<Shape> merge(const Shape& a, const Shape& b) {
  if (!a.ranked()) return b;
  if (!b.ranked()) return a;
  if (a.rank() != b.rank()) return std::nullopt;
  std::vector<Dim> out;
  for (std::size_t i = 0; i < a.rank(); ++i) {
    if (!a[i].fits(b[i])) return std::nullopt;
    out.push_back(merge(a[i], b[i]));
  }
  return Shape(std::move(out));
}

std::size_t normalize_axis(std::int64_t axis, std::size_t rank, std::string_view what) {
  const auto r = static_cast<std::int64_t>(rank);
  if (axis < -r || axis >= r) fail(ErrorCode::bad_file, "{} is {}, wanted {}..{}", what, axis, -r, r - 1);
  return static_cast<std::size_t>(axis < 0 ? axis + r : axis);
}

}  // namespace lamina
