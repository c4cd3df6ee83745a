/// fork() waits for whatever a public function computes: a child would find locks taken.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "lamina/extension.h"
#include "tests/api/small_models.h"

namespace lamina {
namespace {

using namespace testing;
using namespace std::chrono_literals;

std::atomic<bool> hold, inside;

/// In a thread: true once fork() has returned.
class Fork {
 public:
  Fork() : thread_([this] { fork_once(); }) {}
  ~Fork() { thread_.join(); }
  bool done_within(std::chrono::milliseconds time) const {
    const auto late = std::chrono::steady_clock::now() + time;
    while (!done_ && std::chrono::steady_clock::now() < late) std::this_thread::sleep_for(1ms);
    return done_;
  }

 private:
  void fork_once() {
    const auto child = fork();
    if (child == 0) _exit(0);
    waitpid(child, nullptr, 0);
    done_ = true;
  }
  std::atomic<bool> done_{false};
  std::thread thread_;
};

/// y = -x by a library whose infer() lasts for as long as `hold` says.
Model held_model() {
  static const bool registered = [] {
    register_extension("held", [](const lamina_host* given, lamina_registrar* registrar) {
      static const lamina_host* host;
      host = given;
      static const lamina_port port{sizeof(port), "x", "", 0, 0, nullptr};
      lamina_operation op{};
      op.struct_size = sizeof(op);
      op.domain = "test.held";
      op.type = "Minus";
      op.in = op.out = &port;
      op.inputs = op.outputs = 1;
      op.infer = [](const lamina_node* node) {
        while (hold) {
          inside = true;
          std::this_thread::sleep_for(1ms);
        }
        return host->set_output(node->context, 0, node->in[0]);
      };
      op.run = [](const lamina_call* call) -> lamina_status {
        for (std::uint64_t i = 0; i < call->in[0]->elements; ++i)
          static_cast<float*>(call->out[0]->data)[i] = -static_cast<const float*>(call->in[0]->data)[i];
        return LAMINA_OK;
      };
      return host->add_operation(registrar, &op);
    });
    return true;
  }();
  EXPECT_TRUE(registered);
  IrText ir;
  ir.result({ir.layer("Minus", "test.held", "", {{ir.parameter("x", "?,4")}})});
  const TemporaryFolder folder;
  return Model(ir.write(folder), {"held"});
}

/// `call` comes to infer(), where it is held.
void expect_fork_waits_for(const std::string& what, const std::function<void()>& call) {
  inside = false;
  hold = true;
  std::thread caller(call);
  while (!inside) std::this_thread::sleep_for(1ms);
  {
    const Fork fork;
    EXPECT_FALSE(fork.done_within(50ms)) << what;
    hold = false;
    EXPECT_TRUE(fork.done_within(10s)) << what;
  }
  caller.join();
}

TEST(Standstills, fork_waits_for_public_functions) {
  const auto model = held_model();
  const TemporaryFolder folder;
  const Options options{.cache_dir = folder.file("cache")};
  { const CompiledModel first(model, options); }
  const CompiledModel compiled(model), cached(model, options);
  ASSERT_EQ(cached.property("LOADED_FROM_CACHE"), "YES");
  expect_fork_waits_for("Model", [] { held_model(); });
  expect_fork_waits_for("CompiledModel", [&] { const CompiledModel another(model); });
  expect_fork_waits_for("output_ports", [&] { compiled.output_ports({{3, 4}}); });
  expect_fork_waits_for("save", [&] { compiled.save(folder.file("m.lamina")); });
  expect_fork_waits_for("fusions", [&] { cached.fusions(); });
  cached.create_request();
}

TEST(Standstills, fork_does_not_wait_for_callbacks_of_a_compilation) {
  const CompiledModel other(model_of(sums()));
  std::unique_ptr<Fork> fork;
  Options options;
  options.progress = [&](std::string_view, double) {
    if (fork) return;
    fork = std::make_unique<Fork>();
    EXPECT_TRUE(fork->done_within(10s));
    EXPECT_EQ(other.output_ports({{3, 4}, {3, 4}})[0].shape, (Dims{3, 4}));
    EXPECT_EQ(other.property("LOADED_FROM_CACHE"), "NO");
  };
  const CompiledModel compiled(model_of(sums()), options);
  ASSERT_TRUE(fork);
}

}  // namespace
}  // namespace lamina
