#pragma once
/// The messages of `lamina benchmark` while it works: benchmark_app's lines, or lamina's own.
#include <string>

#include "tool/common.h"

namespace lamina::tool {

/// Thread-safe once made: each line is written at once.
class Steps {
 public:
  /// `app`: benchmark_app's lines on standard output, unless --quiet or JSON goes there.
  Steps(bool app, const Common& common) : app_(app), common_(common) {}

  bool app() const { return app_; }
  /// "[Step 4/11] Reading model files"; `more` stands in brackets behind it. Nothing in lamina's own form.
  void step(int number, const std::string& more = "") const;
  /// "[ INFO ] ..."; nothing in lamina's own form.
  void info(const std::string& line) const;
  /// "[ WARNING ] ..."; a note on standard error in lamina's own form.
  void warn(const std::string& line) const;
  /// A note about inputs that were made up or changed: [ INFO ] in benchmark_app's form, a note in lamina's
  /// own.
  void note(const std::string& line) const;
  /// Errors and warnings of the library, the same way.
  LogCallback log(LogCallback own) const;

 private:
  bool speaks() const { return app_ && !common_.quiet && common_.json != "-"; }

  bool app_;
  const Common& common_;
};

}  // namespace lamina::tool
