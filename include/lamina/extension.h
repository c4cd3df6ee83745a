/* Custom layers for lamina: the interface between the engine and a library of operations, in plain C (C99).
 *
 * A library needs this header and nothing to link with. It exports one function, lamina_extension(), which
 * gets a table of the engine's functions and declares operations and rules. docs/extensions.md explains
 * it step by step; lamina/extension.hpp makes it shorter in C++.
 *
 * Compatibility. Every struct begins with its size in the header that its maker was compiled with. Members
 * beyond that size count as zero, and zero means "not provided"; a reader ignores members that it does not
 * know. So libraries that were built with an older or a newer header load. A library asks for a feature of
 * the engine by name: host->query("parallel_for"). Numbers of this header never change their meaning, and
 * members are only added at the end.
 *
 * Elements of an array of structs are struct_size bytes apart (that of the first one), as in C arrays. Texts
 * are UTF-8 and end with a zero. A declaration and all that it points to must stay while the library is
 * loaded.
 *
 * Threads. Declared functions are called from any thread, several at the same time; lamina_extension() itself
 * is called by one thread at a time. The instance from create() is shared by all runs of a node: run() must
 * not write to it.
 *
 * Errors. A function returns LAMINA_OK, or another value after host->fail(context, "why"). It must not throw
 * exceptions; one that it throws becomes an error. The engine adds the node's name, the operation and the
 * library.
 */
#ifndef LAMINA_EXTENSION_H
#define LAMINA_EXTENSION_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define LAMINA_EXTENSION_EXPORT __attribute__((visibility("default")))
#else
#define LAMINA_EXTENSION_EXPORT
#endif

typedef int32_t lamina_status;
enum { LAMINA_OK = 0, LAMINA_FAILED = 1 };

/* Element types. A boolean is a byte, 0 or 1; f16 and bf16 are their bits. */
enum {
  LAMINA_NO_TYPE = 0,
  LAMINA_BOOLEAN = 1,
  LAMINA_F16 = 2,
  LAMINA_BF16 = 3,
  LAMINA_F32 = 4,
  LAMINA_F64 = 5,
  LAMINA_I8 = 6,
  LAMINA_I16 = 7,
  LAMINA_I32 = 8,
  LAMINA_I64 = 9,
  LAMINA_U8 = 10,
  LAMINA_U16 = 11,
  LAMINA_U32 = 12,
  LAMINA_U64 = 13,
  LAMINA_ANY_TYPE = 255 /* in a configuration: any that the port takes */
};
/* In a configuration: the type that input k has. */
#define LAMINA_TYPE_OF_INPUT(k) (1024 + (k))

/* Layouts of tensors in memory. Axis 1 has the channels. Blocked layouts have the channels in blocks of 8 or
 * 16, with the index in a block innermost: [N, ceil(C / 8), spatial..., 8]. The elements after the last
 * channel are zero when a kernel reads them; a kernel that writes leaves them alone, or makes them zero.
 * Layouts other than plain need rank 3 or more. */
enum {
  LAMINA_PLAIN = 0,         /* N, C, H, W */
  LAMINA_CHANNELS_LAST = 1, /* N, H, W, C */
  LAMINA_BLOCKED_8 = 2,
  LAMINA_BLOCKED_16 = 3,
  LAMINA_ANY_LAYOUT = 255 /* in a configuration: any; lamina_tensor::layout says which one */
};
/* In a configuration: the layout that input k has. */
#define LAMINA_LAYOUT_OF_INPUT(k) (1024 + (k))

/* An unknown size has bounds, from low to high. */
#define LAMINA_UNBOUNDED INT64_MAX

/* The context of a call, for the functions of lamina_host. */
typedef struct lamina_context lamina_context;
typedef struct lamina_registrar lamina_registrar;
typedef void (*lamina_function)(void);

/* A tensor in memory, 64-byte aligned where the engine made it, else aligned for its type. */
typedef struct lamina_tensor {
  size_t struct_size;
  void* data;
  size_t bytes;
  int32_t type;
  int32_t layout;
  int32_t rank;
  int32_t reserved;
  const int64_t* dims;    /* in the model's order (N, C, H, W), whatever the layout */
  const int64_t* strides; /* in elements, in the order of dims; null for blocked layouts */
  uint64_t elements;
} lamina_tensor;

/* What is known about a tensor before a run. */
typedef struct lamina_value {
  size_t struct_size;
  int32_t type;        /* LAMINA_NO_TYPE: not known */
  int32_t rank;        /* -1: not known */
  const int64_t* low;  /* a size is known where low[i] == high[i] */
  const int64_t* high; /* LAMINA_UNBOUNDED: no bound */
  /* Unknown sizes with the same number, other than 0, are equal; the numbers are those of one call. May be
   * null. */
  const uint64_t* symbols;
  const lamina_tensor* constant; /* plain; null if unknown, in infer() also from 4096 bytes on */
} lamina_value;

/* A node of the model, for functions that are called before it runs. */
typedef struct lamina_node {
  size_t struct_size;
  lamina_context* context;
  size_t inputs;
  const lamina_value* const* in; /* null: an optional input that is absent */
  size_t outputs;
  const lamina_value* const* out; /* null in infer(); the number of outputs is known */
  int32_t configuration;          /* index among those declared; -1: none is chosen */
  int32_t reserved;
  void* instance; /* from create(); null before that, and without create() */
} lamina_node;

/* A chain of element-wise operators that the engine has fused into this operation: run() applies it to
 * output 0. apply() changes elements [first, first + count) of the output, counted in the order of memory
 * (there are no stages in blocked layouts): `values` points to the first of them, in the output itself or in
 * a buffer. It must be applied to each element exactly once. */
typedef struct lamina_stages {
  size_t struct_size;
  void (*apply)(const struct lamina_stages* stages, float* values, int64_t first, int64_t count);
} lamina_stages;

/* A run of a kernel. */
typedef struct lamina_call {
  size_t struct_size;
  lamina_context* context;
  int32_t configuration;
  int32_t reserved;
  void* instance;
  size_t inputs;
  const lamina_tensor* const* in; /* null: absent, or a constant that is in the prepared block */
  size_t outputs;
  const lamina_tensor* const* out; /* data is null with LAMINA_SHAPE_AFTER_RUN: call host->allocate_output */
  void* scratch;                   /* as many bytes as scratch_bytes() said; not initialised */
  size_t scratch_bytes;
  const void* prepared; /* the block from prepare(); null without it */
  size_t prepared_bytes;
  const lamina_stages* stages; /* null: none */
} lamina_call;

/* Ports. */
enum {
  LAMINA_OPTIONAL = 1, /* may be absent */
  LAMINA_VARIADIC = 2, /* only the last port: any number of tensors, from 0 on */
  LAMINA_CONSTANT = 4  /* a constant of the model (weights): prepare() gets it, and run() does not */
};
typedef struct lamina_port {
  size_t struct_size;
  const char* name;
  const char* doc;
  uint32_t flags;
  uint32_t reserved;
  const int32_t* types; /* accepted types, LAMINA_NO_TYPE after the last; null: f32 */
} lamina_port;

/* Attributes. Values in text: "0.5", "true", "1,2,3", "mean". */
enum {
  LAMINA_BOOL = 1,
  LAMINA_INT = 2,
  LAMINA_FLOAT = 3,
  LAMINA_STRING = 4,
  LAMINA_INTS = 5,
  LAMINA_FLOATS = 6,
  LAMINA_STRINGS = 7, /* in text without commas in them */
  LAMINA_TENSOR = 8   /* ONNX only */
};
typedef struct lamina_attribute {
  size_t struct_size;
  const char* name;
  const char* doc;
  int32_t kind;
  int32_t reserved;
  const char* value; /* the default; null: every node must have the attribute */
} lamina_attribute;

/* A combination of types and layouts that a kernel accepts. Lists have an entry per declared port (the entry
 * of a variadic port is for all of its tensors). */
typedef struct lamina_configuration {
  size_t struct_size;
  const char* name;           /* "channels_last_f32"; counters and explain show it */
  const int32_t* in_types;    /* null: LAMINA_ANY_TYPE for each */
  const int32_t* in_layouts;  /* null: LAMINA_PLAIN for each */
  const int32_t* out_types;   /* null: LAMINA_ANY_TYPE */
  const int32_t* out_layouts; /* null: for each the layout of input 0 if the ranks are equal, else plain */
  const int32_t* in_place;    /* pairs: input, output. The output may be the memory of the input */
  size_t in_place_pairs;
  double nanoseconds; /* estimated, per element of output 0, on one thread; 0: like a pass over memory */
  lamina_status (*run)(const lamina_call* call);     /* null: the operation's run() */
  lamina_status (*accepts)(const lamina_node* node); /* null: all nodes; host->fail refuses a node */
} lamina_configuration;

/* Operations. */
enum {
  LAMINA_SHAPE_AFTER_RUN =
      1,                   /* output shapes depend on values: run() makes outputs by host->allocate_output */
  LAMINA_IMPURE = 2,       /* results differ for the same inputs: never folded or merged */
  LAMINA_TAKES_STAGES = 4, /* run() applies lamina_call::stages to an f32 output 0 */
  LAMINA_ALLOWS_BF16 = 8,  /* may be run in bf16 where the model asks for it; otherwise never */
  LAMINA_ALLOWS_INT8 = 16  /* `lamina ops` shows it; no other effect */
};
typedef struct lamina_operation {
  size_t struct_size;
  const char* domain; /* as in the model: ONNX's domain, the "version" of a layer of OpenVINO IR */
  const char* type;
  const char* doc;
  int64_t since_version; /* of the domain's operator set; 0 counts as 1 */
  uint32_t flags;
  int32_t accumulates; /* the type of sums; LAMINA_NO_TYPE: not declared */
  const lamina_port* in;
  size_t inputs;
  const lamina_port* out;
  size_t outputs;
  const lamina_attribute* attribute;
  size_t attributes;
  const lamina_configuration* configuration; /* none: one that takes any types, plain */
  size_t configurations;
  /* Sets types and shapes of the outputs by host->set_output, from what is known about the inputs. Null: each
   * output has the shape of input 0, and its type unless the output's port has one type only. */
  lamina_status (*infer)(const lamina_node* node);
  /* Makes the data that run() needs of a node, once for each plan: shapes are known (for element-wise
   * operations it is called wherever the function runs, and a rank may be -1). Null: no data. */
  lamina_status (*create)(const lamina_node* node, void** instance);
  void (*destroy)(void* instance);
  /* Bytes of scratch memory that a run needs; the engine provides it, 64-byte aligned. Null: none. */
  lamina_status (*scratch_bytes)(const lamina_node* node, size_t* bytes);
  /* Copies constants into the kernel's order, once for each compiled model: bytes that can be copied and
   * stored. Constant inputs are all in node->in[i]->constant. Null: run() gets the constants themselves. */
  lamina_status (*prepared_bytes)(const lamina_node* node, size_t* bytes);
  lamina_status (*prepare)(const lamina_node* node, void* block);
  lamina_status (*run)(const lamina_call* call);
  /* A simple reference of run(): every tensor is plain, with any types that the ports accept. Null: run() is
   * used. */
  lamina_status (*reference)(const lamina_call* call);
  /* For an operation that computes element i of its only output from element i of its first input: f32, in
   * order; `in` may be `out`. The operation can then be fused into convolutions and with other element-wise
   * operators. run() may be null then. */
  void (*elementwise)(const void* instance, const float* in, float* out, size_t count);
  double elementwise_nanoseconds; /* estimate per element; 0: 0.1 ns */
  /* Tolerance of results against the reference: |a - b| <= absolute + relative * |b|. Both 0: 1e-4 and 1e-4.
   */
  double absolute, relative;
  /* Saves an instance that takes long to make (tables, measurements) as bytes: compiled models keep them, and
   * load() makes an instance from them instead of create(), for the same node in the same configuration.
   * saved_bytes() and save() get the instance in node->instance; scratch_bytes() then gets none. Either all
   * three functions are set or none; not for element-wise operations. */
  lamina_status (*saved_bytes)(const lamina_node* node, size_t* bytes);
  lamina_status (*save)(const lamina_node* node, void* block);
  lamina_status (*load)(const lamina_node* node, const void* block, size_t bytes, void** instance);
  /* Nodes that "lamina check" tries without a model, a text each, null after the last: inputs by their ports
   * and attributes, "x=f32[2,6,3,5] weights=f32[6] axes=i64[2](2,3) scale=0.5". Values in parentheses make a
   * constant; an optional input that is not named is absent; a variadic one may be named several times. None:
   * some usual shapes are tried. */
  const char* const* samples;
} lamina_operation;

/* Rules: a pattern of nodes and their replacement, in text, statements separated by ";" or line ends:
 *
 *   pattern:      s = Sigmoid(x); y = Multiply(x, s)
 *   replacement:  y = com.example.Gate(x) scale=1
 *
 * Operators are lamina's ("lamina ops" lists them) or a library's (DOMAIN.TYPE). A name that no statement of
 * the pattern makes stands for any value, and the same name for the same value; `const c` stands for a
 * constant, a number for a constant with one element of that value; in a replacement `_` is an absent input.
 * Attributes that the node must have follow the operator, as NAME=VALUE (lists in brackets, texts with spaces
 * in quotes). The last statement of the pattern makes the value that is replaced by that of the replacement's
 * last statement. Other values of the pattern must not be read elsewhere, and no layer may have inputs that
 * the pattern does not list. Multiply and other commutative operators match in either order. In the
 * replacement an attribute may get the value of a constant with one element (scale=$c) or an attribute of the
 * pattern (alpha=$s.alpha); a number has the type of the operand beside it. */
enum {
  LAMINA_BEFORE_FOLD = 1,   /* on the graph as it was read */
  LAMINA_AFTER_FOLD = 2,    /* constants are folded, exporters' idioms not yet recognised */
  LAMINA_BEFORE_INT8 = 3,   /* quantise steps are still operators */
  LAMINA_BEFORE_FUSING = 4, /* activations still stand after their convolutions */
  LAMINA_AFTER_FUSING = 5   /* operators that were not fused */
};
/* Argument of a rule's accepts(): the values that the pattern's names stand for. */
typedef struct lamina_match {
  size_t struct_size;
  lamina_context* context;
  size_t values;
  const char* const* names;
  const lamina_value* const* value;
} lamina_match;
typedef struct lamina_rule {
  size_t struct_size;
  const char* name; /* its name for --disable: "com.example.gate" */
  const char* doc;
  int32_t stage;
  int32_t reserved;
  const char* pattern;
  const char* replacement;
  lamina_status (*accepts)(const lamina_match* match); /* null: always; refuses by host->fail */
} lamina_rule;

/* Description of a library. */
enum { LAMINA_NEVER_UNLOAD = 1 /* it stays in the process when the last model that uses it is destroyed */ };
typedef struct lamina_library {
  size_t struct_size;
  const char* name;
  const char* version;
  const char* licence;
  const char* const* needs; /* features (names for lamina_host::query) that it needs; null after the last */
  uint32_t flags;
  uint32_t reserved;
} lamina_library;

/* The engine. The table stays while the library is loaded. */
typedef struct lamina_host {
  size_t struct_size;
  const char* engine; /* "lamina 0.1.0" */
  /* The member of that name ("parallel_for"), or a non-null value for a member of another struct
   * ("lamina_operation.elementwise"); null if this engine does not have it. */
  lamina_function (*query)(const char* name);

  /* For lamina_extension(): declare the library, an operation, a rule. A wrong declaration gives
   * LAMINA_FAILED, and an error when the library is loaded. */
  lamina_status (*describe)(lamina_registrar* registrar, const lamina_library* library);
  lamina_status (*add_operation)(lamina_registrar* registrar, const lamina_operation* operation);
  lamina_status (*add_rule)(lamina_registrar* registrar, const lamina_rule* rule);

  /* For all functions: reports an error, a line of text. Returns LAMINA_FAILED. The first error counts.
   * Thread-safe. */
  lamina_status (*fail)(lamina_context* context, const char* text);

  /* Attributes of the node, as declared. The values are valid until the node is destroyed (create()) or the
   * call ends. LAMINA_FAILED, after fail(), if there is no attribute of that name and kind. */
  lamina_status (*get_bool)(lamina_context* context, const char* name, int32_t* value);
  lamina_status (*get_int)(lamina_context* context, const char* name, int64_t* value);
  lamina_status (*get_float)(lamina_context* context, const char* name, double* value);
  lamina_status (*get_string)(lamina_context* context, const char* name, const char** value);
  lamina_status (*get_ints)(lamina_context* context, const char* name, const int64_t** values, size_t* count);
  lamina_status (*get_floats)(lamina_context* context, const char* name, const double** values,
                              size_t* count);
  lamina_status (*get_strings)(lamina_context* context, const char* name, const char* const** values,
                               size_t* count);
  lamina_status (*get_tensor)(lamina_context* context, const char* name, const lamina_tensor** value);

  /* For infer(): sets type, rank, low, high and symbols of an output; symbols may be null. */
  lamina_status (*set_output)(lamina_context* context, size_t output, const lamina_value* value);
  /* For run() of an operation with LAMINA_SHAPE_AFTER_RUN: allocates an output, once for each. Null if it
   * failed. */
  void* (*allocate_output)(lamina_context* context, size_t output, int32_t rank, const int64_t* dims);

  /* For run(): calls body(data, begin, end, slot) for ranges that cover [0, count), on the threads of the
   * stream, `grain` units or more at a time; 0 <= slot < thread_count, and a slot has one range at a time.
   * Returns when all are done; LAMINA_FAILED when a body called fail() or threw. */
  lamina_status (*parallel_for)(lamina_context* context, int64_t count, int64_t grain,
                                void (*body)(void* data, int64_t begin, int64_t end, int32_t slot),
                                void* data);
  int32_t (*thread_count)(lamina_context* context);
} lamina_host;

/* The one function that a library exports. */
LAMINA_EXTENSION_EXPORT int lamina_extension(const lamina_host* host, lamina_registrar* registrar);

#ifdef __cplusplus
}
#endif

#endif /* LAMINA_EXTENSION_H */
