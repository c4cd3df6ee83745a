#pragma once
/// The table of options: their keys, how they are set, asked for and used.
#include <functional>

#include "base/placement.h"
#include "lamina/options.h"

namespace lamina {

/// Resolved settings: the options as they are used.
struct Settings {
  Options options = {};      ///< as given
  Placement placement = {};  ///< of streams and threads
  Precision precision = Precision::model;
  Options made_with = options;        ///< of a model whose file's options count: these
  std::string precision_reason = {};  ///< why it is not what was asked for, or which key decided; else empty
};

/// The reason of what comes of a compiled model's file.
constexpr std::string_view kOfFile = "the file was compiled with it";

struct OptionRow {
  OptionInfo info;
  /// False for a bad value, which changes nothing. Words come in capitals where `words`.
  std::function<bool(Options&, std::string_view)> set = {};
  /// The value in the options.
  std::function<std::string(const Options&)> asked = {};
  /// The value in use and why; empty: as in the options.
  std::function<std::pair<std::string, std::string>(const Settings&)> used = {};
  /// "threads -1" where the field holds what no key can set; else empty.
  std::function<std::string(const Options&)> wrong = {};
  bool words = true;  ///< false: a path or names, whose case matters
};

const std::vector<OptionRow>& option_rows();
/// The row of a key, with or without KEY_; null: there is none.
const OptionRow* find_option(std::string_view key);
/// Throws Error(bad_option): not known, with the nearest one, or read-only.
[[noreturn]] void refuse_key(std::string_view key);

/// The precision that options ask for, and by which key; see Options::precision.
std::pair<Precision, std::string_view> asked_precision(const Options& options);

/// What bounds a number: throws Error(bad_option) for fields that did not come through Options::set.
void check_options(const Options& options);

}  // namespace lamina
