#pragma once
/// The control groups (cgroups) of this process, v1 and v2.
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace lamina {

/// Calls `each` with the folder of every group, from the own one up to the mount. In a container the group's
/// own folder often is the mount.
class ControlGroups {
 public:
  /// Below a root folder that ends with a slash.
  explicit ControlGroups(const std::string& root);

  using Each = std::function<void(const std::string& folder)>;
  /// Visits the groups of the unified hierarchy (v2).
  void unified(const Each& each) const;
  /// Visits the groups of one controller's hierarchy (v1), mounted in folders of these names.
  void controller(const std::string& name, const std::vector<std::string>& mounts, const Each& each) const;

 private:
  std::string root_;
  std::vector<std::pair<std::string, std::string>> groups_;
};

}  // namespace lamina
