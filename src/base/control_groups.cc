#include "base/control_groups.h"

#include <limits.h>

#include "base/system_file.h"

namespace lamina {
namespace {

void upwards(const std::string& mount, std::string group, const ControlGroups::Each& each) {
  while (!group.empty() && group != "/") {
    each(mount + (group.front() == '/' ? "" : "/") + group);
    const auto slash = group.rfind('/');
    group.erase(slash == std::string::npos ? 0 : slash);
  }
}

}  // namespace

ControlGroups::ControlGroups(const std::string& root) : root_(root + "sys/fs/cgroup") {
  for (const auto& line : system_lines(root + "proc/self/cgroup")) {
    const auto first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos || line.size() > PATH_MAX) continue;
    groups_.emplace_back("," + line.substr(first + 1, second - first - 1) + ",", line.substr(second + 1));
  }
}

void ControlGroups::unified(const Each& each) const {
  for (const auto& [controllers, group] : groups_)
    if (controllers == ",,") upwards(root_, group, each);
  each(root_);
}

void ControlGroups::controller(const std::string& name, const std::vector<std::string>& mounts,
                               const Each& each) const {
  for (const auto& mount : mounts) {
    for (const auto& [controllers, group] : groups_)
      if (controllers.find("," + name + ",") != std::string::npos) upwards(root_ + "/" + mount, group, each);
    each(root_ + "/" + mount);
  }
}

}  // namespace lamina
