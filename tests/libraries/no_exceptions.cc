/// How a library in C++ without exceptions fails: by the host's fail() it goes on, by refuse() the process
/// ends.
#include <cstring>

#include "lamina/extension.hpp"

using namespace lamina::extension;

namespace {

void copy(const Call& call) { std::memmove(call.out(0).data, call.in(0).data, call.in(0).bytes); }

struct FailsInRun {
  explicit FailsInRun(const Node&) {}
  void run(const Call& call) const {
    copy(call);
    engine()->fail(call.context(), "too late in the day");
  }
};
struct FailsWhenMade {
  explicit FailsWhenMade(const Node& node) { engine()->fail(node.context(), "no clay"); }
  void run(const Call& call) const { copy(call); }
};
struct Refuses {
  explicit Refuses(const Node&) {}
  void run(const Call&) const { refuse("never said"); }
};

template <class K>
Operation operation(const char* type) {
  return Operation("test.quiet", type).input("x").output("y").sample("x=[2]").kernel<K>();
}

}  // namespace

LAMINA_EXTENSION(library) {
  library.add(operation<FailsInRun>("FailsInRun"));
  library.add(operation<FailsWhenMade>("FailsWhenMade"));
  library.add(operation<Refuses>("Refuses"));
}
