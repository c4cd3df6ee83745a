#include "problem.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>

#include "graph/text.h"
#include "ops/operators.h"
#include "rules/optimize.h"

namespace lamina::bench {
namespace {

/// A line, taken apart.
struct Line {
  std::string text, kind;
  std::map<std::string, std::string> values;
  std::vector<std::string> words;

  [[noreturn]] void wrong(const std::string& why) const {
    fail(ErrorCode::bad_option, "problem \"{}\": {}", text, why);
  }
  const std::string& value(const std::string& key) const {
    const auto it = values.find(key);
    if (it == values.end()) wrong(key + "=... is missing");
    return it->second;
  }
  std::string value_or(const std::string& key, const std::string& other) const {
    const auto it = values.find(key);
    return it == values.end() ? other : it->second;
  }
  bool take_word(const std::string& word) {
    const auto it = std::find(words.begin(), words.end(), word);
    if (it == words.end()) return false;
    words.erase(it);
    return true;
  }
};

Line taken_apart(const std::string& text) {
  Line line;
  line.text = text;
  std::stringstream in(text);
  in >> line.kind;
  for (std::string token; in >> token;) {
    const auto equals = token.find('=');
    if (equals == std::string::npos)
      line.words.push_back(token);
    else
      line.values[token.substr(0, equals)] = token.substr(equals + 1);
  }
  return line;
}

/// Sizes of "f32[1,2,3]".
Dims dims_of(const Line& line, const std::string& type) {
  const auto open = type.find('['), close = type.find(']');
  if (open == std::string::npos || close == std::string::npos) line.wrong(type + " is no type like f32[1,2]");
  Dims dims;
  std::stringstream in(type.substr(open + 1, close - open - 1));
  for (std::string d; std::getline(in, d, ',');) dims.push_back(std::stoll(d));
  return dims;
}

/// "3", "1x2" or "1,2" as "[3,3]" (of `count`) or "[1,2]".
std::string list_of(std::string text, std::size_t count = 1) {
  std::replace(text.begin(), text.end(), 'x', ',');
  if (text.find(',') == std::string::npos) {
    const auto one = text;
    for (std::size_t i = 1; i < count; ++i) text += "," + one;
  }
  return "[" + text + "]";
}

std::string constant_list(const std::string& name, const std::string& text, std::size_t least = 1) {
  const auto list = list_of(text, least);
  const auto count = 1 + std::count(list.begin(), list.end(), ',');
  return fmt::format(" {} = const i64[{}] {{{}}}\n", name, count, list.substr(1, list.size() - 2));
}

/// The graph as text while it grows; `last` is what the next operator reads.
struct Text {
  std::string inputs, body, last;
  int names = 0;
  void input(const std::string& name, const std::string& type) {
    inputs += (inputs.empty() ? "" : ", ") + name + ": " + type;
  }
  void constant(const std::string& name, const std::string& type) {
    body += fmt::format(" {} = const {} seed({})\n", name, type, 100 + names++);
  }
  void node(const std::string& name, const std::string& call) {
    body += fmt::format(" {} = {}\n", name, call);
    last = name;
  }
};

/// The window's attributes and groups.
std::string window_of(const Line& line) {
  const auto axes = dims_of(line, line.value("x")).size() - 2;
  std::string attributes;
  for (const std::string name : {"strides", "dilations", "pads_begin", "pads_end", "output_padding"})
    if (line.values.count(name)) attributes += fmt::format(" {}={}", name, list_of(line.value(name), axes));
  if (line.values.count("pads")) {
    const auto pads = list_of(line.value("pads"), axes);
    attributes += fmt::format(" pads_begin={} pads_end={}", pads, pads);
  }
  return attributes + " groups=" + line.value_or("groups", "1");
}

void convolution(Line& line, Text& t, bool transposed) {
  const auto w = line.value("w");
  t.input("x", line.value("x"));
  t.constant("w", w);
  const auto groups = std::stoll(line.value_or("groups", "1"));
  const auto attributes = window_of(line);
  std::string more;
  if (line.take_word("bias")) {
    const auto dims = dims_of(line, w);
    t.constant("bias", fmt::format("f32[{}]", transposed ? dims.at(1) * groups : dims.at(0)));
    more = ", bias";
  }
  t.node("y", fmt::format("{}(x, w{}){}", transposed ? "ConvolutionBackpropData" : "Convolution", more,
                          attributes));
}

void binary_convolution(Line& line, Text& t) {
  t.input("x", line.value("x"));
  t.constant("w", line.value("w"));
  t.node("y", fmt::format("BinaryConvolution(x, w){} pad_value={}", window_of(line),
                          line.value_or("pad_value", "0")));
}

const std::map<std::string, std::string>& activations();

/// conv, the activation `between`, and a depthwise convolution of the size `window`.
void pair(Line& line, Text& t) {
  const bool bias = std::find(line.words.begin(), line.words.end(), "bias") != line.words.end();
  convolution(line, t, false);
  if (const auto name = line.value_or("between", ""); !name.empty()) {
    const auto it = activations().find(name);
    if (it == activations().end()) line.wrong("unknown activation " + name);
    t.node("between", fmt::format(fmt::runtime(it->second), t.last));
  }
  const auto dims = dims_of(line, line.value("w"));
  const auto axes = dims.size() - 2;
  const auto window = list_of(line.value("window"), axes), pads = list_of(line.value_or("pads2", "0"), axes);
  t.constant("w2", fmt::format("f32[{},1,{}", dims.at(0), window.substr(1)));
  if (bias) t.constant("bias2", fmt::format("f32[{}]", dims.at(0)));
  t.node("y2", fmt::format("Convolution({}, w2{}) strides={} pads_begin={} pads_end={} groups={}", t.last,
                           bias ? ", bias2" : "", list_of(line.value_or("strides2", "1"), axes), pads, pads,
                           dims.at(0)));
}

void product(Line& line, Text& t) {
  const auto b = line.value("b");
  t.input("a", line.value("a"));
  if (line.take_word("variable"))
    t.input("b", b);
  else
    t.constant("b", b);
  const bool ta = line.take_word("ta"), tb = line.take_word("tb");
  std::string more;
  if (line.take_word("bias")) {
    const auto dims = dims_of(line, b);
    t.constant("bias", fmt::format("f32[{}]", tb ? dims.at(dims.size() - 2) : dims.back()));
    more = ", bias";
  }
  t.node("y", fmt::format("MatMul(a, b{}) transpose_a={} transpose_b={}", more, ta, tb));
}

void pooling(Line& line, Text& t) {
  const auto x = line.value("x");
  const auto axes = dims_of(line, x).size() - 2;
  t.input("x", x);
  const bool most = line.take_word("max");
  if (!most && !line.take_word("avg")) line.wrong("wanted the word max or avg");
  std::string attributes;
  for (const std::string name : {"kernel", "strides", "dilations", "pads_begin", "pads_end"})
    if (line.values.count(name)) attributes += fmt::format(" {}={}", name, list_of(line.value(name), axes));
  if (line.values.count("pads")) {
    const auto pads = list_of(line.value("pads"), axes);
    attributes += fmt::format(" pads_begin={} pads_end={}", pads, pads);
  }
  if (line.values.count("rounding")) attributes += " rounding_type=" + line.value("rounding");
  if (line.take_word("exclude_pad")) attributes += " exclude-pad=true";
  t.node("y", std::string(most ? "MaxPool" : "AvgPool") + "(x)" + attributes);
}

/// eltwise Add a=... b=...: any operator, its inputs a, b, c in order, other values as attributes.
void any_operator(Line& line, Text& t) {
  if (line.words.empty()) line.wrong("wanted the name of an operator");
  const auto name = line.words.front();
  line.words.erase(line.words.begin());
  std::string inputs, attributes;
  for (const auto& [key, value] : line.values) {
    if (key.size() == 1 && value.find('[') != std::string::npos) {
      t.input(key, value);
      inputs += (inputs.empty() ? "" : ", ") + key;
    } else {
      attributes += fmt::format(" {}={}", key, value);
    }
  }
  t.node("y", fmt::format("{}({}){}", name, inputs, attributes));
}

void reduction(Line& line, Text& t) {
  t.input("x", line.value("x"));
  std::string name;
  for (const std::string kind : {"Mean", "Max", "Min", "Sum", "L2"})
    if (line.take_word(kind)) name = kind;
  if (name.empty()) line.wrong("wanted one of the words Mean, Max, Min, Sum, L2");
  t.body += constant_list("axes", line.value("axes"));
  t.node("y", fmt::format("Reduce{}(x, axes) keep_dims={}", name, line.take_word("keep")));
}

void resizing(Line& line, Text& t) {
  const auto x = line.value("x");
  t.input("x", x);
  std::string axes;
  const auto rank = dims_of(line, x).size();
  for (std::size_t i = 2; i < rank; ++i) axes += (i > 2 ? "," : "") + std::to_string(i);
  t.body += constant_list("sizes", line.value("to"), rank - 2) + constant_list("axes", axes);
  t.node("y", fmt::format("Interpolate(x, sizes, axes) mode={} coordinate_transformation_mode={}",
                          line.value_or("mode", "nearest"), line.value_or("at", "half_pixel")));
}

void recurrent(Line& line, Text& t, const std::string& name, std::int64_t gates, bool cell_state) {
  const auto x = line.value("x");
  const auto hidden = std::stoll(line.value("hidden"));
  const bool both = line.take_word("bidirectional");
  const int d = both ? 2 : 1;
  t.input("x", x);
  t.constant("w", fmt::format("f32[{},{},{}]", d, gates * hidden, dims_of(line, x).at(2)));
  t.constant("r", fmt::format("f32[{},{},{}]", d, gates * hidden, hidden));
  t.constant("b", fmt::format("f32[{},{}]", d, gates * hidden));
  t.node("y, h" + std::string(cell_state ? ", c" : ""),
         fmt::format("{}(x, _{}, _, w, r, b) hidden_size={}{}", name, cell_state ? ", _" : "", hidden,
                     both ? " direction=bidirectional" : ""));
  t.last = "y";
}

void concat(Line& line, Text& t) {
  std::string inputs;
  for (const auto& [key, value] : line.values)
    if (value.find('[') != std::string::npos) {
      t.input(key, value);
      inputs += (inputs.empty() ? "" : ", ") + key;
    }
  t.node("y", fmt::format("Concat({}) axis={}", inputs, line.value_or("axis", "1")));
}

void first_node(Line& line, Text& t) {
  const auto& kind = line.kind;
  const auto axis = [&](const std::string& other) { return line.value_or("axis", other); };
  if (kind == "conv") return convolution(line, t, false);
  if (kind == "deconv") return convolution(line, t, true);
  if (kind == "pair") return pair(line, t);
  if (kind == "binconv") return binary_convolution(line, t);
  if (kind == "matmul") return product(line, t);
  if (kind == "pool") return pooling(line, t);
  if (kind == "eltwise") return any_operator(line, t);
  if (kind == "reduce") return reduction(line, t);
  if (kind == "resize") return resizing(line, t);
  if (kind == "concat") return concat(line, t);
  if (kind == "lstm") return recurrent(line, t, "LSTMSequence", 4, true);
  if (kind == "gru") return recurrent(line, t, "GRUSequence", 3, false);
  t.input("x", line.value("x"));
  if (kind == "softmax") return t.node("y", "Softmax(x) axis=" + axis("-1"));
  if (kind == "layernorm") {
    const auto columns = dims_of(line, line.value("x")).back();
    t.constant("scale", fmt::format("f32[{}]", columns));
    t.constant("shift", fmt::format("f32[{}]", columns));
    return t.node("y", "LayerNormalization(x, scale, shift)");
  }
  if (kind == "transpose") {
    t.body += constant_list("order", line.value("order"));
    return t.node("y", "Transpose(x, order)");
  }
  if (kind == "split") {
    t.body += fmt::format(" axis = const i64[] {{{}}}\n", axis("1"));
    std::string names = "y";
    const auto parts = std::stoll(line.value("parts"));
    for (int i = 1; i < parts; ++i) names += ", y" + std::to_string(i);
    t.node(names, fmt::format("Split(x, axis) num_splits={}", parts));
    t.last = "y";
    return;
  }
  if (kind == "mvn") {
    t.body += constant_list("axes", line.value("axes"));
    return t.node("y", "MVN(x, axes) eps=0.00001");
  }
  if (kind == "lrn") {
    t.body += constant_list("axes", "1");
    return t.node("y", "LRN(x, axes) size=" + line.value_or("size", "5"));
  }
  line.wrong(
      "unknown kind, wanted conv, deconv, pair, binconv, matmul, pool, eltwise, reduce, resize, concat, "
      "split, softmax, "
      "layernorm, mvn, lrn, transpose, lstm or gru");
}

const std::map<std::string, std::string>& activations() {
  static const std::map<std::string, std::string> all{
      {"relu", "Relu({})"},       {"clamp", "Clamp({}) min=0 max=6"},
      {"hswish", "HSwish({})"},   {"hsigmoid", "HSigmoid({})"},
      {"sigmoid", "Sigmoid({})"}, {"swish", "Swish({})"},
      {"gelu", "Gelu({})"},       {"tanh", "Tanh({})"},
      {"elu", "Elu({})"},         {"mish", "Mish({})"}};
  return all;
}

/// The type of what the text computes so far.
TensorType type_of(const Text& t) {
  const auto g =
      parse_graph(fmt::format("graph ({}) -> ({}) {{\n{}}}\n", t.inputs, t.last, t.body), operators());
  return g.type(g.results()[0].value);
}

/// The type of constants for each channel of what is computed so far.
std::string per_channel(const Line& line, const Text& t) {
  auto dims = type_of(t).shape.sizes();
  const auto axis = line.kind == "matmul" ? dims.size() - 1 : 1;
  for (std::size_t i = 0; i < dims.size(); ++i)
    if (i != axis) dims[i] = 1;
  return "f32" + to_string(dims);
}

void append_words(const Line& line, Text& t) {
  int number = 0;
  for (const auto& word : line.words) {
    const auto name = "s" + std::to_string(++number), other = "o" + std::to_string(number);
    if (const auto it = activations().find(word); it != activations().end()) {
      t.node(name, fmt::format(fmt::runtime(it->second), t.last));
    } else if (word == "sum") {
      t.input(other, to_string(type_of(t)));
      t.node(name, fmt::format("Add({}, {})", t.last, other));
    } else if (word == "scale") {
      t.constant(other, per_channel(line, t));
      t.node(name, fmt::format("Multiply({}, {})", t.last, other));
    } else if (word == "requantise") {
      const auto factors = per_channel(line, t);
      t.constant(other, factors);
      t.constant(other + "b", factors);
      t.body += fmt::format(
          " one = const f32[] {{1}}\n zero = const u8[] {{3}}\n {0}f = Convert({1}) "
          "destination_type=f32\n {0}m = Multiply({0}f, {2})\n {0}a = Add({0}m, {2}b)\n",
          name, t.last, other);
      t.node(name, fmt::format("Quantize({}a, one, zero)", name));
    } else {
      line.wrong("unknown word " + word);
    }
  }
}

}  // namespace

Graph graph_of(const std::string& text) {
  auto line = taken_apart(text);
  Text t;
  RuleOptions options;
  if (line.take_word("separate")) options.disable = {"fuse-conv-depthwise"};
  try {
    first_node(line, t);
    append_words(line, t);
    auto graph =
        parse_graph(fmt::format("graph ({}) -> ({}) {{\n{}}}\n", t.inputs, t.last, t.body), operators());
    Ledger ledger;
    optimize(graph, options, ledger);
    return graph;
  } catch (const std::logic_error& e) {  // a number that is none, a list that is too short
    line.wrong(std::string("a number or size is missing or wrong: ") + e.what());
  } catch (const Error& e) {
    if (e.code() == ErrorCode::bad_option) throw;
    line.wrong(e.what());
  }
}

std::vector<std::string> read_problems(const std::vector<std::string>& files) {
  std::vector<std::string> lines;
  for (const auto& file : files) {
    std::ifstream in(file);
    if (!in) fail(ErrorCode::bad_file, "{}: cannot be read", file);
    for (std::string line; std::getline(in, line);) {
      line = line.substr(0, line.find('#'));
      while (!line.empty() && std::isspace(static_cast<unsigned char>(line.back()))) line.pop_back();
      if (!line.empty() && std::find(lines.begin(), lines.end(), line) == lines.end()) lines.push_back(line);
    }
  }
  return lines;
}

}  // namespace lamina::bench
