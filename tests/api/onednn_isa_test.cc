/// oneDNN belongs to the process: others may have used or limited it before. Each test is a process of its
/// own.
#include "kernels/onednn_isa.h"

#include <gtest/gtest.h>
#include <lamina/lamina.h>

#include <cstdio>
#include <cstdlib>

#include "kernels/onednn/onednn.h"

namespace lamina::onednn_isa_test {
namespace {

const std::string kModel = std::string(LAMINA_DEPS) + "/models/ch_ppocr_mobile_v2.0_cls_infer.onnx";

class OnednnIsaDeathTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (native_isa() == Isa::sse41 || std::getenv("LAMINA_TEST_ISA"))
      GTEST_SKIP() << "there is nothing to limit";
    GTEST_FLAG_SET(death_test_style, "threadsafe");
  }
};

[[noreturn]] void end(bool well) { std::_Exit(well ? 7 : 1); }

TEST_F(OnednnIsaDeathTest, a_limit_that_comes_too_late_is_an_error) {
  const auto child = [] {
    dnnl::engine(dnnl::engine::kind::cpu, 0);
    dnnl::get_effective_cpu_isa();
    bool thrown = false;
    try {
      CompiledModel(Model(kModel), {.max_isa = "sse41"});
    } catch (const Error& e) {
      std::fputs(e.what(), stderr);
      thrown = e.code() == ErrorCode::bad_option;
    }
    CompiledModel(Model(kModel), {.max_isa = "native"});  // is as good as ever
    // The limit of the environment comes too late for oneDNN, too, which a note says.
    const bool limited = std::getenv("LAMINA_MAX_ISA") != nullptr;
    end(thrown && effective_isa() == native_isa() && (limited || onednn_isa_note().empty()));
  };
  EXPECT_EXIT(child(), ::testing::ExitedWithCode(7),
              "max isa \"sse41\": this process has used oneDNN before, which stays at avx");
}

TEST_F(OnednnIsaDeathTest, a_lower_limit_of_the_process_is_said_and_followed) {
  const auto child = [] {
    dnnl::set_max_cpu_isa(dnnl::cpu_isa::sse41);
    std::string said;
    Options options{.profile = true};
    options.log = [&](LogLevel, std::string_view line) { said += line; };
    const CompiledModel compiled(Model(kModel), options);
    std::fputs(said.c_str(), stderr);
    Request request = compiled.create_request();
    request.set_input(0, Tensor(ElementType::f32, {1, 3, 48, 192}));
    request.run();
    bool higher = false;
    for (const auto& layer : request.layer_times())
      higher |= !layer.kernel.starts_with("native") && layer.kernel.find("avx") != std::string::npos;
    end(!higher && onednn_isa() == Isa::sse41 && effective_isa() == native_isa());
  };
  EXPECT_EXIT(child(), ::testing::ExitedWithCode(7), "oneDNN is limited to sse41 in this process");
}

TEST_F(OnednnIsaDeathTest, a_limit_in_time_holds_for_all) {
  const auto child = [] {
    std::string said;
    Options options{.max_isa = "sse41"};
    options.log = [&](LogLevel, std::string_view line) { said += line; };
    CompiledModel(Model(kModel), options);
    end(said.find("oneDNN") == std::string::npos && onednn_isa() == Isa::sse41 &&
        effective_isa() == Isa::sse41);
  };
  EXPECT_EXIT(child(), ::testing::ExitedWithCode(7), "");
}

}  // namespace
}  // namespace lamina::onednn_isa_test
