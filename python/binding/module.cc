/// The module lamina._lamina, on which the Python sources of the package build.
#include "common.h"
#include "gil.h"
#include "interrupts.h"
#include "let_go.h"

NB_MODULE(_lamina, m) {
  using namespace lamina::python;
  m.doc() = "The compiled part of the package lamina. Its classes are bases of those of the package.";
  bind_errors(m);
  bind_arrays(m);
  bind_model(m);
  bind_compiled(m);
  bind_request(m);
  bind_calls(m);
  bind_offline(m);
  bind_draw(m);
  bind_benchmark(m);
  bind_check(m);
  bind_explain(m);
  Interrupts::the_calling_thread_is_the_main_one();
  m.def(
      "version", [] { return text(lamina::version()); }, nb::sig("def version() -> str"),
      "The version of the library: \"lamina 0.1.0\".");
  m.def(
      "shutdown",
      [] {
        const Unlocked release;
        lamina::shutdown();
      },
      "Cancels started inferences of all models and joins every thread of the library. Threads are made "
      "again "
      "at the next use. Raises Busy in a callback.");
  m.def(
      "release", [] { release_let_go(); },
      "Releases objects that threads of the library have let go of. It happens by itself, too, a little "
      "later.");
  m.def(
      "after_fork_in_child",
      [] {
        Interrupts::after_fork_in_child();
        let_go_after_fork_in_child();
      },
      "Called by the package in the child of a fork.");
}
