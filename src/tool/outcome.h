#pragma once
/// The results of a measurement, and the functions that print and write them.
#include <functional>
#include <string>
#include <vector>

#include "tool/benchmark.h"

namespace lamina::tool {

struct Outcome {
  const BenchmarkCommand& o;
  const Subject& l;
  BenchmarkReport report;
};

/// lamina's own lines.
void print_figures(const Outcome& r);

/// The closing block of benchmark_app.
void say_closing_block(const Outcome& r, const Steps& steps);
/// The tables of -pc in benchmark_app's form.
void say_counters(const Outcome& r);

/// Writes several files; if one cannot be written, the others still are.
class Writings {
 public:
  void attempt(const std::function<void()>& write);
  /// Throws Error(bad_file), which names each file that was not written, with the reason.
  void check() const;

 private:
  std::vector<std::string> failed_;
};

/// Throws Error(bad_file) if -report_folder is no folder and cannot be made.
void make_report_folder(const BenchmarkCommand& o);
/// The files of -report_type and -pcsort.
void write_reports(const Outcome& r, const Steps& steps, Writings& writings);

}  // namespace lamina::tool
