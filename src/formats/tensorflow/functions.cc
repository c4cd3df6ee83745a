#include "formats/tensorflow/functions.h"

#include <array>
#include <map>
#include <unordered_map>

#include "base/error.h"
#include "base/work_bounds.h"
#include "formats/reading_points.h"
#include "formats/tensorflow/links.h"

namespace lamina::tensorflow {
namespace {

constexpr int kDeepest = 48;                 // calls in each other
constexpr std::size_t kMostNodes = 200'000;  // that calls may expand to
constexpr char kPlaceholder = 0x4a;          // how an AttrValue begins that is the calling node's

bool is_call(std::string_view op) { return op == "PartitionedCall" || op == "StatefulPartitionedCall"; }
bool is_while(std::string_view op) { return op == "While" || op == "StatelessWhile"; }
bool is_if(std::string_view op) { return op == "If" || op == "StatelessIf"; }

/// A text as an AttrValue.
std::string text_attribute(std::string_view text) {
  std::string out(1, '\x12');
  for (auto length = text.size();; length >>= 7) {
    out += static_cast<char>(length < 128 ? length : (length & 127) | 128);
    if (length < 128) break;
  }
  return out += text;
}

/// Names of outputs of operators that have several, each of one tensor.
std::uint32_t port_named(std::string_view op, std::string_view argument, std::uint32_t index) {
  using Ports = std::array<std::string_view, 7>;
  static constexpr std::array<std::pair<std::string_view, Ports>, 14> kSeveral{
      {{"BlockLSTM", {"i", "cs", "f", "o", "ci", "co", "h"}},
       {"CombinedNonMaxSuppression", {"nmsed_boxes", "nmsed_scores", "nmsed_classes", "valid_detections"}},
       {"FusedBatchNorm",
        {"y", "batch_mean", "batch_variance", "reserve_space_1", "reserve_space_2", "reserve_space_3"}},
       {"MaxPoolWithArgmax", {"output", "argmax"}},
       {"Merge", {"output", "value_index"}},
       {"NonMaxSuppressionV4", {"selected_indices", "valid_outputs"}},
       {"NonMaxSuppressionV5", {"selected_indices", "selected_scores", "valid_outputs"}},
       {"RefMerge", {"output", "value_index"}},
       {"Switch", {"output_false", "output_true"}},
       {"TensorArrayConcat", {"value", "lengths"}},
       {"TensorListConcat", {"tensor", "lengths"}},
       {"TensorListPopBack", {"output_handle", "tensor"}},
       {"TopK", {"values", "indices"}},
       {"Unique", {"y", "idx", "count"}}}};
  for (const auto& [name, ports] : kSeveral)
    if (op.starts_with(name))
      for (std::uint32_t i = 0; i < ports.size(); ++i)
        if (!ports[i].empty() && ports[i] == argument) return i;
  return index;
}

/// A function by the names in it.
struct Function {
  explicit Function(const FunctionDef& definition) : def(definition) {
    for (const auto& n : def.nodes) nodes.emplace(n.name, &n);
    for (std::uint32_t i = 0; i < def.inputs.size(); ++i) inputs.emplace(def.inputs[i], i);
    for (std::uint32_t i = 0; i < def.outputs.size(); ++i) outputs.emplace(def.outputs[i], i);
    for (const auto& [name, reference] : def.results) results.insert_or_assign(name, reference);
  }
  const FunctionDef& def;
  std::unordered_map<std::string_view, const NodeDef*> nodes;
  std::unordered_map<std::string_view, std::uint32_t> inputs, outputs;
  std::unordered_map<std::string_view, std::string_view> results;
};

class Inliner {
 public:
  explicit Inliner(GraphDef& graph) : graph_(graph) {
    for (const auto& f : graph.functions) functions_.try_emplace(f.name, f);
  }
  void run() {
    auto nodes = std::move(graph_.nodes);
    graph_.nodes.clear();
    for (const auto& node : nodes) place(node, 0);
  }

 private:
  /// What the names in a function's body stand for.
  struct Frame {
    const Function& function;
    std::string prefix;
    Names arguments;  // by input of the function, as references
    const NodeDef& call;
    std::string_view pivot;  // what nodes without inputs wait for, or empty
  };

  /// Names grow with the depth of calls, far beyond the file's size.
  std::string_view keep(std::string text) {
    note_parsed(text.size());
    note_read(text.size());
    return graph_.texts.emplace_back(std::move(text));
  }

  const Function* function_named(std::string_view name) const {
    const auto it = functions_.find(name);
    return it == functions_.end() ? nullptr : &it->second;
  }
  const Function* function_of(const NodeDef& node, std::string_view attribute) const {
    for (const auto& [key, message] : node.attributes)
      if (key == attribute)
        if (const auto value = parse_attribute(message); value.kind == AttrValue::function)
          return function_named(parse_function_name(value.bytes));
    return nullptr;
  }

  void add(NodeDef node) { graph_.nodes.push_back(std::move(node)); }

  /// A node with its references resolved: as it is, or what it calls.
  void place(const NodeDef& node, int depth) {
    if (is_if(node.op)) {
      const auto *yes = function_of(node, "then_branch"), *no = function_of(node, "else_branch");
      if (yes && no && !node.inputs.empty()) return choose(node, *yes, *no, depth);
    }
    if (is_while(node.op)) {
      const auto *condition = function_of(node, "cond"), *body = function_of(node, "body");
      if (condition && body) return loop(node, *condition, *body, depth);
    }
    const auto* function = is_call(node.op) ? function_of(node, "f") : function_named(node.op);
    if (!function) return add(node);
    Names data;
    for (auto input : node.inputs)
      if (!input.starts_with('^')) data.push_back(input);
    finish(node, expand(*function, keep(std::string(node.name) + "/"), std::move(data), node, {}, depth));
  }

  /// The call's name stands for the results.
  void finish(const NodeDef& call, Names results) {
    NodeDef node;
    node.name = call.name;
    node.op = "IdentityN";
    node.inputs = std::move(results);
    add(std::move(node));
  }

  Names expand(const Function& of, std::string_view prefix, Names arguments, const NodeDef& call,
               std::string_view pivot, int depth) {
    const auto& function = of.def;
    if (depth >= kDeepest)
      fail(ErrorCode::bad_file, "functions call each other more than {} deep, at \"{}\"", kDeepest,
           function.name);
    if (arguments.size() != function.inputs.size())
      fail(ErrorCode::bad_file, "node \"{}\" gives {} inputs to the function \"{}\", which wants {}",
           call.name, arguments.size(), function.name, function.inputs.size());
    const Frame frame{of, std::string(prefix), std::move(arguments), call, pivot};
    for (const auto& n : function.nodes) {
      if (++expanded_ > kMostNodes)
        fail(ErrorCode::bad_file, "functions expand to more than {} nodes", kMostNodes);
      place(renamed(n, frame), depth + 1);
    }
    Names results;
    for (auto output : function.outputs) {
      const auto from = of.results.find(output);
      if (from == of.results.end() || from->second.empty())
        fail(ErrorCode::bad_file, "the function \"{}\" does not say what its output \"{}\" is", function.name,
             output);
      results.push_back(resolved(from->second, frame));
    }
    return results;
  }

  NodeDef renamed(const NodeDef& node, const Frame& frame) {
    NodeDef out;
    out.name = keep(frame.prefix + std::string(node.name));
    out.op = node.op;
    for (auto input : node.inputs) out.inputs.push_back(resolved(input, frame));
    if (out.inputs.empty() && !frame.pivot.empty()) out.inputs.push_back(frame.pivot);
    for (const auto& [key, message] : node.attributes) {
      auto value = message;
      if (message.starts_with(kPlaceholder)) {
        const auto wanted = parse_attribute(message).bytes;
        for (const auto& [name, given] : frame.call.attributes)
          if (name == wanted) value = given;
      }
      out.attributes.emplace_back(key, value);
    }
    return out;
  }

  /// "argument", "node:argument:index" or "^node" as a reference outside.
  std::string_view resolved(std::string_view text, const Frame& frame) {
    if (text.starts_with('^')) {
      text.remove_prefix(1);
      return keep("^" + frame.prefix + std::string(text));
    }
    const auto& function = frame.function;
    if (const auto it = function.inputs.find(text); it != function.inputs.end())
      return frame.arguments[it->second];
    const auto first = text.find(':');
    const auto name = text.substr(0, first);
    const auto node = function.nodes.find(name);
    if (node == function.nodes.end())
      fail(ErrorCode::bad_file, "the function \"{}\" reads \"{}\", which no node makes", function.def.name,
           text);
    std::uint32_t port = 0;
    if (first != std::string_view::npos) {
      const auto rest = text.substr(first + 1);
      const auto reference = parse_reference(rest);  // "argument:index"
      port = port_of(*node->second, reference.name, reference.port);
    }
    auto outside = frame.prefix + std::string(name);
    if (port > 0) outside += fmt::format(":{}", port);
    return keep(std::move(outside));
  }

  std::uint32_t port_of(const NodeDef& node, std::string_view argument, std::uint32_t index) const {
    if (const auto* called = function_named(node.op))
      if (const auto it = called->outputs.find(argument); it != called->outputs.end()) return it->second;
    return port_named(node.op, argument, index);
  }

  std::string_view simple(std::string_view op, std::string name, Names inputs, Entries attributes = {}) {
    NodeDef node;
    node.name = keep(std::move(name));
    node.op = op;
    node.inputs = std::move(inputs);
    node.attributes = std::move(attributes);
    add(node);
    return node.name;
  }

  /// Each input by a Switch into both branches, each output by a Merge out of them.
  void choose(const NodeDef& node, const Function& yes, const Function& no, int depth) {
    Names data;
    for (auto input : node.inputs)
      if (!input.starts_with('^')) data.push_back(input);
    if (data.empty()) fail(ErrorCode::bad_file, "node \"{}\" ({}) has no condition", node.name, node.op);
    const auto condition = data[0];
    const auto base = std::string(node.name);
    std::array<Names, 2> results;
    std::array<Names, 2> arguments;
    for (std::size_t i = 1; i < data.size(); ++i) {
      const auto name = simple("Switch", fmt::format("{}/switch_{}", base, i - 1), {data[i], condition});
      arguments[0].push_back(name);
      arguments[1].push_back(keep(std::string(name) + ":1"));
    }
    const auto sides = simple("Switch", base + "/switch", {condition, condition});
    for (std::size_t side = 0; side < 2; ++side) {
      const std::string word = side ? "then" : "else";
      const auto pivot =
          simple("Identity", base + "/pivot_" + word, {side ? keep(std::string(sides) + ":1") : sides});
      results[side] = expand(side ? yes : no, keep(base + "/" + word + "/"), arguments[side], node,
                             keep("^" + std::string(pivot)), depth);
    }
    if (results[0].size() != results[1].size())
      fail(ErrorCode::bad_file, "the branches of node \"{}\" give {} and {} results", base, results[0].size(),
           results[1].size());
    Names merged;
    for (std::size_t i = 0; i < results[0].size(); ++i)
      merged.push_back(simple("Merge", fmt::format("{}/merge_{}", base, i), {results[0][i], results[1][i]}));
    finish(node, std::move(merged));
  }

  /// A loop of TensorFlow 1 (frames.h): the condition between Merge and Switch, the body between Switch and
  /// NextIteration.
  void loop(const NodeDef& node, const Function& condition, const Function& body, int depth) {
    const auto base = std::string(node.name);
    const auto frame = keep(text_attribute(base));
    Names merged, going_on, left;
    for (auto input : node.inputs) {
      if (input.starts_with('^')) continue;
      const auto i = merged.size();
      const auto enter =
          simple("Enter", fmt::format("{}/enter_{}", base, i), {input}, {{"frame_name", frame}});
      merged.push_back(simple("Merge", fmt::format("{}/merge_{}", base, i),
                              {enter, keep(fmt::format("{}/next_{}", base, i))}));
    }
    if (merged.empty()) fail(ErrorCode::bad_file, "node \"{}\" ({}) has no inputs", node.name, node.op);
    const auto pivot = keep("^" + std::string(merged[0]));
    const auto asked = expand(condition, keep(base + "/cond/"), merged, node, pivot, depth);
    if (asked.empty())
      fail(ErrorCode::bad_file, "the function \"{}\" of node \"{}\" gives no condition", condition.def.name,
           base);
    const auto decides = simple("LoopCond", base + "/loop_cond", {asked[0]});
    for (std::size_t i = 0; i < merged.size(); ++i) {
      const std::string sides(simple("Switch", fmt::format("{}/switch_{}", base, i), {merged[i], decides}));
      left.push_back(simple("Exit", fmt::format("{}/exit_{}", base, i), {keep(sides)}));
      going_on.push_back(simple("Identity", fmt::format("{}/identity_{}", base, i), {keep(sides + ":1")}));
    }
    const auto inside = keep("^" + std::string(going_on[0]));
    const auto results = expand(body, keep(base + "/body/"), going_on, node, inside, depth);
    if (results.size() != merged.size())
      fail(ErrorCode::bad_file, "the body of node \"{}\" gives {} results, wanted {}", base, results.size(),
           merged.size());
    for (std::size_t i = 0; i < results.size(); ++i)
      simple("NextIteration", fmt::format("{}/next_{}", base, i), {results[i]});
    finish(node, std::move(left));
  }

  GraphDef& graph_;
  std::map<std::string_view, Function> functions_;
  std::size_t expanded_ = 0;
};

}  // namespace

void inline_functions(GraphDef& graph) {
  if (!graph.functions.empty()) Inliner(graph).run();
}

}  // namespace lamina::tensorflow
