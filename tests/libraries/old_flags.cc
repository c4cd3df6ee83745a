// As a library of 2013 would be built: C++98, without exceptions and types at run time, against the first
// header.
#include "lamina/extension.h"

#include <string.h>

namespace {

const lamina_host* host;

lamina_status negative_run(const lamina_call* call) {
  const float* x = static_cast<const float*>(call->in[0]->data);
  float* y = static_cast<float*>(call->out[0]->data);
  for (uint64_t i = 0; i < call->in[0]->elements; ++i) y[i] = -x[i];
  return LAMINA_OK;
}

}  // namespace

int lamina_extension(const lamina_host* given, lamina_registrar* registrar) {
  static lamina_port port;
  static lamina_operation op;
  host = given;
  port.struct_size = sizeof(port);
  port.name = "x";
  op.struct_size = sizeof(op);
  op.domain = "test.old";
  op.type = "Minus";
  op.in = op.out = &port;
  op.inputs = op.outputs = 1;
  op.run = negative_run;
  return host->add_operation(registrar, &op);
}
