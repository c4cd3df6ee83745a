/// Nothing but Error leaves the public interface: every entry is made to throw everything.
#include "base/guard.h"

#include <filesystem>
#include <fstream>
#include <map>
#include <new>
#include <regex>
#include <sstream>

#include "tests/api/public_entries.h"

namespace lamina {
namespace {

using namespace testing;

/// What the header declares noexcept, what belongs to Error, and the C interface (tests/c_interface).
bool cannot_throw(const std::string& name) {
  static const std::vector<std::string> all{"lamina_c_",
                                            "lamina::Error::",
                                            "lamina::FaqError::",
                                            "lamina::Benchmark::Benchmark(lamina::Benchmark&&)",
                                            "lamina::Benchmark::operator=(lamina::Benchmark&&)",
                                            "lamina::Benchmark::~Benchmark()",
                                            "lamina::Request::Request(lamina::Request&&)",
                                            "lamina::Request::operator=(lamina::Request&&)",
                                            "lamina::CompiledModel::~CompiledModel()",
                                            "lamina::Request::~Request()",
                                            "lamina::Tensor::aligned() const",
                                            "lamina::Tensor::bytes() const",
                                            "lamina::Tensor::same_as(lamina::Tensor const&) const",
                                            "lamina::Request::cancel()",
                                            "lamina::Request::status() const",
                                            "lamina::bits_of(",
                                            "lamina::element_type_named(",
                                            "lamina::is_float(",
                                            "lamina::is_integer(",
                                            "lamina::is_signed(",
                                            "lamina::name_of(",
                                            "typeinfo for lamina::Error",
                                            "typeinfo for lamina::FaqError",
                                            "typeinfo name for lamina::Error",
                                            "typeinfo name for lamina::FaqError",
                                            "vtable for lamina::Error",
                                            "vtable for lamina::FaqError"};
  return std::any_of(all.begin(), all.end(), [&](const auto& start) { return name.starts_with(start); });
}

static_assert(
    noexcept(name_of(ElementType::f32)) && noexcept(bits_of(ElementType::f32)) && noexcept(is_float(ElementType::f32)) && noexcept(is_integer(ElementType::f32)) && noexcept(is_signed(ElementType::f32)) && noexcept(
        element_type_named(
            "")) && noexcept(name_of(LayerFate::
                                         runs)) && noexcept(std::declval<Tensor>()
                                                                .aligned()) && noexcept(std::declval<Tensor>()
                                                                                            .bytes()) && noexcept(std::declval<Tensor>()
                                                                                                                      .same_as(
                                                                                                                          Tensor())) &&
    std::is_nothrow_move_constructible_v<Request> && std::is_nothrow_move_assignable_v<Request> &&
    std::is_nothrow_copy_constructible_v<Error> && std::is_nothrow_move_constructible_v<Tensor> &&
    std::is_nothrow_copy_constructible_v<Model>);

TEST(Guard, every_export_is_here) {
  std::ifstream in(std::filesystem::path(__FILE__).parent_path() / "exports.txt");
  ASSERT_TRUE(in);
  std::size_t found = 0;
  for (std::string name; std::getline(in, name);) {
    if (cannot_throw(name)) continue;
    EXPECT_TRUE(entries().contains(name)) << name;
    ++found;
  }
  EXPECT_EQ(found, entries().size());
}

struct Kind {
  const char* name;
  EntryHook hook;
  ErrorCode code;
};

/// Runs the call with the hook in place.
template <class F>
void hooked(EntryHook hook, F&& call) {
  struct Reset {
    ~Reset() { entry_hook = nullptr; }
  } reset;
  entry_hook = hook;
  call();
}

TEST(Guard, every_entry_turns_everything_into_an_error) {
  Objects objects;
  const Kind kinds[] = {
      {"bad_alloc", [](std::string_view) { throw std::bad_alloc(); }, ErrorCode::out_of_memory},
      {"length_error", [](std::string_view) { throw std::length_error("long"); }, ErrorCode::internal},
      {"out_of_range", [](std::string_view) { throw std::out_of_range("far"); }, ErrorCode::internal},
      {"regex_error", [](std::string_view) { throw std::regex_error(std::regex_constants::error_stack); },
       ErrorCode::internal},
      {"int", [](std::string_view) { throw 7; }, ErrorCode::internal},
      {"Error", [](std::string_view) { throw Error(ErrorCode::unsupported, "as it is"); },
       ErrorCode::unsupported},
  };
  for (const auto& kind : kinds)
    for (const auto& [name, call] : entries()) {
      const auto& f = call;
      SCOPED_TRACE(name + " throws " + kind.name);
      const auto text = [&, n = name] {
        std::string out;
        hooked(kind.hook, [&] { out = error_of([&] { f(objects); }, kind.code); });
        return out;
      }();
      EXPECT_NE(text.find(kind.code == ErrorCode::out_of_memory ? "out of memory"
                          : kind.code == ErrorCode::internal    ? "internal error"
                                                                : "as it is"),
                std::string::npos)
          << text;
    }
  // Nothing is broken by it.
  objects.request.set_input(0, objects.tensor);
  objects.request.run();
  EXPECT_TRUE(objects.request.output("Add_2").same_as(rows(2, 2)));
}

TEST(Guard, no_memory_even_for_the_text) {
  // A name that makes text, and a text that cannot be made: what is left is the error made before.
  const auto text =
      error_of([] { guarded("Entry", []() -> void { throw std::bad_alloc(); }); }, ErrorCode::out_of_memory);
  EXPECT_EQ(text, "Entry: out of memory");
}

}  // namespace
}  // namespace lamina
