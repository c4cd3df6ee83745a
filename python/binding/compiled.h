#pragma once
/// A compiled model, and requests for its calls.
#include <memory>
#include <optional>
#include <vector>

#include "arrays.h"
#include "let_go.h"

namespace lamina::python {

/// The ports of one kind, by name.
class Ports {
 public:
  Ports(const std::vector<Port>& ports, const char* what);
  std::size_t size() const noexcept { return ports_.size(); }
  const Port& operator[](std::size_t i) const { return ports_[i]; }
  /// The index that an int or str names. Throws Error(bad_input).
  std::size_t index(nb::handle which) const;
  const nb::object& by_name() const noexcept { return by_name_; }

 private:
  std::vector<Port> ports_;
  const char* what_;
  nb::object by_name_;  // dict: name to index
};

/// (name, type, ranked, shape, names of dimensions, default) of each port; lamina/ports.py makes Ports of
/// them.
nb::list rows_of(const std::vector<Port>& ports);

class Flight;  // calls.h

/// A request and the arrays that it uses. All functions require the GIL.
struct Slot {
  Slot(Request made, std::size_t inputs, std::size_t outputs);
  ~Slot();
  Slot(const Slot&) = delete;
  Slot& operator=(const Slot&) = delete;
  /// Lets go of the arrays.
  void clear() noexcept;

  std::optional<Request> request;
  std::vector<ArrayIn> inputs;
  std::vector<bool> set;  // inputs that the request has, or had: an array that was let go of
  std::vector<ArrayOut> outputs;
  bool gave_outputs = false;
  std::unique_ptr<Flight> flight;
};

/// What a CompiledModel of Python's, its requests and its calls share. All functions require the GIL.
class Core {
 public:
  Core(CompiledModel made, std::shared_ptr<Callback> log, std::shared_ptr<Callback> progress);
  ~Core();
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  const CompiledModel& model() const { return *model_; }
  std::unique_ptr<Slot> lend();
  void give_back(std::unique_ptr<Slot> slot) noexcept;

  /// Sets the inputs of a call: positions, one mapping, or names. Throws Error(bad_input).
  void take_arguments(Slot& slot, PyObject* args, PyObject* named) const;
  /// The tensors of arguments as of a call, for work that is no inference of the slot's request: a default
  /// where an input is not given. They share the arrays, which the slot keeps.
  std::vector<Tensor> tensors_of(Slot& slot, const nb::tuple& arguments) const;
  /// The memory for outputs that a call gives: a sequence of arrays and Nones. Throws Error(bad_input).
  void take_outputs(Slot& slot, nb::handle given) const;
  /// The results after a run, as an instance of lamina.Outputs.
  nb::object results(Slot& slot) const;

  Ports inputs, outputs;
  const std::shared_ptr<Callback> log, progress;  // null: none

 private:
  void set_input(Slot& slot, std::size_t i, nb::handle value) const;
  void set_named(Slot& slot, nb::handle name, nb::handle value) const;

  std::optional<CompiledModel> model_;
  bool stateful_;
  std::size_t most_idle_;
  nb::object outputs_type_;
  std::vector<std::unique_ptr<Slot>> idle_;
};

/// A slot of the pool for the time of one call.
class Lent {
 public:
  explicit Lent(Core& core) : core_(core), slot_(core.lend()) {}
  ~Lent() { core_.give_back(std::move(slot_)); }
  Lent(const Lent&) = delete;
  Lent& operator=(const Lent&) = delete;
  Slot& operator*() { return *slot_; }

 private:
  Core& core_;
  std::unique_ptr<Slot> slot_;
};

/// The object of Python's.
struct Compiled {
  std::shared_ptr<Core> core;
};

/// A model that was read.
struct Read {
  std::optional<Model> model;
  ModelLimits limits;
};

}  // namespace lamina::python
