// A model is read, compiled, run and let go of, again and again: memory stays, and so do threads and open
// files.
//
//   cycles [MODEL]...        LAMINA_TEST_CYCLES says how often; 100 otherwise
#include <malloc.h>

#include <algorithm>
#include <vector>

#include "common.h"

namespace {

std::size_t files() {
  std::size_t count = 0;
  for (const auto& file : std::filesystem::directory_iterator("/proc/self/fd")) count += !file.path().empty();
  return count;
}

lamina::Tensor zeros(const lamina::Port& port) {
  auto shape = port.shape;
  for (auto& d : shape) d = std::max<std::int64_t>(d, 1);
  return lamina::Tensor(port.type, shape);
}

/// A convolution, and layers of a library of examples/extension behind it.
Network custom_network(const std::string& domain) {
  Writer w;
  const int x = w.parameter("1,4,32,32"), weights = w.constant("4,4,1,1", std::vector<float>(16, 0.25F));
  int last = w.layer("Convolution", "strides=\"1,1\" dilations=\"1,1\" pads_begin=\"0,0\" pads_end=\"0,0\"",
                     {x, weights});
  last = w.layer("Gate", "slope=\"0.25\"", {last}, false, domain);
  last = w.layer("ChannelShuffle", "groups=\"2\"", {last}, false, domain);
  w.result(last);
  return w.done();
}

using Open = std::function<lamina::Model()>;

void cycle(const Open& open, int streams) {
  const auto model = open();
  const lamina::CompiledModel compiled(model, {.streams = streams});
  std::vector<lamina::Request> all;
  for (int i = 0; i < 2; ++i) {
    all.push_back(compiled.create_request());
    for (std::size_t p = 0; p < model.inputs().size(); ++p) all.back().set_input(p, zeros(model.inputs()[p]));
    all.back().run();
    all.back().start();
  }
  for (auto& r : all) r.wait();
  EXPECT(all[0].output(0).same_as(all[1].output(0)));
}

/// Threads of streams: they are joined with their model. (The task library keeps its own.)
std::size_t streams_threads() {
  std::size_t count = 0;
  for (const auto& [id, name] : threads_here()) count += name.compare(0, 8, "lamina-s") == 0;
  return count;
}

long trimmed() {
  malloc_trim(0);
  return resident();
}

long median(std::vector<long> all) {
  std::sort(all.begin(), all.end());
  return all.at(all.size() / 2);
}

/// The level after so many more cycles: how much is resident goes up and down by what threads of the task
/// library happen to have touched, by up to 2 MiB, so it is the median of several cycles.
long level_after(const Open& open, int times) {
  const int window = 20;
  std::vector<long> all;
  for (int i = 0; i < times; ++i) {
    cycle(open, 1 + i % 2);
    if (i >= times - window) all.push_back(trimmed());
    EXPECT(soon([] { return streams_threads() == 0; }));  // a joined one may be listed for a moment
  }
  return median(all);
}

/// Where the machine is busy, threads first touch 1 MiB only after 50 cycles or many more, once, and the task
/// library starts workers later; what leaks grows in each round.
void repeat(const std::string& what, const Open& open, int times) {
  doing = what;
  const int settled = 250, most_rounds = 3;
  const auto open_files = files();
  long level = level_after(open, settled), growth = 0;
  bool no_more_threads = false;
  for (int round = 0; round < most_rounds; ++round) {
    const auto threads = threads_here().size();
    const long now = level_after(open, times);
    growth = now - level;
    no_more_threads = soon([&] { return threads_here().size() <= threads; });
    std::printf("%s: %ld KiB after %d cycles, %+ld KiB after %d\n", what.c_str(), level,
                settled + round * times, growth, settled + (round + 1) * times);
    if (growth <= 1024 && no_more_threads) break;
    level = now;
  }
  EXPECT(growth <= 1024);
  EXPECT(no_more_threads);
  EXPECT(soon([&] { return files() == open_files; }));  // a model may go on its own thread
}

}  // namespace

int main(int argc, char** argv) {
  const char* const asked = std::getenv("LAMINA_TEST_CYCLES");
  const int times = asked != nullptr ? std::atoi(asked) : 100;
  std::string folder = std::filesystem::temp_directory_path() / "lamina-cycles-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) return 2;
  const auto file = long_network(6, 512).write(folder + "/network");
  repeat(
      "a network of six layers", [&] { return lamina::Model(file); }, times);
  const std::map<std::string, std::string> libraries{{"com.example.c", LAYERS_C},
                                                     {"com.example.cpp", LAYERS_CPP}};
  for (const auto& [domain, library] : libraries) {
    const auto custom = custom_network(domain).write(folder + "/" + domain);
    const std::vector<std::string> extensions{library};
    repeat(
        "custom layers of " + domain, [&] { return lamina::Model(custom, extensions); }, times);
  }
  for (int i = 1; i < argc; ++i)
    repeat(
        argv[i], [&] { return lamina::Model(argv[i]); }, times);
  std::filesystem::remove_all(folder);
  return ends("cycles");
}
