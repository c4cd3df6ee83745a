#pragma once
/// The scores among which a TopK chooses, row by row.
#include <cstdint>
#include <span>
#include <vector>

#include "check/exact_numbers.h"
#include "lamina/tensor.h"
#include "ops/sorting.h"

namespace lamina::checking {

/// Scores so that more is better: of a TopK for the smallest they are negated.
class ScoreRows {
 public:
  /// `indices`: what the TopK gave for scores of this shape.
  ScoreRows(const TopK& op, const Tensor& scores, const Tensor& indices);

  std::size_t count() const { return outer_ * inner_; }
  std::int64_t size() const { return static_cast<std::int64_t>(size_); }  ///< of a row
  std::size_t places() const { return places_; }                          ///< k
  /// Of an element of the indices.
  std::size_t row_of(std::size_t element) const {
    return element / (places_ * inner_) * inner_ + element % inner_;
  }
  std::size_t place_of(std::size_t element) const { return element / inner_ % places_; }

  Exact score(std::size_t row, std::int64_t index) const {
    return scores_[(row / inner_ * size_ + static_cast<std::size_t>(index)) * inner_ + row % inner_];
  }
  /// The score that belongs to the place; places count from the best.
  Exact best(std::size_t row, std::size_t place) const { return score(row, first_[row * kept_ + place]); }
  /// Indices of the best scores of a row, the best first: at least those of all places, and of the next ones
  /// those that are no other order of magnitude. Scores that a mask made very small say nothing of noise.
  std::span<const std::int64_t> contenders(std::size_t row) const {
    return std::span(first_).subspan(row * kept_, contenders_[row]);
  }
  /// Some score is not a number: engines do not agree what is the best then.
  bool undecided(std::size_t row) const { return undecided_[row]; }

 private:
  void rank(std::size_t row);

  std::size_t outer_ = 1, size_ = 1, inner_ = 1, places_ = 1, kept_ = 1;
  std::vector<Exact> scores_;
  std::vector<std::int64_t> first_;      ///< kept_ indices for each row
  std::vector<std::size_t> contenders_;  ///< how many of them, by row
  std::vector<bool> undecided_;
};

}  // namespace lamina::checking
