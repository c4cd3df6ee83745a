#pragma once
/// What the opaque handles of lamina/c.h are.
#include <map>
#include <stop_token>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "c_interface/ports.h"
#include "lamina/model.h"

struct lamina_c_stop {
  std::stop_source source;
};

struct lamina_c_options {
  lamina::Options options;
};

struct lamina_c_model {
  explicit lamina_c_model(lamina::Model of)
      : model(std::move(of)), ports(model.inputs(), model.outputs(), model.variables()) {}
  lamina::Model model;
  lamina::c_interface::PortsOfModel ports;
};

struct lamina_c_compiled {
  explicit lamina_c_compiled(lamina::CompiledModel of)
      : compiled(std::move(of)), ports(compiled.inputs(), compiled.outputs(), compiled.variables()) {}
  lamina::CompiledModel compiled;
  lamina::c_interface::PortsOfModel ports;
};

struct lamina_c_request {
  lamina::Request request;
};

struct lamina_c_list {
  using Entries = std::vector<std::pair<std::string, std::string>>;
  std::variant<std::vector<std::string>, Entries, std::vector<lamina::OptionInfo>,
               std::vector<lamina::Property>, std::vector<lamina::Fusion>, std::vector<lamina::LayerTime>,
               std::vector<lamina::LayerCounter>, lamina::c_interface::Ports>
      rows;
};

namespace lamina::c_interface {

template <class T>
std::unique_ptr<lamina_c_list> list_of(T rows) {
  return std::unique_ptr<lamina_c_list>(new lamina_c_list{std::move(rows)});
}

}  // namespace lamina::c_interface
