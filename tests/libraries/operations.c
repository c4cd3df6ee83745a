/* Operations that the tests run, in plain C99: what the border has, each in one of them. */
#include "lamina/extension.h"

#include <stdlib.h>
#include <string.h>

#ifndef TEST_VERSION
#define TEST_VERSION "1.2"
#endif

static const lamina_host* host;

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))
static const int32_t f32_only[] = {LAMINA_F32, LAMINA_NO_TYPE};
static const int32_t f32_or_f64[] = {LAMINA_F32, LAMINA_F64, LAMINA_NO_TYPE};
static const int32_t in_place_0[] = {0, 0};

static const lamina_port x_port[] = {{sizeof(lamina_port), "x", "", 0, 0, f32_only}};
static const lamina_port y_port[] = {{sizeof(lamina_port), "y", "", 0, 0, f32_only}};

/* y = scale * x + shift, in f32 and f64; what create() makes is read by run(). */
typedef struct {
  double scale, shift;
} affine;

static lamina_status affine_create(const lamina_node* node, void** instance) {
  affine* made = malloc(sizeof(affine));
  if (!made) return host->fail(node->context, "no memory");
  if (host->get_float(node->context, "scale", &made->scale) || host->get_float(node->context, "shift", &made->shift)) {
    free(made);
    return LAMINA_FAILED;
  }
  *instance = made;
  return LAMINA_OK;
}

static lamina_status affine_run(const lamina_call* call) {
  const affine* a = call->instance;
  const lamina_tensor *x = call->in[0], *y = call->out[0];
  uint64_t i;
  if (x->type == LAMINA_F64)
    for (i = 0; i < x->elements; ++i) ((double*)y->data)[i] = a->scale * ((const double*)x->data)[i] + a->shift;
  else
    for (i = 0; i < x->elements; ++i)
      ((float*)y->data)[i] = (float)(a->scale * ((const float*)x->data)[i] + a->shift);
  return LAMINA_OK;
}

/* An activation: a slope below zero. */
static lamina_status leak_create(const lamina_node* node, void** instance) {
  double slope;
  float* made;
  if (host->get_float(node->context, "slope", &slope)) return LAMINA_FAILED;
  made = malloc(sizeof(float));
  if (!made) return host->fail(node->context, "no memory");
  *made = (float)slope;
  *instance = made;
  return LAMINA_OK;
}

static void leak(const void* instance, const float* in, float* out, size_t count) {
  const float slope = *(const float*)instance;
  size_t i;
  for (i = 0; i < count; ++i) out[i] = in[i] < 0 ? slope * in[i] : in[i];
}

/* Two outputs: what is positive, what is negative. */
static lamina_status signs_run(const lamina_call* call) {
  const float* x = call->in[0]->data;
  float *positive = call->out[0]->data, *negative = call->out[1]->data;
  uint64_t i;
  for (i = 0; i < call->in[0]->elements; ++i) {
    positive[i] = x[i] > 0 ? x[i] : 0;
    negative[i] = x[i] < 0 ? x[i] : 0;
  }
  return LAMINA_OK;
}

/* A shape that is known after the run: the positive values, and their places. */
static lamina_status positives_infer(const lamina_node* node) {
  int64_t low = 0, high = LAMINA_UNBOUNDED;
  lamina_value y = {sizeof(y), LAMINA_F32, 1, &low, &high, 0, 0};
  if (host->set_output(node->context, 0, &y)) return LAMINA_FAILED;
  y.type = LAMINA_I64;
  return host->set_output(node->context, 1, &y);
}

static lamina_status positives_run(const lamina_call* call) {
  const float* x = call->in[0]->data;
  const uint64_t all = call->in[0]->elements;
  int64_t found = 0;
  float* values;
  int64_t* places;
  uint64_t i;
  for (i = 0; i < all; ++i) found += x[i] > 0;
  values = host->allocate_output(call->context, 0, 1, &found);
  places = host->allocate_output(call->context, 1, 1, &found);
  if (!values || !places) return LAMINA_FAILED;
  for (i = 0, found = 0; i < all; ++i)
    if (x[i] > 0) {
      values[found] = x[i];
      places[found++] = (int64_t)i;
    }
  return LAMINA_OK;
}

/* Any number of inputs behind an optional one: bias + the sum of the others. */
static lamina_status sum_infer(const lamina_node* node) {
  return host->set_output(node->context, 0, node->in[node->inputs - 1]);
}

static lamina_status sum_run(const lamina_call* call) {
  float* y = call->out[0]->data;
  uint64_t i;
  size_t k;
  for (i = 0; i < call->out[0]->elements; ++i) {
    y[i] = call->in[0] ? ((const float*)call->in[0]->data)[0] : 0;
    for (k = 1; k < call->inputs; ++k) y[i] += ((const float*)call->in[k]->data)[i];
  }
  return LAMINA_OK;
}

/* Halves the last axis: inference with bounds, names, and what is not known. */
static lamina_status halve_infer(const lamina_node* node) {
  const lamina_value* x = node->in[0];
  int64_t low[8], high[8];
  uint64_t symbols[8];
  lamina_value y = *x;
  if (x->rank < 0) return host->set_output(node->context, 0, x);
  if (x->rank == 0 || x->rank > 8) return host->fail(node->context, "wanted 1 to 8 axes");
  memcpy(low, x->low, (size_t)x->rank * sizeof(int64_t));
  memcpy(high, x->high, (size_t)x->rank * sizeof(int64_t));
  memcpy(symbols, x->symbols, (size_t)x->rank * sizeof(uint64_t));
  low[x->rank - 1] /= 2;
  if (high[x->rank - 1] != LAMINA_UNBOUNDED) high[x->rank - 1] /= 2;
  symbols[x->rank - 1] = 0;
  y.low = low;
  y.high = high;
  y.symbols = symbols;
  return host->set_output(node->context, 0, &y);
}

static lamina_status halve_run(const lamina_call* call) {
  const lamina_tensor* x = call->in[0];
  const int64_t from = x->dims[x->rank - 1], to = call->out[0]->dims[x->rank - 1];
  const float* in = x->data;
  float* out = call->out[0]->data;
  uint64_t i;
  for (i = 0; i < call->out[0]->elements; ++i) {
    const int64_t row = (int64_t)i / to, column = (int64_t)i % to;
    out[i] = in[row * from + 2 * column];
  }
  return LAMINA_OK;
}

/* y[c] = weights[c] * x[c] + 1, with weights prepared (they are kept in reverse), scratch memory, threads, and a
 * configuration for each layout. */
static lamina_status weigh_prepared_bytes(const lamina_node* node, size_t* bytes) {
  if (!node->in[1]->constant) return host->fail(node->context, "the weights are not known");
  *bytes = node->in[1]->constant->elements * sizeof(float);
  return LAMINA_OK;
}
static int prepared_times = 0;
static lamina_status weigh_prepare(const lamina_node* node, void* block) {
  const lamina_tensor* w = node->in[1]->constant;
  uint64_t i;
  ++prepared_times;
  for (i = 0; i < w->elements; ++i) ((float*)block)[i] = ((const float*)w->data)[w->elements - 1 - i];
  return LAMINA_OK;
}
LAMINA_EXTENSION_EXPORT int prepared_so_far(void) { return prepared_times; }

static lamina_status weigh_scratch(const lamina_node* node, size_t* bytes) {
  *bytes = (size_t)node->in[0]->low[1] * sizeof(float);
  return LAMINA_OK;
}

typedef struct {
  const lamina_call* call;
  const float* weights;
  int64_t channels, points, block;
} weighing;

static void weigh_images(void* data, int64_t begin, int64_t end, int32_t slot) {
  const weighing* w = data;
  const int64_t blocks = (w->channels + w->block - 1) / w->block;
  int64_t n, c, p;
  (void)slot;
  for (n = begin; n < end; ++n)
    for (c = 0; c < w->channels; ++c)
      for (p = 0; p < w->points; ++p) {
        const int64_t i = ((n * blocks + c / w->block) * w->points + p) * w->block + c % w->block;
        ((float*)w->call->out[0]->data)[i] = w->weights[c] * ((const float*)w->call->in[0]->data)[i] + 1;
      }
}

static lamina_status weigh_run(const lamina_call* call) {
  const lamina_tensor* x = call->in[0];
  float* weights = call->scratch;
  weighing w;
  int64_t c;
  int32_t axis;
  if (call->scratch_bytes < (size_t)x->dims[1] * sizeof(float) || call->in[1])
    return host->fail(call->context, "no scratch memory, or weights that were prepared");
  w.call = call;
  w.weights = weights;
  w.channels = x->dims[1];
  w.points = 1;
  for (axis = 2; axis < x->rank; ++axis) w.points *= x->dims[axis];
  w.block = x->layout == LAMINA_BLOCKED_8      ? 8
            : x->layout == LAMINA_BLOCKED_16   ? 16
            : x->layout == LAMINA_CHANNELS_LAST ? w.channels
                                               : 1;
  for (c = 0; c < w.channels; ++c) weights[c] = ((const float*)call->prepared)[w.channels - 1 - c];
  return host->parallel_for(call->context, x->dims[0], 1, weigh_images, &w);
}

static lamina_status weigh_reference(const lamina_call* call) {
  const lamina_tensor* x = call->in[0];
  const float* w = call->in[1]->data;
  uint64_t i;
  int64_t points = 1;
  int32_t axis;
  for (axis = 2; axis < x->rank; ++axis) points *= x->dims[axis];
  for (i = 0; i < x->elements; ++i)
    ((float*)call->out[0]->data)[i] =
        w[(int64_t)i / points % x->dims[1]] * ((const float*)x->data)[i] + 1;
  return LAMINA_OK;
}

/* Every kind of attribute, added up. */
static lamina_status attributes_run(const lamina_call* call) {
  int32_t b;
  int64_t i;
  double f, sum = 0;
  const char* s;
  const int64_t* is;
  const double* fs;
  const char* const* ss;
  size_t count, k;
  lamina_context* c = call->context;
  if (host->get_bool(c, "b", &b) || host->get_int(c, "i", &i) || host->get_float(c, "f", &f) ||
      host->get_string(c, "s", &s))
    return LAMINA_FAILED;
  sum = b + (double)i + f + (double)strlen(s);
  if (host->get_ints(c, "is", &is, &count)) return LAMINA_FAILED;
  for (k = 0; k < count; ++k) sum += (double)is[k];
  if (host->get_floats(c, "fs", &fs, &count)) return LAMINA_FAILED;
  for (k = 0; k < count; ++k) sum += fs[k];
  if (host->get_strings(c, "ss", &ss, &count)) return LAMINA_FAILED;
  for (k = 0; k < count; ++k) sum += (double)strlen(ss[k]);
  for (k = 0; k < call->out[0]->elements; ++k) ((float*)call->out[0]->data)[k] = (float)sum;
  return LAMINA_OK;
}

/* Doubles, and lets the engine's stages pass over each half of the result. */
static lamina_status twice_run(const lamina_call* call) {
  const int64_t all = (int64_t)call->out[0]->elements, half = all / 2;
  const float* x = call->in[0]->data;
  float* y = call->out[0]->data;
  int64_t i;
  for (i = 0; i < all; ++i) y[i] = 2 * x[i];
  if (call->stages) {
    call->stages->apply(call->stages, y, 0, half);
    call->stages->apply(call->stages, y + half, half, all - half);
  }
  return LAMINA_OK;
}

static lamina_status needs_channels(const lamina_node* node) {
  return node->in[0]->low[1] % 2 == 0 ? LAMINA_OK : host->fail(node->context, "wanted an even number of channels");
}

static const lamina_attribute affine_attributes[] = {
    {sizeof(lamina_attribute), "scale", "factor", LAMINA_FLOAT, 0, "2"},
    {sizeof(lamina_attribute), "shift", "what is added", LAMINA_FLOAT, 0, 0}};
static const lamina_attribute leak_attributes[] = {
    {sizeof(lamina_attribute), "slope", "", LAMINA_FLOAT, 0, "0.5"}};
static const lamina_attribute all_attributes[] = {
    {sizeof(lamina_attribute), "b", "", LAMINA_BOOL, 0, "false"},
    {sizeof(lamina_attribute), "i", "", LAMINA_INT, 0, "0"},
    {sizeof(lamina_attribute), "f", "", LAMINA_FLOAT, 0, "0"},
    {sizeof(lamina_attribute), "s", "", LAMINA_STRING, 0, ""},
    {sizeof(lamina_attribute), "is", "", LAMINA_INTS, 0, ""},
    {sizeof(lamina_attribute), "fs", "", LAMINA_FLOATS, 0, ""},
    {sizeof(lamina_attribute), "ss", "", LAMINA_STRINGS, 0, ""}};
static const lamina_port wide_in[] = {{sizeof(lamina_port), "x", "", 0, 0, f32_or_f64}};
static const lamina_port wide_out[] = {{sizeof(lamina_port), "y", "", 0, 0, f32_or_f64}};
static const lamina_port signs_out[] = {{sizeof(lamina_port), "positive", "", 0, 0, 0},
                                        {sizeof(lamina_port), "negative", "", 0, 0, 0}};
static const int32_t i64_only[] = {LAMINA_I64, LAMINA_NO_TYPE};
static const lamina_port positives_out[] = {{sizeof(lamina_port), "values", "", 0, 0, f32_only},
                                            {sizeof(lamina_port), "places", "", 0, 0, i64_only}};
static const lamina_port sum_in[] = {{sizeof(lamina_port), "bias", "", LAMINA_OPTIONAL, 0, f32_only},
                                     {sizeof(lamina_port), "x", "", LAMINA_VARIADIC, 0, f32_only}};
static const lamina_port weigh_in[] = {{sizeof(lamina_port), "x", "", 0, 0, f32_only},
                                       {sizeof(lamina_port), "weights", "", LAMINA_CONSTANT, 0, f32_only}};
static const int32_t last_layouts[] = {LAMINA_CHANNELS_LAST, LAMINA_PLAIN};
static const int32_t block_8_layouts[] = {LAMINA_BLOCKED_8, LAMINA_PLAIN};
static const int32_t block_16_layouts[] = {LAMINA_BLOCKED_16, LAMINA_PLAIN};


static lamina_configuration configuration(const char* name, const int32_t* layouts) {
  lamina_configuration c;
  memset(&c, 0, sizeof(c));
  c.struct_size = sizeof(c);
  c.name = name;
  c.in_layouts = layouts;
  c.in_place = in_place_0;
  c.in_place_pairs = 1;
  return c;
}

static lamina_operation operation(const char* type) {
  lamina_operation op;
  memset(&op, 0, sizeof(op));
  op.struct_size = sizeof(op);
  op.domain = "test.ops";
  op.type = type;
  op.doc = "of the tests";
  op.since_version = 1;
  op.in = x_port;
  op.inputs = 1;
  op.out = y_port;
  op.outputs = 1;
  return op;
}

static lamina_status add_weigh(lamina_registrar* registrar, const char* type, const lamina_configuration* list,
                               size_t count) {
  lamina_operation op = operation(type);
  op.in = weigh_in;
  op.inputs = 2;
  op.configuration = list;
  op.configurations = count;
  op.prepared_bytes = weigh_prepared_bytes;
  op.prepare = weigh_prepare;
  op.scratch_bytes = weigh_scratch;
  op.run = weigh_run;
  op.reference = weigh_reference;
#ifndef FIRST_HEADER
  {
    static const char* const samples[] = {"x=[2,6,3,5] weights=[6]", "x=f32[1,19,4] weights=f32[19]", 0};
    op.samples = samples;
  }
#endif
  return host->add_operation(registrar, &op);
}

LAMINA_EXTENSION_EXPORT int lamina_extension(const lamina_host* given, lamina_registrar* registrar) {
  static lamina_configuration weigh[4], even[1];
  lamina_library about;
  lamina_operation op;
  int failed = 0;
  host = given;
  memset(&about, 0, sizeof(about));
  about.struct_size = sizeof(about);
  about.name = "operations of the tests";
  about.version = TEST_VERSION;
  about.licence = "none";
  failed |= host->describe(registrar, &about);

  op = operation("Affine");
  op.in = wide_in;
  op.out = wide_out;
  op.attribute = affine_attributes;
  op.attributes = COUNT(affine_attributes);
  op.create = affine_create;
  op.destroy = free;
  op.run = affine_run;
  even[0] = configuration("plain", 0);
  op.configuration = even;
  op.configurations = 1;
  failed |= host->add_operation(registrar, &op);
  op.domain = "extension"; /* older IR files call it so */
  failed |= host->add_operation(registrar, &op);

  op = operation("Leak");
  op.attribute = leak_attributes;
  op.attributes = COUNT(leak_attributes);
  op.create = leak_create;
  op.destroy = free;
  op.elementwise = leak;
  failed |= host->add_operation(registrar, &op);

  op = operation("Signs");
  op.out = signs_out;
  op.outputs = 2;
  op.run = signs_run;
  failed |= host->add_operation(registrar, &op);

  op = operation("Positives");
  op.out = positives_out;
  op.outputs = 2;
  op.flags = LAMINA_SHAPE_AFTER_RUN;
  op.infer = positives_infer;
  op.run = positives_run;
  failed |= host->add_operation(registrar, &op);

  op = operation("Sum");
  op.in = sum_in;
  op.inputs = 2;
  op.infer = sum_infer;
  op.run = sum_run;
  failed |= host->add_operation(registrar, &op);

  op = operation("Halve");
  op.infer = halve_infer;
  op.run = halve_run;
  failed |= host->add_operation(registrar, &op);
  op.type = "HalveLater"; /* found from version 3 on */
  op.since_version = 3;
  failed |= host->add_operation(registrar, &op);

  op = operation("Attributes");
  op.attribute = all_attributes;
  op.attributes = COUNT(all_attributes);
  op.run = attributes_run;
  failed |= host->add_operation(registrar, &op);

  op = operation("Twice");
  op.flags = LAMINA_TAKES_STAGES;
  op.run = twice_run;
  failed |= host->add_operation(registrar, &op);

  weigh[0] = configuration("plain", 0);
  weigh[1] = configuration("channels_last", last_layouts);
  weigh[2] = configuration("blocked_8", block_8_layouts);
  weigh[3] = configuration("blocked_16", block_16_layouts);
  failed |= add_weigh(registrar, "Weigh", weigh, 4);
  failed |= add_weigh(registrar, "WeighLast", weigh + 1, 1);
  failed |= add_weigh(registrar, "WeighBlocks", weigh + 2, 1);

  op = operation("Even");
  op.run = affine_run;
  op.create = affine_create;
  op.destroy = free;
  op.attribute = affine_attributes;
  op.attributes = COUNT(affine_attributes);
  {
    static lamina_configuration one;
    one = configuration("even", last_layouts);
    one.accepts = needs_channels;
    op.configuration = &one;
    op.configurations = 1;
    even[0] = configuration("plain", 0);
    failed |= host->add_operation(registrar, &op);
  }
  return failed;
}
