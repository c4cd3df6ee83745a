/// Operations that do what they must not.
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <thread>

#include <xmmintrin.h>

#include "lamina/extension.h"

namespace {

const lamina_host* host;

const float* in(const lamina_call* c) { return static_cast<const float*>(c->in[0]->data); }
float* out(const lamina_call* c) { return static_cast<float*>(c->out[0]->data); }
lamina_status copy(const lamina_call* c) {
  std::memmove(out(c), in(c), c->in[0]->bytes);
  return LAMINA_OK;
}

lamina_status fails(const lamina_call* c) { return host->fail(c->context, "the moon is full"); }
lamina_status status_only(const lamina_call*) { return 42; }
lamina_status throws(const lamina_call*) { throw std::runtime_error("no more paper"); }
lamina_status throws_int(const lamina_call*) { throw 7; }  // NOLINT
lamina_status throws_in_loop(const lamina_call* c) {
  return host->parallel_for(
      c->context, 100, 1, [](void*, int64_t, int64_t, int32_t) { throw std::runtime_error("out of ink"); },
      nullptr);
}
lamina_status nan(const lamina_call* c) {
  copy(c);
  out(c)[c->out[0]->elements / 2] = std::nanf("");
  return LAMINA_OK;
}
lamina_status overruns(const lamina_call* c) {
  copy(c);
  out(c)[c->out[0]->elements] = 1;
  return LAMINA_OK;
}
lamina_status underruns(const lamina_call* c) {
  copy(c);
  out(c)[-1] = 1;
  return LAMINA_OK;
}
lamina_status far_off(const lamina_call* c) {
  copy(c);
  out(c)[std::int64_t{1} << 36] = 1;
  return LAMINA_OK;
}
lamina_status forgets_last(const lamina_call* c) {
  std::memmove(out(c), in(c), c->in[0]->bytes - 4);
  return LAMINA_OK;
}
lamina_status writes_input(const lamina_call* c) {
  copy(c);
  static_cast<float*>(c->in[0]->data)[0] += 1;
  return LAMINA_OK;
}
lamina_status thread(const lamina_call* c) {
  std::thread([] {}).join();
  return copy(c);
}
lamina_status rounding(const lamina_call* c) {
  _mm_setcsr(_mm_getcsr() | 0x6000);
  return copy(c);
}
lamina_status rounding_of_x87(const lamina_call* c) {
  const std::uint16_t down = 0x077f;
  asm volatile("fldcw %0" : : "m"(down));
  return copy(c);
}
lamina_status rounding_in_loop(const lamina_call* c) {
  host->parallel_for(
      c->context, 1, 1, [](void*, int64_t, int64_t, int32_t) { _mm_setcsr(_mm_getcsr() | 0x8000); }, nullptr);
  return copy(c);
}
int calls = 0;
lamina_status counts(const lamina_call* c) {
  copy(c);
  out(c)[0] = static_cast<float>(++calls);
  return LAMINA_OK;
}
void counts_elements(const void*, const float* x, float* y, size_t count) {
  std::memmove(y, x, count * sizeof(float));
  if (count != 0) y[0] = static_cast<float>(++calls);
}
lamina_status leaks(const lamina_call* c) {
  return std::malloc(100) ? copy(c) : LAMINA_FAILED;  // NOLINT
}
lamina_status aborts(const lamina_call*) { std::abort(); }
lamina_status exits(const lamina_call*) { std::_Exit(0); }
lamina_status create_throws(const lamina_node*, void**) { throw std::runtime_error("no clay"); }
void rounding_elements(const void*, const float* x, float* y, size_t count) {
  _mm_setcsr(_mm_getcsr() | 0x6000);
  std::memmove(y, x, count * sizeof(float));
}
void throws_elements(const void*, const float*, float*, size_t) { throw std::runtime_error("too large"); }
/// Whole vectors, and what lies behind the last element in the bargain.
void overruns_elements(const void*, const float* x, float* y, size_t count) {
  for (size_t i = 0; i < (count + 7) / 8 * 8; ++i) y[i] = x[i];
}
/// Right out of place only: y[i] = x[i] + x[0].
lamina_status adds_first(const lamina_call* c) {
  for (uint64_t i = 0; i < c->in[0]->elements; ++i) out(c)[i] = in(c)[i] + in(c)[0];
  return LAMINA_OK;
}
/// Thinks that everything is plain: adds the number of the image's plane.
lamina_status thinks_plain(const lamina_call* c) {
  const auto points = c->in[0]->dims[2] * c->in[0]->dims[3];
  for (int64_t i = 0; i < static_cast<int64_t>(c->in[0]->elements); ++i)
    out(c)[i] = in(c)[i] + static_cast<float>(i / points);
  return LAMINA_OK;
}
lamina_status hangs(const lamina_call*) {
  for (volatile bool on = true; on;) std::this_thread::yield();
  return LAMINA_OK;
}
void hangs_elements(const void*, const float*, float*, size_t) { hangs(nullptr); }
lamina_status create_hangs(const lamina_node*, void**) { return hangs(nullptr); }
/// Says that all outputs have one element.
lamina_status infers_one(const lamina_node* n) {
  const int64_t one = 1;
  const lamina_value y{sizeof(y), LAMINA_F32, 1, &one, &one, nullptr, nullptr};
  return host->set_output(n->context, 0, &y);
}
/// Says that there are any number of elements in one axis.
lamina_status infers_any(const lamina_node* n) {
  const int64_t low = 0, high = LAMINA_UNBOUNDED;
  const lamina_value y{sizeof(y), LAMINA_F32, 1, &low, &high, nullptr, nullptr};
  return host->set_output(n->context, 0, &y);
}
lamina_status allocates_twice(const lamina_call* c) {
  const int64_t one = 1;
  for (int i = 0; i < 2; ++i)
    if (auto* y = static_cast<float*>(host->allocate_output(c->context, 0, 1, &one)))
      *y = 1;
    else
      return LAMINA_FAILED;
  return LAMINA_OK;
}
lamina_status allocates_axes(const lamina_call* c) {
  const int64_t dims[] = {1, 1};
  auto* const y = static_cast<float*>(host->allocate_output(c->context, 0, 2, dims));
  if (!y) return LAMINA_FAILED;
  *y = 1;
  return LAMINA_OK;
}
lamina_status wants_the_world(const lamina_node*, size_t* bytes) {
  *bytes = size_t{1} << 39;
  return LAMINA_OK;
}
lamina_status infers_nothing(const lamina_node*) { return LAMINA_OK; }
lamina_status infer_throws(const lamina_node*) { throw std::runtime_error("shapeless"); }

struct Row {
  const char* type;
  lamina_status (*run)(const lamina_call*);
  lamina_status (*infer)(const lamina_node*) = nullptr;
  bool in_place = false;
  lamina_status (*reference)(const lamina_call*) = nullptr;
  bool channels_last = false;
  void (*elementwise)(const void*, const float*, float*, size_t) = nullptr;
  uint32_t flags = 0;
  lamina_status (*scratch)(const lamina_node*, size_t*) = nullptr;
  lamina_status (*create)(const lamina_node*, void**) = nullptr;
};
constexpr uint32_t kLater = LAMINA_SHAPE_AFTER_RUN;
constexpr Row kRows[] = {
    {"Fails", fails},
    {"StatusOnly", status_only},
    {"Throws", throws},
    {"ThrowsInt", throws_int},
    {"ThrowsInLoop", throws_in_loop},
    {"NaN", nan},
    {"Overruns", overruns},
    {"Underruns", underruns},
    {"FarOff", far_off},
    {"ForgetsLast", forgets_last},
    {"WritesInput", writes_input},
    {"Thread", thread},
    {"Rounding", rounding},
    {"RoundingOfX87", rounding_of_x87},
    {"RoundingInLoop", rounding_in_loop},
    {"RoundingElements", nullptr, nullptr, false, nullptr, false, rounding_elements},
    {"ThrowsElements", nullptr, nullptr, false, nullptr, false, throws_elements},
    {"OverrunsElements", nullptr, nullptr, false, nullptr, false, overruns_elements},
    {"InfersAny", copy, infers_any},
    {"AllocatesTwice", allocates_twice, infers_any, false, nullptr, false, nullptr, kLater},
    {"AllocatesAxes", allocates_axes, infers_any, false, nullptr, false, nullptr, kLater},
    {"WantsTheWorld", copy, nullptr, false, nullptr, false, nullptr, 0, wants_the_world},
    {"Counts", counts},
    {"CountsElements", nullptr, nullptr, false, nullptr, false, counts_elements},
    {"Leaks", leaks},
    {"Aborts", aborts},
    {"Exits", exits},
    {"CreateThrows", copy, nullptr, false, nullptr, false, nullptr, 0, nullptr, create_throws},
    {"AddsFirst", adds_first, nullptr, true},
    {"ThinksPlain", thinks_plain, nullptr, false, thinks_plain, true},
    {"Hangs", hangs, nullptr, false, nullptr, true},
    {"HangsElements", nullptr, nullptr, false, nullptr, false, hangs_elements},
    {"CreateHangs", copy, nullptr, false, nullptr, false, nullptr, 0, nullptr, create_hangs},
    {"InfersNothing", copy, infers_nothing},
    {"InferThrows", copy, infer_throws},
    {"InfersOne", copy, infers_one}};

}  // namespace

extern "C" LAMINA_EXTENSION_EXPORT int lamina_extension(const lamina_host* given,
                                                        lamina_registrar* registrar) {
  host = given;
  const char* const wanted = std::getenv("LAMINA_TEST_FAULT");  // one only; without: all
  static const lamina_port port{sizeof(port), "x", "", 0, 0, nullptr};
  static const int32_t pair[] = {0, 0}, last[] = {LAMINA_CHANNELS_LAST};
  int failed = 0;
  for (const auto& row : kRows) {
    if (wanted && std::strcmp(wanted, row.type) != 0) continue;
    lamina_configuration c{};
    c.struct_size = sizeof(c);
    c.name = "usual";
    c.in_place = pair;
    c.in_place_pairs = row.in_place ? 1 : 0;
    c.in_layouts = row.channels_last ? last : nullptr;
    lamina_operation op{};
    op.struct_size = sizeof(op);
    op.domain = "test.faults";
    op.type = row.type;
    op.in = op.out = &port;
    op.inputs = op.outputs = 1;
    op.configuration = &c;
    op.configurations = row.run ? 1 : 0;
    op.elementwise = row.elementwise;
    op.run = row.run;
    op.infer = row.infer;
    op.reference = row.reference;
    op.create = row.create;
    op.flags = row.flags;
    op.scratch_bytes = row.scratch;
    failed |= host->add_operation(registrar, &op);
  }
  return failed;
}
