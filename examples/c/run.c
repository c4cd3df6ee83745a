/* Runs a model once: run MODEL. Makes inputs of the model's shapes, full of ones (a size that is not known
 * becomes 1), and prints the outputs' names, shapes and first values. */
#include <lamina/c.h>

#include <stdio.h>
#include <stdlib.h>

static void check(lamina_c_status status) {
  if (status == LAMINA_C_OK) return;
  fprintf(stderr, "error (%s): %s\n", lamina_c_status_name(status), lamina_c_last_error());
  exit(1);
}

/* Sets an element to one, where C has a type for it; others stay 0. */
static void set_one(void* data, int32_t type, size_t index) {
  switch (type) {
    case LAMINA_C_F32:
      ((float*)data)[index] = 1;
      break;
    case LAMINA_C_F64:
      ((double*)data)[index] = 1;
      break;
    case LAMINA_C_I64:
    case LAMINA_C_U64:
      ((int64_t*)data)[index] = 1;
      break;
    case LAMINA_C_I32:
    case LAMINA_C_U32:
      ((int32_t*)data)[index] = 1;
      break;
    case LAMINA_C_I16:
    case LAMINA_C_U16:
      ((int16_t*)data)[index] = 1;
      break;
    case LAMINA_C_F16:
      ((uint16_t*)data)[index] = 0x3c00;
      break;
    case LAMINA_C_BF16:
      ((uint16_t*)data)[index] = 0x3f80;
      break;
    case LAMINA_C_I8:
    case LAMINA_C_U8:
    case LAMINA_C_BOOLEAN:
      ((uint8_t*)data)[index] = 1;
      break;
    default:
      break;
  }
}

static void set_input(lamina_c_request* request, size_t index, const lamina_c_port* port) {
  lamina_c_tensor* tensor;
  lamina_c_tensor_info info;
  int64_t* dims = NULL;
  size_t i;
  const size_t rank = port->rank < 0 ? 0 : (size_t)port->rank;
  if (rank != 0 && (dims = malloc(rank * sizeof *dims)) == NULL) exit(1);
  for (i = 0; i < rank; ++i) dims[i] = port->dims[i] < 0 ? 1 : port->dims[i];
  check(lamina_c_tensor_new(port->type, rank, dims, &tensor));
  free(dims);
  info.size = sizeof info;
  check(lamina_c_tensor_get(tensor, &info));
  for (i = 0; i < info.elements; ++i) set_one(info.data, info.type, i);
  check(lamina_c_request_set_input(request, index, tensor));
  lamina_c_tensor_free(tensor); /* the request shares it */
}

int main(int argc, char** argv) {
  lamina_c_model* model;
  lamina_c_compiled* compiled;
  lamina_c_request* request;
  lamina_c_port port;
  size_t count, i;
  if (argc != 2) {
    fprintf(stderr, "usage: %s MODEL\n", argv[0]);
    return 2;
  }
  port.size = sizeof port; /* which members this program knows */
  check(lamina_c_model_read(argv[1], NULL, &model));
  check(lamina_c_compile(model, NULL, &compiled));
  check(lamina_c_request_new(compiled, &request));

  check(lamina_c_model_port_count(model, LAMINA_C_INPUT, &count));
  for (i = 0; i < count; ++i) {
    check(lamina_c_model_port(model, LAMINA_C_INPUT, i, &port));
    printf("input  %s  %s\n", port.name, port.text);
    if (port.value == NULL) set_input(request, i, &port);
  }

  check(lamina_c_request_run(request));

  check(lamina_c_model_port_count(model, LAMINA_C_OUTPUT, &count));
  for (i = 0; i < count; ++i) {
    lamina_c_tensor* tensor;
    char text[200];
    check(lamina_c_model_port(model, LAMINA_C_OUTPUT, i, &port));
    check(lamina_c_request_output(request, i, &tensor));
    check(lamina_c_tensor_text(tensor, text, sizeof text, NULL));
    printf("output %s  %s\n", port.name, text);
    lamina_c_tensor_free(tensor);
  }

  lamina_c_request_free(request);
  lamina_c_compiled_free(compiled);
  lamina_c_model_free(model);
  return 0;
}
