#include "quantise/observe.h"

#include <algorithm>

#include "api/inside.h"
#include "base/progress.h"

namespace lamina {
namespace {

constexpr std::size_t kMostBytes = std::size_t{256} << 20;   // of observed values in one run
constexpr std::size_t kUnknownBytes = std::size_t{4} << 20;  // what one of unknown size may take

/// With the shapes of the first sample, as far as they tell sizes of other values.
Graph with_shapes_of(Graph g, const std::vector<Tensor>& sample) {
  for (std::size_t i = 0; i < g.inputs().size() && i < sample.size(); ++i) {
    const auto v = g.inputs()[i];
    const Shape shape = Shape::of(sample[i].shape());
    if (g.type(v).shape.fits(shape)) g.set_type(v, {g.type(v).element, shape});
  }
  g.infer_types();
  return g;
}

std::size_t bytes_of(const TensorType& type) {
  if (!type.shape.known()) return kUnknownBytes;
  return element_count(type.shape.sizes()) * static_cast<std::size_t>(bits_of(type.element)) / 8;
}

/// Indices of values that are seen in one run.
std::vector<std::vector<std::size_t>> in_runs(const Graph& sized, const std::vector<ValueId>& values) {
  std::vector<std::vector<std::size_t>> out(1);
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto own = bytes_of(sized.type(values[i]));
    if (bytes + own > kMostBytes && !out.back().empty()) out.emplace_back(), bytes = 0;
    out.back().push_back(i);
    bytes += own;
  }
  return out;
}

/// A request whose variables begin anew with each run.
class Runs {
 public:
  Runs(const Model& model, Graph graph, const Running& running)
      : compiled_(Inside::changed(model, std::move(graph)), running.options),
        request_(compiled_.create_request()) {}

  const Request& run(const std::vector<Tensor>& inputs) {
    if (!compiled_.variables().empty()) request_.reset_state();
    for (std::size_t i = 0; i < inputs.size(); ++i) request_.set_input(i, inputs[i]);
    request_.run();
    return request_;
  }

 private:
  CompiledModel compiled_;
  Request request_;
};

/// Some of the values, as further results of the graph. Inputs need not be results.
class Looking {
 public:
  Looking(const Observed& o, const std::vector<std::size_t>& indices, const Running& running)
      : runs_(o.model, with_results(o, indices), running) {}

  void run(const std::vector<Tensor>& inputs) {
    inputs_ = inputs;
    request_ = &runs_.run(inputs_);
  }
  /// The i-th of the indices.
  const Tensor& operator[](std::size_t i) const {
    return places_[i].is_input ? inputs_[places_[i].index] : request_->output(places_[i].index);
  }

 private:
  struct Place {
    bool is_input = false;
    std::size_t index = 0;
  };

  Graph with_results(const Observed& o, const std::vector<std::size_t>& indices) {
    Graph g = o.graph;
    for (const auto i : indices) {
      const auto& all = g.inputs();
      const auto input = std::find(all.begin(), all.end(), o.values[i]);
      if (input != all.end()) {
        places_.push_back({true, static_cast<std::size_t>(input - all.begin())});
        continue;
      }
      places_.push_back({false, g.results().size()});
      g.add_result(fmt::format("observed {}", i), o.values[i]);
    }
    return g;
  }

  std::vector<Place> places_;
  Runs runs_;
  std::vector<Tensor> inputs_;
  const Request* request_ = nullptr;
};

}  // namespace

void observe(const Observed& o, const Samples& samples, const Running& running, std::string_view stage,
             const std::function<void(std::size_t, std::size_t, const Tensor&)>& observer) {
  if (samples.count == 0 || o.values.empty()) return;
  const auto runs = in_runs(with_shapes_of(o.graph, samples.get(0)), o.values);
  StageProgress progress(running.progress, stage, runs.size() * samples.count);
  for (const auto& indices : runs) {
    Looking looking(o, indices, running);
    for (std::size_t s = 0; s < samples.count; ++s) {
      looking.run(samples.get(s));
      for (std::size_t i = 0; i < indices.size(); ++i) observer(s, indices[i], looking[i]);
      progress.one_done();
    }
  }
}

void observe_both(const Observed& first, const Observed& second, const Samples& samples,
                  const Running& running, std::string_view stage,
                  const std::function<void(std::size_t, const Tensor&, const Tensor&)>& observer) {
  if (samples.count == 0 || first.values.empty()) return;
  const auto runs = in_runs(with_shapes_of(first.graph, samples.get(0)), first.values);
  StageProgress progress(running.progress, stage, runs.size() * samples.count);
  for (const auto& indices : runs) {
    Looking a(first, indices, running), b(second, indices, running);
    for (std::size_t s = 0; s < samples.count; ++s) {
      const auto inputs = samples.get(s);
      a.run(inputs);
      b.run(inputs);
      for (std::size_t i = 0; i < indices.size(); ++i) observer(indices[i], a[i], b[i]);
      progress.one_done();
    }
  }
}

}  // namespace lamina
