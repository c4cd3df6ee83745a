/* A library of another age: its structs are shorter, or longer, than those of the engine. What it declares says the
 * environment variable LAMINA_TEST_VERSION. */
#include "lamina/extension.h"

#include <stdlib.h>
#include <string.h>

static lamina_status copy_run(const lamina_call* call) {
  memcpy(call->out[0]->data, call->in[0]->data, call->in[0]->bytes);
  return LAMINA_OK;
}

/* As a later header might have it. */
typedef struct {
  lamina_operation now;
  void (*later)(void);
  int more[6];
} later_operation;

static void nothing(void) {}

int lamina_extension(const lamina_host* host, lamina_registrar* registrar) {
  static const lamina_port port[] = {{sizeof(lamina_port), "x", "", 0, 0, 0}};
  static const char* const needs[] = {"parallel_for", "telepathy", 0};
  const char* age = getenv("LAMINA_TEST_VERSION");
  later_operation op;
  lamina_library about;
  memset(&op, 0, sizeof(op));
  op.now.struct_size = offsetof(lamina_operation, reference); /* nothing behind run */
  op.now.domain = "test.versions";
  op.now.type = "Copy";
  op.now.in = op.now.out = port;
  op.now.inputs = op.now.outputs = 1;
  op.now.run = copy_run;
  op.now.elementwise = (void (*)(const void*, const float*, float*, size_t))nothing; /* behind what counts */
  if (age && strcmp(age, "later") == 0) {
    op.now.struct_size = sizeof(op);
    op.now.elementwise = 0;
    op.later = nothing;
  }
  if (age && strcmp(age, "none") == 0) op.now.struct_size = 0;
  if (age && strcmp(age, "silent") == 0) return 0;
  if (age && strcmp(age, "fails") == 0) return 7;
  if (age && strcmp(age, "needs") == 0) {
    memset(&about, 0, sizeof(about));
    about.struct_size = sizeof(about);
    about.needs = needs;
    host->describe(registrar, &about);
  }
  if (age && strcmp(age, "stays") == 0) {
    memset(&about, 0, sizeof(about));
    about.struct_size = sizeof(about);
    about.flags = LAMINA_NEVER_UNLOAD;
    host->describe(registrar, &about);
  }
  if (!host->query("parallel_for") || host->query("telepathy") || !host->query("lamina_operation.elementwise"))
    return 9;
  return host->add_operation(registrar, &op.now);
}
