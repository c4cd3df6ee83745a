#include "compiled.h"

#include <algorithm>

#include "calls.h"
#include "errors.h"
#include "gil.h"

namespace lamina::python {

Ports::Ports(const std::vector<Port>& ports, const char* what) : ports_(ports), what_(what) {
  nb::dict names;
  for (std::size_t i = ports_.size(); i-- > 0;)
    names[text(ports_[i].name)] = i;  // the first of a name counts
  by_name_ = std::move(names);
}

std::size_t Ports::index(nb::handle which) const {
  if (PyLong_Check(which.ptr())) {
    const auto i = PyLong_AsSsize_t(which.ptr());
    if (i == -1 && PyErr_Occurred()) throw nb::python_error();
    if (i < 0 || static_cast<std::size_t>(i) >= size())
      fail(ErrorCode::bad_input,
           std::string(what_) + " " + std::to_string(i) + ": the model has " + std::to_string(size()));
    return static_cast<std::size_t>(i);
  }
  if (!PyUnicode_Check(which.ptr()))
    fail(ErrorCode::bad_input,
         "an " + std::string(what_) + " is named by its index or its name, not by a " + class_name(which));
  if (auto* found = PyDict_GetItemWithError(by_name_.ptr(), which.ptr())) return PyLong_AsSize_t(found);
  if (PyErr_Occurred()) throw nb::python_error();
  std::string names;
  for (const auto& port : ports_) names += (names.empty() ? "\"" : ", \"") + port.name + "\"";
  fail(ErrorCode::bad_input, "there is no " + std::string(what_) + " \"" +
                                 nb::cast<std::string>(nb::str(which)) + "\", there are: " + names);
}

nb::list rows_of(const std::vector<Port>& ports) {
  nb::list rows;
  for (const auto& port : ports) {
    nb::list shape, names;
    for (const auto d : port.shape) shape.append(d);
    for (const auto& name : port.dimension_names) names.append(text(name));
    nb::object value = nb::none();
    if (port.value.valid()) value = array_of(port.value, false);
    rows.append(nb::make_tuple(text(port.name), text(name_of(port.type)), dtype_of(port.type), port.ranked,
                               nb::tuple(shape), nb::tuple(names), value));
  }
  return rows;
}

Slot::Slot(Request made, std::size_t number_in, std::size_t number_out)
    : request(std::move(made)), inputs(number_in), set(number_in), outputs(number_out) {}

Slot::~Slot() {
  const Unlocked release;  // the request may be under way
  request.reset();
}

void Slot::clear() noexcept {
  for (auto& in : inputs)
    if (in.is_set()) in = ArrayIn();
  if (!gave_outputs) return;
  gave_outputs = false;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].is_set()) continue;
    outputs[i] = ArrayOut();
    try {
      request->set_output(i, {});
    } catch (const std::exception&) {  // the slot is not used again
      request->cancel();
    }
  }
}

Core::Core(CompiledModel made, std::shared_ptr<Callback> logs, std::shared_ptr<Callback> progresses)
    : inputs(made.inputs(), "input"),
      outputs(made.outputs(), "output"),
      log(std::move(logs)),
      progress(std::move(progresses)),
      model_(std::move(made)),
      stateful_(!model_->variables().empty()),
      most_idle_(std::max<std::size_t>(8, 2 * model_->optimal_requests())),
      outputs_type_(nb::module_::import_("lamina.outputs").attr("Outputs")) {}

Core::~Core() {
  idle_.clear();
  const Unlocked release;
  model_.reset();
}

std::unique_ptr<Slot> Core::lend() {
  std::unique_ptr<Slot> slot;
  if (idle_.empty()) {
    std::optional<Request> made;
    {
      const Unlocked release;
      made = model_->create_request();
    }
    return std::make_unique<Slot>(std::move(*made), inputs.size(), outputs.size());
  }
  slot = std::move(idle_.back());
  idle_.pop_back();
  if (stateful_) slot->request->reset_state();
  return slot;
}

void Core::give_back(std::unique_ptr<Slot> slot) noexcept {
  slot->clear();
  if (idle_.size() < most_idle_) idle_.push_back(std::move(slot));
}

void Core::set_input(Slot& slot, std::size_t i, nb::handle value) const {
  if (value.is_none() && inputs[i].value.valid()) return;  // its default
  if (slot.inputs[i].is_set()) fail(ErrorCode::bad_input, "input \"" + inputs[i].name + "\": given twice");
  slot.inputs[i] = ArrayIn(value, inputs[i], "input");
  slot.set[i] = true;
  slot.request->set_input(i, slot.inputs[i].tensor());
  slot.inputs[i].refresh();
}

void Core::set_named(Slot& slot, nb::handle name, nb::handle value) const {
  set_input(slot, inputs.index(name), value);
}

std::vector<Tensor> Core::tensors_of(Slot& slot, const nb::tuple& arguments) const {
  take_arguments(slot, arguments.ptr(), nullptr);
  std::vector<Tensor> out;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    auto& array = slot.inputs[i];
    if (array.is_set()) {
      array.refresh();
      out.push_back(array.tensor());
    } else if (inputs[i].value.valid()) {
      out.push_back(inputs[i].value);
    } else {
      fail(ErrorCode::bad_input, "input \"" + inputs[i].name + "\" is missing");
    }
  }
  return out;
}

void Core::take_arguments(Slot& slot, PyObject* args, PyObject* named) const {
  const auto count = static_cast<std::size_t>(PyTuple_Size(args));
  const nb::handle first = count == 1 ? PyTuple_GetItem(args, 0) : nullptr;
  if (first && (PyDict_Check(first.ptr()) || (!is_array(first) && nb::hasattr(first, "keys")))) {
    nb::dict given;
    if (PyDict_Update(given.ptr(), first.ptr()) != 0) throw nb::python_error();
    for (const auto& [name, value] : given) set_named(slot, name, value);
  } else {
    if (count > inputs.size())
      fail(ErrorCode::bad_input,
           std::to_string(count) + " inputs given, the model has " + std::to_string(inputs.size()));
    for (std::size_t i = 0; i < count; ++i)
      set_input(slot, i, PyTuple_GetItem(args, static_cast<Py_ssize_t>(i)));
  }
  if (named) {
    PyObject *name = nullptr, *value = nullptr;
    for (Py_ssize_t at = 0; PyDict_Next(named, &at, &name, &value);) set_named(slot, name, value);
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (slot.inputs[i].is_set() || !slot.set[i]) continue;
    slot.set[i] = false;
    slot.request->set_input(i, {});
  }
}

void Core::take_outputs(Slot& slot, nb::handle given) const {
  if (is_array(given) || !nb::hasattr(given, "__len__") || !nb::hasattr(given, "__getitem__") ||
      nb::hasattr(given, "keys"))
    fail(ErrorCode::bad_input, "out: a " + class_name(given) + " given, wanted a sequence of " +
                                   std::to_string(outputs.size()) + " arrays: out=[y]");
  if (nb::len(given) != outputs.size())
    fail(ErrorCode::bad_input, "out: " + std::to_string(nb::len(given)) + " arrays given, the model has " +
                                   std::to_string(outputs.size()) + " outputs");
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const nb::object array = given[i];
    if (array.is_none()) continue;
    slot.gave_outputs = true;
    slot.outputs[i] = ArrayOut(array, outputs[i]);
    slot.request->set_output(i, slot.outputs[i].tensor());
  }
}

nb::object Core::results(Slot& slot) const {
  nb::object values = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(outputs.size())));
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    nb::object value;
    if (slot.outputs[i].is_set()) {
      slot.outputs[i].take(slot.request->output(i), outputs[i]);
      value = nb::borrow(slot.outputs[i].array());
    } else {
      value = array_of(slot.request->take_output(i), true);
    }
    PyTuple_SetItem(values.ptr(), static_cast<Py_ssize_t>(i), value.release().ptr());
  }
  static PyObject* const index = PyUnicode_InternFromString("_index");
  nb::object out = nb::steal(PyObject_CallFunctionObjArgs(outputs_type_.ptr(), values.ptr(), nullptr));
  if (!out.is_valid() || PyObject_SetAttr(out.ptr(), index, outputs.by_name().ptr()) != 0)
    throw nb::python_error();
  return out;
}

}  // namespace lamina::python
