/* The Trine backend ABI: everything a backend plugin needs to know about its host.
 *
 * C11, no dependency but stddef and stdint. docs/plugin-abi.md explains each part at length;
 * plugins/example is a complete backend. Rules that hold everywhere:
 *
 *  - Structs grow only at the end. A struct passed by pointer starts with `struct_size`, set by its
 *    writer to its own sizeof; the other side reads or writes no byte beyond it. Elements of arrays
 *    carry no size: the struct that holds the array holds its stride in bytes. A host puts another
 *    value than 0 into a member, or a flag, only when the plugin's abi_version knows it.
 *  - Enumerator values are never renumbered or reused. 0 is never a valid kind.
 *  - Fallible calls return trine_status and may fill `err` (caller-owned, may be NULL).
 *  - No exception, longjmp, signal, exit or abort leaves a plugin. Nothing allocated on one side is
 *    freed on the other: what _open/_alloc/_import/_create returned goes back to the same plugin
 *    through _close/_free/_destroy, children before parents.
 *  - Pointers inside argument structs are valid during the call only, unless said otherwise.
 *  - Which calls may run at the same time: "Threads" in docs/plugin-abi.md. */
#ifndef TRINE_BACKEND_H_
#define TRINE_BACKEND_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The major stays 1, and 1.x is append-only: "Versions" in docs/plugin-abi.md. */
#define TRINE_ABI_MAJOR 1u
#define TRINE_ABI_MINOR 0u
#define TRINE_ABI_VERSION ((TRINE_ABI_MAJOR << 16) | TRINE_ABI_MINOR)

/* The arithmetic contract (docs/numerics.md) this header was written beside. */
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
  TRINE_RESOURCE_EXHAUSTED = 8, /* out of memory: nothing changed, the device goes on */
  TRINE_FAILED_PRECONDITION = 9,
  TRINE_ABORTED = 10,
  TRINE_OUT_OF_RANGE = 11,
  TRINE_UNIMPLEMENTED = 12, /* refused: op_query said so, and why */
  TRINE_INTERNAL = 13,
  TRINE_UNAVAILABLE = 14, /* from a call: its device is lost, and says so from now on */
  TRINE_DATA_LOSS = 15
};

/* One sentence for a person, NUL-terminated. Never grows. */
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

typedef void (*trine_worker_fn)(void* arg, uint32_t worker, uint32_t workers);

/* Valid from open to close. Check struct_size before using a member younger than 1.0. */
typedef struct trine_host {
  uint32_t struct_size;
  uint32_t abi_version;
  uint32_t worker_count; /* size of the pinned team, at least 1 */
  uint32_t reserved;
  void* self; /* first argument of every call below */
  void (*log)(void* self, uint32_t level, const char* message);
  /* Runs fn once on each worker, the caller being worker 0, and returns when all are done. One call
   * per plan_run is the intent, with barrier() between ops. Not reentrant: from inside fn it is
   * refused with FAILED_PRECONDITION and fn does not run. */
  trine_status (*parallel_run)(void* self, trine_worker_fn fn, void* arg);
  /* Inside parallel_run only, by all workers or none. */
  void (*barrier)(void* self);
  /* Not null; non-zero while the host wants to know where the time of runs goes.
   * Changes at any time, from any thread: look once per run, atomically. */
  const uint32_t* profiling;
  /* A part of a run has taken this long: inside plan_run, by the thread it was called on, and only
   * if profiling was non-zero. `name` is one of a few constants ("matmul q4_0", "wait"), valid
   * until close. */
  void (*op_done)(void* self, const char* name, uint64_t nanoseconds);
} trine_host;

/* ---- Devices --------------------------------------------------------------------------------- */

enum { TRINE_TIER_CPU = 1, TRINE_TIER_IGPU = 2, TRINE_TIER_DGPU = 3, TRINE_TIER_OTHER = 4 };

enum {
  TRINE_DEVICE_UNIFIED_MEMORY = 1u << 0, /* shares physical memory with the CPU */
  TRINE_DEVICE_ASYNC = 1u << 1,          /* plan_run may return before the work is done */
  TRINE_DEVICE_SOFTWARE = 1u << 2,       /* runs on the CPU whatever it pretends: for tests */
  TRINE_DEVICE_UNUSABLE = 1u << 3,       /* seen but not to be opened: `reason` says why */
  TRINE_DEVICE_PEER_COPIES = 1u << 4     /* copy_run takes other devices' buffers */
};

enum { TRINE_NUMERICS_EXACT = 1, TRINE_NUMERICS_FAST = 2 };

/* What buffer_import was seen to take. Without TRIED nobody has looked, and the host tries. */
enum {
  TRINE_IMPORTS_TRIED = 1u << 0,
  TRINE_IMPORTS_WRITABLE = 1u << 1, /* memory of the process's own */
  TRINE_IMPORTS_READ_ONLY = 1u << 2 /* mapped files, with TRINE_IMPORT_READ_ONLY */
};

typedef struct trine_device_info {
  uint32_t struct_size;
  uint32_t tier;
  uint32_t flags;
  uint32_t numerics; /* EXACT: the device passed its own self-test of the contract */
  uint64_t memory_total;
  uint64_t memory_free;          /* now; ask again for a fresh figure */
  uint64_t max_allocation_bytes; /* one buffer; 0 = no limit of its own */
  uint64_t max_binding_bytes;    /* one binding, larger ones are refused; 0 = no limit */
  uint32_t buffer_alignment;     /* of binding offsets, power of two */
  uint32_t import_alignment;     /* of imported pointers and sizes; 0 = no import */
  uint8_t uuid[16];              /* all 0 = none */
  char pci_id[16];               /* "0000:c1:00.0" or "" */
  char name[64];                 /* what the chip is called */
  char arch[32];                 /* "gfx1100", "sm_90", "avx512-vnni", or "" */
  char driver[64];               /* name and version: part of calibration keys */
  char memory_pool[64];          /* devices of one pool share memory_total; "system" is RAM */
  char bandwidth_domain[64];     /* devices of one domain share a bus; "system" is RAM's */
  char reason[128];              /* with UNUSABLE */
  uint32_t imports;              /* TRINE_IMPORTS_* */
  uint32_t reserved;
  char import_refusal[128]; /* what was not imported, and why; "" = nothing */
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

enum { TRINE_IMPORT_READ_ONLY = 1u << 0 }; /* the pages can't be written: a mapped file */

/* Memory of the host's that a buffer is to stand on, until the buffer is freed. */
typedef struct trine_import_desc {
  uint32_t struct_size;
  uint32_t memory;
  uint32_t flags;
  uint32_t reserved;
  void* host_ptr; /* a multiple of import_alignment, as is bytes */
  uint64_t bytes;
} trine_import_desc;

/* A window of a buffer. */
typedef struct trine_span {
  trine_buffer* buffer;
  uint64_t offset; /* a multiple of buffer_alignment */
  uint64_t bytes;
} trine_span;

/* ---- Tensors --------------------------------------------------------------------------------- */

/* Block formats are GGUF's, bit for bit, except Q8_KV: f32 scale, then 32 int8. */
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

/* Storage a graph works on. All but TEMP are bound to buffers when the plan is created. */
enum {
  TRINE_ROLE_CONSTANT = 1, /* weights; never written */
  TRINE_ROLE_STATE = 2,    /* lives from run to run: KV blocks, recurrent state */
  TRINE_ROLE_IO = 3,       /* `alternates` bindings, one of them picked per run */
  TRINE_ROLE_TEMP = 4      /* the plan's own, inside its scratch; undefined between runs */
};

typedef struct trine_slot {
  uint32_t role;
  uint32_t alternates; /* IO: 1 or more (2 = double buffering); else 1 */
  uint64_t bytes;      /* what the slot's tensors need at the parameters' maxima */
} trine_slot;

#define TRINE_NONE 0xffffffffu /* an absent optional input */
#define TRINE_LAYOUT_PLAIN 0u  /* rows as in the file, one after the other */
#define TRINE_MAX_RANK 4u
#define TRINE_KV_CHUNK 256u /* a KV block's positions divide it */

/* A view of a slot. Innermost dimension first; a negative dimension -(i+1) is params[i]. Strides
 * are in bytes; 0 means packed. Values along dims[0] are contiguous. */
typedef struct trine_tensor {
  uint32_t dtype;
  uint32_t rank; /* 1 to TRINE_MAX_RANK; dims beyond it are 1 */
  uint32_t slot;
  uint32_t reserved;
  int64_t dims[4];
  int64_t strides[4]; /* strides[0] is 0 */
  uint64_t offset;    /* bytes from the slot's start */
  uint64_t layout;    /* CONSTANT and STATE: PLAIN or an id from layout_list */
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
  TRINE_OP_MUL = 12,         /* likewise */
  TRINE_OP_SCALE = 13,       /* x -> y; trine_scale_attr */
  TRINE_OP_SOFTCAP = 14,     /* x -> y; trine_scale_attr holds the cap */
  TRINE_OP_MOE_ROUTE = 15,   /* logits [experts,m], bias? [experts]
                                -> ids i32 [used,m], weights [used,m]; trine_moe_route_attr */
  TRINE_OP_MOE_MATMUL = 16,  /* w [k,n,experts], x [k,used or 1,m], ids i32 [used,m],
                                bias? [n,experts] -> y [n,used,m] */
  TRINE_OP_MOE_COMBINE = 17, /* x [n,used,m], weights [used,m] -> y [n,m] */
  TRINE_OP_TOP_K = 18        /* x [n,m] -> ids i32 [k,m], values [k,m]; ties to the lowest id */
};
/* KV caches have dims [d, block_positions, kv_heads, blocks], K and V apart, in the order given:
 * the canonical layout, in which blocks move between devices, disk and replay. Activations are f32.
 * y may be the same view as the first input (GLU, ADD, MUL: either input) for ROPE, the norms and
 * all element-wise ops; otherwise outputs overlap no input. */

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
  uint32_t window; /* positions seen, the own one included; 0 = all */
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
  float scale; /* of the weights; 1 = none */
} trine_moe_route_attr;

typedef struct trine_op {
  uint32_t kind;
  uint32_t n_in;
  uint32_t n_out;
  uint32_t reserved;
  const uint32_t* in;  /* indices of tensors, TRINE_NONE for an absent optional one */
  const uint32_t* out; /* indices of tensors */
  const void* attr;    /* the struct named above, or NULL */
} trine_op;

/* ---- Graphs ---------------------------------------------------------------------------------- */

enum {
  TRINE_PARAM_OTHER = 1,
  TRINE_PARAM_TOKENS = 2,
  TRINE_PARAM_SEQUENCES = 3,
  TRINE_PARAM_OUTPUT_ROWS = 4,
  TRINE_PARAM_KV_POSITIONS = 5 /* no dimension: no kv_length of the run is above it; for the grid */
};

/* A number known only at run time, within bounds known when the plan is made. */
typedef struct trine_param {
  uint32_t kind;
  uint32_t reserved;
  int64_t min;
  int64_t max;
} trine_param;

typedef struct trine_graph {
  uint32_t struct_size;
  uint32_t numerics; /* EXACT: bits as docs/numerics.md says; FAST: free */
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
  double estimated_ns; /* at the given parameters; 0 = no idea, the host measures */
  char reason[128];    /* always with NO */
} trine_op_support;

typedef struct trine_plan_info {
  uint32_t struct_size;
  uint32_t scratch_alignment;
  uint64_t scratch_bytes; /* of STATE memory, TEMP slots included; 0 = none */
} trine_plan_info;

/* A layout the device likes for one tensor, and how its rows are grouped in it. Each matrix of dims
 * [0] and [1] is grouped by itself: its group g holds rows [g*group_rows, (g+1)*group_rows), the
 * last one padded, and its groups follow those of the matrix before, group_bytes each. A row is one
 * line of dims[0] values; of a KV cache, one block, and the cache is one matrix. */
typedef struct trine_layout_info {
  uint64_t layout; /* public: below 2^32, listed in docs/plugin-abi.md; else the plugin's own */
  uint64_t packed_bytes;
  uint64_t group_rows;
  uint64_t group_bytes;
  uint32_t alignment;
  uint32_t flags; /* 0 */
} trine_layout_info;

typedef struct trine_layout_list {
  uint32_t struct_size;
  uint32_t stride;          /* of infos */
  uint32_t capacity;        /* of infos */
  uint32_t count;           /* out: how many there are; fills at most `capacity` */
  trine_layout_info* infos; /* best first */
} trine_layout_list;

enum { TRINE_LAYOUT_PACK = 1, TRINE_LAYOUT_UNPACK = 2 };

/* src and dst are the tensor's whole plain and packed data in host memory (the other way round for
 * UNPACK); only the rows of the range are touched, so that several threads can share the work. */
typedef struct trine_layout_convert_args {
  uint32_t struct_size;
  uint32_t direction;
  const trine_tensor* tensor; /* as long as in 1.0; dims are all known */
  uint64_t layout;
  uint64_t row_begin; /* where a group begins; rows are counted over all matrices */
  uint64_t row_end;   /* where a group ends */
  const void* src;
  void* dst;
} trine_layout_convert_args;

/* ---- Running --------------------------------------------------------------------------------- */

/* Reached once the timeline's value is at least `value`. */
typedef struct trine_point {
  trine_timeline* timeline;
  uint64_t value;
} trine_point;

/* Waits and signals of one submission: timelines of the submission's device. Nothing is read or
 * written before all waits are reached, and nothing but timelines orders two submissions. With
 * signals the call may return before the work is done, and how it ends is theirs to say: also a
 * failed wait then fails the signals, with its status, and the call returns OK. Without signals the
 * call returns when the work is done; a failed wait makes it return ABORTED. */
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
  trine_span span;    /* at least the slot's bytes */
} trine_binding;

typedef struct trine_plan_desc {
  uint32_t struct_size;
  uint32_t n_bindings; /* each alternate of each slot but TEMP, once */
  uint32_t binding_stride;
  uint32_t reserved;
  const trine_graph* graph;
  const trine_binding* bindings; /* buffers outlive the plan */
  trine_span scratch;            /* as plan_query asked */
} trine_plan_desc;

typedef struct trine_run_args {
  uint32_t struct_size;
  uint32_t n_params;     /* as the graph has */
  uint32_t n_alternates; /* as the graph has slots; 0 = alternate 0 everywhere */
  uint32_t reserved;
  const int64_t* params;
  const uint32_t* alternates; /* by slot; of IO slots only */
  trine_sync sync;
} trine_run_args;

/* One end of a copy: a buffer, or host memory when buffer is NULL. */
typedef struct trine_copy_end {
  trine_buffer* buffer;
  void* host;      /* valid until the copy is done; never written when it is the source */
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
  uint32_t struct_size;      /* sizeof(trine_plugin) where the plugin was compiled */
  uint32_t abi_version;      /* TRINE_ABI_VERSION where the plugin was compiled */
  uint32_t numerics_version; /* of the contract its EXACT answers follow */
  uint32_t sanitizer;        /* TRINE_SANITIZER_HERE */
  const char* name;          /* [a-z0-9-]+, as in libtrine-backend-NAME.so */
  const char* version;

  /* options: "key=value;key=value" or "". Unknown keys are refused by name. */
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

  /* params: one value per graph parameter, to estimate at; NULL = the maxima. A refusal is an
   * answer: status OK, support NO, a reason. */
  trine_status (*op_query)(trine_device* device, const trine_graph* graph, uint32_t op,
                           const int64_t* params, trine_op_support* out, trine_error* err);
  trine_status (*plan_query)(trine_device* device, const trine_graph* graph, trine_plan_info* out,
                             trine_error* err);
  trine_status (*plan_create)(trine_device* device, const trine_plan_desc* desc, trine_plan** out,
                              trine_error* err);
  trine_status (*plan_run)(trine_plan* plan, const trine_run_args* args, trine_error* err);
  void (*plan_destroy)(trine_plan* plan);

  /* A timeline's value only grows. Once failed it keeps its value and its failure: points beyond
   * the value fail with that status, for waiters now and later, and for the signals of every
   * submission that waits on one. OK and DEADLINE_EXCEEDED are no failures. */
  trine_status (*timeline_create)(trine_device* device, uint64_t initial, trine_timeline** out,
                                  trine_error* err);
  void (*timeline_destroy)(trine_timeline* timeline);
  trine_status (*timeline_signal)(trine_timeline* timeline, uint64_t value, trine_error* err);
  trine_status (*timeline_fail)(trine_timeline* timeline, trine_status status, const char* message,
                                trine_error* err);
  /* timeout_ns: 0 polls, UINT64_MAX waits for ever; DEADLINE_EXCEEDED when it has passed. */
  trine_status (*timeline_wait)(trine_timeline* timeline, uint64_t value, uint64_t timeout_ns,
                                trine_error* err);
  trine_status (*timeline_query)(trine_timeline* timeline, uint64_t* value, trine_error* err);

  /* Optional from here: NULL, or missing from a shorter table, means "not offered". */
  void* (*buffer_host_ptr)(trine_buffer* buffer); /* NULL for memory the host can't see */
  trine_status (*buffer_import)(trine_device* device, const trine_import_desc* desc,
                                trine_buffer** out, trine_error* err);
  trine_status (*layout_list)(trine_device* device, const trine_graph* graph, uint32_t tensor,
                              trine_layout_list* out, trine_error* err);
  trine_status (*layout_convert)(trine_device* device, const trine_layout_convert_args* args,
                                 trine_error* err);
} trine_plugin;

/* A table that ends before this is refused. */
#define TRINE_PLUGIN_REQUIRED_SIZE offsetof(trine_plugin, buffer_host_ptr)

/* The one exported symbol. Pure, may be called repeatedly, from any thread. Returns a table that
 * lives as long as the library is loaded, or NULL when the plugin can't serve this host version. */
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
