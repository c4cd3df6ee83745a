#include "kernels/native/stages/few_rows.h"

#include <fmt/core.h>
#include <algorithm>
#include <cstring>

#include "kernels/kernel.h"

namespace lamina {
namespace {

constexpr std::size_t kMostRows = 256;
/// Points for each row, at least.
constexpr std::int64_t kLeastPoints = 4;

/// Tells rows by their bits.
class FoundRows {
 public:
  explicit FoundRows(std::int64_t channels) : bytes_(static_cast<std::size_t>(channels) * sizeof(float)) {}

  /// Neighbours are often alike. Nothing when there are too many.
  std::optional<std::uint8_t> number_of(const float* row) {
    if (last_ < rows_.size() && alike(rows_[last_], row)) return static_cast<std::uint8_t>(last_);
    for (last_ = 0; last_ < rows_.size(); ++last_)
      if (alike(rows_[last_], row)) return static_cast<std::uint8_t>(last_);
    if (rows_.size() == kMostRows) return std::nullopt;
    rows_.push_back(row);
    return static_cast<std::uint8_t>(last_);
  }
  const std::vector<const float*>& all() const { return rows_; }

 private:
  bool alike(const float* a, const float* b) const { return std::memcmp(a, b, bytes_) == 0; }

  std::size_t bytes_, last_ = 0;
  std::vector<const float*> rows_;
};

/// A file may hold anything: each number is that of a row which is there.
bool fit(const FewRows& few, std::size_t elements, std::int64_t channels) {
  if (few.rows.element_type() != ElementType::f32 || few.numbers.element_type() != ElementType::u8 ||
      few.rows.rank() != 2 || few.rows.shape()[1] != padded_row(channels) ||
      few.numbers.size() * static_cast<std::size_t>(channels) != elements)
    return false;
  const auto numbers = few.numbers.data<std::uint8_t>();
  return *std::max_element(numbers.begin(), numbers.end()) < few.rows.shape()[0];
}

std::optional<FewRows> few_rows(const Tensor& dense, std::int64_t channels) {
  const auto points = static_cast<std::int64_t>(dense.size()) / channels;
  const auto* values = dense.data<float>().data();
  FoundRows rows(channels);
  FewRows few{{}, Tensor(ElementType::u8, {points})};
  auto* numbers = few.numbers.data<std::uint8_t>().data();
  for (std::int64_t p = 0; p < points; ++p) {
    const auto number = rows.number_of(values + p * channels);
    if (!number) return std::nullopt;
    numbers[p] = *number;
  }
  const auto count = static_cast<std::int64_t>(rows.all().size());
  if (count * kLeastPoints > points) return std::nullopt;
  const auto padded = padded_row(channels);
  few.rows = Tensor(ElementType::f32, {count, padded});
  auto* to = few.rows.data<float>().data();
  std::memset(to, 0, few.rows.bytes());
  for (const auto* row : rows.all()) {
    std::copy_n(row, channels, to);
    to += padded;
  }
  return few;
}

}  // namespace

std::optional<FewRows> few_rows(const Tensor& plain, Layout layout, std::int64_t channels,
                                WeightStore& store) {
  std::optional<FewRows> made;
  bool looked = false;
  const auto part_of = [&](const char* name, Tensor FewRows::*part) {
    return store.moved(plain, fmt::format("{} of {} channels as {}", name, channels, name_of(layout)),
                       PackedSize::of_any(), [&](const Tensor& t) {
                         if (!looked) made = few_rows(laid_out(t, layout), channels);
                         looked = true;
                         return made ? (*made).*part : Tensor(ElementType::u8, {0});
                       });
  };
  FewRows few{part_of("different rows", &FewRows::rows), part_of("numbers of rows", &FewRows::numbers)};
  if (few.numbers.size() == 0) return std::nullopt;
  if (!fit(few, plain.size(), channels))
    fail(ErrorCode::bad_file, "packed rows of {} channels: {} rows for {} points", channels, few.rows.size(),
         few.numbers.size());
  return few;
}

}  // namespace lamina
