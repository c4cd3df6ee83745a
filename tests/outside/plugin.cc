// A library that uses lamina and may be closed: see closes.cc.
#include "common.h"

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace {

bool works(const lamina::CompiledModel& model, float value) {
  std::vector<lamina::Request> all;
  std::atomic<int> calls = 0;
  for (int i = 0; i < 4; ++i) {
    all.push_back(model.create_request());
    all.back().set_input(0, filled({64, 512}, value));
    all.back().set_callback([&](std::exception_ptr) { ++calls; });
    all.back().start();
  }
  bool good = true;
  for (auto& r : all) {
    r.wait();
    good = good && all_are(r.output(0), value);
    r.run();
    good = good && all_are(r.output(0), value);
  }
  return good && calls == 4;
}

}  // namespace

/// Two streams of two threads, one of as many as there are, and none.
EXPORTED int use(int round) {
  for (const int streams : {2, 1, 0}) {
    const lamina::CompiledModel model(long_network(4, 512).model(),
                                      {.threads = streams == 2 ? 4 : 0, .streams = streams});
    if (!works(model, static_cast<float>(round + streams))) return 1;
  }
  return 0;
}

/// Looks at lamina without running anything.
EXPORTED int touch() { return lamina::properties().empty() ? 1 : 0; }

EXPORTED int done() {
  lamina::shutdown();
  return 0;
}
