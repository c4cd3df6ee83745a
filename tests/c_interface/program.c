/* A program in C99 that uses lamina/c.h, beside lamina/extension.h, as others do: read, compile, run, errors,
 * borrowed memory, threads, callbacks. It prints what is not as it should be; status 1 if there is anything.
 */
#define _POSIX_C_SOURCE 200809L
#include <lamina/c.h>
#include <lamina/extension.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int failures = 0;
static pthread_mutex_t failing = PTHREAD_MUTEX_INITIALIZER;

static void failed(const char* what, int line) {
  pthread_mutex_lock(&failing);
  ++failures;
  fprintf(stderr, "line %d: not so: %s (last error: %s)\n", line, what, lamina_c_last_error());
  pthread_mutex_unlock(&failing);
}
#define EXPECT(condition) ((condition) ? (void)0 : failed(#condition, __LINE__))
#define OK(call) EXPECT((call) == LAMINA_C_OK)

/* Numbers that both headers have mean the same. */
#define SAME(NAME) ((int)LAMINA_C_##NAME == (int)LAMINA_##NAME)
typedef char same_numbers[SAME(NO_TYPE) && SAME(BOOLEAN) && SAME(F16) && SAME(BF16) && SAME(F32) &&
                                  SAME(F64) && SAME(I8) && SAME(I16) && SAME(I32) && SAME(I64) && SAME(U8) &&
                                  SAME(U16) && SAME(U32) && SAME(U64)
                              ? 1
                              : -1];

/* sum = a + b, of any batch. */
static const char kSums[] =
    "<?xml version=\"1.0\"?><net name=\"sums\" version=\"11\"><layers>"
    "<layer id=\"0\" name=\"a\" type=\"Parameter\" version=\"opset1\"><data shape=\"?,4\" "
    "element_type=\"f32\"/>"
    "<output><port id=\"0\" names=\"a\"><dim>-1</dim><dim>4</dim></port></output></layer>"
    "<layer id=\"1\" name=\"b\" type=\"Parameter\" version=\"opset1\"><data shape=\"?,4\" "
    "element_type=\"f32\"/>"
    "<output><port id=\"0\" names=\"b\"><dim>-1</dim><dim>4</dim></port></output></layer>"
    "<layer id=\"2\" name=\"sum\" type=\"Add\" version=\"opset1\"><data auto_broadcast=\"numpy\"/>"
    "<input><port id=\"0\"><dim>-1</dim><dim>4</dim></port><port "
    "id=\"1\"><dim>-1</dim><dim>4</dim></port></input>"
    "<output><port id=\"2\" names=\"sum\"><dim>-1</dim><dim>4</dim></port></output></layer>"
    "<layer id=\"3\" name=\"result\" type=\"Result\" version=\"opset1\">"
    "<input><port id=\"0\"><dim>-1</dim><dim>4</dim></port></input></layer>"
    "</layers><edges>"
    "<edge from-layer=\"0\" from-port=\"0\" to-layer=\"2\" to-port=\"0\"/>"
    "<edge from-layer=\"1\" from-port=\"0\" to-layer=\"2\" to-port=\"1\"/>"
    "<edge from-layer=\"2\" from-port=\"2\" to-layer=\"3\" to-port=\"0\"/>"
    "</edges></net>";

static void count_release(void* user) { __atomic_add_fetch((int*)user, 1, __ATOMIC_SEQ_CST); }

static lamina_c_model* sums(void) {
  lamina_c_model_bytes bytes;
  lamina_c_model* model = NULL;
  memset(&bytes, 0, sizeof bytes);
  bytes.size = sizeof bytes;
  bytes.model = kSums;
  bytes.model_bytes = sizeof kSums - 1;
  OK(lamina_c_model_from_memory(&bytes, NULL, &model));
  return model;
}

static lamina_c_compiled* compiled_sums(const char* streams) {
  lamina_c_model* model = sums();
  lamina_c_options* options = NULL;
  lamina_c_compiled* compiled = NULL;
  OK(lamina_c_options_new(&options));
  OK(lamina_c_options_set(options, "NUM_STREAMS", streams));
  OK(lamina_c_compile(model, options, &compiled));
  lamina_c_options_free(options);
  lamina_c_model_free(model); /* what was compiled from it needs it no more */
  return compiled;
}

static lamina_c_tensor* rows(int64_t batch, float value) {
  int64_t dims[2];
  lamina_c_tensor* tensor = NULL;
  lamina_c_tensor_info info;
  size_t i;
  dims[0] = batch;
  dims[1] = 4;
  OK(lamina_c_tensor_new(LAMINA_C_F32, 2, dims, &tensor));
  info.size = sizeof info;
  OK(lamina_c_tensor_get(tensor, &info));
  EXPECT((uintptr_t)info.data % 64 == 0 && info.bytes == (size_t)batch * 16);
  for (i = 0; i < info.elements; ++i) ((float*)info.data)[i] = value;
  return tensor;
}

static void check_ports(void) {
  lamina_c_model* model = sums();
  lamina_c_port port;
  size_t count = 0, index = 0;
  port.size = sizeof port;
  OK(lamina_c_model_port_count(model, LAMINA_C_INPUT, &count));
  EXPECT(count == 2);
  OK(lamina_c_model_port(model, LAMINA_C_INPUT, 1, &port));
  EXPECT(strcmp(port.name, "b") == 0 && port.name_length == 1 && port.type == LAMINA_C_F32 && port.rank == 2);
  EXPECT(port.dims[0] == -1 && port.dims[1] == 4 && strcmp(port.text, "f32[?,4]") == 0);
  EXPECT(strcmp(port.dimension_names[0], "") == 0 && port.value == NULL);
  OK(lamina_c_model_find(model, LAMINA_C_INPUT, "b", &index));
  EXPECT(index == 1);
  OK(lamina_c_model_find(model, LAMINA_C_INPUT, "c", &index));
  EXPECT(index == LAMINA_C_NONE);
  EXPECT(lamina_c_model_port(model, LAMINA_C_INPUT, 2, &port) == LAMINA_C_BAD_INPUT);
  EXPECT(lamina_c_model_port(model, 3, 0, &port) == LAMINA_C_BAD_INPUT);
  lamina_c_model_free(model);
}

static void check_run(const char* streams) {
  lamina_c_compiled* compiled = compiled_sums(streams);
  lamina_c_request* request = NULL;
  lamina_c_tensor *a = rows(2, 1), *b = rows(2, 2), *sum = NULL, *again = NULL;
  lamina_c_tensor_info info;
  int32_t same = 0;
  int released = 0;
  float mine[8];
  const int64_t dims[2] = {2, 4};
  info.size = sizeof info;
  OK(lamina_c_request_new(compiled, &request));
  lamina_c_compiled_free(compiled); /* the request keeps what it needs */
  EXPECT(lamina_c_request_run(request) == LAMINA_C_BAD_INPUT);
  OK(lamina_c_request_set_input(request, 0, a));
  OK(lamina_c_request_set_input_named(request, "b", b));
  lamina_c_tensor_free(a);
  lamina_c_tensor_free(b);
  EXPECT(lamina_c_request_output(request, 0, &sum) == LAMINA_C_BAD_INPUT || sum == NULL);
  OK(lamina_c_request_run(request));
  OK(lamina_c_request_read_output(request, 0, &info));
  EXPECT(info.rank == 2 && info.dims[0] == 2 && info.elements == 8 && ((float*)info.data)[7] == 3);
  OK(lamina_c_request_output_named(request, "sum", &sum));
  OK(lamina_c_tensor_clone(sum, &again));
  OK(lamina_c_tensor_compare(sum, again, &same));
  EXPECT(same == 1);
  lamina_c_tensor_free(again);
  again = NULL;
  OK(lamina_c_request_take_output(request, 0, &again));
  EXPECT(lamina_c_request_read_output(request, 0, &info) == LAMINA_C_BAD_CALL);
  OK(lamina_c_request_run(request));
  OK(lamina_c_tensor_compare(sum, again, &same));
  EXPECT(same == 1);
  OK(lamina_c_request_read_output(request, 0, &info));
  lamina_c_tensor_free(again);
  OK(lamina_c_request_take_output_named(request, "sum", &again));
  lamina_c_tensor_free(again);
  OK(lamina_c_request_run(request));
  lamina_c_tensor_free(sum);

  /* The caller's memory for the result. */
  OK(lamina_c_tensor_borrow(LAMINA_C_F32, 2, dims, mine, sizeof mine, count_release, &released, &sum));
  OK(lamina_c_request_set_output(request, 0, sum));
  lamina_c_tensor_free(sum);
  memset(mine, 0, sizeof mine);
  OK(lamina_c_request_run_for(request, (int64_t)60 * 1000000000));
  EXPECT(mine[0] == 3 && mine[7] == 3 && released == 0);
  OK(lamina_c_request_set_output(request, 0, NULL));
  OK(lamina_c_request_run(request)); /* the result was the caller's memory, and is not any more */
  EXPECT(released == 1);
  lamina_c_request_free(request);
  EXPECT(released == 1);
}

/* A chain of inferences: the callback starts the next one. */
typedef struct chain {
  lamina_c_request* request;
  int left;
  int32_t answer;
} chain;
static int32_t next_one(void* user, lamina_c_status status, const char* error) {
  chain* of = (chain*)user;
  EXPECT(status == LAMINA_C_OK && strcmp(error, "") == 0);
  if (--of->left > 0) OK(lamina_c_request_start(of->request));
  return of->left > 0 ? 0 : of->answer;
}

static void check_callback(const char* streams, int32_t answer) {
  lamina_c_compiled* compiled = compiled_sums(streams);
  lamina_c_tensor* a = rows(2, 1);
  chain of = {NULL, 20, 0};
  int32_t status = -1, done = 0;
  int released = 0;
  of.answer = answer;
  OK(lamina_c_request_new(compiled, &of.request));
  OK(lamina_c_request_set_input(of.request, 0, a));
  OK(lamina_c_request_set_input(of.request, 1, a));
  OK(lamina_c_request_set_callback(of.request, next_one, &of, NULL));
  OK(lamina_c_request_start(of.request));
  while (!done && lamina_c_request_wait_for(of.request, 1000000, &done) == LAMINA_C_OK) {
  }
  EXPECT(lamina_c_request_wait(of.request) == (answer == 0 ? LAMINA_C_OK : LAMINA_C_CALLBACK));
  if (answer != 0) EXPECT(strcmp(lamina_c_last_error(), "the request's callback returned 7") == 0);
  EXPECT(of.left == 0);
  OK(lamina_c_request_status(of.request, &status));
  EXPECT(status == (answer == 0 ? LAMINA_C_REQUEST_DONE : LAMINA_C_REQUEST_FAILED));
  OK(lamina_c_request_set_callback(of.request, next_one, &released, count_release));
  OK(lamina_c_request_set_callback(of.request, NULL, NULL, NULL));
  EXPECT(released == 1);
  lamina_c_tensor_free(a);
  lamina_c_compiled_free(compiled);
  lamina_c_request_free(of.request);
}

static int32_t frees_itself(void* user, lamina_c_status status, const char* error) {
  chain* of = (chain*)user;
  (void)status, (void)error;
  lamina_c_request_free(of->request);
  return 0;
}

static void check_free_in_callback(const char* streams) {
  lamina_c_compiled* compiled = compiled_sums(streams);
  lamina_c_tensor* a = rows(2, 1);
  chain of = {NULL, 0, 0};
  int released = 0, i;
  OK(lamina_c_request_new(compiled, &of.request));
  OK(lamina_c_request_set_input(of.request, 0, a));
  OK(lamina_c_request_set_input(of.request, 1, a));
  OK(lamina_c_request_set_callback(of.request, frees_itself, &of, NULL));
  OK(lamina_c_request_start(of.request));
  lamina_c_tensor_free(a);
  OK(lamina_c_shutdown()); /* waits until the callback has returned */
  for (i = 0; i < 3; ++i) OK(lamina_c_shutdown());
  lamina_c_compiled_free(compiled);
  (void)released;
}

static void* work(void* user) {
  const lamina_c_compiled* compiled = (const lamina_c_compiled*)user;
  lamina_c_request* request = NULL;
  int i;
  EXPECT(strcmp(lamina_c_last_error(), "") == 0); /* nothing has failed in this thread */
  OK(lamina_c_request_new(compiled, &request));
  for (i = 0; i < 200; ++i) {
    lamina_c_tensor *a = rows(1 + i % 3, (float)i), *b = rows(1 + i % 3, 1);
    const lamina_c_tensor* both[2];
    lamina_c_tensor* out = NULL;
    lamina_c_tensor_info info;
    both[0] = a;
    both[1] = b;
    info.size = sizeof info;
    OK(lamina_c_request_set_input(request, 0, a));
    OK(lamina_c_request_set_input(request, 1, b));
    OK(lamina_c_request_run(request));
    OK(lamina_c_request_read_output(request, 0, &info));
    EXPECT(info.dims[0] == 1 + i % 3 && ((float*)info.data)[3] == (float)i + 1);
    OK(lamina_c_compiled_call(compiled, both, 2, &out, 1));
    OK(lamina_c_tensor_get(out, &info));
    EXPECT(((float*)info.data)[0] == (float)i + 1);
    lamina_c_tensor_free(out);
    lamina_c_tensor_free(a);
    lamina_c_tensor_free(b);
    /* Each thread has an error of its own. */
    EXPECT(lamina_c_request_set_input(request, (size_t)(2 + i), NULL) == LAMINA_C_BAD_INPUT);
    {
      char wanted[40];
      sprintf(wanted, "input %d: the model has 2", 2 + i);
      EXPECT(strcmp(lamina_c_last_error(), wanted) == 0);
    }
  }
  lamina_c_request_free(request);
  return NULL;
}

static void check_threads(const char* streams) {
  lamina_c_compiled* compiled = compiled_sums(streams);
  pthread_t threads[8];
  size_t i;
  for (i = 0; i < 8; ++i) EXPECT(pthread_create(&threads[i], NULL, work, compiled) == 0);
  for (i = 0; i < 8; ++i) EXPECT(pthread_join(threads[i], NULL) == 0);
  lamina_c_compiled_free(compiled);
}

static int32_t refuses(void* user, const char* stage, double done) {
  EXPECT(stage[0] != '\0' && done >= 0 && done <= 1);
  return *(int*)user;
}

static void check_options(void) {
  lamina_c_model* model = sums();
  lamina_c_options* options = NULL;
  lamina_c_compiled* compiled = NULL;
  lamina_c_stop* stop = NULL;
  const char* exempt[2] = {"sum{1,2}", "other"};
  char text[8];
  size_t length = 0;
  int answer = 0, released = 0;
  OK(lamina_c_options_new(&options));
  EXPECT(lamina_c_options_set(options, "NUM_STREAM", "1") == LAMINA_C_BAD_OPTION);
  EXPECT(strstr(lamina_c_last_error(), "NUM_STREAMS") != NULL);
  EXPECT(lamina_c_options_set_list(options, "NUM_STREAMS", exempt, 2) == LAMINA_C_BAD_OPTION);
  EXPECT(lamina_c_options_set_list(options, "EXEMPTS", exempt, 2) == LAMINA_C_BAD_OPTION);
  OK(lamina_c_options_set_list(options, "EXEMPT", exempt, 2));
  OK(lamina_c_options_set_list(options, "EXEMPT", NULL, 0));
  OK(lamina_c_options_set_progress(options, refuses, &answer, NULL));
  OK(lamina_c_compile(model, options, &compiled));
  OK(lamina_c_compiled_property(compiled, "INFERENCE_PRECISION_HINT", text, sizeof text, &length));
  EXPECT(strcmp(text, "model") == 0 && length == 5);
  OK(lamina_c_compiled_property(compiled, "INFERENCE_PRECISION_HINT", text, 3, &length));
  EXPECT(strcmp(text, "mo") == 0 && length == 5);
  OK(lamina_c_compiled_property(compiled, "INFERENCE_PRECISION_HINT", NULL, 0, &length));
  lamina_c_compiled_free(compiled);
  answer = 5;
  EXPECT(lamina_c_compile(model, options, &compiled) == LAMINA_C_CALLBACK && compiled == NULL);
  EXPECT(strcmp(lamina_c_last_error(), "the progress callback returned 5") == 0);
  OK(lamina_c_options_set_progress(options, refuses, &released, count_release));
  OK(lamina_c_options_set_progress(options, NULL, NULL, NULL));
  EXPECT(released == 1);
  OK(lamina_c_stop_new(&stop));
  OK(lamina_c_options_set_stop(options, stop));
  OK(lamina_c_stop_request(stop));
  lamina_c_stop_free(stop);
  EXPECT(lamina_c_compile(model, options, &compiled) == LAMINA_C_CANCELED && compiled == NULL);
  OK(lamina_c_options_set_stop(options, NULL));
  OK(lamina_c_compile(model, options, &compiled));
  lamina_c_compiled_free(compiled);
  lamina_c_options_free(options);
  lamina_c_model_free(model);
}

static int no_extension(const lamina_host* host, lamina_registrar* registrar) {
  lamina_library about;
  memset(&about, 0, sizeof about);
  about.struct_size = sizeof about;
  about.name = "linked";
  about.version = "1";
  about.licence = "MIT";
  return host->describe(registrar, &about);
}

static void check_extension(void) {
  lamina_c_read_options options;
  lamina_c_model_bytes bytes;
  lamina_c_model* model = NULL;
  const char* names[1] = {"linked"};
  OK(lamina_c_register_extension("linked", no_extension));
  EXPECT(lamina_c_register_extension("", no_extension) == LAMINA_C_BAD_CALL);
  EXPECT(lamina_c_register_extension("nothing", NULL) == LAMINA_C_BAD_CALL);
  memset(&options, 0, sizeof options);
  memset(&bytes, 0, sizeof bytes);
  options.size = sizeof options;
  options.extensions = names;
  options.extension_count = 1;
  bytes.size = sizeof bytes;
  bytes.model = kSums;
  bytes.model_bytes = sizeof kSums - 1;
  EXPECT(lamina_c_model_from_memory(&bytes, &options, &model) == LAMINA_C_BAD_FILE && model == NULL);
  EXPECT(strcmp(lamina_c_last_error(), "linked: declares no operation and no rule") == 0);
}

int main(void) {
  static const char* const streams[] = {"0", "1", "2"};
  size_t i;
  alarm(300);
  EXPECT(strncmp(lamina_c_version(), "lamina ", 7) == 0);
  EXPECT(strcmp(lamina_c_status_name(LAMINA_C_BAD_INPUT), "bad_input") == 0);
  EXPECT(strcmp(lamina_c_status_name(-1), "unknown") == 0);
  check_ports();
  check_options();
  check_extension();
  for (i = 0; i < 3; ++i) {
    check_run(streams[i]);
    check_callback(streams[i], 0);
    check_callback(streams[i], 7);
    check_free_in_callback(streams[i]);
    check_threads(streams[i]);
  }
  OK(lamina_c_shutdown());
  if (failures == 0) puts("the C interface works in C");
  return failures == 0 ? 0 : 1;
}
