#include "check/judge.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "base/error.h"
#include "check/interval.h"
#include "check/loss.h"
#include "check/output_ranges.h"
#include "check/permuted_values.h"
#include "check/pieces.h"
#include "check/rounding.h"
#include "interpreter/interpreter.h"
#include "ops/control.h"
#include "ops/decompose.h"
#include "ops/eval.h"
#include "ops/repeated_draws.h"

namespace lamina::checking {
namespace {

constexpr std::size_t kTurns = 8;  // of a loop that are all judged
constexpr double kPlausibleLoss = 0x1p-10, kWorse = 8;
constexpr std::size_t kNamed = 4;  // operators of a piece that are named

std::string made_by(const Graph& graph, const Section& section) {
  if (section.nodes.empty()) return section.inputs.empty() ? "constant" : "input";
  std::string out;
  for (std::size_t i = 0; i < section.nodes.size() && i < kNamed; ++i)
    out += (i ? ", " : "") + operators_of(graph.node(section.nodes[i]));
  if (section.nodes.size() > kNamed) out += fmt::format(", {} more", section.nodes.size() - kNamed);
  return out;
}

std::size_t quantisers(const Graph& graph) {
  std::size_t count = 0;
  for (const auto id : graph.order()) {
    count += graph.node(id).op.has(Trait::levels);
    for (const auto& body : graph.node(id).bodies) count += quantisers(body);
  }
  return count;
}

/// The one node of the section that runs bodies, if it has one.
NodeId runs_bodies(const Graph& graph, const Section& section) {
  NodeId found;
  for (const auto id : section.nodes) {
    const Op& op = graph.node(id).op;
    if (!op.is<If>() && !op.is<Loop>()) continue;
    if (found.valid()) return {};
    found = id;
  }
  return found;
}

bool same_tensors(const std::vector<Tensor>& got, const std::vector<Tensor>& wanted) {
  return std::equal(got.begin(), got.end(), wanted.begin(), wanted.end(), [](auto& a, auto& b) {
    if (!a.valid() || !b.valid()) return a.valid() == b.valid();
    return a.element_type() == b.element_type() && difference(a, b, kOfRewriting).within;
  });
}

std::vector<Interval> exact_intervals(const std::vector<Tensor>& tensors) {
  std::vector<Interval> out;
  for (const auto& t : tensors) out.push_back({t, {}});
  return out;
}

/// The section as single operators, with exact inputs.
Graph decomposed_part(const Graph& graph, const Section& section, const std::vector<Tensor>& inputs) {
  auto part = part_of(graph, section, inputs);
  decompose_all(part.graph);
  return std::move(part.graph);
}

class Judge {
 public:
  Judge(const Graph& original, const Graph& rewritten, const JudgeOptions& options)
      : original_(original),
        rewritten_(rewritten),
        options_(options),
        pieces_(pieces_of(original, rewritten)),
        waits_(pieces_.size(), 0),
        users_(original.value_slots()),
        held_(original.value_slots()),
        uses_(original.value_slots(), 0) {
    for (std::size_t p = 0; p < pieces_.size(); ++p)
      for (const auto v : needs(pieces_[p])) {
        users_[v.index].push_back(p);
        ++uses_[v.index];
        ++waits_[p];
      }
  }

  Judgement run(const std::vector<Tensor>& inputs) {
    judge_draws();
    for (std::size_t p = 0; p < pieces_.size(); ++p)
      if (waits_[p] == 0) ready_.push_back(p);
    for (std::size_t i = 0; i < inputs.size(); ++i) arrive(original_.inputs().at(i), inputs[i]);
    judge_ready();
    InterpreterOptions options;
    options.observe = [&](const Graph& g, NodeId id, const std::vector<Tensor>&,
                          const std::vector<Tensor>& out) {
      for (std::size_t i = 0; i < out.size(); ++i) arrive(g.node(id).outputs[i], out[i]);
      judge_ready();
    };
    done_.results = interpret(original_, inputs, options);
    return std::move(done_);
  }

 private:
  /// Values of the original, each once.
  std::vector<ValueId> needs(const Piece& p) const {
    std::vector<ValueId> out;
    for (const auto* list : {&p.given, &p.wanted, &p.original.inputs})
      for (const auto v : *list)
        if (!original_.constant(v)) out.push_back(v);
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
    return out;
  }

  void keep(const std::string& name, const Tensor& tensor) const {
    if (!options_.keep) return;
    if (const auto it = options_.keep->find(name); it != options_.keep->end()) it->second = tensor;
  }

  void arrive(ValueId v, const Tensor& tensor) {
    keep(original_.value(v).name, tensor);
    if (users_[v.index].empty()) return;
    held_[v.index] = tensor;
    for (const auto p : users_[v.index])
      if (--waits_[p] == 0) ready_.push_back(p);
  }

  /// What is drawn by lot or read from a variable has no value to compare: the nodes that do it are.
  void judge_draws() {
    for (const auto id : rewritten_.order()) {
      const Node& now = rewritten_.node(id);
      if (!now.op.has(Trait::impure) || now.outputs.empty() || epilogue(now)) continue;
      const auto& name = rewritten_.value(now.outputs[0]).name;
      const auto value = original_.find_value(name);
      const auto maker = value.valid() ? original_.producer(value) : NodeId{};
      if (!maker.valid()) continue;
      const Node& then = original_.node(maker);
      bool same = now.op == then.op && now.inputs.size() == then.inputs.size();
      for (std::size_t i = 0; same && i < now.inputs.size(); ++i) {
        const auto *a = rewritten_.constant(now.inputs[i]), *b = original_.constant(then.inputs[i]);
        same = !a || !b || same_tensors({*a}, {*b});
      }
      if (!same)
        done_.values.push_back(
            {name, std::string(now.op.name()), "differs from the original in its operator or constants", {}});
    }
  }

  void judge_ready() {
    while (!ready_.empty()) {
      const auto p = ready_.back();
      ready_.pop_back();
      judge(pieces_[p]);
      for (const auto v : needs(pieces_[p]))
        if (--uses_[v.index] == 0) held_[v.index] = Tensor();
      if (options_.progress) options_.progress(++count_, pieces_.size());
    }
  }

  std::vector<Tensor> tensors(const std::vector<ValueId>& values) const {
    std::vector<Tensor> out;
    for (const auto v : values) {
      const auto* constant = original_.constant(v);
      out.push_back(constant ? *constant : held_[v.index]);
    }
    return out;
  }

  void judge(const Piece& piece) {
    const auto given = tensors(piece.given), wanted = tensors(piece.wanted);
    std::vector<Tensor> got, operands;
    std::string problem;
    try {
      got = run_piece(piece, given, operands);
    } catch (const std::exception& e) {
      problem = e.what();
    }
    const bool bodies_clean = judge_bodies(piece, operands);
    std::vector<Difference> found;
    for (std::size_t i = 0; i < got.size(); ++i) {
      found.push_back(difference(got[i], wanted[i], kOfRewriting));
      if (got[i].valid() && wanted[i].valid() && got[i].element_type() != wanted[i].element_type())
        found[i].comparable = found[i].within = false;
    }
    if (!std::all_of(found.begin(), found.end(), [](auto& d) { return d.within; })) {
      if (bodies_clean)
        grant_turns(piece, got, wanted, found);
      else
        grant_roundings(piece, given, got, wanted, found);
    }
    for (std::size_t i = 0; i < wanted.size(); ++i)
      done_.values.push_back({original_.value(piece.wanted[i]).name, made_by(rewritten_, piece.rewritten),
                              problem, found.empty() ? Difference{} : found[i]});
  }

  /// `operands`: of the node that runs bodies.
  std::vector<Tensor> run_piece(const Piece& piece, const std::vector<Tensor>& given,
                                std::vector<Tensor>& operands) const {
    const auto runs = runs_bodies(rewritten_, piece.rewritten);
    const auto part = part_of(rewritten_, piece.rewritten, given);
    InterpreterOptions options;
    options.observe = [&](const Graph& g, NodeId id, const std::vector<Tensor>& in,
                          const std::vector<Tensor>& out) {
      if (part.origins[id.index] == runs) operands = in;
      const auto& values = rewritten_.node(part.origins[id.index]).outputs;
      for (std::size_t i = 0; i < out.size(); ++i) keep(rewritten_.value(values[i]).name, out[i]);
      if (options_.observe) options_.observe(part.origins[id.index], g, id, in, out);
    };
    return interpret(part.graph, given, options);
  }

  void grant_roundings(const Piece& piece, const std::vector<Tensor>& given, const std::vector<Tensor>& got,
                       const std::vector<Tensor>& wanted, std::vector<Difference>& found) const {
    const auto now = decomposed_part(rewritten_, piece.rewritten, given);
    const auto inputs = tensors(piece.original.inputs);
    const auto then = decomposed_part(original_, piece.original, inputs);
    const auto reckoned = [ranges = OutputRanges(then)](const Tensor& low, const Tensor& high) {
      return !ranges.has(low, high);
    };
    if (quantisers(now) > 1 &&
        judge_moved(now, given, PermutedValues(then, inputs), {.reckoned = reckoned}, wanted, found))
      return;
    Loss loss(now);
    const auto here =
        propagate(now, exact_intervals(given), {.observe = loss.observer(), .reckoned = reckoned});
    if (loss.worst() > kPlausibleLoss) {
      Loss before(then);
      propagate(then, exact_intervals(inputs), {.observe = before.observer()});
      if (loss.worst() > kWorse * before.worst()) return;  // bad numerics are no excuse for their own results
    }
    const auto grant_all = [&](const std::vector<Interval>& other) {
      bool enough = true;
      for (std::size_t i = 0; i < found.size(); ++i) {
        if (found[i].comparable)
          grant(found[i], got[i], wanted[i], sum(here[i].radius, other[i].radius, got[i]));
        enough &= found[i].within;
      }
      return enough;
    };
    // Mostly both sides round alike; what the other does is worked out where that is not enough.
    // A FakeQuantize that has become something else rounds its levels by itself.
    if (grant_all(here)) return;
    const auto replaced = [ranges = OutputRanges(now)](const Tensor& low, const Tensor& high) {
      return !ranges.has(low, high);
    };
    grant_all(propagate(then, exact_intervals(inputs), {.reckoned = replaced}));
  }

  /// Pieces are long where rules moved axes. What is a value of the original but for that goes on with the
  /// original's elements, so that a level that one rounding decides reaches no second quantiser. False when
  /// there is no such value.
  static bool judge_moved(const Graph& graph, const std::vector<Tensor>& given,
                          const PermutedValues& permuted, PropagateOptions options,
                          const std::vector<Tensor>& wanted, std::vector<Difference>& found) {
    bool any = false, clean = true;
    const auto judged = [](const Interval& x, const Tensor& to) {
      auto d = difference(x.middle, to, kOfRewriting);
      grant(d, x.middle, to, sum(x.radius, x.radius, to));
      return d;
    };
    options.observe = [&](ValueId v, Interval& x) {
      if (graph.is_result(v)) return;
      auto other = permuted.find_permuted(x.middle, graph.node(graph.producer(v)).sources);
      if (!other.valid()) return;
      any = true;
      clean &= judged(x, other).within;
      x = {std::move(other), {}};
    };
    const auto ends = propagate(graph, exact_intervals(given), options);
    for (std::size_t i = 0; any && i < found.size(); ++i)
      if (auto d = judged(ends[i], wanted[i]); !d.within || clean) found[i] = d;
    return any;
  }

  static std::vector<double> sum(const std::vector<double>& a, const std::vector<double>& b,
                                 const Tensor& of) {
    std::vector<double> out(of.size(), 0);
    for (const auto* r : {&a, &b})
      for (std::size_t k = 0; k < r->size(); ++k) out[k] += (*r)[k];
    return out;
  }

  /// What a body's turns change by roundings may add up.
  void grant_turns(const Piece& piece, const std::vector<Tensor>& got, const std::vector<Tensor>& wanted,
                   std::vector<Difference>& found) const {
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (found[i].within || !found[i].comparable) continue;
      found[i] = difference(got[i], wanted[i]);
      const auto& bodies = rewritten_.node(runs_bodies(rewritten_, piece.rewritten)).bodies;
      if (std::any_of(bodies.begin(), bodies.end(), quantises))
        grant(found[i], got[i], wanted[i],
              std::vector<double>(wanted[i].size(), std::numeric_limits<double>::infinity()));
    }
  }

  /// What the original gives the node.
  std::vector<Tensor> operands_of(const Section& section, NodeId node) const {
    const Node& n = original_.node(node);
    Section before{{}, section.nodes, section.inputs};
    before.nodes.erase(std::find(before.nodes.begin(), before.nodes.end(), node), before.nodes.end());
    std::copy_if(n.inputs.begin(), n.inputs.end(), std::back_inserter(before.outputs),
                 [](ValueId v) { return v.valid(); });
    const auto inputs = tensors(section.inputs);
    const auto made = interpret(part_of(original_, before, inputs).graph, inputs);
    std::vector<Tensor> operands;
    auto next = made.begin();
    for (const auto v : n.inputs) operands.push_back(v.valid() ? *next++ : Tensor());
    return operands;
  }

  /// True where the same bodies, by themselves right, are run on the same `operands`: then only roundings
  /// tell the results apart. False where one is wrong, or can not be judged.
  bool judge_bodies(const Piece& piece, const std::vector<Tensor>& operands) {
    const auto now_id = runs_bodies(rewritten_, piece.rewritten),
               then_id = runs_bodies(original_, piece.original);
    if (!now_id.valid() || !then_id.valid()) return false;
    const Node &now = rewritten_.node(now_id), &then = original_.node(then_id);
    if (!(now.op == then.op) || now.bodies.size() != then.bodies.size()) return false;
    const auto in = operands_of(piece.original, then_id);
    std::map<std::string, ValueCheck> worst;
    std::size_t turn = 0;
    evaluate_node(then, in, [&](const Graph& body, const std::vector<Tensor>& parameters) {
      ++turn;
      if (turn > kTurns && !std::has_single_bit(turn)) return interpret(body, parameters);
      const auto which = static_cast<std::size_t>(&body - then.bodies.data());
      auto found = judge_rewriting(body, parameters, now.bodies.at(which));
      for (auto& v : found.values) {
        v.name = original_.label(then_id) + "/" + v.name;
        auto& w = worst.try_emplace(v.name, v).first->second;
        if (w.ok() && (!v.ok() || v.difference.max > w.difference.max)) w = v;
      }
      return std::move(found.results);
    });
    bool clean = same_tensors(operands, in);
    for (auto& [name, v] : worst) {
      clean &= v.ok();
      done_.values.push_back(std::move(v));
    }
    return clean;
  }

  const Graph &original_, &rewritten_;
  const JudgeOptions& options_;
  std::vector<Piece> pieces_;
  std::vector<std::size_t> waits_;               // values that are still missing, by piece
  std::vector<std::vector<std::size_t>> users_;  // pieces, by value of the original
  std::vector<Tensor> held_;
  std::vector<std::size_t> uses_;
  std::vector<std::size_t> ready_;
  std::size_t count_ = 0;
  Judgement done_;
};

}  // namespace

bool Judgement::clean() const {
  return std::all_of(values.begin(), values.end(), [](const ValueCheck& v) { return v.ok(); });
}

Judgement judge_rewriting(const Graph& original, const std::vector<Tensor>& inputs, const Graph& rewritten,
                          const JudgeOptions& options) {
  const RepeatedDraws repeated;
  return Judge(original, rewritten, options).run(inputs);
}

}  // namespace lamina::checking
