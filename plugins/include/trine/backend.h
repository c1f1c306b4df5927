/* The Trine backend ABI: everything a backend plugin needs to know about its host.
 *
 * C11; needs only stddef and stdint. docs/plugin-abi.md explains each part at length;
 * plugins/example is a complete backend. Rules that hold everywhere:
 *
 *  - Structs grow only at the end. A struct passed by pointer starts with `struct_size`, which its
 *    writer sets to its own sizeof; the other side reads or writes no byte beyond it. Elements of
 *    arrays have no size member: the struct that holds the array holds the stride in bytes. A host
 *    sets a member to a value other than 0, or sets a flag, only if the plugin's abi_version knows
 *    that member or flag.
 *  - Enumerator values are never renumbered or reused. 0 is never a valid kind.
 *  - Fallible calls return trine_status and may fill `err` (caller-owned, may be NULL).
 *  - No exception, longjmp, signal, exit or abort leaves a plugin. Neither side frees memory of the
 *    other: what _open/_alloc/_import/_create returned goes back to the same plugin through
 *    _close/_free/_destroy, children before parents.
 *  - Pointers inside argument structs are valid during the call only, unless said otherwise.
 *  - "Threads" in docs/plugin-abi.md says which calls may run at the same time. */
#ifndef TRINE_BACKEND_H_
#define TRINE_BACKEND_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The major version stays 1, and 1.x is append-only: "Versions" in docs/plugin-abi.md. */
#define TRINE_ABI_MAJOR 1u
#define TRINE_ABI_MINOR 0u
#define TRINE_ABI_VERSION ((TRINE_ABI_MAJOR << 16) | TRINE_ABI_MINOR)

/* The version of the arithmetic contract (docs/numerics.md) that this header belongs to. */
#define TRINE_NUMERICS_VERSION 1u

#if defined(_WIN32)
#define TRINE_EXPORT __declspec(dllexport)
#else
#define TRINE_EXPORT __attribute__((visibility("default")))
#endif

/* ---- Status: the numbers of absl::StatusCode ------------------------------------------------ */

typedef int32_t trine_status;
enum {
  TRINE_OK = 0,
  TRINE_CANCELLED = 1,
  TRINE_UNKNOWN = 2,
  TRINE_INVALID_ARGUMENT = 3,
  TRINE_DEADLINE_EXCEEDED = 4,
  TRINE_NOT_FOUND = 5,
  TRINE_ALREADY_EXISTS = 6,
  TRINE_PERMISSION_DENIED = 7,
  TRINE_RESOURCE_EXHAUSTED = 8, /* out of memory: nothing changed, the device still works */
  TRINE_FAILED_PRECONDITION = 9,
  TRINE_ABORTED = 10,
  TRINE_OUT_OF_RANGE = 11,
  TRINE_UNIMPLEMENTED = 12, /* refused; op_query tells why */
  TRINE_INTERNAL = 13,
  TRINE_UNAVAILABLE = 14, /* from a call: its device is lost; every later call returns it too */
  TRINE_DATA_LOSS = 15
};

/* A sentence for a person, NUL-terminated. This struct never grows. */
typedef struct trine_error {
  char message[256];
} trine_error;

/* ---- Handles: opaque, owned by the plugin ---------------------------------------------------- */

typedef struct trine_backend trine_backend;
typedef struct trine_device trine_device;
typedef struct trine_buffer trine_buffer;
typedef struct trine_plan trine_plan;
typedef struct trine_timeline trine_timeline;

/* ---- Host services --------------------------------------------------------------------------- */

enum { TRINE_LOG_DEBUG = 1, TRINE_LOG_INFO = 2, TRINE_LOG_WARNING = 3, TRINE_LOG_ERROR = 4 };

/* A function that each worker of the team runs, with its number and the number of workers. */
typedef void (*trine_worker_fn)(void* arg, uint32_t worker, uint32_t workers);

/* The functions that the host offers to a plugin. Valid from open to close. Check struct_size
 * before using a member that a version after 1.0 has added. */
typedef struct trine_host {
  uint32_t struct_size;
  uint32_t abi_version;
  uint32_t worker_count; /* threads of the pinned team, at least 1 */
  uint32_t reserved;
  void* self; /* first argument of every call below */
  void (*log)(void* self, uint32_t level, const char* message);
  /* Runs fn once on each worker, the caller being worker 0, and returns when all are done. Meant to
   * be called once per plan_run, with barrier() between ops. Not reentrant: from inside fn it
   * returns FAILED_PRECONDITION and does not run fn. */
  trine_status (*parallel_run)(void* self, trine_worker_fn fn, void* arg);
  /* Waits until all workers have called it. Only inside parallel_run, called by all workers or
   * none. */
  void (*barrier)(void* self);
  /* Not null. Non-zero while the host wants op_done to be called. May change at any time, from any
   * thread: read it once per run, atomically. */
  const uint32_t* profiling;
  /* Reports how long a part of a run took. Called inside plan_run, on the thread of that call, and
   * only if profiling was non-zero. `name` is one of a few constants ("matmul q4_0", "wait"), valid
   * until close. */
  void (*op_done)(void* self, const char* name, uint64_t nanoseconds);
} trine_host;

/* ---- Devices --------------------------------------------------------------------------------- */

enum { TRINE_TIER_CPU = 1, TRINE_TIER_IGPU = 2, TRINE_TIER_DGPU = 3, TRINE_TIER_OTHER = 4 };

enum {
  TRINE_DEVICE_UNIFIED_MEMORY = 1u << 0, /* shares physical memory with the CPU */
  TRINE_DEVICE_ASYNC = 1u << 1,          /* plan_run may return before the work is done */
  TRINE_DEVICE_SOFTWARE = 1u << 2,   /* runs on the CPU though its tier says otherwise: for tests */
  TRINE_DEVICE_UNUSABLE = 1u << 3,   /* can't be opened: `reason` says why */
  TRINE_DEVICE_PEER_COPIES = 1u << 4 /* copy_run accepts other devices' buffers */
};

enum { TRINE_NUMERICS_EXACT = 1, TRINE_NUMERICS_FAST = 2 };

/* The kinds of memory that buffer_import accepted when the plugin tried. If TRIED is not set, the
 * plugin has not tried, and the host finds out by importing. */
enum {
  TRINE_IMPORTS_TRIED = 1u << 0,
  TRINE_IMPORTS_WRITABLE = 1u << 1, /* memory that the process can write */
  TRINE_IMPORTS_READ_ONLY = 1u << 2 /* mapped files, with TRINE_IMPORT_READ_ONLY */
};

typedef struct trine_device_info {
  uint32_t struct_size;
  uint32_t tier;
  uint32_t flags;
  uint32_t numerics; /* EXACT: the device passed its own self-test of the contract */
  uint64_t memory_total;
  uint64_t memory_free;          /* at the time of the call */
  uint64_t max_allocation_bytes; /* the largest buffer; 0 = limited by memory only */
  uint64_t max_binding_bytes;    /* the largest binding, others are refused; 0 = no limit */
  uint32_t buffer_alignment;     /* binding offsets are multiples of it; a power of two */
  uint32_t import_alignment;     /* imported pointers and sizes are multiples; 0 = no import */
  uint8_t uuid[16];              /* all 0 = none */
  char pci_id[16];               /* "0000:c1:00.0" or "" */
  char name[64];                 /* the chip's name */
  char arch[32];                 /* "gfx1100", "sm_90", "avx512-vnni", or "" */
  char driver[64];               /* name and version: part of calibration keys */
  char memory_pool[64];          /* devices of one pool share memory_total; "system" is RAM */
  char bandwidth_domain[64];     /* devices of one domain share a bus; "system" is RAM's */
  char reason[128];              /* with UNUSABLE: why; with FAST: why, or "" */
  uint32_t imports;              /* TRINE_IMPORTS_* */
  uint32_t reserved;
  char import_refusal[128]; /* the memory that could not be imported, and why; "" = none */
} trine_device_info;

/* ---- Memory ---------------------------------------------------------------------------------- */

enum {
  TRINE_MEMORY_WEIGHTS = 1, /* written once, read by plans */
  TRINE_MEMORY_STATE = 2,   /* read and written by plans: KV blocks, scratch */
  TRINE_MEMORY_IO = 3       /* host-visible where the device has such memory */
};

typedef struct trine_buffer_desc {
  uint32_t struct_size;
  uint32_t memory;
  uint64_t bytes; /* more than 0 */
} trine_buffer_desc;

enum { TRINE_IMPORT_READ_ONLY = 1u << 0 }; /* the pages can't be written: a mapped file's */

/* Host memory for a buffer to use. The host keeps it until the buffer is freed. */
typedef struct trine_import_desc {
  uint32_t struct_size;
  uint32_t memory;
  uint32_t flags;
  uint32_t reserved;
  void* host_ptr; /* host_ptr and bytes are multiples of import_alignment */
  uint64_t bytes;
} trine_import_desc;

/* A window of a buffer. */
typedef struct trine_span {
  trine_buffer* buffer;
  uint64_t offset; /* a multiple of buffer_alignment */
  uint64_t bytes;
} trine_span;

/* ---- Tensors --------------------------------------------------------------------------------- */

/* Block formats are GGUF's, bit for bit, except Q8_KV: an f32 scale, then 32 int8. */
enum {
  TRINE_DTYPE_F32 = 1,
  TRINE_DTYPE_F16 = 2,
  TRINE_DTYPE_BF16 = 3,
  TRINE_DTYPE_I32 = 4,
  TRINE_DTYPE_Q4_0 = 16,
  TRINE_DTYPE_Q4_1 = 17,
  TRINE_DTYPE_Q5_0 = 18,
  TRINE_DTYPE_Q5_1 = 19,
  TRINE_DTYPE_Q8_0 = 20,
  TRINE_DTYPE_Q8_KV = 21,
  TRINE_DTYPE_Q2_K = 24,
  TRINE_DTYPE_Q3_K = 25,
  TRINE_DTYPE_Q4_K = 26,
  TRINE_DTYPE_Q5_K = 27,
  TRINE_DTYPE_Q6_K = 28,
  TRINE_DTYPE_IQ4_NL = 32,
  TRINE_DTYPE_IQ4_XS = 33,
  TRINE_DTYPE_TQ1_0 = 40,
  TRINE_DTYPE_TQ2_0 = 41,
  TRINE_DTYPE_MXFP4 = 48
};

/* What a slot's memory is used for. Each slot, except TEMP ones, is bound to buffers when the plan
 * is created. */
enum {
  TRINE_ROLE_CONSTANT = 1, /* weights; never written */
  TRINE_ROLE_STATE = 2,    /* kept from run to run: KV blocks, recurrent state */
  TRINE_ROLE_IO = 3,       /* has `alternates` bindings; each run picks one */
  TRINE_ROLE_TEMP = 4      /* in the plan's scratch; undefined between runs */
};

/* A piece of a graph's memory. Tensors are views of slots. */
typedef struct trine_slot {
  uint32_t role;
  uint32_t alternates; /* IO: 1 or more (2 = double buffering); other roles: 1 */
  uint64_t bytes;      /* the size that its tensors need at the parameters' maxima */
} trine_slot;

#define TRINE_NONE 0xffffffffu /* an absent optional input */
#define TRINE_LAYOUT_PLAIN 0u  /* rows as in the file, one after the other */
#define TRINE_MAX_RANK 4u
#define TRINE_KV_CHUNK 256u /* a multiple of the positions in a KV block */

/* A view of a slot. The innermost dimension comes first; a negative dimension -(i+1) stands for
 * params[i]. Strides are in bytes; 0 means that there is no gap. Values along dims[0] are
 * contiguous. */
typedef struct trine_tensor {
  uint32_t dtype;
  uint32_t rank; /* 1 to TRINE_MAX_RANK; dims beyond it are 1 */
  uint32_t slot;
  uint32_t reserved;
  int64_t dims[4];
  int64_t strides[4]; /* strides[0] is 0 */
  uint64_t offset;    /* bytes from the slot's start */
  uint64_t layout;    /* CONSTANT and STATE slots: PLAIN, or an id from layout_list */
} trine_tensor;

/* ---- Ops: docs/numerics.md defines each, in -> out ------------------------------------------- */

enum {
  TRINE_OP_COPY = 1,         /* x -> y, same dims; converts between f32, f16 and bf16 */
  TRINE_OP_GATHER_ROWS = 2,  /* table [k,rows], ids i32 [n] -> y [k,n] */
  TRINE_OP_RMS_NORM = 3,     /* x [n,..], weight? [n] -> y; trine_norm_attr */
  TRINE_OP_LAYER_NORM = 4,   /* x [n,..], weight? [n], bias? [n] -> y; trine_norm_attr */
  TRINE_OP_MATMUL = 5,       /* w [k,n], x [k,m], bias? [n] -> y [n,m] */
  TRINE_OP_ROPE = 6,         /* x [d,heads,m], table f32 [2*pairs,m] -> y; trine_rope_attr */
  TRINE_OP_KV_STORE = 7,     /* x [d,kv_heads,m], slots i32 [m] -> cache */
  TRINE_OP_ATTENTION = 8,    /* q [d,heads,m], k cache, v cache, block_table i32 [blocks,seqs],
                                q_offsets i32 [seqs+1 or more], kv_lengths i32 [seqs],
                                sinks? f32 [heads]
                                -> y [dv,heads,m]; trine_attention_attr */
  TRINE_OP_GLU = 9,          /* gate, up -> y; trine_glu_attr */
  TRINE_OP_ACTIVATION = 10,  /* x -> y; trine_activation_attr */
  TRINE_OP_ADD = 11,         /* a, b -> y; a dimension of 1 in b repeats */
  TRINE_OP_MUL = 12,         /* a, b -> y; a dimension of 1 in b repeats */
  TRINE_OP_SCALE = 13,       /* x -> y; trine_scale_attr */
  TRINE_OP_SOFTCAP = 14,     /* x -> y; trine_scale_attr holds the cap */
  TRINE_OP_MOE_ROUTE = 15,   /* logits [experts,m], bias? [experts]
                                -> ids i32 [used,m], weights [used,m]; trine_moe_route_attr */
  TRINE_OP_MOE_MATMUL = 16,  /* w [k,n,experts], x [k,used or 1,m], ids i32 [used,m],
                                bias? [n,experts] -> y [n,used,m] */
  TRINE_OP_MOE_COMBINE = 17, /* x [n,used,m], weights [used,m] -> y [n,m] */
  TRINE_OP_TOP_K = 18        /* x [n,m] -> ids i32 [k,m], values [k,m]; of equal values the
                                lowest id comes first */
};
/* KV caches have dims [d, block_positions, kv_heads, blocks] in this order, K and V in separate
 * tensors. That is the canonical layout, in which blocks move between devices, to and from disk,
 * and in a replay. Activations are f32. For ROPE, the norms and all element-wise ops, y may be the
 * same view as the first input (GLU, ADD, MUL: as either input); otherwise outputs overlap no
 * input. */

enum { TRINE_ROPE_INTERLEAVED = 1, TRINE_ROPE_HALVES = 2 };
enum {
  TRINE_ACT_SILU = 1,
  TRINE_ACT_GELU = 2, /* the tanh form */
  TRINE_ACT_RELU = 3,
  TRINE_ACT_TANH = 4,
  TRINE_ACT_SWIGLU_CLAMPED = 5 /* GLU only, with alpha and limit */
};
enum { TRINE_ATTENTION_CAUSAL = 1u << 0 };
enum { TRINE_MOE_SOFTMAX = 1, TRINE_MOE_SIGMOID = 2, TRINE_MOE_SOFTMAX_SELECTED = 3 };
enum { TRINE_MOE_NORMALIZE = 1u << 0 };

typedef struct trine_norm_attr {
  uint32_t struct_size;
  float eps;
} trine_norm_attr;

typedef struct trine_rope_attr {
  uint32_t struct_size;
  uint32_t mode;
} trine_rope_attr;

typedef struct trine_attention_attr {
  uint32_t struct_size;
  uint32_t flags;
  float scale;
  float softcap;   /* 0 = none */
  uint32_t window; /* positions that a token sees, its own included; 0 = all */
} trine_attention_attr;

typedef struct trine_glu_attr {
  uint32_t struct_size;
  uint32_t activation;
  float alpha;
  float limit;
} trine_glu_attr;

typedef struct trine_activation_attr {
  uint32_t struct_size;
  uint32_t activation;
} trine_activation_attr;

typedef struct trine_scale_attr {
  uint32_t struct_size;
  float scale;
} trine_scale_attr;

typedef struct trine_moe_route_attr {
  uint32_t struct_size;
  uint32_t scoring;
  uint32_t flags;
  float scale; /* a factor for the weights; 1 = none */
} trine_moe_route_attr;

typedef struct trine_op {
  uint32_t kind;
  uint32_t n_in;
  uint32_t n_out;
  uint32_t reserved;
  const uint32_t* in;  /* indices of tensors; TRINE_NONE for an absent optional input */
  const uint32_t* out; /* indices of tensors */
  const void* attr;    /* the struct named with the op above, or NULL */
} trine_op;

/* ---- Graphs ---------------------------------------------------------------------------------- */

enum {
  TRINE_PARAM_OTHER = 1,
  TRINE_PARAM_TOKENS = 2,
  TRINE_PARAM_SEQUENCES = 3,
  TRINE_PARAM_OUTPUT_ROWS = 4,
  TRINE_PARAM_KV_POSITIONS = 5 /* no dimension: at least the longest of the kv_lengths, by which a
                                  backend sizes its launches */
};

/* A number that is known only at run time, within bounds known when the plan is created. */
typedef struct trine_param {
  uint32_t kind;
  uint32_t reserved;
  int64_t min;
  int64_t max;
} trine_param;

typedef struct trine_graph {
  uint32_t struct_size;
  uint32_t numerics; /* EXACT: bits as docs/numerics.md defines them; FAST: any */
  uint32_t n_slots;
  uint32_t slot_stride;
  uint32_t n_tensors;
  uint32_t tensor_stride;
  uint32_t n_ops;
  uint32_t op_stride;
  uint32_t n_params;
  uint32_t param_stride;
  const trine_slot* slots;
  const trine_tensor* tensors;
  const trine_op* ops; /* in an order that respects their dependencies */
  const trine_param* params;
} trine_graph;

/* ---- Asking ---------------------------------------------------------------------------------- */

enum { TRINE_SUPPORT_NO = 1, TRINE_SUPPORT_FAST = 2, TRINE_SUPPORT_EXACT = 3 };

typedef struct trine_op_support {
  uint32_t struct_size;
  uint32_t support;
  double estimated_ns; /* at the given parameters; 0 = unknown, so the host measures */
  char reason[128];    /* always with NO */
} trine_op_support;

typedef struct trine_plan_info {
  uint32_t struct_size;
  uint32_t scratch_alignment;
  uint64_t scratch_bytes; /* in STATE memory, TEMP slots included; 0 = none */
} trine_plan_info;

/* A layout that the device offers for one tensor, and how it groups rows. A row is one line of
 * dims[0] values. Each matrix of dims [0] and [1] is grouped separately: group g of a matrix holds
 * its rows [g*group_rows, (g+1)*group_rows), the last group padded. The groups of all matrices
 * follow each other, and each takes group_bytes. A KV cache is one matrix, and a row of it is one
 * block. */
typedef struct trine_layout_info {
  uint64_t layout; /* below 2^32: public, listed in docs/plugin-abi.md; else the plugin's own */
  uint64_t packed_bytes;
  uint64_t group_rows;
  uint64_t group_bytes;
  uint32_t alignment;
  uint32_t flags; /* 0 */
} trine_layout_info;

typedef struct trine_layout_list {
  uint32_t struct_size;
  uint32_t stride;          /* bytes from one info to the next */
  uint32_t capacity;        /* the number of infos that there is room for */
  uint32_t count;           /* out: how many layouts there are; infos has at most `capacity` */
  trine_layout_info* infos; /* best first */
} trine_layout_list;

enum { TRINE_LAYOUT_PACK = 1, TRINE_LAYOUT_UNPACK = 2 };

/* PACK reads the tensor's plain data at src and writes its packed data to dst; UNPACK does the
 * reverse. Both pointers are in host memory and point to where the whole tensor would begin. Only
 * the rows of the range are touched, so that threads can share the work. */
typedef struct trine_layout_convert_args {
  uint32_t struct_size;
  uint32_t direction;
  const trine_tensor* tensor; /* the struct as in ABI 1.0; all dims are known */
  uint64_t layout;
  uint64_t row_begin; /* the first row of a group; rows are counted over all matrices */
  uint64_t row_end;   /* the row after the last row of a group */
  const void* src;
  void* dst;
} trine_layout_convert_args;

/* ---- Running --------------------------------------------------------------------------------- */

/* A point of a timeline. It is reached once the timeline's value is at least `value`. */
typedef struct trine_point {
  trine_timeline* timeline;
  uint64_t value;
} trine_point;

/* The points that a submission waits for and signals, on timelines of its device. The work reads
 * and writes nothing before all waits are reached. Only timelines order submissions.
 *
 * With signals the call may return before the work is done, and the signals carry the outcome: if a
 * wait fails, they fail with its status, and the call returns OK. Without signals the call returns
 * when the work is done; if a wait fails, it returns ABORTED. */
typedef struct trine_sync {
  uint32_t n_waits;
  uint32_t n_signals;
  uint32_t point_stride;
  uint32_t reserved;
  const trine_point* waits;
  const trine_point* signals;
} trine_sync;

typedef struct trine_binding {
  uint32_t slot;
  uint32_t alternate; /* below the slot's `alternates` */
  trine_span span;    /* at least as long as the slot */
} trine_binding;

typedef struct trine_plan_desc {
  uint32_t struct_size;
  uint32_t n_bindings; /* one for each alternate of each slot but TEMP */
  uint32_t binding_stride;
  uint32_t reserved;
  const trine_graph* graph;
  const trine_binding* bindings; /* the buffers must outlive the plan */
  trine_span scratch;            /* of the size and alignment that plan_query asked for */
} trine_plan_desc;

typedef struct trine_run_args {
  uint32_t struct_size;
  uint32_t n_params;     /* the graph's n_params */
  uint32_t n_alternates; /* the graph's n_slots; 0 = alternate 0 everywhere */
  uint32_t reserved;
  const int64_t* params;
  const uint32_t* alternates; /* by slot; read for IO slots only */
  trine_sync sync;
} trine_run_args;

/* One end of a copy: a buffer, or host memory when buffer is NULL. */
typedef struct trine_copy_end {
  trine_buffer* buffer;
  void* host;      /* valid until the copy is done; a source is never written */
  uint64_t offset; /* from the buffer's start, or from host */
} trine_copy_end;

typedef struct trine_copy {
  trine_copy_end src;
  trine_copy_end dst;
  uint64_t bytes;
} trine_copy;

typedef struct trine_copy_args {
  uint32_t struct_size;
  uint32_t n_copies;
  uint32_t copy_stride;
  uint32_t reserved;
  const trine_copy* copies; /* must not overlap each other */
  trine_sync sync;
} trine_copy_args;

/* ---- The table ------------------------------------------------------------------------------- */

enum { TRINE_SANITIZER_NONE = 1, TRINE_SANITIZER_ADDRESS = 2, TRINE_SANITIZER_THREAD = 3 };

typedef struct trine_plugin {
  uint32_t struct_size;      /* sizeof(trine_plugin) at the plugin's compilation */
  uint32_t abi_version;      /* TRINE_ABI_VERSION at the plugin's compilation */
  uint32_t numerics_version; /* the version of the contract that its EXACT answers follow */
  uint32_t sanitizer;        /* TRINE_SANITIZER_HERE at the plugin's compilation */
  const char* name;          /* [a-z0-9-]+, as in libtrine-backend-NAME.so */
  const char* version;

  /* options: "key=value;key=value" or "". Fails if a key is unknown, and names the key. */
  trine_status (*open)(const trine_host* host, const char* options, trine_backend** out,
                       trine_error* err);
  void (*close)(trine_backend* backend);
  uint32_t (*device_count)(trine_backend* backend);
  trine_status (*device_info)(trine_backend* backend, uint32_t index, trine_device_info* out,
                              trine_error* err);
  trine_status (*device_open)(trine_backend* backend, uint32_t index, trine_device** out,
                              trine_error* err);
  void (*device_close)(trine_device* device);

  trine_status (*buffer_alloc)(trine_device* device, const trine_buffer_desc* desc,
                               trine_buffer** out, trine_error* err);
  void (*buffer_free)(trine_buffer* buffer);
  trine_status (*buffer_write)(trine_buffer* buffer, uint64_t offset, const void* src,
                               uint64_t bytes, trine_error* err);
  trine_status (*buffer_read)(trine_buffer* buffer, uint64_t offset, void* dst, uint64_t bytes,
                              trine_error* err);
  trine_status (*copy_run)(trine_device* device, const trine_copy_args* args, trine_error* err);

  /* params: a value for each parameter of the graph, at which to estimate; NULL = the maxima. An op
   * that is not supported is no error: the status is OK, the answer NO with a reason. */
  trine_status (*op_query)(trine_device* device, const trine_graph* graph, uint32_t op,
                           const int64_t* params, trine_op_support* out, trine_error* err);
  trine_status (*plan_query)(trine_device* device, const trine_graph* graph, trine_plan_info* out,
                             trine_error* err);
  trine_status (*plan_create)(trine_device* device, const trine_plan_desc* desc, trine_plan** out,
                              trine_error* err);
  trine_status (*plan_run)(trine_plan* plan, const trine_run_args* args, trine_error* err);
  void (*plan_destroy)(trine_plan* plan);

  /* A timeline's value only grows. A timeline that has failed keeps its value and its failure:
   * every wait for a point beyond that value fails with the failure's status, now and later, and so
   * do the signals of every submission that waits for such a point. OK and DEADLINE_EXCEEDED are no
   * failures. */
  trine_status (*timeline_create)(trine_device* device, uint64_t initial, trine_timeline** out,
                                  trine_error* err);
  void (*timeline_destroy)(trine_timeline* timeline);
  trine_status (*timeline_signal)(trine_timeline* timeline, uint64_t value, trine_error* err);
  trine_status (*timeline_fail)(trine_timeline* timeline, trine_status status, const char* message,
                                trine_error* err);
  /* timeout_ns: 0 polls, UINT64_MAX waits for ever. After it, returns DEADLINE_EXCEEDED. */
  trine_status (*timeline_wait)(trine_timeline* timeline, uint64_t value, uint64_t timeout_ns,
                                trine_error* err);
  trine_status (*timeline_query)(trine_timeline* timeline, uint64_t* value, trine_error* err);

  /* Optional functions: NULL, or missing from a shorter table, means "not offered". */
  void* (*buffer_host_ptr)(trine_buffer* buffer); /* NULL: the host can't see the memory */
  trine_status (*buffer_import)(trine_device* device, const trine_import_desc* desc,
                                trine_buffer** out, trine_error* err);
  trine_status (*layout_list)(trine_device* device, const trine_graph* graph, uint32_t tensor,
                              trine_layout_list* out, trine_error* err);
  trine_status (*layout_convert)(trine_device* device, const trine_layout_convert_args* args,
                                 trine_error* err);
} trine_plugin;

/* The size of the smallest table that a host accepts. */
#define TRINE_PLUGIN_REQUIRED_SIZE offsetof(trine_plugin, buffer_host_ptr)

/* The one exported symbol. Returns the plugin's table, which lives as long as the library is
 * loaded, or NULL if the plugin can't serve this host version. Has no side effects; any thread may
 * call it. */
TRINE_EXPORT const trine_plugin* trine_plugin_query(uint32_t host_abi_version);
typedef const trine_plugin* (*trine_plugin_query_fn)(uint32_t host_abi_version);

#if defined(__SANITIZE_ADDRESS__)
#define TRINE_SANITIZER_HERE TRINE_SANITIZER_ADDRESS
#elif defined(__SANITIZE_THREAD__)
#define TRINE_SANITIZER_HERE TRINE_SANITIZER_THREAD
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TRINE_SANITIZER_HERE TRINE_SANITIZER_ADDRESS
#elif __has_feature(thread_sanitizer)
#define TRINE_SANITIZER_HERE TRINE_SANITIZER_THREAD
#endif
#endif
#ifndef TRINE_SANITIZER_HERE
#define TRINE_SANITIZER_HERE TRINE_SANITIZER_NONE
#endif

#ifdef __cplusplus
} /* extern "C" */
#endif
#endif /* TRINE_BACKEND_H_ */
