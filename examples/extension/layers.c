/* Custom layers in C99: an operator with an attribute, an element-wise one, and a rule. docs/extensions.md explains
 * them line by line; layers.cc is the same in C++. */
#include <lamina/extension.h>

#include <stdlib.h>
#include <string.h>

static const lamina_host* host;

/* ChannelShuffle: channel g * n + c becomes channel c * groups + g, where n is the channels of a group. */
typedef struct {
  int64_t groups;
} shuffle;

static lamina_status shuffle_create(const lamina_node* node, void** instance) {
  shuffle* s;
  int64_t groups;
  if (host->get_int(node->context, "groups", &groups)) return LAMINA_FAILED;
  if (groups < 1 || node->in[0]->rank != 4 || node->in[0]->low[1] % groups != 0)
    return host->fail(node->context, "wanted four axes and channels that the groups divide");
  s = malloc(sizeof(shuffle));
  if (!s) return host->fail(node->context, "no memory");
  s->groups = groups;
  *instance = s;
  return LAMINA_OK;
}

typedef struct {
  const lamina_call* call;
  int64_t groups;
} shuffle_loop;

/* Images [begin, end), in either layout: strides say where elements lie. */
static void shuffle_images(void* data, int64_t begin, int64_t end, int32_t slot) {
  const shuffle_loop* loop = data;
  const lamina_tensor *x = loop->call->in[0], *y = loop->call->out[0];
  const int64_t channels = x->dims[1], n = channels / loop->groups;
  int64_t i, c, h, w;
  (void)slot;
  for (i = begin; i < end; ++i)
    for (c = 0; c < channels; ++c) {
      const int64_t to = c % n * loop->groups + c / n;
      for (h = 0; h < x->dims[2]; ++h)
        for (w = 0; w < x->dims[3]; ++w)
          ((float*)y->data)[i * y->strides[0] + to * y->strides[1] + h * y->strides[2] + w * y->strides[3]] =
              ((const float*)x->data)[i * x->strides[0] + c * x->strides[1] + h * x->strides[2] +
                                      w * x->strides[3]];
    }
}

static lamina_status shuffle_run(const lamina_call* call) {
  shuffle_loop loop;
  loop.call = call;
  loop.groups = ((const shuffle*)call->instance)->groups;
  return host->parallel_for(call->context, call->in[0]->dims[0], 1, shuffle_images, &loop);
}

/* Gate: x^2 where x is positive, slope * x elsewhere. */
static lamina_status gate_create(const lamina_node* node, void** instance) {
  double slope;
  float* made;
  if (host->get_float(node->context, "slope", &slope)) return LAMINA_FAILED;
  made = malloc(sizeof(float));
  if (!made) return host->fail(node->context, "no memory");
  *made = (float)slope;
  *instance = made;
  return LAMINA_OK;
}

static void gate(const void* instance, const float* in, float* out, size_t count) {
  const float slope = *(const float*)instance;
  size_t i;
  for (i = 0; i < count; ++i) out[i] = in[i] > 0 ? in[i] * in[i] : slope * in[i];
}

static const int32_t f32[] = {LAMINA_F32, LAMINA_NO_TYPE};
static const lamina_port x_port = {sizeof(lamina_port), "x", "", 0, 0, f32};
static const lamina_port y_port = {sizeof(lamina_port), "y", "", 0, 0, f32};

static const lamina_attribute groups = {sizeof(lamina_attribute), "groups", "", LAMINA_INT, 0, NULL};
static const lamina_attribute slope = {sizeof(lamina_attribute), "slope", "", LAMINA_FLOAT, 0, "0.1"};

static const int32_t last[] = {LAMINA_CHANNELS_LAST};
static const lamina_configuration layouts[] = {
    {sizeof(lamina_configuration), "plain", NULL, NULL, NULL, NULL, NULL, 0, 0, NULL, NULL},
    {sizeof(lamina_configuration), "channels_last", NULL, last, NULL, NULL, NULL, 0, 0, NULL, NULL}};

/* What "lamina check --extensions" tries without a model. */
static const char* const shuffle_samples[] = {"x=f32[2,6,3,5] groups=2", "x=f32[1,12,4,4] groups=3", NULL};

static const lamina_rule squared_relu = {sizeof(lamina_rule),
                                         "com.example.c.squared-relu",
                                         "relu(x)^2 is a gate without a slope",
                                         LAMINA_BEFORE_FUSING,
                                         0,
                                         "r = Relu(x); y = Multiply(r, r)",
                                         "y = com.example.c.Gate(x) slope=0",
                                         NULL};

int lamina_extension(const lamina_host* given, lamina_registrar* registrar) {
  lamina_library about;
  lamina_operation op;
  int failed = 0;
  host = given;

  memset(&about, 0, sizeof(about));
  about.struct_size = sizeof(about);
  about.name = "example in C";
  about.version = "1.0";
  about.licence = "as lamina";
  failed |= host->describe(registrar, &about);

  memset(&op, 0, sizeof(op));
  op.struct_size = sizeof(op);
  op.domain = "com.example.c";
  op.type = "ChannelShuffle";
  op.doc = "channels of groups, interleaved";
  op.in = &x_port;
  op.inputs = 1;
  op.out = &y_port;
  op.outputs = 1;
  op.attribute = &groups;
  op.attributes = 1;
  op.configuration = layouts;
  op.configurations = 2;
  op.create = shuffle_create;
  op.destroy = free;
  op.run = shuffle_run;
  op.samples = shuffle_samples;
  failed |= host->add_operation(registrar, &op);

  memset(&op, 0, sizeof(op));
  op.struct_size = sizeof(op);
  op.domain = "com.example.c";
  op.type = "Gate";
  op.doc = "x^2, or slope * x where that is negative";
  op.in = &x_port;
  op.inputs = 1;
  op.out = &y_port;
  op.outputs = 1;
  op.attribute = &slope;
  op.attributes = 1;
  op.create = gate_create;
  op.destroy = free;
  op.elementwise = gate;
  failed |= host->add_operation(registrar, &op);

  failed |= host->add_rule(registrar, &squared_relu);
  return failed;
}
