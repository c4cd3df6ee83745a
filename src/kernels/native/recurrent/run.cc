#include <algorithm>
#include <cstring>

#include "base/cancellation.h"
#include "base/parallel.h"
#include "kernels/native/recurrent/run.h"

namespace lamina {
namespace {

/// One direction of some sequences.
class Task {
 public:
  Task(const RecurrentLayer& code, const RunArgs& args, std::int64_t index, std::int64_t slot);
  void run();

 private:
  bool lstm() const { return code_.cell == RecurrentCell::lstm; }
  /// Where row n's state lies in inputs and outputs.
  std::int64_t state_at(std::int64_t n) const {
    return ((first_ + n) * s_.directions + direction_) * s_.hidden;
  }
  std::size_t row_bytes() const { return static_cast<std::size_t>(s_.hidden) * sizeof(float); }
  void load_state(std::size_t input, float* to) const;
  void store_state(std::size_t output, const float* from) const;

  std::int64_t length(std::int64_t n) const;
  /// Place in time of row n's step t.
  std::int64_t place(std::int64_t n, std::int64_t t) const {
    return code_.reverse || direction_ == 1 ? length(n) - 1 - t : t;
  }
  float* y(std::int64_t n, std::int64_t time) const {
    return static_cast<float*>(args_.out[0]) + state_at(n) * s_.time + time * s_.hidden;
  }
  void input_part(std::int64_t from, std::int64_t count);
  RecurrentStep first_step() const;
  void step(std::int64_t in_chunk);
  void keep(std::int64_t t);
  void fill_rest() const;
  /// Runs a pass over all blocks.
  void over_blocks(RecurrentTable::Step pass, std::int64_t gates) const;
  /// Blocks of so many rows, each a sum over `depth` for some gates.
  WorkPartition blocks(std::int64_t rows, std::int64_t depth, std::int64_t gates) const {
    const auto products = static_cast<double>(rows * depth) * static_cast<double>(gates * s_.padded);
    return partitioned_here(s_.blocks, products * s_.product_us);
  }
  const float* part(const Tensor& weights) const {
    return weights.valid()
               ? weights.data<float>().data() +
                     direction_ * static_cast<std::int64_t>(weights.bytes() / sizeof(float)) / s_.directions
               : nullptr;
  }

  const RecurrentLayer& code_;
  const RecurrentSizes& s_;
  const RunArgs& args_;
  const RecurrentTable& table_;
  std::int64_t direction_, first_, rows_;
  float *gates_, *h_, *next_, *c_, *next_c_;
  const float** inputs_;
  RecurrentStep step_;
};

Task::Task(const RecurrentLayer& code, const RunArgs& args, std::int64_t index, std::int64_t slot)
    : code_(code), s_(code.sizes), args_(args), table_(*s_.table) {
  direction_ = index % s_.directions;
  first_ = index / s_.directions * s_.task_rows;
  rows_ = std::min(s_.task_rows, s_.batch - first_);
  gates_ = reinterpret_cast<float*>(static_cast<std::byte*>(args.scratch) +
                                    static_cast<std::size_t>(slot) * s_.slot_bytes);
  h_ = gates_ + s_.gates_floats;
  next_ = h_ + s_.state_floats;
  c_ = next_ + s_.state_floats;
  next_c_ = c_ + s_.state_floats;
  inputs_ = reinterpret_cast<const float**>(next_c_ + s_.state_floats);
  step_ = first_step();
}

RecurrentStep Task::first_step() const {
  RecurrentStep s;
  s.rows = rows_;
  s.hidden = s_.hidden;
  s.padded = s_.padded;
  s.gates_stride = s_.width;
  s.r = part(code_.weights.r);
  s.r_candidate = part(code_.weights.r_candidate);
  s.peepholes = part(code_.weights.peepholes);
  s.r_bias = part(code_.weights.r_bias);
  s.z = c_;  // a GRU has no c
  s.reset_h = next_c_;
  s.clip = code_.clip;
  s.coupled = code_.coupled;
  std::copy_n(code_.activations.begin() + 3 * direction_, 3, s.activations);
  return s;
}

void Task::load_state(std::size_t input, float* to) const {
  std::memset(to, 0, s_.state_floats * sizeof(float));
  const auto* from = static_cast<const float*>(args_.in[input]);
  if (!from) return;
  for (std::int64_t n = 0; n < rows_; ++n) std::memcpy(to + n * s_.padded, from + state_at(n), row_bytes());
}

void Task::store_state(std::size_t output, const float* from) const {
  if (output >= code_.outputs || !args_.out[output]) return;
  for (std::int64_t n = 0; n < rows_; ++n)
    std::memcpy(static_cast<float*>(args_.out[output]) + state_at(n), from + n * s_.padded, row_bytes());
}

std::int64_t Task::length(std::int64_t n) const {
  const void* lengths = code_.lengths < 0 ? nullptr : args_.in[code_.lengths];
  if (!lengths) return s_.time;
  return code_.wide_lengths ? static_cast<const std::int64_t*>(lengths)[first_ + n]
                            : static_cast<const std::int32_t*>(lengths)[first_ + n];
}

void Task::input_part(std::int64_t from, std::int64_t count) {
  const auto* x = static_cast<const float*>(args_.in[0]);
  for (std::int64_t t = 0; t < count; ++t)
    for (std::int64_t n = 0; n < rows_; ++n) {  // rows that have ended compute something that nobody reads
      const auto time = from + t < length(n) ? place(n, from + t) : 0;
      inputs_[t * rows_ + n] = x + ((first_ + n) * s_.time + time) * s_.input;
    }
  PanelProduct p;
  p.rows = inputs_;
  p.row_count = count * rows_;
  p.depth = s_.input;
  p.panels = part(code_.weights.w);
  p.init = part(code_.weights.bias);
  p.out = gates_;
  p.out_stride = s_.width;
  struct {
    const PanelProduct& p;
    decltype(table_.product[0]) product;
  } job{p, table_.product[s_.gates]};
  parallel_for(blocks(p.row_count, s_.input, s_.gates),
               [&job](std::int64_t begin, std::int64_t end) { job.product(job.p, begin, end); });
}

void Task::over_blocks(RecurrentTable::Step pass, std::int64_t gates) const {
  struct {
    const RecurrentStep& s;
    RecurrentTable::Step pass;
  } job{step_, pass};
  parallel_for(blocks(rows_, s_.hidden, gates),
               [&job](std::int64_t begin, std::int64_t end) { job.pass(job.s, begin, end); });
}

void Task::step(std::int64_t in_chunk) {
  step_.gates = gates_ + in_chunk * rows_ * s_.width;
  step_.h = h_;
  step_.next = next_;
  step_.c = c_;
  step_.next_c = next_c_;
  switch (code_.cell) {
    case RecurrentCell::lstm:
      return over_blocks(table_.lstm, 4);
    case RecurrentCell::gru_linear:
      return over_blocks(table_.gru_linear, 3);
    case RecurrentCell::rnn:
      return over_blocks(table_.rnn, 1);
    case RecurrentCell::gru:
      over_blocks(table_.gru_gates, 2);
      return over_blocks(table_.gru_candidate, 1);
  }
}

/// Takes over the states of step t and writes them to Y; rows that have ended keep theirs.
void Task::keep(std::int64_t t) {
  const bool to_y = code_.sequence && args_.out[0];
  for (std::int64_t n = 0; n < rows_; ++n) {
    const auto at = n * s_.padded;
    if (t >= length(n)) {
      std::memcpy(next_ + at, h_ + at, row_bytes());
      if (lstm()) std::memcpy(next_c_ + at, c_ + at, row_bytes());
    } else if (to_y) {
      std::memcpy(y(n, place(n, t)), next_ + at, row_bytes());
    }
  }
  std::swap(h_, next_);
  if (lstm()) std::swap(c_, next_c_);
}

void Task::fill_rest() const {
  if (!args_.out[0]) return;
  for (std::int64_t n = 0; n < rows_; ++n)
    if (const auto left = s_.time - length(n); left > 0)
      std::memset(y(n, length(n)), 0, static_cast<std::size_t>(left) * row_bytes());
}

void Task::run() {
  load_state(1, h_);
  if (lstm()) load_state(2, c_);
  std::int64_t longest = 0;
  for (std::int64_t n = 0; n < rows_; ++n) {
    if (length(n) < 0 || length(n) > s_.time)
      fail(ErrorCode::bad_input, "sequence length {}, wanted 0 to {}", length(n), s_.time);
    longest = std::max(longest, length(n));
  }
  StopPoints points;
  for (std::int64_t from = 0; from < longest; from += s_.chunk) {
    const auto count = std::min(s_.chunk, longest - from);
    input_part(from, count);
    for (std::int64_t t = 0; t < count; ++t) {
      step(t);
      keep(from + t);
      points(rows_ * s_.hidden * (s_.hidden / 16 + 4));
    }
  }
  const std::size_t first_state = code_.sequence ? 1 : 0;
  if (code_.sequence) fill_rest();
  store_state(first_state, h_);
  if (lstm()) store_state(first_state + 1, c_);
}

}  // namespace

void run_recurrent(const RecurrentLayer& code, const RunArgs& args) {
  parallel_for(code.sizes.tasks, [&](std::int64_t begin, std::int64_t end, std::int64_t slot) {
    for (auto i = begin; i < end; ++i) Task(code, args, i, slot).run();
  });
}

}  // namespace lamina
