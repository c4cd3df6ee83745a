#include "explain/machine_file.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "tests/base/temporary_folder.h"

namespace lamina {
namespace {

Machine read(const std::string& text) {
  const test::TemporaryFolder folder;
  const auto path = folder / "machine.json";
  std::ofstream(path) << text;
  return read_machine_file(path);
}

/// The error names the field and what was wanted.
void expect_refused(const std::string& text, const std::string& field, const std::string& wanted) {
  try {
    read(text);
    ADD_FAILURE() << "taken: " << text;
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find(field), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find(wanted), std::string::npos) << e.what();
  }
}

TEST(MachineFile, what_is_written_is_read) {
  const auto m = whole_machine();
  const auto back = read(nlohmann::json{{"machine", to_json(m)}}.dump());
  EXPECT_EQ(back.name, m.name);
  EXPECT_EQ(back.features, m.features);
  EXPECT_EQ(back.isa(), m.isa());
  EXPECT_EQ(back.l1, m.l1);
  EXPECT_EQ(back.l2, m.l2);
  EXPECT_EQ(back.core_count(), m.core_count());
  EXPECT_EQ(back.rates.native, m.rates.native);
  EXPECT_FALSE(back.here);
}

TEST(MachineFile, rates_of_the_family_unless_given) {
  const auto m = read(R"({"level": "avx512", "processor": "zen4", "rates": {"math": 2}})");
  EXPECT_EQ(m.rates.math, 2);
  EXPECT_EQ(m.rates.products, known_rates("zen4", Isa::avx512)->products);
  EXPECT_EQ(read(R"({"level": "sse41"})").rates.products, 1);
}

TEST(MachineFile, wrong_files_are_refused_by_name) {
  expect_refused("", "machine.json", "no JSON");
  expect_refused("[]", "machine", "an object");
  expect_refused("{}", "\"level\"", "sse41, avx2 or avx512");
  expect_refused(R"({"level": 3})", "\"level\"", "a text");
  expect_refused(R"({"level": "avx2", "features": ["mmx"]})", "\"features\"", "names such as");
  expect_refused(R"({"level": "sse41", "features": ["avx", "avx2", "fma", "f16c", "bmi1", "bmi2"]})",
                 "\"features\"", "not all of avx2, the level is sse41");
  expect_refused(R"({"level": "avx2", "processor": "486"})", "\"processor\"", "known here");
  expect_refused(R"({"level": "avx2", "caches_kib": {"l2": -1}})", "\"l2\"", "from 4");
  expect_refused(R"({"level": "avx2", "caches_kib": {"l2": 1e300}})", "\"l2\"", "from 4");
  expect_refused(R"({"level": "avx2", "cores": []})", "\"cores\"", "1 to 8 kinds");
  expect_refused(R"({"level": "avx2", "cores": [{"count": 2000000}]})", "\"count\"", "from 1 to");
  expect_refused(R"({"level": "avx2", "cores": [{"count": 1.5}]})", "\"count\"", "whole");
  expect_refused(R"({"level": "avx2", "rates": {"math": 0}})", "\"math\"", "from 0.001");
  expect_refused(R"({"level": "avx2", "l2": 3})", "\"l2\"", "no such field");
  EXPECT_THROW(read_machine_file("/nonexistent/machine.json"), Error);
}

}  // namespace
}  // namespace lamina
