#pragma once
/// A machine as Linux shows it, in a folder.
#include <filesystem>
#include <fstream>
#include <functional>

#include "tests/base/temporary_folder.h"

namespace lamina::test {

class FakeMachine {
 public:
  std::string root() const { return folder_.path().string() + "/"; }

  FakeMachine& put(const std::string& path, const std::string& text) {
    const auto file = folder_.path() / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
    return *this;
  }
  FakeMachine& processors(int count) {
    count_ = count;
    return put("sys/devices/system/cpu/online", count == 1 ? "0\n" : "0-" + std::to_string(count - 1) + "\n");
  }
  /// Package and core of each.
  FakeMachine& cores(const std::function<std::pair<int, int>(int)>& of) {
    for (int i = 0; i < count_; ++i) {
      const auto folder = "sys/devices/system/cpu/cpu" + std::to_string(i) + "/topology/";
      put(folder + "physical_package_id", std::to_string(of(i).first) + "\n");
      put(folder + "core_id", std::to_string(of(i).second) + "\n");
    }
    return *this;
  }
  FakeMachine& node(int number, const std::string& cpus) {
    return put("sys/devices/system/node/node" + std::to_string(number) + "/cpulist", cpus + "\n");
  }

 private:
  TemporaryFolder folder_;
  int count_ = 0;
};

}  // namespace lamina::test
