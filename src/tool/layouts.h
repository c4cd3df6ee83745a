#pragma once
/// The layouts of a model's inputs that -layout gives.
#include <map>
#include <string>
#include <vector>

#include "lamina/lamina.h"

namespace lamina::tool {

/// The meaning of each dimension, by input: "NCHW", "N...", "N,C,?,?". A layout without a name is for all
/// inputs with as many dimensions; one with a name takes precedence.
class Layouts {
 public:
  /// Throws UsageError for a character that is no letter, a letter that occurs twice, an unknown input, and
  /// for more or fewer dimensions than inputs have.
  Layouts(const std::vector<std::string>& texts, const std::vector<Port>& ports);

  /// A letter per dimension, '?' for one without a letter; empty: no layout was given.
  std::string of(const std::string& input) const;
  /// The dimension of that letter; npos: none that is known.
  std::size_t find(const std::string& input, char letter) const { return of(input).find(letter); }
  /// Where the batches of inputs are (npos: the input has none), for those where that is said. Without an N
  /// anywhere it is in front, where no other letter stands.
  std::map<std::string, std::size_t> batch_axes() const;

 private:
  std::map<std::string, std::string> letters_;
};

}  // namespace lamina::tool
