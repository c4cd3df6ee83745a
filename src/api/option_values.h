#pragma once
/// How the values of options are written.
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lamina/options.h"

namespace lamina {

/// Names between commas; empty ones are left out.
std::vector<std::string> names_of(std::string_view text);
/// Digits only, with a minus where `low` is below 0.
std::optional<std::int64_t> whole(std::string_view text, std::int64_t low, std::int64_t high);

/// A number of bytes: "1000", "64k", "2GiB", "1.5 GB". K, M, G and T, alone or followed by iB, are powers of
/// 1024, followed by B of 1000. Nothing for anything else, for less than one byte and for more than 2^60.
std::optional<std::uint64_t> bytes_of(std::string_view text);

/// Words for the values of an enumeration. The first of a value is the one that is shown; those that are read
/// are in capitals.
template <class E>
using WordFor = std::pair<std::string_view, E>;
template <class E>
using Words = std::span<const WordFor<E>>;

template <class E>
std::optional<E> of_word(Words<E> words, std::string_view text) {
  for (const auto& [word, value] : words)
    if (text == word) return value;
  return {};
}
/// Empty for what is no value of the enumeration.
template <class E>
std::string word_of(Words<E> words, E value) {
  for (const auto& [word, of] : words)
    if (value == of) return std::string(word);
  return "";
}

extern const Words<bool> kTruth;
std::string yes_no(bool on);

extern const Words<Binding> kBindings;
extern const Words<Binding> kAffinities;
extern const Words<Binding> kPinning;  ///< whether threads are bound to anything
extern const Words<Precision> kPrecisions;
extern const Words<ExecutionMode> kModes;
extern const Words<PerformanceHint> kHints;
extern const Words<HyperThreading> kHyperThreading;
extern const Words<CoreType> kCores;
extern const Words<CacheMode> kCacheModes;
extern const Words<ExternalFiles> kExternalFiles;

}  // namespace lamina
