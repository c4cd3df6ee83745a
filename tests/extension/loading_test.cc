// Libraries of custom layers: what can be loaded, and what is said of what cannot.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <thread>

#include "extension/border.h"
#include "extension/extensions.h"
#include "tests/api/small_models.h"
#include "tests/extension/libraries.h"

namespace lamina::testing {
namespace {

void refuses(const std::string& path, std::string_view text) {
  expect_error([&] { load_extension(path); }, ErrorCode::bad_file, text);
}

TEST(Loading, SaysWhatALibraryOffers) {
  const auto e = load_extension(library("operations.so"));
  EXPECT_EQ(e->origin.name, "operations.so");
  EXPECT_EQ(e->about.version, "1.2");
  EXPECT_TRUE(e->ignored.empty());
  EXPECT_EQ(e->operations[0]->name(), "test.ops:Affine");
  EXPECT_EQ(e->operations[0]->attributes[1].name, "shift");
}

TEST(Loading, FilesThatAreNoLibrary) {
  const TemporaryFolder folder;
  refuses(folder.file("missing.so"), "no such file");
  refuses("/tmp", "is a folder");
  refuses("", "empty");
  write_file(folder.file("text.so"), "no library at all");
  refuses(folder.file("text.so"), "is no shared library");
  std::ifstream in(library("operations.so"), std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(in)), {});
  for (std::size_t size = 1; size < bytes.size(); size = size * 3 + 1) {
    write_file(folder.file("cut.so"), bytes.substr(0, size));
    EXPECT_THROW((void)load_extension(folder.file("cut.so")), Error) << size;
  }
}

TEST(Loading, LibrariesWithoutTheFunctionNameWhatResemblesIt) {
  refuses(library("no_entry.so"), "exports no function \"lamina_extension\", but");
  const auto text = error_of([] { load_extension(library("no_entry.so")); }, ErrorCode::bad_file);
  EXPECT_NE(text.find("lamina_extensions"), std::string::npos) << text;
  EXPECT_NE(text.find("RegisterCustomOps"), std::string::npos) << text;
  EXPECT_EQ(text.find("unrelated"), std::string::npos) << text;
}

TEST(Loading, LibrariesInCppWithoutExceptionsAndTypes) {
  const auto e = load_extension(library("without_exceptions.so"));
  EXPECT_EQ(e->operations.size(), 2U);
  EXPECT_EQ(e->rules.size(), 1U);
}

TEST(Loading, NamesAreLookedForInTheFoldersOfAVariable) {
  setenv("LAMINA_EXTENSION_PATH", (std::string("/nowhere:") + LAMINA_TEST_EXTENSIONS).c_str(), 1);
  EXPECT_EQ(load_extension("operations.so")->origin.path, library("operations.so"));
  unsetenv("LAMINA_EXTENSION_PATH");
  refuses("operations.so", "no such file");
}

TEST(Loading, TwoLibrariesWithOneOperationAreNamed) {
  const auto both = libraries({"operations.so", "same_operations.so"});
  expect_error([&] { ExtensionSet{both}; }, ErrorCode::bad_option, "is given by two extensions");
  const auto text = error_of([&] { ExtensionSet{both}; }, ErrorCode::bad_option);
  EXPECT_NE(text.find("/operations.so"), std::string::npos) << text;
  EXPECT_NE(text.find("/same_operations.so"), std::string::npos) << text;
  EXPECT_EQ(ExtensionSet(libraries({"operations.so", "operations.so"})).all().size(), 1U);
  const TemporaryFolder folder;
  std::filesystem::create_symlink(library("operations.so"), folder.file("other.so"));
  for (const auto& other : {library("./operations.so"), folder.file("other.so")})
    EXPECT_EQ(ExtensionSet(std::vector{library("operations.so"), other}).all().size(), 1U) << other;
}

/// Two operations whose names differ by what names in texts cannot have.
int alike(const lamina_host* host, lamina_registrar* registrar) {
  static const lamina_port port{sizeof(port), "x", "", 0, 0, nullptr};
  int failed = 0;
  for (const auto* type : {"A-b", "A_b"}) {
    lamina_operation op{};
    op.struct_size = sizeof(op);
    op.domain = "alike";
    op.type = type;
    op.in = op.out = &port;
    op.inputs = op.outputs = 1;
    op.run = [](const lamina_call*) { return lamina_status{LAMINA_OK}; };
    failed |= host->add_operation(registrar, &op);
  }
  return failed;
}

TEST(Loading, NamesThatAreOneInTextsAreRefused) {
  add_linked_extension("alike", alike);
  refuses("alike", "alike:A-b and alike:A_b are one name in texts, \"alike.A_b\"");
}

/// Threads that are in alone(), and the most of them at once.
std::atomic<int> inside{0}, most_inside{0};

int alone(const lamina_host* host, lamina_registrar* registrar) {
  most_inside = std::max<int>(most_inside, ++inside);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // others would come in
  const int failed = alike(host, registrar);
  --inside;
  return failed;
}

TEST(Loading, EntriesRunOneAtATime) {
  add_linked_extension("alone", alone);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([] { EXPECT_THROW((void)load_extension("alone"), Error); });  // as alike is refused
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(most_inside, 1);
}

/// Loads versions.so as it is at that age.
class Aged {
 public:
  explicit Aged(const char* age) { setenv("LAMINA_TEST_VERSION", age, 1); }
  ~Aged() { unsetenv("LAMINA_TEST_VERSION"); }
  std::string path = library("versions.so");
};

TEST(Loading, OlderAndNewerLibraries) {
  {
    const Aged old("old");  // its struct ends before the element-wise function
    const auto e = load_extension(old.path);
    EXPECT_EQ(e->operations[0]->calls.elementwise, nullptr);
    EXPECT_TRUE(e->ignored.empty());
  }
  const Aged later("later");
  const auto e = load_extension(later.path);
  ASSERT_EQ(e->ignored.size(), 1U);
  EXPECT_NE(e->ignored[0].find("test.versions:Copy"), std::string::npos) << e->ignored[0];
  IrText ir;
  ir.result({ir.layer("Copy", "test.versions", "", {{ir.parameter("x", "1")}})});
  EXPECT_EQ(values(CompiledModel(model_with(ir, {"versions.so"}))(floats({1}, {5}))),
            (std::vector<float>{5}));
}

TEST(Loading, LibrariesGoWithTheLastModelUnlessTheyStay) {
  const auto is_there = [](const std::string& path) {
    void* const handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD);
    if (handle) ::dlclose(handle);
    return handle != nullptr;
  };
  IrText ir;
  ir.result({ir.layer("Copy", "test.versions", "", {{ir.parameter("x", "1")}})});
  const auto use = [&] {
    const Aged aged("old");
    auto compiled = std::optional(CompiledModel(model_with(ir, {"versions.so"})));
    EXPECT_TRUE(is_there(aged.path));
    auto request = std::optional(compiled->create_request());
    compiled.reset();
    EXPECT_TRUE(is_there(aged.path));  // a request has its kernel
    request.reset();
    return is_there(aged.path);
  };
  EXPECT_FALSE(use());
  {
    const Aged aged("stays");
    (void)load_extension(aged.path);
  }
  EXPECT_TRUE(use());
}

TEST(Loading, DeclarationsThatDoNotHold) {
  const std::pair<const char*, const char*> all[] = {{"none", "struct_size is 0"},
                                                     {"silent", "declares no operation and no rule"},
                                                     {"fails", "gave the status 7"},
                                                     {"needs", "does not have: telepathy"}};
  for (const auto& [age, text] : all) {
    const Aged aged(age);
    refuses(aged.path, text);
  }
}

/// Names of the members in `body`, the declarations of a struct.
Strings members_in(const std::string& body) {
  Strings out;
  static const std::regex function(R"(\(\*(\w+)\)\()"), last(R"((\w+)\s*$)");
  std::istringstream declarations(body);
  for (std::string one; std::getline(declarations, one, ';');) {
    std::smatch found;
    if (std::regex_search(one, found, function)) {
      out.push_back(found[1]);
      continue;
    }
    std::istringstream names(one);
    for (std::string name; std::getline(names, name, ',');)
      if (std::regex_search(name, found, last)) out.push_back(found[1]);
  }
  return out;
}

TEST(Loading, QueryKnowsEveryMemberOfTheHeader) {
  const auto project = std::filesystem::path(LAMINA_TESTS_FOLDER).parent_path();
  std::ifstream file(project / "include/lamina/extension.h");
  const std::string header((std::istreambuf_iterator<char>(file)), {});
  const auto text = std::regex_replace(header, std::regex(R"(/\*[^*]*\*+([^/*][^*]*\*+)*/)"), "");
  static const std::regex structs(R"(typedef struct (\w+) \{([^}]*)\})");
  std::size_t known = 0;
  for (std::sregex_iterator s(text.begin(), text.end(), structs), end; s != end; ++s)
    for (const auto& member : members_in((*s)[2])) {
      const bool of_host = (*s)[1] == "lamina_host";
      if (of_host && member == "struct_size") continue;
      const auto name = of_host ? member : (*s)[1].str() + "." + member;
      EXPECT_NE(extension_host().query(name.c_str()), nullptr) << name;
      ++known;
    }
  EXPECT_GT(known, 100U);
  for (const auto* name : {"lamina_operation.", "lamina_operation.telepathy", "telepathy", ""})
    EXPECT_EQ(extension_host().query(name), nullptr) << name;
}

/// Declares one operation that `change` has spoiled.
std::string spoiled(const std::function<void(lamina_operation&)>& change) {
  static std::function<void(lamina_operation&)> spoil;
  spoil = change;
  static int number = 0;
  const auto name = "spoiled-" + std::to_string(++number);
  add_linked_extension(name, [](const lamina_host* host, lamina_registrar* registrar) {
    static const lamina_port port{sizeof(port), "x", "", 0, 0, nullptr};
    lamina_operation op{};
    op.struct_size = sizeof(op);
    op.domain = "d";
    op.type = "T";
    op.in = op.out = &port;
    op.inputs = op.outputs = 1;
    op.run = [](const lamina_call*) { return lamina_status{LAMINA_OK}; };
    spoil(op);
    return host->add_operation(registrar, &op);
  });
  return error_of([&] { load_extension(name); }, ErrorCode::bad_file);
}

TEST(Loading, OperationsThatMakeNoSense) {
  const auto says = [](const std::function<void(lamina_operation&)>& change, std::string_view text) {
    const auto got = spoiled(change);
    EXPECT_NE(got.find(text), std::string::npos) << got;
  };
  says([](auto& op) { op.type = nullptr; }, "has no name");
  says([](auto& op) { op.outputs = 0; }, "has no outputs");
  says([](auto& op) { op.run = nullptr; }, "has neither run, reference nor elementwise");
  says([](auto& op) { op.in = nullptr; }, "a null pointer to 1 entries");
  says([](auto& op) { op.inputs = 1u << 30; }, "entries, at most");
  says([](auto& op) { op.prepare = [](const lamina_node*, void*) { return lamina_status{0}; }; },
       "has prepare but not prepared_bytes");
  static const std::int32_t wide[] = {LAMINA_F32, LAMINA_I64, LAMINA_NO_TYPE};
  static const lamina_port port{sizeof(port), "x", "", 0, 0, wide};
  says(
      [](auto& op) {
        op.in = &port;
        op.run = nullptr;
        op.elementwise = [](const void*, const float*, float*, std::size_t) {};
      },
      "\"x\" takes i64, and the element-wise function f32 only");
  static lamina_attribute a{sizeof(a), "size", "", LAMINA_INT, 0, "1.5"};
  says([](auto& op) { op.attribute = &a, op.attributes = 1; }, "the default \"1.5\" is not an integer");
  static const std::int32_t unknown[] = {77};
  static lamina_configuration c{sizeof(c), "odd", nullptr, unknown, nullptr, nullptr,
                                nullptr,   0,     0,       nullptr, nullptr};
  says([](auto& op) { op.configuration = &c, op.configurations = 1; }, "layout of input 0: there is no 77");
}

}  // namespace
}  // namespace lamina::testing
