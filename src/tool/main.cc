/// The lamina command.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <iostream>
#include <memory>
#include <new>
#include <system_error>

#include "base/error.h"
#include "base/standard_files.h"
#include "base/text.h"
#include "lamina/model.h"
#include "tool/arguments.h"
#include "tool/interrupt.h"
#include "tool/pages.h"
#include "tool/verb_list.h"

namespace {

using namespace lamina;
using namespace lamina::tool;

/// Characters: a line to paste is in some, and a hostile command line in others.
constexpr std::size_t kLongestUsageError = 4000;

int report(const CLI::App& app, const CLI::ParseError& e, const CommandWords& command) {
  if (e.get_exit_code() == 0) return app.exit(e);  // --help, --version
  tell("lamina: " + command.as_typed(explain_usage(app, e, command.words)));
  return 2;
}

/// Memory that is freed when no more can be allocated, so that the error can be reported.
std::unique_ptr<char[]> reserve;

/// Reports the error that is being handled without allocating memory.
int no_memory(const char* what) noexcept {
  reserve.reset();
  std::fputs("lamina: ", stderr);
  std::fputs(what, stderr);
  std::fputs("\n", stderr);
  return 1;
}

/// An exception that nobody could catch: of another thread, or while another one was handled.
[[noreturn]] void end_at_once() {
  reserve.reset();
  const char* what = "lamina: internal error\n";
  if (const auto thrown = std::current_exception()) try {
      std::rethrow_exception(thrown);
    } catch (const std::bad_alloc&) {
      what = "lamina: out of memory\n";
    } catch (const Error& e) {
      if (e.code() == ErrorCode::out_of_memory) what = "lamina: out of memory\n";
    } catch (...) {
    }
  std::fputs(what, stderr);
  if (std::string_view(what).find("memory") != std::string_view::npos) std::_Exit(1);
  std::abort();  // a bug: where it happened is to be seen
}

int status_of(const Error& e) { return e.code() == ErrorCode::bad_option ? 2 : 1; }

/// Results that did not arrive are no success.
int finished(int status) {
  const bool written = std::fflush(stdout) == 0 && !std::ferror(stdout) && !std::cout.fail();
  if (written || status != 0) return status;
  tell(fmt::format("lamina: standard output: cannot be written{}{}", errno ? ": " : "",
                   errno ? std::strerror(errno) : ""));
  return 1;
}

int run(int argc, char** argv) {
  CLI::App app("Runs trained neural networks on the CPU, and shows why it is fast.", "lamina");
  app.require_subcommand(1);
  app.set_help_all_flag("--help-all", "Help of all verbs");
  app.set_version_flag("--version", version());
  std::vector<std::pair<CLI::App*, Verb>> actions;
  for (const auto& row : verbs()) {
    auto* sub = app.add_subcommand(row.name, row.doc);
    sub->footer(fmt::format("Example:\n  {}", row.example));
    OptionSet options(*sub);
    actions.emplace_back(sub, row.setup(options));
  }
  app.footer(
      "lamina help VERB says more. Exit status: 0 success, 1 failure or a fault found, 2 wrong command "
      "line.");
  CommandWords command;
  try {
    if (argc == 3 && std::strcmp(argv[1], "--write-pages") == 0) {  // for packages, when lamina is built
      write_pages(app, argv[2]);
      return 0;
    }
    command = canonical_arguments(app, argc, argv);
    refuse_joined_options(app, command.words);
    auto reversed = command.words;
    std::reverse(reversed.begin(), reversed.end());
    app.parse(reversed);
    for (const auto& [sub, action] : actions)
      if (sub->parsed()) return action();
  } catch (const CLI::ParseError& e) {
    return report(app, e, command);
  } catch (const UsageError& e) {
    tell(fmt::format("lamina: {}", one_line(command.as_typed(e.what()), kLongestUsageError)));
    return 2;
  } catch (const Error& e) {
    if (e.code() == ErrorCode::out_of_memory) return no_memory(e.what());
    if (e.code() == ErrorCode::canceled && interrupted() != 0) {
      tell("lamina: interrupted");
      return 128 + interrupted();
    }
    const auto status = status_of(e);
    tell(fmt::format("lamina: {}",
                     status == 2 ? one_line(command.as_typed(e.what()), kLongestUsageError) : e.what()));
    return status;
  } catch (const std::bad_alloc&) {
    return no_memory("out of memory");
  } catch (const std::system_error& e) {
    if (std::ferror(stdout)) return finished(0);  // a line of it threw
    if (e.code() == std::errc::resource_unavailable_try_again || e.code() == std::errc::not_enough_memory)
      return no_memory("out of memory, or of threads that this process may have");
    tell("lamina: internal error: " + one_line(e.what()));
    return 1;
  } catch (const std::exception& e) {
    if (std::ferror(stdout)) return finished(0);  // a line of it threw
    tell("lamina: internal error: " + one_line(e.what()));
    return 1;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  occupy_standard_files();
  if (const auto library = version(); library != "lamina " LAMINA_VERSION) {
    std::fprintf(stderr, "lamina: liblamina.so is %s, wanted lamina " LAMINA_VERSION "\n", library.c_str());
    return 1;
  }
  constexpr std::size_t kReserve = 1 << 18;
  reserve.reset(new (std::nothrow) char[kReserve]);
  std::set_terminate(end_at_once);
  end_by_signals();
  return finished(run(argc, argv));
}
