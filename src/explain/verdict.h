#pragma once
/// The verdict at the end of `lamina explain`: five sentences, and a command to try.
#include <string>
#include <vector>

#include "explain/findings.h"
#include "explain/product_costs.h"

namespace lamina {

struct ModelVerdict {
  std::string time;      ///< how long a run takes, and which layers take most of it
  std::string fusion;    ///< what runs on its own and could run in another layer's step, and why it does not
  std::string integers;  ///< whether 8 bits pay on this machine, and which layers do not profit
  std::string bf16;      ///< whether bf16 pays, or would pay
  std::string next;      ///< what to try
  std::string command;   ///< `next` as a line for a shell
  std::vector<ProductCost> products;  ///< the estimates on which `integers` and `bf16` rest
};

/// From the plans, what rules and kernels refused, and estimates of the machine that is planned for. `asked`:
/// the options that the line repeats, in pairs ("--shape", "x=1,3,224,224"). `here`: plans are for this
/// machine.
ModelVerdict verdict_of(const Findings& all, const Compiled& compiled, const std::string& model,
                        const std::vector<std::string>& asked, bool here);

nlohmann::json to_json(const ModelVerdict& verdict);

}  // namespace lamina
