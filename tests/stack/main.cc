/// Finds the implementations of oneDNN that run with the stack pointer outside the thread's stack, where a
/// signal would write its frame over other data. tests/kernels/onednn_stack_test.py calls it in two steps:
/// - `onednn_stack code DIR` runs every implementation of every small problem, each in its own process, and
///   has oneDNN write the code that it generates. It prints a line for each, `NUMBER refused|taken|other
///   FAMILY: IMPLEMENTATION: PROBLEM`, and puts the code into the folder DIR/NUMBER.
/// - `onednn_stack step N` runs one of these again, instruction by instruction, and looks at the stack
///   pointer before each. It prints the number of instructions, and of those with the stack pointer
///   elsewhere.
///
/// `refused`: the table of refused.cc says that lamina never takes it; `other`: lamina has no such kernel.
/// `--all` runs all problems; without it some run for each implementation.
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <tbb/task_arena.h>
#include <ucontext.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>

#include "tests/stack/problems.h"

namespace lamina::stack {
namespace {

constexpr long kMostSteps = 150000;

char *lowest, *highest;  // of this thread's stack
volatile bool stepping = false;
volatile long steps = 0, elsewhere = 0;

/// The trap flag makes a signal of each instruction; sigreturn sets it again.
void on_trap(int, siginfo_t* signal, void* context) {
  constexpr greg_t kTrapFlag = 0x100;
  auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  const auto* pointer = reinterpret_cast<char*>(registers[REG_RSP]);
  if (signal->si_code == TRAP_TRACE) {
    steps = steps + 1;
    if (pointer < lowest || pointer > highest) elsewhere = elsewhere + 1;
  }
  if (stepping && steps < kMostSteps)
    registers[REG_EFL] |= kTrapFlag;
  else
    registers[REG_EFL] &= ~kTrapFlag;
}

void prepare_stepping() {
  pthread_attr_t attributes;
  void* start = nullptr;
  std::size_t size = 0;
  pthread_getattr_np(pthread_self(), &attributes);
  pthread_attr_getstack(&attributes, &start, &size);
  pthread_attr_destroy(&attributes);
  lowest = static_cast<char*>(start), highest = lowest + size;
  static std::array<char, 1 << 17> memory;  // of the handler
  stack_t alternate{};
  alternate.ss_sp = memory.data(), alternate.ss_size = memory.size();
  sigaltstack(&alternate, nullptr);
  struct sigaction action {};
  action.sa_sigaction = on_trap;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  sigaction(SIGTRAP, &action, nullptr);
}

/// Memory for all arguments, zeros.
class Run {
 public:
  explicit Run(const dnnl::primitive_desc_base& pd) : stream_(onednn::engine()) {
    dnnl_primitive_t primitive = nullptr;
    if (dnnl_primitive_create(&primitive, pd.get()) != dnnl_success)
      throw dnnl::error(dnnl_runtime_error, "");
    primitive_ = dnnl::primitive(primitive);
    std::vector<int> ids{DNNL_ARG_SRC_0,     DNNL_ARG_SRC_1,     DNNL_ARG_SRC_2,     DNNL_ARG_DST_0,
                         DNNL_ARG_DST_1,     DNNL_ARG_DST_2,     DNNL_ARG_WEIGHTS_0, DNNL_ARG_WEIGHTS_1,
                         DNNL_ARG_WEIGHTS_2, DNNL_ARG_WEIGHTS_3, DNNL_ARG_BIAS,      DNNL_ARG_MEAN,
                         DNNL_ARG_VARIANCE,  DNNL_ARG_SCALE,     DNNL_ARG_SHIFT,     DNNL_ARG_WORKSPACE,
                         DNNL_ARG_SCRATCHPAD};
    for (int i = 0; i < 4; ++i) ids.push_back(DNNL_ARG_ATTR_MULTIPLE_POST_OP(i) | DNNL_ARG_SRC_1);
    for (const int id : ids) add(id, pd.query_md(dnnl::query::exec_arg_md, id));
  }
  void operator()() const {
    dnnl_primitive_execute(primitive_.get(), stream_.get(), static_cast<int>(args_.size()), args_.data());
  }

 private:
  void add(int id, const onednn::Desc& desc) {
    if (desc.get_size() == 0) return;
    memories_.emplace_back(desc, onednn::engine());
    std::memset(memories_.back().get_data_handle(), 0, desc.get_size());
    args_.push_back({id, memories_.back().get()});
  }

  dnnl::primitive primitive_;
  dnnl::stream stream_;
  std::vector<dnnl::memory> memories_;
  std::vector<dnnl_exec_arg_t> args_;
};

void write_code(const std::filesystem::path& folder, const dnnl::primitive_desc_base& pd) {
  std::filesystem::create_directory(folder);
  std::filesystem::current_path(folder);
  dnnl::set_jit_dump(true);
  Run run(pd);
  run();
}

void step(const dnnl::primitive_desc_base& pd) {
  Run run(pd);
  run();  // makes its code
  prepare_stepping();
  stepping = true;
  raise(SIGTRAP);
  run();
  stepping = false;
  raise(SIGTRAP);
  std::printf("%ld instructions, %ld with the stack pointer outside the stack\n", steps, elsewhere);
}

/// In a process of its own, which has made no code yet and whose end harms nobody; its status.
template <class Function>
int apart(Function&& function) {
  std::fflush(nullptr);
  const auto child = fork();
  if (child == 0) {
    int status = 0;
    try {
      function();
      std::fflush(nullptr);
    } catch (const std::exception&) {
      status = 1;
    }
    _exit(status);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

std::string_view verdict(const Problem& problem, std::string_view implementation) {
  if (!problem.primitive) return "other";
  return onednn::is_always_refused(host().library, *problem.primitive, implementation) ? "refused" : "taken";
}

/// Selects an implementation's problems by number: the first ones, then fewer.
bool is_looked_at(int i) { return i < 8 || i % 11 == 0; }

int run(const std::vector<std::string>& words) {
  const bool code = words.at(0) == "code", all = words.size() > 2 && words[2] == "--all";
  const long wanted = code ? -1 : std::stol(words.at(1));
  std::map<std::string, int> seen;  // problems by family and implementation
  long number = 0;
  int status = 0;
  for (const auto& problem : all_problems()) {
    std::optional<dnnl::primitive_desc_base> pd;
    try {
      pd = problem.describe();
    } catch (const dnnl::error&) {
      continue;
    }
    do {
      const std::string name = pd->impl_info_str();
      if (onednn::is_ref(name.c_str())) break;  // plain C++, which lamina never takes; nothing else follows
      if (const int i = seen[problem.family + name]++; !all && !is_looked_at(i)) continue;
      const auto at = number++;
      if (!code && at != wanted) continue;
      const int failed =
          apart([&] { code ? write_code(words[1] + "/" + std::to_string(at), *pd) : step(*pd); });
      if (code)
        std::printf("%ld %s %s: %s: %s%s\n", at, std::string(verdict(problem, name)).c_str(),
                    problem.family.c_str(), name.c_str(), problem.text.c_str(), failed ? " FAILED" : "");
      status = status != 0 || failed != 0;
    } while (dnnl_primitive_desc_next_impl(const_cast<dnnl_primitive_desc_t>(pd->get())) == dnnl_success);
  }
  return status;
}

}  // namespace

std::vector<Problem> all_problems() {
  std::vector<Problem> all;
  add_convolutions(all);
  add_products(all);
  add_recurrent(all);
  add_passes(all);
  return all;
}

std::string text_of(const Dims& dims) { return fmt::format("{}", fmt::join(dims, "x")); }

std::string_view text_of(Type type) {
  return type == Type::f32 ? "f32" : type == Type::bf16 ? "bf16" : type == Type::u8 ? "u8" : "s8";
}

dnnl::primitive_attr attributes(Stages stages, const Dims& result, std::size_t channel_axis) {
  auto attr = onednn::user_scratch();
  dnnl::post_ops ops;
  if (stages == Stages::relu) ops.append_eltwise(dnnl::algorithm::eltwise_relu, 0, 0);
  if (stages == Stages::many) {
    Dims channels(result.size(), 1), steps(result.size(), 1);
    channels[channel_axis] = result[channel_axis];
    for (std::size_t i = 0; i < channel_axis; ++i) steps[i] = result[channel_axis];
    ops.append_sum(1);
    ops.append_eltwise(dnnl::algorithm::eltwise_swish, 1, 0);
    ops.append_binary(dnnl::algorithm::binary_mul, onednn::Desc(channels, Type::f32, steps));
  }
  attr.set_post_ops(ops);
  return attr;
}

}  // namespace lamina::stack

int main(int count, char** arguments) {
  const std::vector<std::string> words(arguments + 1, arguments + count);
  if (words.size() < 2 || (words[0] != "code" && words[0] != "step")) {
    std::fprintf(stderr, "usage: onednn_stack code DIR [--all] | onednn_stack step NUMBER [--all]\n");
    return 2;
  }
  int status = 0;
  tbb::task_arena arena(1);  // of this thread: a process that has others may not fork
  arena.execute([&] { status = lamina::stack::run(words); });
  return status;
}
