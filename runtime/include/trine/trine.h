/* libtrine's C API. C11 and C++; opaque handles, structs versioned by struct_size, no abort, no
 * exception, nothing printed. Statuses are numbers of absl::StatusCode, 0 being success. Calls may
 * come from any thread unless a comment says otherwise. docs/embedding.md shows how it is used. */
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

/* "0.1.0" */
TRINE_API const char* trine_version(void);
/* Of the plugin ABI this library speaks: major << 16 | minor. */
TRINE_API uint32_t trine_backend_abi_version(void);
/* Of the arithmetic contract: results are equal, bit for bit, within one version. */
TRINE_API uint32_t trine_numerics_version(void);

typedef struct trine_detect_options {
  uint32_t struct_size;
  uint32_t reserved;
  /* Plugin files or folders to look at first, colon-separated, or NULL. */
  const char* plugins;
  /* A folder with proc/ and sys/ of the machine to describe, or NULL for this one. With it no
   * plugin is looked for. */
  const char* root;
} trine_detect_options;

/* Describes the machine, its tiers, devices, memory pools and plugins as JSON (docs/detect.md),
 * which trine_string_free takes back. Plugins are probed in a child process. Options may be NULL.
 * Detection itself never fails; only a bad argument (3) or want of memory (8) does. */
TRINE_API int32_t trine_detect(const trine_detect_options* options, char** json);

TRINE_API void trine_string_free(char* text);

/* ---- Engines, sessions, generation -----------------------------------------------------------
 *
 * An engine is a model placed on devices; sessions are conversations on it. Strings are UTF-8.
 * Every struct begins with struct_size, set by the caller to its sizeof; a number of 0 and a NULL
 * mean "the default" unless a comment says otherwise. Fallible calls return a status and, where
 * `why` is not NULL, a sentence.
 *
 * Threads: an engine may be used by any number of threads at once. A session is used by one thread
 * at a time, but trine_session_cancel may come from any. Sessions whose calls run at the same time
 * share passes through the model. Close sessions before their engine. */

typedef struct trine_engine trine_engine;
typedef struct trine_session trine_session;

typedef struct trine_failure {
  uint32_t struct_size;
  int32_t status;
  char message[1016]; /* NUL-terminated */
} trine_failure;

enum {
  TRINE_ENGINE_NO_MMAP = 1u << 0,     /* read the file into memory instead of mapping it */
  TRINE_ENGINE_LOCK_MEMORY = 1u << 1, /* keep it from being swapped out; a refusal is a warning */
  TRINE_ENGINE_EMBEDDINGS = 1u << 2,  /* for trine_embed; no session can be opened on it */
  TRINE_ENGINE_NO_PACK = 1u << 3,     /* keep weights as in the file: loads faster, runs slower */
  TRINE_ENGINE_ALLOW_DEGRADED = 1u << 4, /* go on without devices that are named and not there */
  TRINE_ENGINE_KV_LOSSY = 1u << 5,   /* blocks kept with fewer bits may be used: kv_store_type */
  TRINE_ENGINE_HIDDEN_ROWS = 1u << 6 /* for heads and trine_embed, beside sessions */
};

typedef struct trine_engine_options {
  uint32_t struct_size;
  uint32_t flags;
  const char* model;        /* a GGUF file, or any part of a split one */
  const char* tensor_split; /* "cpu:4,igpu:12,dgpu:16"; NULL: the runtime decides */
  const char* plugins;      /* plugin files or folders to look at first, colon-separated */
  const char* kv_type_k;    /* "f16" (default), "f32", "bf16", "q8_0" */
  const char* kv_type_v;
  int64_t context;      /* positions of a sequence; 0: the model's, at most 4096; -1: the model's */
  int64_t batch_tokens; /* in one pass; 0: 512 */
  /* In one pass, and full ones the cache holds; 0: 1. For embeddings: texts in one pass, which
   * share a cache of one full context; 0: 32. */
  int64_t max_sequences;
  uint32_t threads; /* 0: one per core */
  uint32_t reserved;
  /* While loading, on the calling thread, with 0 to 1; another value than 0 stops it: CANCELLED. */
  int32_t (*on_progress)(void* user, double fraction);
  /* Warnings, and what plugins say; from any thread; never after trine_engine_close has returned,
   * which waits for one that is being told. Not to call the engine from.
   * Levels are those of trine/backend.h: 1 debug, 2 info, 3 warning, 4 error. */
  void (*on_log)(void* user, uint32_t level, const char* message);
  void* user;
  /* Keep packed weights in a file between runs: in this folder, or with "" beside the model, as
   * MODEL.trine-pack. NULL: no. A file that can't be used or written is a warning. */
  const char* pack_cache;
  /* Devices that are to fail, and when, as docs/faults.md writes it. The variable TRINE_FAULT
   * overrides it. */
  const char* faults;
  /* A file that a timeline of what happens is written to when the engine is closed
   * (docs/tracing.md), or by trine_engine_write_trace. One that can't be written is an error before
   * the model is loaded. */
  const char* trace;
  /* Where the runtime decides (docs/placement.md). NULL, or "", everywhere: as it thinks best. */
  const char* devices;          /* it keeps to these: "cpu,dgpu0" */
  const char* split_strategy;   /* "auto" (default), "memory", "balanced" */
  const char* optimize;         /* "latency" (default), "throughput" */
  const char* device_memory;    /* most that devices are given: "dgpu:2G,igpu:512M" */
  const char* split_mode;       /* "layer" (default), "row", "none": docs/split-modes.md */
  const char* override_tensors; /* "REGEX=DEVICE,...": matrices that go elsewhere */
  /* Whether large passes may leave the devices that their layers are on (docs/dispatch.md): "auto"
   * (default), "off", or from how many tokens on. */
  const char* dispatch;
  /* Milliseconds that a device, other than the CPU, may take for a pass, or for a call while the
   * model is loaded: then it counts as lost. 0: 300000. */
  uint64_t device_timeout_ms;
  /* What has been read of texts, kept beyond the devices' caches (docs/kv.md) for sessions that
   * have a prefix_space. */
  const char* kv_store;      /* a folder, for later runs too; NULL: none */
  uint64_t kv_store_bytes;   /* most there; 0: 16 GiB */
  uint64_t kv_host_bytes;    /* most in memory; 0: none */
  const char* kv_store_type; /* "raw" (default), or with fewer bits: "q8_0", "q4_0", "mxfp4" */
  /* Candidates that can be read for tokens at once (trine_rerank_options), of all sessions: each
   * has a place in a pass, and 64 positions of the cache, beside those of max_sequences. 0: none.
   */
  int64_t branches;
} trine_engine_options;

TRINE_API int32_t trine_engine_open(const trine_engine_options* options, trine_engine** engine,
                                    trine_failure* why);
TRINE_API void trine_engine_close(trine_engine* engine); /* NULL does nothing */

typedef struct trine_engine_info {
  uint32_t struct_size;
  uint32_t threads;
  int64_t n_vocab;
  int64_t n_layers;
  int64_t context;       /* of a session */
  int64_t context_train; /* the model was trained with */
  uint64_t weight_bytes;
  uint64_t kv_bytes;
  uint64_t scratch_bytes;
  char architecture[32];
  char name[128];
  int64_t n_embd; /* values of an embedding */
} trine_engine_info;

TRINE_API int32_t trine_engine_describe(const trine_engine* engine, trine_engine_info* info);

/* ---- What devices do, and what becomes of them (docs/surviving.md) */

/* A run of layers on one device, with what it has done since it was placed there. */
typedef struct trine_segment_info {
  uint32_t struct_size;
  uint32_t placement; /* counts up when the model is placed anew: then all segments are new ones */
  char device[32];
  int64_t first_layer;
  int64_t end_layer; /* the one behind its last */
  uint64_t passes;
  uint64_t tokens;
  uint64_t busy_ns;    /* at work */
  uint64_t waiting_ns; /* without work, while other segments had some */
  uint64_t blocked_ns; /* with a pass that the next segment had no room for */
  double busy_ratio;   /* busy_ns of all three */
  uint64_t bytes_in;   /* inputs and results that were copied, not weights */
  uint64_t bytes_out;
  uint64_t detours; /* passes of some sizes that another device had a part in: docs/dispatch.md */
  char helper[32];  /* that device, "" where there is none */
} trine_segment_info;

/* The segments in order, counted from 0. OUT_OF_RANGE (11) behind the last one; there are none
 * while the model is placed anew. */
TRINE_API int32_t trine_engine_segment(const trine_engine* engine, size_t index,
                                       trine_segment_info* info);

/* A device that failed, and that the model goes on without. */
typedef struct trine_lost_device {
  uint32_t struct_size;
  uint32_t reserved;
  char device[32];
  char reason[472];
  uint64_t lost_ms; /* ago */
} trine_lost_device;

/* Counted from 0, in the order in which they were lost. OUT_OF_RANGE (11) behind the last one. */
TRINE_API int32_t trine_engine_lost_device(const trine_engine* engine, size_t index,
                                           trine_lost_device* lost);

/* Takes a device that was lost in again, or with NULL or "" all of them; also done by itself, some
 * time after the loss, when a new request begins. Waits until no pass is under way, so it is not
 * for callbacks. UNAVAILABLE (14), with the reason, for a device that still does not work: the
 * model then stays as it is, or goes on with those that do. FAILED_PRECONDITION (9) for one that is
 * not lost. Sessions go on, with the same text. */
TRINE_API int32_t trine_engine_readmit(trine_engine* engine, const char* device,
                                       trine_failure* why);

/* What has been traced so far, to the file that the options name; without one nothing happens. */
TRINE_API int32_t trine_engine_write_trace(trine_engine* engine, trine_failure* why);

/* ---- Tokens */

enum {
  TRINE_TOKENIZE_NO_SPECIAL = 1u << 0,   /* without the BOS or EOS the file asks for */
  TRINE_TOKENIZE_PARSE_SPECIAL = 1u << 1 /* text such as <|im_end|> becomes that token */
};

/* Writes at most `capacity` ids and how many there are. OUT_OF_RANGE (11) when they did not fit. */
TRINE_API int32_t trine_tokenize(const trine_engine* engine, const char* text, size_t bytes,
                                 uint32_t flags, int32_t* tokens, size_t capacity, size_t* count,
                                 trine_failure* why);
/* The bytes of tokens, not NUL-terminated, in the same manner. Control tokens give nothing. */
TRINE_API int32_t trine_detokenize(const trine_engine* engine, const int32_t* tokens, size_t count,
                                   char* text, size_t capacity, size_t* bytes, trine_failure* why);
/* 1 when generation ends with this token. */
TRINE_API int32_t trine_token_is_end(const trine_engine* engine, int32_t token);

/* ---- Embeddings */

enum {
  TRINE_POOLING_DEFAULT = 0, /* what the file says, or else TRINE_POOLING_LAST */
  TRINE_POOLING_NONE = 1,    /* a vector for every token */
  TRINE_POOLING_MEAN = 2,
  TRINE_POOLING_CLS = 3, /* the first token's */
  TRINE_POOLING_LAST = 4
};

/* trine_embed_options.normalize; from 1 to 32 it is that p-norm. */
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
  /* Texts that are done, on the calling thread; another value than 0 ends it: CANCELLED. Asked when
   * the texts that went through the model together are done, at most max_sequences of them. */
  int32_t (*on_progress)(void* user, int64_t done, int64_t total);
  void* user;
} trine_embed_options;

/* The vectors of `count` texts, given as tokens, one behind the other: n_embd values for each text,
 * or with TRINE_POOLING_NONE for each token. Needs an engine with TRINE_ENGINE_EMBEDDINGS or
 * TRINE_ENGINE_HIDDEN_ROWS. Texts share passes, and so do calls that run at the same time; a text's
 * vector is the same whatever the company. Writes how many values there are in `n_values`;
 * OUT_OF_RANGE (11), before anything is computed, where `capacity` is less, or where a text is
 * longer than the context. Options may be NULL. */
TRINE_API int32_t trine_embed(trine_engine* engine, const int32_t* const* texts,
                              const size_t* lengths, size_t count,
                              const trine_embed_options* options, float* values, size_t capacity,
                              size_t* n_values, trine_failure* why);

/* ---- Sessions */

typedef struct trine_sampler_options {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t seed;
  float temperature; /* 0: always the likeliest token */
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
  const char* stages; /* "penalties;top_k;typ_p;top_p;min_p;temperature"; NULL: that */
  const int32_t* bias_tokens;
  const float* bias_values; /* added to the logits of bias_tokens; -infinity bans */
  size_t n_bias;
} trine_sampler_options;

/* Every member as `trine generate` has it, seed 0. Here no number stands for a default: 0 is 0. */
TRINE_API void trine_sampler_options_init(trine_sampler_options* options, size_t struct_size);

enum {
  TRINE_SESSION_LOGITS_HASH = 1u << 0, /* see trine_session_logits_hash */
  TRINE_SESSION_IGNORE_END = 1u << 1,  /* go on after the end of the text */
  TRINE_SESSION_SHOW_SPECIAL = 1u << 2 /* control tokens appear in the text */
};

typedef struct trine_session_options {
  uint32_t struct_size;
  uint32_t flags;
  const trine_sampler_options* sampler; /* NULL: the defaults */
  const char* const* stop;              /* generation ends where one of these appears */
  size_t n_stop;
  /* Constrained output: every answer is a text of the grammar (GBNF), or JSON the schema accepts.
   * At most one of the two; NULL: any text. */
  const char* grammar;
  const char* json_schema;
  /* What its text begins with is shared with sessions of the same space, and with no others
   * (docs/prefix-cache.md). NULL: with none. */
  const char* prefix_space;
} trine_session_options;

TRINE_API int32_t trine_session_open(trine_engine* engine, const trine_session_options* options,
                                     trine_session** session, trine_failure* why);
TRINE_API void trine_session_close(trine_session* session); /* NULL does nothing */

/* Puts tokens, or text, behind what is there. Nothing is computed yet. All or none of them. */
TRINE_API int32_t trine_session_append(trine_session* session, const int32_t* tokens, size_t count,
                                       trine_failure* why);
TRINE_API int32_t trine_session_append_text(trine_session* session, const char* text, size_t bytes,
                                            uint32_t flags, trine_failure* why);

/* ---- Chat (docs/chat.md) */

enum {
  TRINE_CHAT_NO_GENERATION_PROMPT = 1u << 0, /* don't begin the assistant's answer */
  /* For trine_session_append_chat: the session becomes this conversation. The tokens it begins with
   * alike stay as they are, evaluated; what follows them is replaced. */
  TRINE_CHAT_REPLACE = 1u << 1
};

typedef struct trine_chat_options {
  uint32_t struct_size;
  uint32_t flags;
  const char* tools;         /* a JSON array; NULL: none */
  const char* chat_template; /* Jinja; NULL: the model's own */
  const char* variables;     /* a JSON object: whatever else the template asks for */
} trine_chat_options;

/* The messages, a JSON array of {"role": ..., "content": ...}, as the template writes them: text in
 * the manner of trine_detokenize. FAILED_PRECONDITION (9) when there is no template,
 * INVALID_ARGUMENT (3) with its own words where it refuses the messages. */
TRINE_API int32_t trine_chat_render(const trine_engine* engine, const char* messages, size_t bytes,
                                    const trine_chat_options* options, char* text, size_t capacity,
                                    size_t* text_bytes, trine_failure* why);
/* The same as tokens, put behind what is there. Nothing that a message, a tool or a variable says
 * becomes a control token. */
TRINE_API int32_t trine_session_append_chat(trine_session* session, const char* messages,
                                            size_t bytes, const trine_chat_options* options,
                                            trine_failure* why);

/* Back to the first n tokens; what follows goes on from the last of them. */
TRINE_API int32_t trine_session_truncate(trine_session* session, int64_t n);
/* Takes the tokens [begin, end) out. What is behind them is evaluated again at its new place. */
TRINE_API int32_t trine_session_erase(trine_session* session, int64_t begin, int64_t end,
                                      trine_failure* why);

/* A point in time to come back to: tokens and what has been read of them, logits, the sampler and
 * its random numbers, text that is half shown, the place in a grammar, the logits hash
 * (docs/branching.md). It takes no memory of the cache, and no longer however many tokens there
 * are. */
TRINE_API int32_t trine_session_checkpoint(trine_session* session, int64_t* t, trine_failure* why);
/* Back to it, however often; nothing is computed. Later ones are forgotten. NOT_FOUND (5): there is
 * none, or tokens it had were taken out since. */
TRINE_API int32_t trine_session_regress(trine_session* session, int64_t t, trine_failure* why);
TRINE_API int32_t trine_session_forget(trine_session* session, int64_t t, trine_failure* why);
/* Another session of the same engine that stands where this one does, without its checkpoints. The
 * two share what has been read, and know nothing of each other. `seed`: the fork draws other random
 * numbers; NULL: the same. */
TRINE_API int32_t trine_session_fork(trine_session* session, const uint64_t* seed,
                                     trine_session** fork, trine_failure* why);

/* The tokens there are, as trine_tokenize writes them. */
TRINE_API int32_t trine_session_tokens(const trine_session* session, int32_t* tokens,
                                       size_t capacity, size_t* count);

/* Brings all appended tokens of these sessions, of one engine, through the model together. */
TRINE_API int32_t trine_evaluate(trine_session* const* sessions, size_t count, trine_failure* why);
/* The logits of the last token, n_vocab of them, until the session is used again; NULL when it has
 * not been evaluated. */
TRINE_API const float* trine_session_logits(const trine_session* session);
/* Samples the next token from them and appends it. */
TRINE_API int32_t trine_session_sample(trine_session* session, int32_t* token, trine_failure* why);

/* ---- Heads: which of several branches is better, and how good a text is (docs/branching.md)
 *
 * A head may be used by any number of threads at once. Close it before its engine. */

typedef struct trine_head trine_head;

/* Reads a file that `trine head train` has written. NOT_FOUND (5), INVALID_ARGUMENT (3) for one
 * that is no head, FAILED_PRECONDITION (9) for a head of another model, and for an engine with
 * neither TRINE_ENGINE_HIDDEN_ROWS nor TRINE_ENGINE_EMBEDDINGS. */
TRINE_API int32_t trine_head_open(trine_engine* engine, const char* path, trine_head** head,
                                  trine_failure* why);
TRINE_API void trine_head_close(trine_head* head); /* NULL does nothing */

enum {
  TRINE_HEAD_LABEL = 1, /* a text has one of two labels */
  TRINE_HEAD_BRANCH = 2 /* of several texts one is best */
};

typedef struct trine_head_info {
  uint32_t struct_size;
  uint32_t kind; /* TRINE_HEAD_... */
  uint32_t chat; /* 1: texts are messages, in the model's chat template */
  uint32_t reserved;
  char labels[2][264]; /* TRINE_HEAD_LABEL: log-odds are those of the second one */
} trine_head_info;

TRINE_API int32_t trine_head_describe(const trine_head* head, trine_head_info* info);

/* Reads `count` texts, UTF-8, and writes which is best and, where `probabilities` is not NULL, how
 * probable each is: with TRINE_HEAD_BRANCH of two texts or more, with TRINE_HEAD_LABEL of the two
 * labels of one text. OUT_OF_RANGE (11), before anything is computed, where `capacity` is less, or
 * where a text is longer than the context. FAILED_PRECONDITION (9) for a number of texts that is
 * not the kind's. */
TRINE_API int32_t trine_head_choose(const trine_head* head, const char* const* texts,
                                    const size_t* lengths, size_t count, size_t* best,
                                    double* probabilities, size_t capacity, trine_failure* why);

/* The log-odds of the text that a session has, of an engine with TRINE_ENGINE_HIDDEN_ROWS. What was
 * appended is evaluated; after the first call for a session it costs no more than that. Of a head
 * for branches they mean something beside those of other texts alone. */
TRINE_API int32_t trine_session_head_value(trine_session* session, const trine_head* head,
                                           double* log_odds, trine_failure* why);

enum {
  TRINE_FINISH_LENGTH = 1,
  TRINE_FINISH_END_OF_TEXT = 2,
  TRINE_FINISH_STOP_STRING = 3,
  TRINE_FINISH_CONTEXT_FULL = 4,
  TRINE_FINISH_CANCELLED = 5,
  TRINE_FINISH_CALLER = 6 /* on_text or on_token said so */
};

enum {
  /* Another call follows: a character or stop string that is half complete at the end of this one
   * is held back for it, rather than shown as it is. */
  TRINE_GENERATE_MORE_FOLLOWS = 1u << 0,
  /* on_token gets log-probabilities. */
  TRINE_GENERATE_LOGPROBS = 1u << 1,
  /* Where the context is full, half of what is not kept goes, and the rest is evaluated again. */
  TRINE_GENERATE_CONTEXT_SHIFT = 1u << 2
};

typedef struct trine_logprob {
  int32_t token;
  uint32_t reserved;
  double logprob; /* natural logarithm, of the model's own distribution */
} trine_logprob;

/* A token as it is chosen. Valid during the call. */
typedef struct trine_token_event {
  uint32_t struct_size; /* the library's */
  int32_t token;
  double logprob;           /* of the token; 0 without TRINE_GENERATE_LOGPROBS */
  const trine_logprob* top; /* the likeliest tokens, best first */
  size_t n_top;
} trine_token_event;

/* Tokens are chosen by what a head says of the text with each candidate behind it, which is read
 * for that (docs/branching.md). Needs an engine with TRINE_ENGINE_HIDDEN_ROWS and with `branches`.
 */
typedef struct trine_rerank_options {
  uint32_t struct_size;
  int32_t top;            /* candidates for a token, at most 64; 0: 8 */
  const trine_head* head; /* of the session's engine; stays open while text is generated */
  double weight;          /* of log-odds, which are added to logits; may be negative; 0: 1 */
  double limit;           /* of log-odds either way; 0: 10 */
} trine_rerank_options;

typedef struct trine_generate_options {
  uint32_t struct_size;
  uint32_t flags;
  /* 0: read the prompt alone; -1: until the context is full, or with a context shift without end */
  int64_t max_tokens;
  /* Text that is final: whole UTF-8 characters, not NUL-terminated, no part of a stop string.
   * Another value than 0 ends the generation. On the thread that generates. */
  int32_t (*on_text)(void* user, const char* text, size_t bytes);
  /* Tokens of the prompt that have been read. From any thread that generates. */
  void (*on_prompt)(void* user, int64_t done, int64_t total);
  void* user;
  /* Each token, before its text. Another value than 0 ends the generation. On the thread that
   * generates. */
  int32_t (*on_token)(void* user, const trine_token_event* event);
  /* With TRINE_GENERATE_CONTEXT_SHIFT: tokens, of those there are at the beginning, that stay; -1:
   * all of them. A BOS always stays. */
  int64_t keep;
  int32_t n_logprobs; /* likeliest tokens that on_token gets, at most 1024 */
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
  uint32_t complete; /* 0: a constrained answer that was cut, and is no text of its grammar */
  uint32_t reserved;
  int64_t rerank_candidates; /* that were read, for all tokens */
  double rerank_ms;          /* that it took, of generate_ms */
} trine_generate_result;

/* Evaluates what was appended and goes on from there. `options` and `result` may be NULL: 256
 * tokens, and nobody asks. */
TRINE_API int32_t trine_generate(trine_session* session, const trine_generate_options* options,
                                 trine_generate_result* result, trine_failure* why);
/* Several sessions of one engine in step, their tokens sharing passes; arrays have `count`
 * elements, or are NULL. */
TRINE_API int32_t trine_generate_together(trine_session* const* sessions, size_t count,
                                          const trine_generate_options* const* options,
                                          trine_generate_result* const* results,
                                          trine_failure* why);
/* From any thread: what the session is doing, or else what it does next, ends soon, a generation
 * with TRINE_FINISH_CANCELLED, an evaluation with CANCELLED (1). The session can be used again. */
TRINE_API void trine_session_cancel(trine_session* session);

/* Of the logits of every position so far, with TRINE_SESSION_LOGITS_HASH: equal on every device,
 * split, thread count and batch. A text of `capacity` bytes at most, NUL-terminated. */
TRINE_API int32_t trine_session_logits_hash(const trine_session* session, char* text,
                                            size_t capacity);

#ifdef __cplusplus
}
#endif
#endif /* TRINE_TRINE_H_ */
