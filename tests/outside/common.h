#pragma once
// What the programs here share: networks written as text, a handful of checks, what the system says of this
// process.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <lamina/lamina.h>

using namespace std::chrono_literals;
using lamina::ErrorCode;
using lamina::RequestStatus;

inline int failures = 0;
inline std::string doing;  // what is tried now

inline void expect(bool right, const char* what, int line) {
  if (right) return;
  ++failures;
  std::fprintf(stderr, "%s: line %d: not so: %s\n", doing.c_str(), line, what);
}
#define EXPECT(...) expect(static_cast<bool>(__VA_ARGS__), #__VA_ARGS__, __LINE__)

/// The code of the Error that is thrown; nothing when none is.
inline std::optional<ErrorCode> thrown(const std::function<void()>& body, std::string* text = nullptr) {
  try {
    body();
  } catch (const lamina::Error& e) {
    if (text != nullptr) *text = e.what();
    return e.code();
  }
  return std::nullopt;
}

/// A case by its name; the program ends where one hangs.
inline void attempt(const std::string& name, const std::function<void()>& body) {
  doing = name;
  alarm(400);
  try {
    body();
  } catch (const std::exception& e) {
    ++failures;
    std::fprintf(stderr, "%s: threw: %s\n", name.c_str(), e.what());
  }
  alarm(0);
}

/// Waits for what comes soon: only what hangs takes as long as this waits, however busy the machine is.
inline bool soon(const std::function<bool()>& condition) {
  for (int i = 0; i < 100000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(1ms);
  }
  return false;
}

// ---- networks: IR text and its weights ----

struct Network {
  std::string text, weights;
  lamina::Model model() const {
    const auto bytes = [](const std::string& s) { return std::as_bytes(std::span(s.data(), s.size())); };
    return lamina::Model::from_memory({.model = bytes(text), .weights = bytes(weights), .name = "network"});
  }
  /// Writes NAME.xml and NAME.bin; gives the path of the former.
  std::string write(const std::string& stem) const {
    std::ofstream(stem + ".xml") << text;
    std::ofstream(stem + ".bin", std::ios::binary) << weights;
    return stem + ".xml";
  }
};

/// Layers in their order, each with the layers that it reads.
class Writer {
 public:
  int layer(const std::string& type, const std::string& data, const std::vector<int>& inputs,
            bool result = false, const std::string& version = "opset1") {
    const int id = next_++;
    std::string ports;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      ports += "<port id=\"" + std::to_string(i) + "\"/>";
      edges_ += "<edge from-layer=\"" + std::to_string(inputs[i]) + "\" from-port=\"9\" to-layer=\"" +
                std::to_string(id) + "\" to-port=\"" + std::to_string(i) + "\"/>";
    }
    layers_ += "<layer id=\"" + std::to_string(id) + "\" name=\"" + type + std::to_string(id) + "\" type=\"" +
               type + "\" version=\"" + version + "\">" + (data.empty() ? "" : "<data " + data + "/>");
    if (!ports.empty()) layers_ += "<input>" + ports + "</input>";
    layers_ += result ? "</layer>" : "<output><port id=\"9\"/></output></layer>";
    return id;
  }
  int parameter(const std::string& shape) {
    return layer("Parameter", "element_type=\"f32\" shape=\"" + shape + "\"", {});
  }
  int constant(const std::string& shape, const std::vector<float>& values) {
    const auto offset = weights_.size(), size = values.size() * sizeof(float);
    weights_.append(reinterpret_cast<const char*>(values.data()), size);
    return layer("Const",
                 "element_type=\"f32\" shape=\"" + shape + "\" offset=\"" + std::to_string(offset) +
                     "\" size=\"" + std::to_string(size) + "\"",
                 {});
  }
  void result(int of) { layer("Result", "", {of}, true); }
  Network done() const {
    return {"<net name=\"outside\" version=\"11\"><layers>" + layers_ + "</layers><edges>" + edges_ +
                "</edges></net>",
            weights_};
  }

 private:
  int next_ = 0;
  std::string layers_, edges_, weights_;
};

/// y = 2 a + b, of rows of 8, any number of them. Rows that differ in number fail when it runs.
inline Network small_network() {
  Writer w;
  const int a = w.parameter("?,8"), b = w.parameter("?,8");
  const int twice = w.layer("Multiply", "", {a, w.constant("1", {2})});
  w.result(w.layer("Add", "", {twice, b}));
  return w.done();
}

/// x, times a rotated identity and ReLU, so many times: rows of one number come out as they went in, and it
/// takes its time.
inline Network long_network(int layers, int size) {
  Writer w;
  const auto n = std::to_string(size);
  int last = w.parameter("64," + n);
  std::vector<float> values(static_cast<std::size_t>(size * size));
  for (int r = 0; r < size; ++r) values[static_cast<std::size_t>(r * size + (r + 1) % size)] = 1;
  const int weights = w.constant(n + "," + n, values);
  for (int i = 0; i < layers; ++i) {
    last = w.layer("MatMul", "transpose_a=\"false\" transpose_b=\"false\"", {last, weights});
    last = w.layer("ReLU", "", {last});
  }
  w.result(last);
  return w.done();
}

/// An ONNX model: y = x, after a Loop that runs for ever where `go` is true, and not at all where it is
/// false.
inline constexpr char kEndless[] =
    "\010\010\022\000\072\335\001\012\237\001\012\000\012\002\147\157\012\001\170\022\001\171\032\007\146"
    "\157\162\145\166\145\162\042\004\114\157\157\160\052\201\001\012\004\142\157\144\171\062\166\012\020"
    "\012\001\143\022\001\157\042\010\111\144\145\156\164\151\164\171\012\016\012\001\166\012\001\166\022"
    "\001\167\042\003\101\144\144\022\001\142\132\013\012\001\151\022\006\012\004\010\007\022\000\132\013"
    "\012\001\143\022\006\012\004\010\011\022\000\132\023\012\001\166\022\016\012\014\010\001\022\010\012"
    "\002\010\001\012\002\010\004\142\013\012\001\157\022\006\012\004\010\011\022\000\142\023\012\001\167"
    "\022\016\012\014\010\001\022\010\012\002\010\001\012\002\010\004\240\001\005\022\001\147\132\023\012"
    "\001\170\022\016\012\014\010\001\022\010\012\002\010\001\012\002\010\004\132\014\012\002\147\157\022"
    "\006\012\004\010\011\022\000\142\023\012\001\171\022\016\012\014\010\001\022\010\012\002\010\001\012"
    "\002\010\004\102\004\012\000\020\015";
inline lamina::Model endless_model() {
  const auto bytes = std::as_bytes(std::span(kEndless, sizeof(kEndless) - 1));
  return lamina::Model::from_memory({.model = bytes, .name = "endless.onnx"});
}

inline lamina::Tensor filled(lamina::Dims shape, float value) {
  lamina::Tensor t(lamina::ElementType::f32, std::move(shape));
  for (auto& v : t.data<float>()) v = value;
  return t;
}

inline bool all_are(const lamina::Tensor& t, float value) {
  for (const float v : t.data<float>())
    if (v != value) return false;
  return t.size() > 0;
}

// ---- this process ----

/// A line of a file of /proc by its beginning.
inline std::string proc_line(const std::string& path, const std::string& begin) {
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);)
    if (line.compare(0, begin.size(), begin) == 0) return line.substr(begin.size());
  return {};
}

/// Thread numbers with their names.
inline std::map<int, std::string> threads_here() {
  std::map<int, std::string> out;
  std::error_code gone;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", gone)) {
    std::ifstream in(task.path() / "comm");
    std::string name;
    if (std::getline(in, name)) out[std::stoi(task.path().filename())] = name;
  }
  return out;
}

/// KiB of memory that this process has.
inline long resident() { return std::stol(proc_line("/proc/self/smaps_rollup", "Rss:")); }

/// The status with which a child ends; -1 where it hangs, -signal - 1 where it dies.
inline int status_of(pid_t child) {
  int status = 0;
  if (!soon([&] { return waitpid(child, &status, WNOHANG) == child; })) {
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    return -1;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status) - 1;
}

inline int ends(const char* program) {
  if (failures == 0) std::printf("%s: all as said\n", program);
  return failures == 0 ? 0 : 1;
}
