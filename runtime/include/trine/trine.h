/* libtrine's C API, for C11 and C++. Handles are opaque, and structs are versioned by struct_size.
 * The library does not abort, throw or print. Statuses are the numbers of absl::StatusCode; 0 is
 * success. Any thread may call a function unless its comment says otherwise. docs/embedding.md
 * shows how to use the API. */
#ifndef TRINE_TRINE_H_
#define TRINE_TRINE_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(_WIN32)
#define TRINE_API __declspec(dllimport)
#else
#define TRINE_API __attribute__((visibility("default")))
#endif

/* Returns the library's version, such as "0.1.0". */
TRINE_API const char* trine_version(void);
/* Returns the version of the plugin ABI: major << 16 | minor. */
TRINE_API uint32_t trine_backend_abi_version(void);
/* Returns the version of the arithmetic contract. Results of one version are equal, bit for bit. */
TRINE_API uint32_t trine_numerics_version(void);

typedef struct trine_detect_options {
  uint32_t struct_size;
  uint32_t reserved;
  /* Plugin files or folders to search first, colon-separated, or NULL. */
  const char* plugins;
  /* A folder with proc/ and sys/ of the machine to describe, or NULL for this machine. With a
   * folder, no plugins are searched for. */
  const char* root;
  /* As in trine_engine_options: devices are listed as an engine with these options has them. */
  const char* numerics;
  const char* plugin_options;
} trine_detect_options;

/* Describes the machine, its tiers, devices, memory pools and plugins as JSON (docs/detect.md).
 * Probes plugins in a child process. Options may be NULL. Free the text with trine_string_free.
 * Fails only for a bad argument (3) or lack of memory (8). */
TRINE_API int32_t trine_detect(const trine_detect_options* options, char** json);

/* Frees a text that trine_detect returned. */
TRINE_API void trine_string_free(char* text);

/* ---- Engines, sessions, generation -----------------------------------------------------------
 *
 * An engine is a model placed on devices; sessions are conversations with it. Strings are UTF-8.
 * Every struct begins with struct_size, which the caller sets to the struct's sizeof. A member that
 * is 0 or NULL stands for its default unless a comment says otherwise. A call that can fail returns
 * a status and, unless `why` is NULL, writes the status and a sentence to `why`.
 *
 * Threads: any number of threads may use an engine at once. One thread at a time may use a session;
 * only trine_session_cancel and trine_session_close may be called from any thread. Sessions whose
 * calls run at the same time share passes through the model.
 *
 * Handles: a call with a handle that is not open returns INVALID_ARGUMENT (3). A call returns
 * FAILED_PRECONDITION (9) if another call is in its session, or if the handle was opened before
 * fork(). An engine stays in memory until its last session and head are closed. */

typedef struct trine_engine trine_engine;
typedef struct trine_session trine_session;

/* The reason why a call failed. */
typedef struct trine_failure {
  uint32_t struct_size;
  int32_t status;
  char message[1016]; /* NUL-terminated */
} trine_failure;

enum {
  TRINE_ENGINE_NO_MMAP = 1u << 0,     /* read the model into memory instead of mapping it */
  TRINE_ENGINE_LOCK_MEMORY = 1u << 1, /* prevent swapping of the model; a refusal is a warning */
  TRINE_ENGINE_EMBEDDINGS = 1u << 2,  /* allow trine_embed and heads, but no session */
  TRINE_ENGINE_NO_PACK = 1u << 3,     /* keep weights as in the file: loads faster, runs slower */
  TRINE_ENGINE_ALLOW_DEGRADED = 1u << 4, /* open without the named devices that are missing */
  TRINE_ENGINE_KV_LOSSY = 1u << 5,       /* allow a kv_store_type with fewer bits */
  TRINE_ENGINE_HIDDEN_ROWS = 1u << 6     /* allow sessions as well as trine_embed and heads */
};

/* Threads of the program, lent to an engine (docs/embedding.md, "The program's own threads"). */
typedef struct trine_host_threads {
  uint32_t struct_size;
  uint32_t workers; /* the number of threads, from 1 to 1024, for the engine's whole life */
  void* self;       /* the first argument of parallel_run */
  /* Calls work(arg, w) once for each w from 0 to workers - 1, all at the same time, and returns 0
   * when all calls have returned. Worker 0 runs on the calling thread, each of the others on a
   * thread of its own. If the threads can't be had, calls nothing and returns another value: the
   * engine's call then fails with FAILED_PRECONDITION (9) and can be repeated. Called on any thread
   * that uses the engine, by one at a time, also while the engine is opened. After a call that
   * hangs the engine calls it again on another thread. Must not call the library. */
  int32_t (*parallel_run)(void* self, void (*work)(void* arg, uint32_t worker), void* arg,
                          uint32_t workers);
} trine_host_threads;

typedef struct trine_engine_options {
  uint32_t struct_size;
  uint32_t flags;
  const char* model;        /* a GGUF file, or any part of a split model */
  const char* tensor_split; /* "cpu:4,igpu:12,dgpu:16"; NULL: the planner decides */
  const char* plugins;      /* plugin files or folders to search first, colon-separated */
  const char* kv_type_k;    /* "f16" (default), "f32", "bf16", "q8_0" */
  const char* kv_type_v;
  int64_t context; /* positions of a sequence; 0: the model's, up to 4096; -1: the model's */
  /* The most tokens of a pass; 0: 512, or up to 4096 where a device fetches weights for each pass.
   */
  int64_t batch_tokens;
  /* The most sequences of a pass. The KV cache has room for this many full sequences. 0: 1. With
   * TRINE_ENGINE_EMBEDDINGS the most texts of a pass, which share a cache of one full context; 0:
   * 32. */
  int64_t max_sequences;
  uint32_t threads; /* 0: one per core */
  uint32_t reserved;
  /* Called on the calling thread while the model is loaded, with the fraction that is done, from 0
   * to 1. If it returns another value than 0, loading stops with CANCELLED (1). */
  int32_t (*on_progress)(void* user, double fraction);
  /* Receives warnings and messages of plugins, on any thread. Must not call the engine. After
   * trine_engine_close has returned, it is not called and no call is in progress. The levels are 1
   * debug, 2 info, 3 warning and 4 error. */
  void (*on_log)(void* user, uint32_t level, const char* message);
  void* user;
  /* The folder in which packed weights are kept between runs; "": the model's folder, in the file
   * MODEL.trine-pack; NULL: they are not kept. A file that can't be used or written causes a
   * warning. */
  const char* pack_cache;
  /* Faults to inject, as in docs/faults.md. The environment variable TRINE_FAULT overrides it. */
  const char* faults;
  /* The file for a trace (docs/tracing.md), written when the engine is closed and by
   * trine_engine_write_trace. If it can't be written, opening fails before the model is loaded. */
  const char* trace;
  /* Settings for the planner (docs/placement.md). NULL or "": the planner chooses. */
  const char* devices;          /* use only these: "cpu,dgpu0" */
  const char* split_strategy;   /* "auto" (default), "memory", "balanced" */
  const char* optimize;         /* "latency" (default), "throughput" */
  const char* device_memory;    /* the most memory to use of devices: "dgpu:2G,igpu:512M" */
  const char* split_mode;       /* "layer" (default), "row", "none": docs/split-modes.md */
  const char* override_tensors; /* "REGEX=DEVICE,...": matrices to place elsewhere */
  /* Says when other devices help with large passes (docs/dispatch.md): "auto", whenever that is
   * faster; "prompts", only with passes that read prompts; "off"; or the least number of tokens of
   * a pass with which they help. Default: "auto" where the planner places layers, else "prompts".
   */
  const char* dispatch;
  /* The most milliseconds that a device other than the CPU may take for a pass, or for a call while
   * the model is loaded. A device that takes longer is lost. 0: 300000. */
  uint64_t device_timeout_ms;
  /* KV blocks kept outside of devices' caches (docs/kv.md), for sessions with a prefix_space. */
  const char* kv_store;      /* a folder, used by later runs too; NULL: none */
  uint64_t kv_store_bytes;   /* the most to keep there; 0: 16 GiB */
  uint64_t kv_host_bytes;    /* the most to keep in memory; 0: none */
  const char* kv_store_type; /* "raw" (default); with fewer bits: "q8_0", "q4_0", "mxfp4" */
  /* The most candidates for tokens (trine_rerank_options), of all sessions, that are evaluated at
   * once. Besides max_sequences, a pass has room for this many more sequences, and the KV cache has
   * 64 more positions for each of them. 0: none. */
  int64_t branches;
  /* "exact" (default): results have the bits of docs/numerics.md on every device. "fast": devices
   * and ops whose results are near these may be used, too. */
  const char* numerics;
  /* Options for plugins, separated by semicolons: "[PLUGIN:]NAME=VALUE;...". Without PLUGIN an
   * option is for the files that `plugins` names. Opening fails if an option has no effect. */
  const char* plugin_options;
  /* Whose threads compute on the CPU: "own", the library's (default), or "openmp", those of the
   * program's OpenMP. Results have the same bits. NULL or "": the environment variable TRINE_TEAM
   * decides. With "openmp" and `threads` 0 there are as many as omp_get_max_threads(). */
  const char* team;
  /* Threads that the program lends instead; NULL: none. `team` must then be NULL, and `threads` 0
   * or the number of lent threads. The struct is copied. parallel_run may be called until
   * trine_engine_close has returned and the engine's sessions and heads are closed. */
  const trine_host_threads* host_threads;
  /* The experts of the first layers go to the CPU, whatever device the layers are on: of this many
   * layers, or of all of them if it is negative. A model without experts, or with fewer layers, is
   * INVALID_ARGUMENT. */
  int64_t cpu_expert_layers;
  /* The number of experts of each layer that are on the CPU and on the layer's own device as well:
   * the experts that tokens choose most. The library exchanges them while the model runs. No result
   * depends on them. More than 0 puts the experts of all layers on the CPU, unless
   * cpu_expert_layers says of how many. 0: none, or a number that the library chooses if
   * `expert_stats` has counts and nothing says where layers or experts go. Negative: none. */
  int64_t hot_experts;
  /* The file that keeps counts of the experts that tokens choose (docs/moe.md, "Counts of
   * experts"). It is read when the model is loaded, and says which hot_experts to begin with. The
   * counts of this engine are added when it is freed, which may wait up to 2 s for others that
   * write to the folder; if it fails, there is a warning. A file that is no profile of this model's
   * experts is an error, and stays as it is. NULL: none. */
  const char* expert_stats;
} trine_engine_options;

/* Loads a model and places it on devices. */
TRINE_API int32_t trine_engine_open(const trine_engine_options* options, trine_engine** engine,
                                    trine_failure* why);
/* Closes an engine, and frees it once all its sessions and heads are closed. Does nothing if
 * `engine` is NULL or not open. */
TRINE_API void trine_engine_close(trine_engine* engine);

typedef struct trine_engine_info {
  uint32_t struct_size;
  uint32_t threads;
  int64_t n_vocab;
  int64_t n_layers;
  int64_t context;       /* the most tokens of a session */
  int64_t context_train; /* the context that the model was trained with */
  uint64_t weight_bytes;
  uint64_t kv_bytes;
  uint64_t scratch_bytes;
  char architecture[32];
  char name[128];
  int64_t n_embd; /* the number of values of an embedding */
  char team[16];  /* whose threads `threads` are: "own", "openmp" or "host" */
} trine_engine_info;

TRINE_API int32_t trine_engine_describe(const trine_engine* engine, trine_engine_info* info);

/* ---- Devices: what they do, and recovery from faults (docs/surviving.md) */

/* A segment: consecutive layers on one device, with counts since the model was placed there. */
typedef struct trine_segment_info {
  uint32_t struct_size;
  uint32_t placement; /* the number of the placement: grows when the model is placed again */
  char device[32];
  int64_t first_layer;
  int64_t end_layer; /* the last layer + 1 */
  uint64_t passes;
  uint64_t tokens;
  uint64_t busy_ns;    /* the time in which the segment ran passes */
  uint64_t waiting_ns; /* the time without a pass, while other segments had one */
  uint64_t blocked_ns; /* the time in which the next segment could not take the segment's pass */
  double busy_ratio;   /* busy_ns / (busy_ns + waiting_ns + blocked_ns) */
  uint64_t bytes_in;   /* inputs that were copied to the device, without weights */
  uint64_t bytes_out;  /* results that were copied from the device */
  uint64_t detours;    /* passes in which a helper had a part: docs/dispatch.md */
  char helper[32];     /* the helper device; "": none */
} trine_segment_info;

/* Describes a segment, counted from 0. Returns OUT_OF_RANGE (11) if there is no such segment. While
 * the model is being placed again, there are no segments. */
TRINE_API int32_t trine_engine_segment(const trine_engine* engine, size_t index,
                                       trine_segment_info* info);

/* A device that failed. The model runs without it. */
typedef struct trine_lost_device {
  uint32_t struct_size;
  uint32_t reserved;
  char device[32];
  char reason[472];
  uint64_t lost_ms; /* milliseconds since the loss */
} trine_lost_device;

/* Describes a lost device, counted from 0 in the order of the losses. Returns OUT_OF_RANGE (11) if
 * there is no such device. */
TRINE_API int32_t trine_engine_lost_device(const trine_engine* engine, size_t index,
                                           trine_lost_device* lost);

/* Readmits a lost device, or all lost devices if `device` is NULL or "". The engine also does this
 * by itself, some time after the loss, when a new request begins. Waits until no pass is in flight,
 * so callbacks must not call it. Returns UNAVAILABLE (14), with the reason, if a device still does
 * not work; the model then uses the devices that work. Returns FAILED_PRECONDITION (9) for a device
 * that is not lost. Sessions continue with the same text. */
TRINE_API int32_t trine_engine_readmit(trine_engine* engine, const char* device,
                                       trine_failure* why);

/* Writes the trace so far to trine_engine_options.trace. Does nothing if that is NULL. */
TRINE_API int32_t trine_engine_write_trace(trine_engine* engine, trine_failure* why);

/* ---- Tokens */

enum {
  TRINE_TOKENIZE_NO_SPECIAL = 1u << 0,   /* do not add the BOS or EOS that the file asks for */
  TRINE_TOKENIZE_PARSE_SPECIAL = 1u << 1 /* make text such as <|im_end|> a control token */
};

/* Tokenizes a text. Writes up to `capacity` token ids, and the number of all ids to `count`.
 * Returns OUT_OF_RANGE (11) if they do not fit. */
TRINE_API int32_t trine_tokenize(const trine_engine* engine, const char* text, size_t bytes,
                                 uint32_t flags, int32_t* tokens, size_t capacity, size_t* count,
                                 trine_failure* why);
/* Writes up to `capacity` bytes of the tokens' text, without a NUL at the end, and the number of
 * all bytes to `bytes`. Returns OUT_OF_RANGE (11) if they do not fit. Control tokens give no text.
 */
TRINE_API int32_t trine_detokenize(const trine_engine* engine, const int32_t* tokens, size_t count,
                                   char* text, size_t capacity, size_t* bytes, trine_failure* why);
/* Returns 1 if generation ends with this token, and 0 otherwise. */
TRINE_API int32_t trine_token_is_end(const trine_engine* engine, int32_t token);

/* ---- Embeddings */

enum {
  TRINE_POOLING_DEFAULT = 0, /* the file's pooling; TRINE_POOLING_LAST if it names none */
  TRINE_POOLING_NONE = 1,    /* a vector for every token */
  TRINE_POOLING_MEAN = 2,
  TRINE_POOLING_CLS = 3, /* the vector of the first token */
  TRINE_POOLING_LAST = 4 /* the vector of the last token */
};

/* Values of trine_embed_options.normalize. A value p from 1 to 32 divides by the p-norm. */
enum {
  TRINE_NORMALIZE_MAX = -2, /* the largest magnitude becomes 32760 */
  TRINE_NORMALIZE_NONE = -1,
  TRINE_NORMALIZE_DEFAULT = 0, /* Euclidean */
  TRINE_NORMALIZE_EUCLIDEAN = 2
};

typedef struct trine_embed_options {
  uint32_t struct_size;
  uint32_t pooling;  /* TRINE_POOLING_... */
  int32_t normalize; /* TRINE_NORMALIZE_... */
  uint32_t reserved;
  /* Called on the calling thread with the number of texts done, after each group of up to
   * max_sequences texts. If it returns another value than 0, trine_embed returns CANCELLED (1). */
  int32_t (*on_progress)(void* user, int64_t done, int64_t total);
  void* user;
} trine_embed_options;

/* Computes the vectors of `count` texts, which are given as tokens. Writes n_embd values for each
 * text, or with TRINE_POOLING_NONE for each token, and the number of all values to `n_values`.
 * Needs an engine with TRINE_ENGINE_EMBEDDINGS or TRINE_ENGINE_HIDDEN_ROWS. Texts share passes,
 * also with texts of other calls, but the vectors do not depend on that. Returns OUT_OF_RANGE (11),
 * before anything is computed, if the values do not fit or a text is longer than the context.
 * Options may be NULL. */
TRINE_API int32_t trine_embed(trine_engine* engine, const int32_t* const* texts,
                              const size_t* lengths, size_t count,
                              const trine_embed_options* options, float* values, size_t capacity,
                              size_t* n_values, trine_failure* why);

/* ---- Sessions */

typedef struct trine_sampler_options {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t seed;
  float temperature; /* 0: always take the likeliest token */
  int32_t top_k;     /* 0: off */
  float top_p;       /* 1: off */
  float min_p;       /* 0: off */
  float typical_p;   /* 1: off */
  int32_t repeat_last_n;
  float repeat_penalty; /* 1: off */
  float frequency_penalty;
  float presence_penalty;
  int32_t mirostat; /* 0 or 2 */
  float mirostat_tau;
  float mirostat_eta;
  const char* stages; /* NULL: "penalties;top_k;typ_p;top_p;min_p;temperature" */
  const int32_t* bias_tokens;
  const float* bias_values; /* added to the logits of bias_tokens; -infinity bans a token */
  size_t n_bias;
} trine_sampler_options;

/* Sets every member to the default of `trine generate`, and the seed to 0. In this struct 0 means
 * 0, not a default. */
TRINE_API void trine_sampler_options_init(trine_sampler_options* options, size_t struct_size);

enum {
  TRINE_SESSION_LOGITS_HASH = 1u << 0, /* allow trine_session_logits_hash */
  TRINE_SESSION_IGNORE_END = 1u << 1,  /* generate beyond the end of the text */
  TRINE_SESSION_SHOW_SPECIAL = 1u << 2 /* show control tokens in the text */
};

typedef struct trine_session_options {
  uint32_t struct_size;
  uint32_t flags;
  const trine_sampler_options* sampler; /* NULL: the defaults */
  const char* const* stop;              /* stop strings: each of them ends a generation */
  size_t n_stop;
  /* Constrain the output: every answer matches the grammar (GBNF), or is JSON that the schema
   * accepts. At most one of them may be set; NULL: any text. */
  const char* grammar;
  const char* json_schema;
  /* The name of a space. Sessions of the same space share the KV cache of tokens with which their
   * texts begin alike (docs/prefix-cache.md). NULL: the session shares with none. */
  const char* prefix_space;
} trine_session_options;

TRINE_API int32_t trine_session_open(trine_engine* engine, const trine_session_options* options,
                                     trine_session** session, trine_failure* why);
/* Frees a session. Does nothing if `session` is NULL. */
TRINE_API void trine_session_close(trine_session* session);

/* Append tokens, or the tokens of a text. Append nothing if they fail. Compute nothing yet. */
TRINE_API int32_t trine_session_append(trine_session* session, const int32_t* tokens, size_t count,
                                       trine_failure* why);
TRINE_API int32_t trine_session_append_text(trine_session* session, const char* text, size_t bytes,
                                            uint32_t flags, trine_failure* why);

/* ---- Chat (docs/chat.md) */

enum {
  TRINE_CHAT_NO_GENERATION_PROMPT = 1u << 0, /* do not begin the assistant's answer */
  /* For trine_session_append_chat: replaces the session's conversation. Tokens with which both
   * conversations begin stay evaluated; the tokens after them are replaced. */
  TRINE_CHAT_REPLACE = 1u << 1
};

typedef struct trine_chat_options {
  uint32_t struct_size;
  uint32_t flags;
  const char* tools;         /* a JSON array; NULL: none */
  const char* chat_template; /* a Jinja template; NULL: the model's own */
  const char* variables;     /* a JSON object: more variables for the template; NULL: none */
} trine_chat_options;

/* Formats messages, a JSON array of {"role": ..., "content": ...}, with the chat template. Writes
 * the text as trine_detokenize does. Returns FAILED_PRECONDITION (9) if there is no template, and
 * INVALID_ARGUMENT (3), with the template's own words, if the template refuses the messages. */
TRINE_API int32_t trine_chat_render(const trine_engine* engine, const char* messages, size_t bytes,
                                    const trine_chat_options* options, char* text, size_t capacity,
                                    size_t* text_bytes, trine_failure* why);
/* Appends the tokens of the text that trine_chat_render writes. No part of a message, tool or
 * variable becomes a control token. */
TRINE_API int32_t trine_session_append_chat(trine_session* session, const char* messages,
                                            size_t bytes, const trine_chat_options* options,
                                            trine_failure* why);

/* Drops all tokens but the first n. Token n - 1 is evaluated again, for its logits. Returns
 * INVALID_ARGUMENT (3) if the session has fewer than n tokens. */
TRINE_API int32_t trine_session_truncate(trine_session* session, int64_t n);
/* Removes tokens [begin, end). Later tokens are evaluated again at their new positions. */
TRINE_API int32_t trine_session_erase(trine_session* session, int64_t begin, int64_t end,
                                      trine_failure* why);

/* Makes a checkpoint, to which trine_session_regress can go back, and writes its number to `t`. A
 * checkpoint holds the number of tokens and of evaluated tokens, the logits, the sampler's state,
 * text that is half shown, the place in a grammar, and the logits hash (docs/branching.md). It
 * takes no memory of the KV cache, and making it takes the same time for any number of tokens. */
TRINE_API int32_t trine_session_checkpoint(trine_session* session, int64_t* t, trine_failure* why);
/* Goes back to a checkpoint and drops later checkpoints. May go back to the same one any number of
 * times. Computes nothing. Returns NOT_FOUND (5) if there is no such checkpoint, or if tokens of it
 * have been removed since. */
TRINE_API int32_t trine_session_regress(trine_session* session, int64_t t, trine_failure* why);
/* Drops a checkpoint. Returns NOT_FOUND (5) if there is no such checkpoint. */
TRINE_API int32_t trine_session_forget(trine_session* session, int64_t t, trine_failure* why);
/* Opens another session of the same engine in the state of this one, without its checkpoints. Both
 * share the KV cache of their common tokens and are independent otherwise. The fork draws other
 * random numbers if `seed` is given, and the same numbers if it is NULL. */
TRINE_API int32_t trine_session_fork(trine_session* session, const uint64_t* seed,
                                     trine_session** fork, trine_failure* why);

/* Writes the session's tokens as trine_tokenize does. */
TRINE_API int32_t trine_session_tokens(const trine_session* session, int32_t* tokens,
                                       size_t capacity, size_t* count);

/* Evaluates all appended tokens of these sessions together. The sessions must be of one engine. */
TRINE_API int32_t trine_evaluate(trine_session* const* sessions, size_t count, trine_failure* why);
/* Returns the n_vocab logits of the last token, or NULL if that token has not been evaluated. They
 * are valid until the session is used again. */
TRINE_API const float* trine_session_logits(const trine_session* session);
/* Samples the next token from the logits and appends it. */
TRINE_API int32_t trine_session_sample(trine_session* session, int32_t* token, trine_failure* why);

/* ---- Heads: choose the best of several branches, and rate a text (docs/branching.md)
 *
 * Any number of threads may use a head at once. Close it before its engine. */

typedef struct trine_head trine_head;

/* Reads a file that `trine head train` has written. Returns NOT_FOUND (5) for a missing file,
 * INVALID_ARGUMENT (3) for a file that is no head, and FAILED_PRECONDITION (9) for a head of
 * another model or an engine with neither TRINE_ENGINE_HIDDEN_ROWS nor TRINE_ENGINE_EMBEDDINGS. */
TRINE_API int32_t trine_head_open(trine_engine* engine, const char* path, trine_head** head,
                                  trine_failure* why);
/* Frees a head. Does nothing if `head` is NULL. */
TRINE_API void trine_head_close(trine_head* head);

enum {
  TRINE_HEAD_LABEL = 1, /* gives a text one of two labels */
  TRINE_HEAD_BRANCH = 2 /* finds the best of several texts */
};

typedef struct trine_head_info {
  uint32_t struct_size;
  uint32_t kind; /* TRINE_HEAD_... */
  uint32_t chat; /* 1: texts are put as messages into the model's chat template */
  uint32_t reserved;
  char labels[2][264]; /* TRINE_HEAD_LABEL: the labels; log-odds are those of the second one */
} trine_head_info;

TRINE_API int32_t trine_head_describe(const trine_head* head, trine_head_info* info);

/* Evaluates `count` UTF-8 texts and chooses: a TRINE_HEAD_BRANCH head one of two or more texts, a
 * TRINE_HEAD_LABEL head one of its two labels for a single text. Writes the index of the choice to
 * `best` and, unless `probabilities` is NULL, the probability of each text or label to it. Returns
 * OUT_OF_RANGE (11), before anything is computed, if `capacity` is too small or a text is longer
 * than the context. Returns FAILED_PRECONDITION (9) if the head's kind takes another number of
 * texts. */
TRINE_API int32_t trine_head_choose(const trine_head* head, const char* const* texts,
                                    const size_t* lengths, size_t count, size_t* best,
                                    double* probabilities, size_t capacity, trine_failure* why);

/* Evaluates the appended tokens and writes a head's log-odds for the session's text. Needs an
 * engine with TRINE_ENGINE_HIDDEN_ROWS. The first call for a session evaluates the last token a
 * second time. The log-odds of a TRINE_HEAD_BRANCH head only say which of several texts is better.
 */
TRINE_API int32_t trine_session_head_value(trine_session* session, const trine_head* head,
                                           double* log_odds, trine_failure* why);

enum {
  TRINE_FINISH_LENGTH = 1,
  TRINE_FINISH_END_OF_TEXT = 2,
  TRINE_FINISH_STOP_STRING = 3,
  TRINE_FINISH_CONTEXT_FULL = 4,
  TRINE_FINISH_CANCELLED = 5,
  TRINE_FINISH_CALLER = 6 /* on_text or on_token ended it */
};

enum {
  /* Another call follows. Hold back a character or stop string that is incomplete at the end of
   * this call for the next call, instead of showing it. */
  TRINE_GENERATE_MORE_FOLLOWS = 1u << 0,
  /* Pass log-probabilities to on_token. */
  TRINE_GENERATE_LOGPROBS = 1u << 1,
  /* When the context is full, drop half of the tokens after the first trine_generate_options.keep
   * ones, and evaluate the rest again. */
  TRINE_GENERATE_CONTEXT_SHIFT = 1u << 2
};

typedef struct trine_logprob {
  int32_t token;
  uint32_t reserved;
  double logprob; /* the natural logarithm of the probability, before any sampling option */
} trine_logprob;

/* A token that was just chosen. The struct is valid during the call of on_token. */
typedef struct trine_token_event {
  uint32_t struct_size; /* set by the library */
  int32_t token;
  double logprob;           /* the token's; 0 without TRINE_GENERATE_LOGPROBS */
  const trine_logprob* top; /* the likeliest tokens, best first */
  size_t n_top;
} trine_token_event;

/* Lets a head influence the choice of tokens. Each candidate for a token is evaluated, and the
 * head's log-odds for the text that ends with the candidate are added to the candidate's logit
 * (docs/branching.md). Needs an engine with TRINE_ENGINE_HIDDEN_ROWS and `branches`. */
typedef struct trine_rerank_options {
  uint32_t struct_size;
  int32_t top;            /* the number of candidates for a token, at most 64; 0: 8 */
  const trine_head* head; /* must be of the session's engine and stay open during generation */
  double weight;          /* log-odds are multiplied by this; may be negative; 0: 1 */
  double limit;           /* the largest magnitude of log-odds; 0: 10 */
} trine_rerank_options;

typedef struct trine_generate_options {
  uint32_t struct_size;
  uint32_t flags;
  /* The most tokens to generate; 0: none, only the prompt is evaluated; -1: until the context is
   * full, or without a limit if TRINE_GENERATE_CONTEXT_SHIFT is set. */
  int64_t max_tokens;
  /* Receives text that is final: whole UTF-8 characters that are no part of a stop string, without
   * a NUL at the end. If it returns another value than 0, the generation ends. Called on the
   * generating thread. */
  int32_t (*on_text)(void* user, const char* text, size_t bytes);
  /* Receives how many tokens of the prompt are evaluated. Called on any thread that evaluates or
   * generates on the engine. */
  void (*on_prompt)(void* user, int64_t done, int64_t total);
  void* user;
  /* Receives each token, before its text. If it returns another value than 0, the generation ends.
   * Called on the generating thread. */
  int32_t (*on_token)(void* user, const trine_token_event* event);
  /* The number of first tokens that TRINE_GENERATE_CONTEXT_SHIFT keeps, at most all tokens that the
   * session has when the call begins; -1: all of these. A BOS is always kept. */
  int64_t keep;
  int32_t n_logprobs; /* the number of likeliest tokens for on_token, at most 1024 */
  uint32_t reserved;
  const trine_rerank_options* rerank; /* NULL: none */
} trine_generate_options;

typedef struct trine_generate_result {
  uint32_t struct_size;
  uint32_t finish; /* TRINE_FINISH_... */
  int64_t prompt_tokens;
  int64_t generated_tokens;
  double prompt_ms;
  double generate_ms;
  int64_t context_shifts;
  uint32_t complete; /* 0: a constrained answer was cut and does not match its grammar */
  uint32_t reserved;
  int64_t rerank_candidates; /* the number of candidates that were evaluated */
  double rerank_ms;          /* the part of generate_ms that the candidates took */
} trine_generate_result;

/* Evaluates the appended tokens and generates the text that follows them. Generates at most 256
 * tokens if `options` is NULL. `result` may be NULL. */
TRINE_API int32_t trine_generate(trine_session* session, const trine_generate_options* options,
                                 trine_generate_result* result, trine_failure* why);
/* Generates for several sessions of one engine, whose tokens share passes. `options` and `results`
 * have `count` elements each or are NULL. */
TRINE_API int32_t trine_generate_together(trine_session* const* sessions, size_t count,
                                          const trine_generate_options* const* options,
                                          trine_generate_result* const* results,
                                          trine_failure* why);
/* Ends the session's call in progress soon or, if there is none, its next call. A generation ends
 * with TRINE_FINISH_CANCELLED, an evaluation with CANCELLED (1). The session stays usable. Any
 * thread may call it. */
TRINE_API void trine_session_cancel(trine_session* session);

/* Writes the hash of the logits of every position so far, as NUL-terminated text of at most
 * `capacity` bytes; 24 are enough. The hash is equal for every device, split, thread count and
 * batch. With fast numerics it is not, and the text begins with "fast-". Needs
 * TRINE_SESSION_LOGITS_HASH. */
TRINE_API int32_t trine_session_logits_hash(const trine_session* session, char* text,
                                            size_t capacity);

#ifdef __cplusplus
}
#endif
#endif /* TRINE_TRINE_H_ */
