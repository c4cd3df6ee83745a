/* lamina in plain C (C99): read a model, compile it, run it. For programs in C, and for every language that
 * can call C. docs/c-api.md begins with the common case, and says what may change and what never will.
 *
 *     lamina_c_model* model;
 *     lamina_c_compiled* compiled;
 *     lamina_c_request* request;
 *     if (lamina_c_model_read("model.onnx", NULL, &model) != LAMINA_C_OK) puts(lamina_c_last_error());
 *
 * Errors. Functions that can fail return a status. After one that is not LAMINA_C_OK, lamina_c_last_error()
 * of the same thread is one line that says what was found, where, and what was wanted. Handles that the
 * function would have made are null then, and other results are unchanged. A null pointer is an error
 * wherever it is not said to mean something: LAMINA_C_BAD_CALL for the object of the call, LAMINA_C_BAD_INPUT
 * for an argument.
 *
 * Ownership. Each handle that a function gives through a pointer to a pointer belongs to the caller, who
 * frees it with the function of its type; freeing null does nothing. Objects keep alive what they need: a
 * model may be freed before what was compiled from it, a compiled model before its requests, a tensor after
 * it was set. Texts are UTF-8 and end with a zero. Those that a function gives belong to the object that they
 * come from, and stay until that is freed.
 *
 * Structs. The first member of a struct is its size, as the caller's header has it: the caller sets it before
 * the call, for results, too. Members beyond the size count as zero, and results beyond it are not written.
 * Members that this library does not know must be zero, else the call fails with LAMINA_C_UNSUPPORTED; in
 * results they become zero. Thus callers that were compiled with an older or a newer header work. Elements of
 * an array of structs are `size` bytes apart (that of the first one), as in C arrays.
 *
 * Threads. Models, compiled models, options, lists and stops may be used by several threads at the same time,
 * as long as nobody changes or frees them. A tensor may be read by several threads. Functions of a request:
 * see there. Callbacks: see their types.
 */
#ifndef LAMINA_C_H
#define LAMINA_C_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define LAMINA_C_API __attribute__((visibility("default")))
#else
#define LAMINA_C_API
#endif

/* What a function returns. lamina/error.h explains the kinds. */
typedef int32_t lamina_c_status;
enum {
  LAMINA_C_OK = 0,
  LAMINA_C_BAD_FILE = 1,
  LAMINA_C_BAD_INPUT = 2,
  LAMINA_C_BAD_OPTION = 3,
  LAMINA_C_UNSUPPORTED = 4, /* also: a struct has members set that this library does not know */
  LAMINA_C_BAD_CALL = 5,
  LAMINA_C_OUT_OF_MEMORY = 6,
  LAMINA_C_INTERNAL = 7,
  LAMINA_C_BUSY = 8,
  LAMINA_C_CANCELED = 9,
  LAMINA_C_EXTENSION = 10,
  LAMINA_C_OVER_LIMIT = 11,
  LAMINA_C_CALLBACK = 12 /* a callback of the caller returned a value other than 0 */
};

typedef struct lamina_c_tensor lamina_c_tensor;
typedef struct lamina_c_stop lamina_c_stop;
typedef struct lamina_c_options lamina_c_options;
typedef struct lamina_c_model lamina_c_model;
typedef struct lamina_c_compiled lamina_c_compiled;
typedef struct lamina_c_request lamina_c_request;
typedef struct lamina_c_list lamina_c_list;

/* Lets go of what `user` points to: called exactly once when lamina needs it no more, from any thread,
 * lamina's own included. It must not call lamina, nor wait for a thread that does. Where a function that
 * takes one fails, it is not called: what it would have let go of is still the caller's. */
typedef void (*lamina_c_release)(void* user);

/* ---- The library ---- */

/* "lamina 0.1.0" */
LAMINA_C_API const char* lamina_c_version(void);
/* The text of the last error in this thread, "" if there was none; never null. It is valid until the thread
 * calls another function of this header. */
LAMINA_C_API const char* lamina_c_last_error(void);
/* "bad_input"; "unknown" for a number that is no status. */
LAMINA_C_API const char* lamina_c_status_name(lamina_c_status status);
/* Cancels started requests and joins every thread that lamina made, see lamina::shutdown(). */
LAMINA_C_API lamina_c_status lamina_c_shutdown(void);

struct lamina_host;      /* lamina/extension.h */
struct lamina_registrar; /* lamina/extension.h */
/* Registers a library of custom layers that is linked into the program, under a name for
 * lamina_c_read_options.extensions. */
LAMINA_C_API lamina_c_status lamina_c_register_extension(const char* name,
                                                         int (*entry)(const struct lamina_host* host,
                                                                      struct lamina_registrar* registrar));

/* ---- Element types ---- */

/* The first ones have the numbers of lamina/extension.h. Types with fewer than 8 bits are packed, low bits
 * first. A boolean is a byte, 0 or 1; f16, bf16 and the types of 8 bits and fewer are their bits. */
enum {
  LAMINA_C_NO_TYPE = 0, /* not known */
  LAMINA_C_BOOLEAN = 1,
  LAMINA_C_F16 = 2,
  LAMINA_C_BF16 = 3,
  LAMINA_C_F32 = 4,
  LAMINA_C_F64 = 5,
  LAMINA_C_I8 = 6,
  LAMINA_C_I16 = 7,
  LAMINA_C_I32 = 8,
  LAMINA_C_I64 = 9,
  LAMINA_C_U8 = 10,
  LAMINA_C_U16 = 11,
  LAMINA_C_U32 = 12,
  LAMINA_C_U64 = 13,
  LAMINA_C_U1 = 14,
  LAMINA_C_I4 = 15,
  LAMINA_C_U4 = 16,
  LAMINA_C_I2 = 17,
  LAMINA_C_U2 = 18,
  LAMINA_C_F8E4M3 = 19,
  LAMINA_C_F8E4M3FNUZ = 20,
  LAMINA_C_F8E5M2 = 21,
  LAMINA_C_F8E5M2FNUZ = 22,
  LAMINA_C_F8E8M0 = 23,
  LAMINA_C_F4E2M1 = 24,
  LAMINA_C_NF4 = 25
};

typedef struct lamina_c_type_info {
  size_t size;
  const char* name; /* "f32"; stays for ever */
  int32_t bits;     /* of one element; 0 for LAMINA_C_NO_TYPE */
  int32_t is_float;
  int32_t is_integer; /* signed or unsigned, packed ones, too; not boolean */
  int32_t is_signed;  /* 1 for floats, too */
} lamina_c_type_info;

LAMINA_C_API lamina_c_status lamina_c_type_get(int32_t type, lamina_c_type_info* info);
/* The type of that name ("f32"); LAMINA_C_NO_TYPE when there is none. */
LAMINA_C_API lamina_c_status lamina_c_type_named(const char* name, int32_t* type);
/* The number of elements of a shape. LAMINA_C_BAD_INPUT for a negative size, and where the product overflows.
 * `dims` may be null if the rank is 0, here and below. */
LAMINA_C_API lamina_c_status lamina_c_element_count(size_t rank, const int64_t* dims, size_t* count);

/* ---- Tensors: arrays with an element type and a shape, row-major and dense ---- */

typedef struct lamina_c_tensor_info {
  size_t size;
  int32_t type;
  int32_t read_only; /* 1: the data must not be written */
  size_t rank;
  const int64_t* dims;
  size_t elements;
  size_t bytes; /* ceil(elements * bits / 8) */
  void* data;
  int32_t aligned; /* 1: the address is aligned for the type, as it is but for constants read from a file */
  int32_t reserved;
} lamina_c_tensor_info;

/* A tensor with memory of its own, 64-byte aligned, zeroed. */
LAMINA_C_API lamina_c_status lamina_c_tensor_new(int32_t type, size_t rank, const int64_t* dims,
                                                 lamina_c_tensor** tensor);
/* A tensor in the caller's memory; nothing is copied. `bytes` is what the memory has, at least what type and
 * shape need. The memory must stay until release(user) is called, which is when the last handle was freed and
 * no request has the tensor any more. With a null `release` it must outlive all of these. */
LAMINA_C_API lamina_c_status lamina_c_tensor_borrow(int32_t type, size_t rank, const int64_t* dims,
                                                    void* data, size_t bytes, lamina_c_release release,
                                                    void* user, lamina_c_tensor** tensor);
/* The same with memory that may only be read: such a tensor can be an input, but no memory for an output. */
LAMINA_C_API lamina_c_status lamina_c_tensor_borrow_const(int32_t type, size_t rank, const int64_t* dims,
                                                          const void* data, size_t bytes,
                                                          lamina_c_release release, void* user,
                                                          lamina_c_tensor** tensor);
/* Type, shape and memory. `dims` stay until the handle is freed, `data` as long as the memory is shared. */
LAMINA_C_API lamina_c_status lamina_c_tensor_get(const lamina_c_tensor* tensor, lamina_c_tensor_info* info);
/* Another handle of the same memory. */
LAMINA_C_API lamina_c_status lamina_c_tensor_share(const lamina_c_tensor* tensor, lamina_c_tensor** shared);
/* A copy in memory of its own. */
LAMINA_C_API lamina_c_status lamina_c_tensor_clone(const lamina_c_tensor* tensor, lamina_c_tensor** copy);
/* A tensor of another shape with as many elements in the same memory. */
LAMINA_C_API lamina_c_status lamina_c_tensor_reshape(const lamina_c_tensor* tensor, size_t rank,
                                                     const int64_t* dims, lamina_c_tensor** reshaped);
/* Another handle if the data is aligned for its type, else an aligned copy. */
LAMINA_C_API lamina_c_status lamina_c_tensor_align(const lamina_c_tensor* tensor, lamina_c_tensor** aligned);
/* `same` becomes 1 if type, shape and bytes are the same, else 0. */
LAMINA_C_API lamina_c_status lamina_c_tensor_compare(const lamina_c_tensor* a, const lamina_c_tensor* b,
                                                     int32_t* same);
/* "f32[2,3] {0, 0.5, 1, 1.5, 2, 2.5}", of many values only the first; "no tensor" for null. As much as fits
 * is written into `capacity` bytes at `buffer`, with a zero behind it; `length`, if not null, becomes that of
 * the whole text. `buffer` may be null if the capacity is 0. */
LAMINA_C_API lamina_c_status lamina_c_tensor_text(const lamina_c_tensor* tensor, char* buffer,
                                                  size_t capacity, size_t* length);
LAMINA_C_API void lamina_c_tensor_free(lamina_c_tensor* tensor);

/* ---- Stops: cancel reading and compiling ---- */

LAMINA_C_API lamina_c_status lamina_c_stop_new(lamina_c_stop** stop);
/* Ends all work that was begun with this stop, or is begun with it later: that fails with LAMINA_C_CANCELED
 * within 100 ms, or when the current call of oneDNN returns. From any thread, and from a progress callback.
 */
LAMINA_C_API lamina_c_status lamina_c_stop_request(lamina_c_stop* stop);
LAMINA_C_API lamina_c_status lamina_c_stop_requested(const lamina_c_stop* stop, int32_t* requested);
/* May be called while work uses the stop. */
LAMINA_C_API void lamina_c_stop_free(lamina_c_stop* stop);

/* ---- Options ---- */

enum { LAMINA_C_LOG_ERROR = 0, LAMINA_C_LOG_WARNING = 1, LAMINA_C_LOG_INFO = 2, LAMINA_C_LOG_DEBUG = 3 };
/* Gets one line without a line end, which stays during the call. It is called by any thread that compiles or
 * runs, by several at the same time. It may use lamina, but a call that would wait for the call that logs
 * fails with LAMINA_C_BUSY. */
typedef void (*lamina_c_log)(void* user, int32_t level, const char* line);
/* Gets the current stage ("rewriting", "choosing kernels", "packing weights") and how much of it is done,
 * from 0 to 1; 0 lets the work go on, any other value ends it with LAMINA_C_CALLBACK. It is called in each
 * thread that compiles, or that plans for new shapes, by several at the same time if several do so. The work
 * waits for it. It may use lamina as the other callbacks do. */
typedef int32_t (*lamina_c_progress)(void* user, const char* stage, double done);

/* The defaults. */
LAMINA_C_API lamina_c_status lamina_c_options_new(lamina_c_options** options);
/* Sets an option by its key ("CPU_THREADS_NUM", "PERF_COUNT", ...): lamina_c_option_list() has all of them,
 * docs/configuration.md explains them. LAMINA_C_BAD_OPTION, which names the nearest key or the accepted
 * values, changes nothing. */
LAMINA_C_API lamina_c_status lamina_c_options_set(lamina_c_options* options, const char* key,
                                                  const char* value);
/* Sets an option whose value is a list (DISABLE, EXEMPT, FORCE, ALLOWED_OPERATORS, DENIED_OPERATORS). Other
 * than in the one value of lamina_c_options_set(), elements may have commas in them. `values` may be null if
 * there are none. */
LAMINA_C_API lamina_c_status lamina_c_options_set_list(lamina_c_options* options, const char* key,
                                                       const char* const* values, size_t count);
/* A null function: nobody is told, and `user` and `release` are not used. `release` may be null; it is called
 * when no object has the function any more: models that were compiled with these options have it, too. */
LAMINA_C_API lamina_c_status lamina_c_options_set_log(lamina_c_options* options, lamina_c_log log, void* user,
                                                      lamina_c_release release);
LAMINA_C_API lamina_c_status lamina_c_options_set_progress(lamina_c_options* options,
                                                           lamina_c_progress progress, void* user,
                                                           lamina_c_release release);
/* Cancels the compilation, and work of the compiled model that is no inference. Null: nothing does. */
LAMINA_C_API lamina_c_status lamina_c_options_set_stop(lamina_c_options* options, const lamina_c_stop* stop);
/* The properties that a model would get on this machine with these options; null: the defaults. A list for
 * lamina_c_list_property(). */
LAMINA_C_API lamina_c_status lamina_c_options_properties(const lamina_c_options* options,
                                                         lamina_c_list** list);
/* Every key of lamina_c_options_set(). A list for lamina_c_list_option(). */
LAMINA_C_API lamina_c_status lamina_c_option_list(lamina_c_list** list);
LAMINA_C_API void lamina_c_options_free(lamina_c_options* options);

/* ---- Models ---- */

/* The shape that an input is to have. */
typedef struct lamina_c_input_shape {
  size_t size;
  const char* name;
  size_t rank;
  const int64_t* dims; /* -1: any size */
  /* Null: each size is as `dims` says. Else size i is any from dims[i] to most[i]; INT64_MAX: no bound. */
  const int64_t* most;
} lamina_c_input_shape;

typedef struct lamina_c_read_options {
  size_t size;
  /* Inputs of an ONNX model that have a value in it, by name: they can be set. */
  const char* const* settable;
  size_t settable_count;
  /* Libraries of custom layers: files, or names of lamina_c_register_extension(). */
  const char* const* extensions;
  size_t extension_count;
  /* The model's second file, if it is not beside the first with the same name; null: it is. Not for a model
   * in memory. */
  const char* weights;
  /* The limits of these options hold (LIMIT_MEMORY, ALLOWED_OPERATORS, EXTERNAL_FILES, ...), and nothing else
   * of them; null: the default limits. */
  const lamina_c_options* limits;
  /* Cancels the reading; null: nothing does. */
  const lamina_c_stop* stop;
  /* Shapes of inputs in place of the file's (lamina::ReadOptions::input_shapes). */
  const lamina_c_input_shape* input_shapes;
  size_t input_shape_count;
} lamina_c_read_options;

/* Data of a model in memory that lies in a file of its own. */
typedef struct lamina_c_external_data {
  size_t size;
  const char* location; /* as the tensors of an ONNX model give it */
  const void* data;
  size_t bytes;
} lamina_c_external_data;

typedef struct lamina_c_model_bytes {
  size_t size;
  const void* model;
  size_t model_bytes;
  const void* weights; /* of an IR: its .bin; of a Caffe network: its other file; may be null */
  size_t weights_bytes;
  const lamina_c_external_data* external_data; /* may be null if there are none */
  size_t external_count;
  const char* name; /* the model's name in errors; null: "model in memory" */
  /* With a function, all of these bytes are read in place, and must stay until release(user). With null they
   * are copied by the call. */
  lamina_c_release release;
  void* user;
} lamina_c_model_bytes;

/* Kinds of ports. Variables are values that a request keeps from run to run; most models have none. */
enum { LAMINA_C_INPUT = 0, LAMINA_C_OUTPUT = 1, LAMINA_C_VARIABLE = 2 };

typedef struct lamina_c_port {
  size_t size;
  const char* name;
  size_t name_length; /* the name may have zeros in it, as any file may */
  int32_t type;
  int32_t rank;                       /* -1: not even the number of dimensions is known */
  const int64_t* dims;                /* -1: known only at run time */
  const char* const* dimension_names; /* of unknown dimensions ("batch"), "" where unnamed; one for each */
  const char* text;                   /* "f32[1,3,height,width]" */
  const lamina_c_tensor* value; /* default of an input that need not be set; null: none. Not to be freed */
} lamina_c_port;

/* What lamina_c_model_find() and lamina_c_compiled_find() give when there is no port of that name. */
#define LAMINA_C_NONE ((size_t)-1)

/* Reads a model from a file: ONNX, OpenVINO IR, Caffe, TensorFlow, oneDNN Graph, or a compiled model. Null
 * options: the defaults. lamina::Model says what the errors are, and what must not happen to the file. */
LAMINA_C_API lamina_c_status lamina_c_model_read(const char* path, const lamina_c_read_options* options,
                                                 lamina_c_model** model);
/* Reads a model from memory; no files are opened. */
LAMINA_C_API lamina_c_status lamina_c_model_from_memory(const lamina_c_model_bytes* bytes,
                                                        const lamina_c_read_options* options,
                                                        lamina_c_model** model);
LAMINA_C_API lamina_c_status lamina_c_model_port_count(const lamina_c_model* model, int32_t kind,
                                                       size_t* count);
LAMINA_C_API lamina_c_status lamina_c_model_port(const lamina_c_model* model, int32_t kind, size_t index,
                                                 lamina_c_port* port);
/* The index of the port of that name, or LAMINA_C_NONE. */
LAMINA_C_API lamina_c_status lamina_c_model_find(const lamina_c_model* model, int32_t kind, const char* name,
                                                 size_t* index);
/* "ONNX", "OpenVINO IR", "Caffe", "TensorFlow", "oneDNN Graph" */
LAMINA_C_API lamina_c_status lamina_c_model_format(const lamina_c_model* model, const char** format);
/* Texts about the model in its file, by key. A list for lamina_c_list_entry(). */
LAMINA_C_API lamina_c_status lamina_c_model_metadata(const lamina_c_model* model, lamina_c_list** list);
/* Oddities in the file that the reader could cope with, and unsupported operators: a line each. Lists for
 * lamina_c_list_text(). */
LAMINA_C_API lamina_c_status lamina_c_model_warnings(const lamina_c_model* model, lamina_c_list** list);
LAMINA_C_API lamina_c_status lamina_c_model_unsupported(const lamina_c_model* model, lamina_c_list** list);
/* The outputs if inputs have these shapes, by the layers' rules alone; an input that is not named keeps its
 * own. A size is -1 where it depends on values. A list for lamina_c_list_port(). */
LAMINA_C_API lamina_c_status lamina_c_model_output_ports(const lamina_c_model* model,
                                                         const lamina_c_input_shape* shapes, size_t count,
                                                         lamina_c_list** list);
LAMINA_C_API void lamina_c_model_free(lamina_c_model* model);

/* ---- Compiled models ---- */

typedef struct lamina_c_compiled_info {
  size_t size;
  int32_t streams;         /* requests that run at the same time; 0: the callers' threads do the work */
  int32_t threads;         /* of one stream */
  size_t optimal_requests; /* requests that keep all streams busy */
  size_t weight_memory;    /* bytes of packed weights so far */
  size_t plans;            /* in memory, each for other input shapes, or for a part of the model */
} lamina_c_compiled_info;

/* Makes a model ready for this processor. Null options: the defaults. Later changes of the options do not
 * matter.
 */
LAMINA_C_API lamina_c_status lamina_c_compile(const lamina_c_model* model, const lamina_c_options* options,
                                              lamina_c_compiled** compiled);
LAMINA_C_API lamina_c_status lamina_c_compiled_port_count(const lamina_c_compiled* compiled, int32_t kind,
                                                          size_t* count);
LAMINA_C_API lamina_c_status lamina_c_compiled_port(const lamina_c_compiled* compiled, int32_t kind,
                                                    size_t index, lamina_c_port* port);
LAMINA_C_API lamina_c_status lamina_c_compiled_find(const lamina_c_compiled* compiled, int32_t kind,
                                                    const char* name, size_t* index);
/* The outputs for inputs of these shapes, found without running: for input i, dims[i] has ranks[i] sizes. A
 * size is -1 where it depends on values. A list for lamina_c_list_port(). */
LAMINA_C_API lamina_c_status lamina_c_compiled_output_ports(const lamina_c_compiled* compiled, size_t count,
                                                            const size_t* ranks, const int64_t* const* dims,
                                                            lamina_c_list** list);
/* Plans for inputs of these shapes now, so that the first run with them need not, and
 * lamina_c_compiled_save() writes the plan. */
LAMINA_C_API lamina_c_status lamina_c_compiled_plan(const lamina_c_compiled* compiled, size_t count,
                                                    const size_t* ranks, const int64_t* const* dims);
LAMINA_C_API lamina_c_status lamina_c_compiled_get(const lamina_c_compiled* compiled,
                                                   lamina_c_compiled_info* info);
/* The value of a property (an option in use, or a fact) by its key, as lamina_c_tensor_text() gives texts. */
LAMINA_C_API lamina_c_status lamina_c_compiled_property(const lamina_c_compiled* compiled, const char* key,
                                                        char* buffer, size_t capacity, size_t* length);
/* Lists for lamina_c_list_property() and lamina_c_list_fusion(). */
LAMINA_C_API lamina_c_status lamina_c_compiled_properties(const lamina_c_compiled* compiled,
                                                          lamina_c_list** list);
LAMINA_C_API lamina_c_status lamina_c_compiled_fusions(const lamina_c_compiled* compiled,
                                                       lamina_c_list** list);
/* What became of each layer, and why: the JSON document of `lamina explain --json`, as lamina_c_tensor_text()
 * gives texts. It is planned for inputs of these shapes (for input i, dims[i] has ranks[i] sizes); count 0:
 * for the sizes in the file. Nothing runs. A call that only asks for the length does the same work as one
 * with a buffer. Thread-safe. */
LAMINA_C_API lamina_c_status lamina_c_compiled_explain(const lamina_c_compiled* compiled, size_t count,
                                                       const size_t* ranks, const int64_t* const* dims,
                                                       char* buffer, size_t capacity, size_t* length);
/* Writes the compiled model into a file that lamina_c_model_read() opens, completely or not at all. */
LAMINA_C_API lamina_c_status lamina_c_compiled_save(const lamina_c_compiled* compiled, const char* path);
/* Convenience: one inference on a request of an internal pool; variables begin with their initial values.
 * There must be as many inputs and outputs as the model has; an input may be null if it has a default. The
 * outputs are tensors that belong to the caller. Thread-safe. */
LAMINA_C_API lamina_c_status lamina_c_compiled_call(const lamina_c_compiled* compiled,
                                                    const lamina_c_tensor* const* inputs, size_t input_count,
                                                    lamina_c_tensor** outputs, size_t output_count);
LAMINA_C_API void lamina_c_compiled_free(lamina_c_compiled* compiled);

/* ---- Requests: one inference at a time ---- */

/* While an inference is under way (queued, running, or its callback has not returned) every function but
 * wait, wait_for, cancel and status fails with LAMINA_C_BUSY and changes nothing. These four may be called by
 * any thread, all others by one thread at a time. In the request's own callback setters and outputs work, and
 * start begins the next inference. */
enum {
  LAMINA_C_REQUEST_IDLE = 0,
  LAMINA_C_REQUEST_QUEUED = 1,
  LAMINA_C_REQUEST_RUNNING = 2,
  LAMINA_C_REQUEST_DONE = 3,
  LAMINA_C_REQUEST_FAILED = 4,
  LAMINA_C_REQUEST_CANCELED = 5
};

/* Called once for each lamina_c_request_start() that returned LAMINA_C_OK, when its inference has ended: with
 * LAMINA_C_OK and "", or with its error and text, which stays during the call. It is called on a thread of
 * lamina (without streams: the caller's), never inside cancel or free. It may use this and other requests,
 * run and wait of others included, and may free this one. If it returns a value other than 0, that is logged,
 * and lamina_c_request_wait() fails with LAMINA_C_CALLBACK. */
typedef int32_t (*lamina_c_done)(void* user, lamina_c_status status, const char* error);

LAMINA_C_API lamina_c_status lamina_c_request_new(const lamina_c_compiled* compiled,
                                                  lamina_c_request** request);
/* Sets an input. The tensor's memory is shared, not copied, and only read; it must not change during a run. A
 * null tensor releases the one that was set before. */
LAMINA_C_API lamina_c_status lamina_c_request_set_input(lamina_c_request* request, size_t index,
                                                        const lamina_c_tensor* tensor);
LAMINA_C_API lamina_c_status lamina_c_request_set_input_named(lamina_c_request* request, const char* name,
                                                              const lamina_c_tensor* tensor);
/* Sets the memory for an output, of its type and shape; with null the request uses its own memory again. */
LAMINA_C_API lamina_c_status lamina_c_request_set_output(lamina_c_request* request, size_t index,
                                                         const lamina_c_tensor* tensor);
LAMINA_C_API lamina_c_status lamina_c_request_set_output_named(lamina_c_request* request, const char* name,
                                                               const lamina_c_tensor* tensor);
/* Runs one inference in the calling thread, with the helpers of a stream. Calls no lamina_c_done. */
LAMINA_C_API lamina_c_status lamina_c_request_run(lamina_c_request* request);
/* The same with a time limit, the queue before the streams included: LAMINA_C_OVER_LIMIT when it is over. */
LAMINA_C_API lamina_c_status lamina_c_request_run_for(lamina_c_request* request, int64_t nanoseconds);
/* Queues one inference and returns at once. Without streams it runs the inference before it returns. */
LAMINA_C_API lamina_c_status lamina_c_request_start(lamina_c_request* request);
/* Waits until no inference is under way; fails with the error of the last one. */
LAMINA_C_API lamina_c_status lamina_c_request_wait(lamina_c_request* request);
/* The same, not longer than that time. `done` becomes 0 if the inference is still under way then, else 1. */
LAMINA_C_API lamina_c_status lamina_c_request_wait_for(lamina_c_request* request, int64_t nanoseconds,
                                                       int32_t* done);
/* Cancels the inference, if one is under way, and returns at once. The inference ends with LAMINA_C_CANCELED.
 */
LAMINA_C_API lamina_c_status lamina_c_request_cancel(lamina_c_request* request);
/* A null function: no callback, and `user` and `release` are not used. `release` may be null. */
LAMINA_C_API lamina_c_status lamina_c_request_set_callback(lamina_c_request* request, lamina_c_done callback,
                                                           void* user, lamina_c_release release);
/* One of LAMINA_C_REQUEST_... */
LAMINA_C_API lamina_c_status lamina_c_request_status(const lamina_c_request* request, int32_t* status);
/* Switches the timing of layers on or off, from the next inference on. */
LAMINA_C_API lamina_c_status lamina_c_request_set_profile(lamina_c_request* request, int32_t on);
/* Times of layers: over all timed inferences, for lamina_c_list_counter(), and of the last run, for
 * lamina_c_list_layer_time(). */
LAMINA_C_API lamina_c_status lamina_c_request_counters(const lamina_c_request* request, lamina_c_list** list);
LAMINA_C_API lamina_c_status lamina_c_request_layer_times(const lamina_c_request* request,
                                                          lamina_c_list** list);
/* The result of the last run as a tensor, which shares the request's memory: the next run overwrites it
 * (lamina_c_tensor_clone() keeps it). */
LAMINA_C_API lamina_c_status lamina_c_request_output(const lamina_c_request* request, size_t index,
                                                     lamina_c_tensor** tensor);
LAMINA_C_API lamina_c_status lamina_c_request_output_named(const lamina_c_request* request, const char* name,
                                                           lamina_c_tensor** tensor);
/* Takes a result of the last run out of the request, without a copy: the next run writes into new memory.
 * Memory that lamina_c_request_set_output() gave stays set. Until the next run the result is not there any
 * more (LAMINA_C_BAD_CALL). */
LAMINA_C_API lamina_c_status lamina_c_request_take_output(lamina_c_request* request, size_t index,
                                                          lamina_c_tensor** tensor);
LAMINA_C_API lamina_c_status lamina_c_request_take_output_named(lamina_c_request* request, const char* name,
                                                                lamina_c_tensor** tensor);
/* A result as lamina_c_request_output() gives it, without making a tensor; nothing is allocated. `dims` and
 * `data` are valid until the request runs again, is changed or freed. */
LAMINA_C_API lamina_c_status lamina_c_request_read_output(const lamina_c_request* request, size_t index,
                                                          lamina_c_tensor_info* info);
/* A copy of a variable's value; sets a variable to a copy; gives all variables their initial values again. */
LAMINA_C_API lamina_c_status lamina_c_request_variable(const lamina_c_request* request, const char* name,
                                                       lamina_c_tensor** tensor);
LAMINA_C_API lamina_c_status lamina_c_request_set_variable(lamina_c_request* request, const char* name,
                                                           const lamina_c_tensor* tensor);
LAMINA_C_API lamina_c_status lamina_c_request_reset_state(lamina_c_request* request);
/* Bytes of memory between layers that the last run used in its stream. */
LAMINA_C_API lamina_c_status lamina_c_request_memory(const lamina_c_request* request, size_t* bytes);
/* Cancels an inference that is under way and waits for its end, callback included; in the request's own
 * callback it returns at once. */
LAMINA_C_API void lamina_c_request_free(lamina_c_request* request);

/* ---- Lists: what a function found, as it was then ---- */

typedef struct lamina_c_entry {
  size_t size;
  const char* key;
  size_t key_length;
  const char* value;
  size_t value_length;
} lamina_c_entry;

typedef struct lamina_c_option {
  size_t size;
  const char* key;     /* "CPU_THREADS_NUM" */
  const char* values;  /* the accepted values, in words */
  const char* help;    /* a sentence */
  const char* setting; /* the first of the keys that set the same thing; `key` where there is no other */
} lamina_c_option;

typedef struct lamina_c_property {
  size_t size;
  const char* key;
  const char* value;  /* what is used */
  const char* asked;  /* what was given; "" when nothing was */
  const char* reason; /* why they differ, or why the machine decided so */
  int32_t read_only;
  int32_t reserved;
} lamina_c_property;

typedef struct lamina_c_fusion {
  size_t size;
  const char* rule; /* its name for DISABLE */
  size_t count;     /* changes that it made to the graph */
} lamina_c_fusion;

typedef struct lamina_c_layer_time {
  size_t size;
  const char* name; /* of the layer that remained after fusing */
  const char* kernel;
  double microseconds;
} lamina_c_layer_time;

enum { LAMINA_C_LAYER_EXECUTED = 0, LAMINA_C_LAYER_OPTIMIZED_OUT = 1, LAMINA_C_LAYER_NOT_RUN = 2 };
/* lamina::LayerCounter explains the members. */
typedef struct lamina_c_counter {
  size_t size;
  const char* name;
  const char* type;
  const char* kernel;
  const char* into; /* the layer that does its work; "" if none */
  int32_t status;   /* one of LAMINA_C_LAYER_... */
  int32_t reserved;
  uint64_t runs;
  double last_us;
  double average_us;
  double min_us;
  double cpu_us;
} lamina_c_counter;

LAMINA_C_API lamina_c_status lamina_c_list_size(const lamina_c_list* list, size_t* size);
/* Element `index`. LAMINA_C_BAD_CALL for a list of something else, LAMINA_C_BAD_INPUT beyond the end. */
LAMINA_C_API lamina_c_status lamina_c_list_text(const lamina_c_list* list, size_t index, const char** text);
LAMINA_C_API lamina_c_status lamina_c_list_entry(const lamina_c_list* list, size_t index,
                                                 lamina_c_entry* entry);
LAMINA_C_API lamina_c_status lamina_c_list_option(const lamina_c_list* list, size_t index,
                                                  lamina_c_option* option);
LAMINA_C_API lamina_c_status lamina_c_list_property(const lamina_c_list* list, size_t index,
                                                    lamina_c_property* property);
LAMINA_C_API lamina_c_status lamina_c_list_fusion(const lamina_c_list* list, size_t index,
                                                  lamina_c_fusion* fusion);
LAMINA_C_API lamina_c_status lamina_c_list_layer_time(const lamina_c_list* list, size_t index,
                                                      lamina_c_layer_time* time);
LAMINA_C_API lamina_c_status lamina_c_list_counter(const lamina_c_list* list, size_t index,
                                                   lamina_c_counter* counter);
LAMINA_C_API lamina_c_status lamina_c_list_port(const lamina_c_list* list, size_t index, lamina_c_port* port);
LAMINA_C_API void lamina_c_list_free(lamina_c_list* list);

#ifdef __cplusplus
}
#endif

#endif /* LAMINA_C_H */
