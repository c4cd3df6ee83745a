#pragma once
/// What `lamina explain` says of a model in the end: five sentences, and a line to try.
#include <string>
#include <vector>

#include "tool/findings.h"
#include "tool/product_costs.h"

namespace lamina::tool {

struct ModelVerdict {
  std::string time;      ///< where it goes
  std::string fusion;    ///< what runs on its own and could run in another layer's step, and why it does not
  std::string integers;  ///< whether 8 bits pay on this machine, and which layers do not profit
  std::string bf16;      ///< whether bf16 does, or would
  std::string next;      ///< what to try
  std::string command;   ///< a line for a shell, of that
  std::vector<ProductCost> products;  ///< on whose estimates that rests
};

/// From the plans, what rules and kernels refused, and estimates of the machine that is planned for. `asked`:
/// the options that the line repeats, in pairs ("--shape", "x=1,3,224,224"). `here`: plans are for this
/// machine.
ModelVerdict verdict_of(const Findings& all, const Session& s, const std::string& model,
                        const std::vector<std::string>& asked, bool here);

nlohmann::json to_json(const ModelVerdict& verdict);

}  // namespace lamina::tool
