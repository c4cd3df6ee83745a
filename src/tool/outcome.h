#pragma once
/// What a measurement gave, and the ways to tell it.
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tool/benchmark.h"

namespace lamina::tool {

/// Streams as they were made, and requests in flight.
struct Traffic {
  int streams, each, requests;
  bool sync = false;
  int threads() const { return std::max(streams, 1) * each; }
};

struct Outcome {
  const BenchmarkOptions& o;
  const Subject& l;
  Traffic traffic;
  Latencies latencies;
  std::vector<Counters> counters = {};  ///< of each request
  double frames() const;
  double fps() const { return frames() / latencies.seconds; }
};

/// lamina's own document and lines.
nlohmann::json document_of(const Outcome& r);
void print_figures(const Outcome& r, const nlohmann::json& document);

/// The closing block of benchmark_app.
void say_closing_block(const Outcome& r, const Steps& steps);
/// The tables of -pc there.
void say_counters(const Outcome& r);

/// Files of which one that cannot be written keeps none of the others back.
class Writings {
 public:
  void attempt(const std::function<void()>& write);
  /// Throws Error(bad_file), which says of each what was wrong.
  void check() const;

 private:
  std::vector<std::string> failed_;
};

/// Throws Error(bad_file) where -report_folder is none and cannot be made.
void make_report_folder(const BenchmarkOptions& o);
/// The files of -report_type and -pcsort.
void write_reports(const Outcome& r, const Steps& steps, Writings& writings);

}  // namespace lamina::tool
