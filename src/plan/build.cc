/// Graph -> Plan: steps in order, reorders between layouts, then memory.
#include <algorithm>
#include <map>

#include "base/parallel.h"
#include "base/progress.h"
#include "plan/choose.h"
#include "plan/memory.h"
#include "plan/plan.h"
#include "plan/segment.h"
#include "plan/subviews.h"

namespace lamina {
namespace {

class Builder {
 public:
  Builder(Graph graph, WeightStore& weights, const PlanOptions& options)
      : options_(options), weights_(weights) {
    plan_ = std::make_shared<Plan>();
    plan_->graph = std::move(graph);
    plan_->threads = options.threads;
  }

  std::shared_ptr<Plan> build() {
    auto& g = plan_->graph;
    const auto parts = segment(g);
    std::vector<NodeId> fixed;
    std::copy_if(parts.planned.begin(), parts.planned.end(), std::back_inserter(fixed), [&](NodeId id) {
      return std::find(parts.dynamic.begin(), parts.dynamic.end(), id) == parts.dynamic.end();
    });
    const bool has_rest = !parts.waiting.empty() || !parts.dynamic.empty();
    auto picked = choose(g, fixed, plan_->choices, options_);
    subviews_ = find_subviews(g, picked);
    add_inputs();
    add_outputs(picked);
    for (auto& p : picked) add_kernel(p);
    for (const auto id : parts.dynamic) add_dynamic(id);
    if (has_rest) add_rest(rest_of(g, segment(g)));  // choosing may have put other nodes before what waits
    add_results();
    make_all();
    place_all();
    return plan_;
  }

 private:
  std::uint32_t add_tensor(ValueId v, Layout layout, bool dynamic = false) {
    PlanTensor t;
    t.value = v;
    t.type = plan_->graph.type(v);
    t.layout = layout;
    t.root = static_cast<std::uint32_t>(plan_->tensors.size());
    if (dynamic)
      t.place = Place::dynamic;
    else
      t.bytes = memory_bytes(t.type.element, t.type.shape.sizes(), layout);
    plan_->tensors.push_back(std::move(t));
    return plan_->tensors.back().root;
  }

  /// Code is generated and weights are packed in parallel.
  void make_all() {
    if (!options_.machine->here) return;
    StageProgress progress(options_.progress, "packing weights", to_make_.size());
    parallel_for(static_cast<std::int64_t>(to_make_.size()), 1, [&](std::int64_t begin, std::int64_t end) {
      for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
        auto& m = to_make_[i];
        plan_->steps[m.step].code = m.make(m.context);
        m.make = nullptr;  // it may hold weights that are packed now
        progress.one_done();
      }
    });
  }

  void add_inputs() {
    for (std::size_t i = 0; i < plan_->graph.inputs().size(); ++i) {
      const auto v = plan_->graph.inputs()[i];
      if (plan_->graph.readers(v) == 0) {
        plan_->inputs.push_back(kNoTensor);
        continue;
      }
      const auto t = add_tensor(v, Layout::plain);
      plan_->tensors[t].place = Place::input;
      plan_->tensors[t].index = i;
      plan_->inputs.push_back(t);
      made_[{v, Layout::plain}] = t;
    }
  }

  std::uint32_t constant(ValueId v, Layout layout) {
    const Tensor source = *plan_->graph.constant(v);
    const auto t = add_tensor(v, layout);
    auto& tensor = plan_->tensors[t];
    tensor.place = Place::constant;
    if (layout == Layout::channels_last_bits || (layout != Layout::plain && !same_bytes(source.shape())))
      tensor.constant = weights_.moved(source, std::string(name_of(layout)), [&](const Tensor& t) {
        return reordered(t.to_aligned(), Layout::plain, layout);
      });
    else
      tensor.constant = source.aligned()
                            ? source
                            : weights_.moved(source, "aligned", [&](const Tensor& t) { return t.clone(); });
    return t;
  }

  /// The tensor that holds a value in that layout; makes it from another layout where needed.
  std::uint32_t tensor_of(ValueId v, Layout layout) {
    if (const auto it = made_.find({v, layout}); it != made_.end()) return it->second;
    std::uint32_t t;
    if (plan_->graph.constant(v)) {
      t = constant(v, layout);
    } else {
      const Layout other = layout == Layout::plain ? Layout::channels_last : Layout::plain;
      const auto from = made_.find({v, other});
      LAMINA_CHECK(from != made_.end(), "value '{}' is read before it is made", plan_->graph.value(v).name);
      t = add_tensor(v, layout);
      add_reorder(from->second, t);
    }
    made_[{v, layout}] = t;
    return t;
  }

  static void lie_in(PlanTensor& tensor, const PlanTensor& other) {
    tensor.root = other.root;
    tensor.shift = other.shift;
    tensor.row = other.row;
  }

  void add_reorder(std::uint32_t from, std::uint32_t to) {
    auto& out = plan_->tensors[to];
    const auto& in = plan_->tensors[from];
    const auto dims = out.type.shape.sizes();
    if (same_bytes(dims)) {
      lie_in(out, in);
      return;
    }
    PlanStep step;
    step.kind = PlanStep::Kind::reorder;
    step.name = plan_->graph.value(out.value).name;
    step.label = fmt::format("reorder_{}_to_{}", name_of(in.layout), name_of(out.layout));
    step.in = {from};
    step.out = {to};
    step.cost = reorder_cost(*options_.machine, out.type.element, dims);
    step.code = make_reorder(out.type.element, dims, in.layout, out.layout);
    plan_->steps.push_back(std::move(step));
  }

  /// What the kernels write, and what lies inside what.
  void add_outputs(const std::vector<Picked>& picked) {
    for (const auto& p : picked) {
      const auto& outputs = plan_->graph.node(p.node).outputs;
      for (std::size_t i = 0; i < outputs.size(); ++i)
        made_[{outputs[i], p.offer.outputs[i]}] = add_tensor(outputs[i], p.offer.outputs[i]);
    }
    const auto tensor = [&](ValueId v) -> PlanTensor& {
      const auto it = made_.lower_bound({v, Layout{}});
      return plan_->tensors[it->second];
    };
    for (const auto v : subviews_.order) {
      const auto& part = subviews_.of.at(v);
      const auto& whole = tensor(part.whole);
      auto& t = tensor(v);
      t.root = whole.root;
      t.shift = whole.shift + static_cast<std::size_t>(part.first * bits_of(t.type.element) / 8);
      t.row = part.row;
    }
  }

  MakeContext context_of(const PlanStep& step) {
    MakeContext context{weights_};
    const auto rows = [&](const std::vector<std::uint32_t>& tensors) {
      std::vector<std::int64_t> out;
      for (const auto t : tensors) out.push_back(t == kNoTensor ? 0 : plan_->tensors[t].row);
      return out;
    };
    context.input_rows = rows(step.in);
    context.output_rows = rows(step.out);
    if (const auto it = subviews_.in_place.find(step.node); it != subviews_.in_place.end())
      context.in_place = it->second;
    return context;
  }

  void add_kernel(Picked& p) {
    if (std::find(subviews_.free.begin(), subviews_.free.end(), p.node) != subviews_.free.end())
      return nothing_runs(p.node, "in_place");
    const auto& node = plan_->graph.node(p.node);
    PlanStep step;
    step.node = p.node;
    step.name = plan_->graph.label(p.node);
    step.label = p.offer.label;
    step.recipe = p.offer;
    step.scratch = p.offer.scratch;
    step.cost = p.offer.cost;
    const auto consumed = [&](std::size_t i) {
      return std::find(p.offer.consumed.begin(), p.offer.consumed.end(), i) != p.offer.consumed.end();
    };
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      step.in.push_back(
          !node.inputs[i].valid() || consumed(i) ? kNoTensor : tensor_of(node.inputs[i], p.offer.inputs[i]));
    for (std::size_t i = 0; i < node.outputs.size(); ++i)
      step.out.push_back(made_.at({node.outputs[i], p.offer.outputs[i]}));
    const auto placed = subviews_.in_place.find(p.node);
    if (placed != subviews_.in_place.end() &&
        std::find(placed->second.begin(), placed->second.end(), false) == placed->second.end())
      return nothing_runs(p.node, "in_place");
    if (p.offer.is_view) {
      lie_in(plan_->tensors[step.out[0]], plan_->tensors[step.in[0]]);
      return;
    }
    in_place_.push_back({plan_->steps.size(), p.offer.in_place});
    to_make_.push_back({plan_->steps.size(), context_of(step), std::move(p.offer.make)});
    plan_->steps.push_back(std::move(step));
  }

  /// All parts of a Concat or Split lie where they belong.
  void nothing_runs(NodeId node, std::string_view label) {
    for (auto& choice : plan_->choices)
      if (choice.node == node) choice.label = label;
  }

  void add_dynamic(NodeId id) {
    const auto& node = plan_->graph.node(id);
    PlanStep step;
    step.kind = PlanStep::Kind::dynamic;
    step.node = id;
    step.name = plan_->graph.label(id);
    step.label = "reference";
    for (auto v : node.inputs) step.in.push_back(v.valid() ? tensor_of(v, Layout::plain) : kNoTensor);
    for (auto v : node.outputs) {
      step.out.push_back(add_tensor(v, Layout::plain, true));
      made_[{v, Layout::plain}] = step.out.back();
    }
    Choice choice;
    choice.node = id;
    choice.label = "reference (its output shape depends on data)";
    plan_->choices.push_back(std::move(choice));
    plan_->steps.push_back(std::move(step));
  }

  void add_rest(RestGraph rest) {
    for (auto v : rest.cut) plan_->rest_inputs.push_back(tensor_of(v, Layout::plain));
    plan_->rest_values = rest.values;
    plan_->rest_results = rest.results;
    plan_->rest = std::move(rest.graph);
  }

  void add_results() {
    const auto& g = plan_->graph;
    for (std::size_t r = 0; r < g.results().size(); ++r) {
      const bool later =
          std::find(plan_->rest_results.begin(), plan_->rest_results.end(), r) != plan_->rest_results.end();
      plan_->results.push_back(later ? kNoTensor : tensor_of(g.results()[r].value, Layout::plain));
    }
    // A result needs memory of its own: inputs, constants and values handed out twice are copied.
    std::vector<bool> taken(plan_->tensors.size(), false);
    for (std::size_t r = 0; r < plan_->results.size(); ++r) {
      auto& t = plan_->results[r];
      if (t == kNoTensor) continue;
      auto& root = plan_->tensors[plan_->tensors[t].root];
      if (root.place == Place::arena && !taken[root.root] && plan_->tensors[t].bytes == root.bytes &&
          plan_->tensors[t].shift == 0) {
        root.place = Place::result;
        root.index = r;
        taken[root.root] = true;
        continue;
      }
      const auto copy = add_tensor(plan_->tensors[t].value, Layout::plain);
      taken.push_back(true);
      plan_->tensors[copy].place = Place::result;
      plan_->tensors[copy].index = r;
      PlanStep step;
      step.kind = PlanStep::Kind::copy;
      step.name = g.results()[r].name;
      step.label = "copy";
      step.in = {t};
      step.out = {copy};
      step.code = make_reorder(plan_->tensors[copy].type.element, plan_->tensors[copy].type.shape.sizes(),
                               Layout::plain, Layout::plain);
      plan_->steps.push_back(std::move(step));
      t = copy;
    }
  }

  std::uint32_t root(std::uint32_t t) const { return plan_->tensors[t].root; }

  /// Last step that reads each root; results and inputs of `rest` live to the end.
  std::vector<std::uint32_t> last_reads() const {
    const auto end = static_cast<std::uint32_t>(plan_->steps.size());
    std::vector<std::uint32_t> last(plan_->tensors.size(), 0);
    for (std::uint32_t s = 0; s < plan_->steps.size(); ++s)
      for (const auto* list : {&plan_->steps[s].in, &plan_->steps[s].out})
        for (auto t : *list)
          if (t != kNoTensor) last[root(t)] = s;
    for (auto t : plan_->rest_inputs) last[root(t)] = end;
    for (auto t : plan_->results)
      if (t != kNoTensor) last[root(t)] = end;
    return last;
  }

  /// Lets outputs overwrite inputs that nobody reads afterwards.
  void alias_in_place() {
    for (const auto& [s, pairs] : in_place_) {
      const auto last = last_reads();
      auto& step = plan_->steps[s];
      for (const auto& pair : pairs) {
        const auto in = step.in[pair.input], out = step.out[pair.output];
        if (in == kNoTensor || out == kNoTensor || root(out) != out || plan_->tensors[in].shift != 0)
          continue;
        auto& from = plan_->tensors[root(in)];
        auto& to = plan_->tensors[out];
        const bool once = std::count_if(step.in.begin(), step.in.end(),
                                        [&](auto t) { return t != kNoTensor && root(t) == root(in); }) == 1;
        if (from.place != Place::arena || last[root(in)] != s || from.bytes != to.bytes || !once) continue;
        if (to.place == Place::result) {  // the whole chain moves into the result's memory
          from.place = Place::result;
          from.index = to.index;
        }
        const auto old_root = out, new_root = root(in);
        for (auto& t : plan_->tensors)
          if (t.root == old_root) t.root = new_root;
        break;
      }
    }
  }

  void place_all() {
    alias_in_place();
    const auto last = last_reads();
    std::vector<std::uint32_t> first(plan_->tensors.size(), UINT32_MAX);
    std::size_t scratch = 0;
    for (std::uint32_t s = 0; s < plan_->steps.size(); ++s) {
      scratch = std::max(scratch, plan_->steps[s].scratch);
      for (auto t : plan_->steps[s].out)
        if (t != kNoTensor) first[root(t)] = std::min(first[root(t)], s);
    }
    std::vector<Block> blocks;
    std::vector<std::uint32_t> of;
    for (std::uint32_t t = 0; t < plan_->tensors.size(); ++t) {
      const auto& tensor = plan_->tensors[t];
      if (tensor.root != t || tensor.place != Place::arena || first[t] == UINT32_MAX) continue;
      blocks.push_back({tensor.bytes, first[t], last[t], 0});
      of.push_back(t);
      plan_->memory.sum += tensor.bytes;
    }
    const auto size = place(blocks);
    for (std::size_t i = 0; i < of.size(); ++i) plan_->tensors[of[i]].offset = blocks[i].offset;
    plan_->scratch_offset = size;
    plan_->memory.live = live_bound(blocks) + scratch;
    plan_->memory.arena = size + scratch;
  }

  std::shared_ptr<Plan> plan_;
  const PlanOptions& options_;
  WeightStore& weights_;
  struct ToMake {
    std::size_t step;
    MakeContext context;
    std::function<std::unique_ptr<Executable>(MakeContext&)> make;
  };
  std::vector<ToMake> to_make_;
  Subviews subviews_;
  std::map<std::pair<ValueId, Layout>, std::uint32_t> made_;
  std::vector<std::pair<std::size_t, std::vector<InPlace>>> in_place_;
};

}  // namespace

std::shared_ptr<Plan> make_plan(Graph graph, WeightStore& weights, const PlanOptions& options) {
  require_supported(graph);
  return Builder(std::move(graph), weights, options).build();
}

}  // namespace lamina
