#include "tests/support/run_graph.h"

#include <algorithm>
#include <span>

#include "tests/support/mismatch.h"

namespace lamina::testing {

void unalign_constants(Graph& graph) {
  for (const auto id : graph.order())
    for (auto& body : graph.bodies(id)) unalign_constants(body);
  for (std::uint32_t i = 0, count = static_cast<std::uint32_t>(graph.value_slots()); i < count; ++i) {
    const auto* constant = graph.constant(ValueId{i});
    if (!constant || constant->bytes() == 0) continue;
    const auto memory = std::make_shared<std::vector<std::byte>>(constant->bytes() + 1);
    std::memcpy(memory->data() + 1, constant->raw(), constant->bytes());
    const auto moved = Tensor::share(constant->element_type(), constant->shape(), memory, memory->data() + 1);
    graph.replace(ValueId{i}, graph.add_constant(moved));
  }
}

std::vector<Tensor> random_inputs(const Graph& graph, std::uint64_t seed) {
  std::vector<Tensor> inputs;
  if (const char* more = std::getenv("LAMINA_SEED")) seed += 1000 * std::strtoull(more, nullptr, 10);
  for (const auto v : graph.inputs())
    inputs.push_back(seeded_tensor(graph.type(v).element, graph.type(v).shape.sizes(), ++seed));
  return inputs;
}

void expect_close(const Tensor& got, const Tensor& wanted, const std::string& what) {
  ASSERT_EQ(mismatch(got, wanted), "") << what;
}

RunResult run_graph(const Graph& graph, const std::vector<Tensor>& inputs, int threads) {
  ProgramOptions options;
  options.threads = threads;
  const auto program = std::make_shared<Program>(graph, options, std::make_shared<ModelWeights>());
  Runner runner(program);
  for (std::size_t i = 0; i < inputs.size(); ++i) runner.set_input(i, inputs[i]);
  runner.run();
  RunResult result;
  for (std::size_t r = 0; r < graph.results().size(); ++r) result.outputs.push_back(runner.output(r).clone());
  for (const auto& plan : runner.plans())
    for (const auto& step : plan->steps) result.labels.push_back(step.label);
  return result;
}

namespace {

constexpr std::size_t kGuardBytes = 256;

/// An offer's code, which must not write behind the scratch memory that the offer has asked for.
class Guarded final : public Executable {
 public:
  Guarded(const Offer& offer, MakeContext& context)
      : code_(offer.make(context)), scratch_(offer.scratch), label_(offer.label) {}

  std::unique_ptr<Step> step() const override { return std::make_unique<Run>(*this); }

 private:
  class Run final : public Step {
   public:
    explicit Run(const Guarded& of) : of_(of), step_(of.code_->step()) {}
    void bind(const RunArgs& args) override {
      guard_ = {static_cast<unsigned char*>(args.scratch) + of_.scratch_, kGuardBytes};
      step_->bind(args);
    }
    void run() override {
      std::fill(guard_.begin(), guard_.end(), kMark);
      step_->run();
      const auto marked = std::count(guard_.begin(), guard_.end(), kMark);
      EXPECT_EQ(static_cast<std::size_t>(marked), kGuardBytes) << of_.label_ << ": more scratch memory";
    }

   private:
    static constexpr unsigned char kMark = 0xa5;
    const Guarded& of_;
    std::unique_ptr<Step> step_;
    std::span<unsigned char> guard_;
  };

  std::unique_ptr<Executable> code_;
  std::size_t scratch_;
  std::string label_;
};

}  // namespace

std::vector<Tensor> run_offer(const Graph& graph, NodeId id, const Offer& offer,
                              const std::vector<Tensor>& inputs, const OfferRun& options) {
  Plan plan;
  plan.threads = options.threads;
  PlanStep step;
  step.scratch = offer.scratch + kGuardBytes;
  const auto tensor = [&](ValueId v, Layout layout) {
    PlanTensor t;
    t.value = v;
    t.type = graph.type(v);
    t.layout = layout;
    t.root = static_cast<std::uint32_t>(plan.tensors.size());
    plan.tensors.push_back(t);
    return t.root;
  };
  const auto& node = graph.node(id);
  const auto& consumed = offer.consumed;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const bool read =
        node.inputs[i].valid() && std::find(consumed.begin(), consumed.end(), i) == consumed.end();
    step.in.push_back(read ? tensor(node.inputs[i], offer.inputs[i]) : kNoTensor);
  }
  for (std::size_t i = 0; i < node.outputs.size(); ++i)
    step.out.push_back(tensor(node.outputs[i], offer.outputs[i]));
  ModelWeights own;
  MakeContext context{options.weights ? *options.weights : own};
  step.code = std::make_unique<Guarded>(offer, context);
  return run_single_step(plan, step, inputs, options.shift);
}

void check_all_offers(Graph graph, std::uint64_t seed) {
  if (seed % 4 == 3) unalign_constants(graph);
  const auto inputs = random_inputs(graph, seed);
  ModelWeights weights;
  const std::size_t shift = seed % 3;
  InterpreterOptions observe;
  observe.observe = [&](const Graph& g, NodeId id, const std::vector<Tensor>& in,
                        const std::vector<Tensor>& out) {
    for (auto& offer : ask_kernels(NodeView(g, id)).offers) {
      // Partial offers are checked through the plan.
      if (offer.is_view || offer.stages < epilogue_size(g.node(id))) continue;
      const auto got = run_offer(g, id, offer, in, {.weights = &weights, .shift = shift});
      for (std::size_t i = 0; i < got.size(); ++i)
        expect_close(got[i], out[i], offer.label + " for " + g.node(id).op.name());
    }
  };
  const auto wanted = interpret(graph, inputs, observe);
  const auto got = run_graph(graph, inputs);
  for (std::size_t r = 0; r < wanted.size(); ++r) expect_close(got.outputs[r], wanted[r], "the plan");
}

Graph parse(const std::string& text) { return parse_graph(text, operators()); }

void check_kernels(const std::string& text, std::uint64_t seed) {
  SCOPED_TRACE(text);
  const auto graph = parse(text);
  check_all_offers(graph, seed);
  for (const auto& label : run_graph(graph, random_inputs(graph, seed)).labels) EXPECT_NE(label, "reference");
}

}  // namespace lamina::testing
