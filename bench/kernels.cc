/// Times every offer of every kernel for problems (problem.h), in random order.
#include <benchmark/benchmark.h>
#include <tbb/task_arena.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "base/cpu.h"
#include "base/random.h"
#include "kernels/epilogue.h"
#include "kernels/family.h"
#include "kernels/kernel.h"
#include "plan/weight_store.h"
#include "problem.h"

namespace lamina::bench {
namespace {

struct Options {
  std::vector<std::string> problems, files;
  std::string kernel, max_isa = "native", json, model;
  int threads = 1, repetitions = 5;
  bool no_run = false;
  double seconds = 0.1;
};

/// One offer, made and bound to memory.
class Bound {
 public:
  Bound(const Graph& graph, NodeId id, const Offer& offer) {
    const Node& node = graph.node(id);
    MakeContext context{weights_};
    code_ = offer.make(context);
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const auto v = node.inputs[i];
      const bool consumed =
          std::find(offer.consumed.begin(), offer.consumed.end(), i) != offer.consumed.end();
      tensors_.push_back(v.valid() && !consumed ? value(graph, v, offer.inputs[i], i) : Tensor());
      in_.push_back(tensors_.back().valid() ? tensors_.back().raw() : nullptr);
    }
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      const auto& type = graph.type(node.outputs[i]);
      tensors_.push_back(laid_out(Tensor(type.element, type.shape.sizes()), offer.outputs[i]));
      out_.push_back(tensors_.back().raw());
    }
    scratch_ = Tensor(ElementType::u8, {static_cast<std::int64_t>(offer.scratch + 64)});
    step_ = code_->step();
    step_->bind({in_.data(), out_.data(), scratch_.raw()});
  }
  void run() { step_->run(); }

 private:
  static Tensor value(const Graph& graph, ValueId v, Layout layout, std::size_t seed) {
    const auto& type = graph.type(v);
    const auto* constant = graph.constant(v);
    const Tensor plain =
        constant ? constant->to_aligned() : seeded_tensor(type.element, type.shape.sizes(), seed + 1);
    return laid_out(plain, layout);
  }

  ModelWeights weights_;
  std::unique_ptr<Executable> code_;
  std::vector<Tensor> tensors_;
  std::vector<const void*> in_;
  std::vector<void*> out_;
  Tensor scratch_;
  std::unique_ptr<Step> step_;
};

/// What is known of one benchmark besides its time.
struct Row {
  std::string problem, op, label, layout;
  double flops = 0, bytes = 0;
  Cost cost;
  std::vector<double> microseconds;
};

/// One offer of one node. Memory lives while it is measured only.
void measure(benchmark::State& state, const Graph& graph, NodeId node, std::size_t offer,
             tbb::task_arena& arena) {
  arena.execute([&] {
    auto answers = ask_kernels(NodeView(graph, node));
    Bound bound(graph, node, answers.offers.at(offer));
    bound.run();
    for (auto _ : state) bound.run();
  });
}

/// Collects times; prints them by problem when all are there.
class Collector final : public benchmark::BenchmarkReporter {
 public:
  /// With one thread its processor time counts: others may use the processors, too.
  Collector(std::vector<Row>& rows, bool processor_time) : rows_(rows), processor_time_(processor_time) {}
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const auto& run : runs) {
      if (run.run_type != Run::RT_Iteration) continue;
      auto& row = rows_.at(std::stoul(run.run_name.function_name));
      const auto seconds = processor_time_ ? run.cpu_accumulated_time : run.real_accumulated_time;
      row.microseconds.push_back(seconds / static_cast<double>(run.iterations) * 1e6);
    }
  }

 private:
  std::vector<Row>& rows_;
  bool processor_time_;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

void print(const std::vector<Row>& rows) {
  std::string last;
  for (std::size_t i = 0; i < rows.size();) {
    auto end = i;
    while (end < rows.size() && rows[end].problem == rows[i].problem && rows[end].op == rows[i].op) ++end;
    fmt::print("\n{}   [{}: {:.3f} MFLOP, {:.3f} MB]\n", rows[i].problem, rows[i].op, rows[i].flops * 1e-6,
               rows[i].bytes * 1e-6);
    std::vector<const Row*> sorted;
    for (; i < end; ++i) sorted.push_back(&rows[i]);
    std::sort(sorted.begin(), sorted.end(),
              [](const Row* a, const Row* b) { return median(a->microseconds) < median(b->microseconds); });
    for (const auto* r : sorted) {
      const auto time = median(r->microseconds);
      if (time == 0) continue;
      fmt::print("  {:<36} {:<24} {:>10.2f} us {:>8.1f} GFLOP/s {:>7.1f} GB/s   estimated {:.2f} us\n",
                 r->label, r->layout, time, 1e-3 * r->flops / time, 1e-3 * r->bytes / time, r->cost.us());
    }
  }
}

/// What a call, a unit of work and a byte of each family take: here, and where all rates are 1.
nlohmann::json cost_table() {
  auto base = this_machine();
  base.rates = {};
  const auto list = [](const UnitCosts& c) { return std::array{c.call, c.work, c.byte}; };
  auto j = nlohmann::json::array();
  for (std::size_t i = 0; i < kFamilies; ++i) {
    const auto family = static_cast<Family>(i);
    j.push_back({{"family", name_of(family)},
                 {"us", list(unit_costs(this_machine(), family))},
                 {"base_us", list(unit_costs(base, family))}});
  }
  return j;
}

void write_json(const std::string& file, const Options& o, const std::vector<Row>& rows) {
  nlohmann::json j{{"processor", processor_name()},
                   {"isa", name_of(effective_isa())},
                   {"threads", o.threads},
                   {"table", cost_table()},
                   {"rows", nlohmann::json::array()}};
  for (const auto& r : rows) {
    if (r.microseconds.empty() && !o.no_run) continue;
    auto parts = nlohmann::json::object();
    for (const auto& p : r.cost.parts())
      parts[std::string(name_of(p.family))] = std::array{p.calls, p.work, p.bytes};
    j["rows"].push_back({{"problem", r.problem},
                         {"op", r.op},
                         {"label", r.label},
                         {"layout", r.layout},
                         {"cost", r.cost.us()},
                         {"parts", std::move(parts)},
                         {"microseconds", median(r.microseconds)}});
  }
  std::ofstream out(file);
  out << j.dump(1) << "\n";
  if (!out) fail(ErrorCode::bad_file, "{}: cannot be written", file);
}

std::vector<std::string> all_files() {
  std::vector<std::string> files;
  for (const auto& e : std::filesystem::directory_iterator(LAMINA_PROBLEMS)) files.push_back(e.path());
  std::sort(files.begin(), files.end());
  return files;
}

/// Registers a benchmark per offer; its name is the index of its row.
void register_all(const Options& o, const std::vector<std::string>& lines, std::vector<Row>& rows,
                  std::vector<std::unique_ptr<Graph>>& graphs, tbb::task_arena& arena) {
  for (const auto& line : lines) {
    graphs.push_back(std::make_unique<Graph>(graph_of(line)));
    const Graph& graph = *graphs.back();
    for (const auto id : graph.order()) {
      std::vector<Offer> offers;
      arena.execute([&] { offers = ask_kernels(NodeView(graph, id)).offers; });
      for (std::size_t k = 0; k < offers.size(); ++k) {
        const auto& offer = offers[k];
        if (offer.is_view || offer.label.find(o.kernel) == std::string::npos) continue;
        if (offer.stages < epilogue_size(graph.node(id))) continue;  // only for a node to decompose
        if (offer.last_resort && o.kernel.empty()) continue;         // minutes of plain loops
        std::string layout = offer.inputs.empty() ? "" : std::string(name_of(offer.inputs[0]));
        if (!offer.outputs.empty() && name_of(offer.outputs[0]) != layout)
          layout += " to " + std::string(name_of(offer.outputs[0]));
        rows.push_back({line,
                        graph.node(id).op.name(),
                        offer.label,
                        layout,
                        flops_of(graph, id),
                        bytes_of(graph, id),
                        offer.cost,
                        {}});
        auto* one = benchmark::RegisterBenchmark(std::to_string(rows.size() - 1).c_str(), measure,
                                                 std::cref(graph), id, k, std::ref(arena));
        one->MinTime(o.seconds)->Repetitions(o.repetitions);
        if (o.threads > 1) one->UseRealTime();
      }
    }
  }
}

int run(const Options& o) {
  if (!o.model.empty()) {
    for (const auto& line : problems_of_model(o.model)) fmt::print("{}\n", line);
    return 0;
  }
  if (o.max_isa != "native") limit_isa(o.max_isa);
  auto lines = o.problems;
  if (lines.empty()) lines = read_problems(o.files.empty() ? all_files() : o.files);
  tbb::task_arena arena(o.threads);
  std::vector<Row> rows;
  std::vector<std::unique_ptr<Graph>> graphs;
  register_all(o, lines, rows, graphs, arena);
  if (rows.empty()) fail(ErrorCode::bad_option, "no kernel can run the problems");

  if (o.no_run) {
    write_json(o.json, o, rows);
    return 0;
  }
  char name[] = "kernel_bench", interleaved[] = "--benchmark_enable_random_interleaving=true";
  char* arguments[] = {name, interleaved, nullptr};
  int count = 2;
  benchmark::Initialize(&count, arguments);
  Collector collector(rows, o.threads == 1);
  benchmark::RunSpecifiedBenchmarks(&collector);
  fmt::print("{}, {}, {} thread{}; medians of {} times {} s\n", processor_name(), name_of(effective_isa()),
             o.threads, o.threads == 1 ? "" : "s", o.repetitions, o.seconds);
  print(rows);
  if (!o.json.empty()) write_json(o.json, o, rows);
  return 0;
}

}  // namespace
}  // namespace lamina::bench

int main(int argc, char** argv) {
  lamina::bench::Options o;
  CLI::App app("Times every offer of every kernel for problems, one per line (see bench/problem.h).");
  app.add_option("--problem", o.problems,
                 "a problem, e.g. 'conv x=f32[1,64,56,56] w=f32[64,64,3,3] pads=1 relu'");
  app.add_option("files", o.files, "files of problems (default: all of bench/problems)");
  app.add_option("--kernel", o.kernel,
                 "only offers whose label has this in it; 'reference' for the interpreter's");
  app.add_option("--threads", o.threads, "threads (1)");
  app.add_option("--max-isa", o.max_isa, "native, sse41, avx2 or avx512");
  app.add_option("--seconds", o.seconds, "length of one measurement (0.1)");
  app.add_option("--repetitions", o.repetitions, "measurements of each offer, in random order (5)");
  auto* json = app.add_option("--json", o.json, "writes what was measured");
  app.add_flag("--no-run", o.no_run, "writes what is estimated only")->needs(json);
  app.add_option("--problems-of", o.model, "prints the problems of a model instead");
  CLI11_PARSE(app, argc, argv);
  try {
    return lamina::bench::run(o);
  } catch (const std::exception& e) {
    fmt::print(stderr, "kernel_bench: {}\n", e.what());
    return 1;
  }
}
