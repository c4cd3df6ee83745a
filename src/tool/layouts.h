#pragma once
/// What -layout says of a model's inputs.
#include <map>
#include <string>
#include <vector>

#include "lamina/lamina.h"

namespace lamina::tool {

/// By input, which dimension is what: "NCHW", "N...", "N,C,?,?". A layout without a name is that of all
/// inputs which have so many dimensions; one with a name goes before.
class Layouts {
 public:
  /// Throws UsageError for what is no letter or there twice, for a name that is no input's, and for more or
  /// fewer dimensions than inputs have.
  Layouts(const std::vector<std::string>& texts, const std::vector<Port>& ports);

  /// A letter per dimension, '?' where it has none; empty: nothing is said.
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
