/* A backend as somebody might have written it against ABI 1.0, in C, from the header alone. It must
 * load and pass the conformance kit for ever: when it does not, the ABI was broken. Do not change
 * it to please a newer header.
 *
 * One device in host memory, which imports the host's; one kind of op: add, both inputs of the same
 * dimensions, its rows shared out among the host's workers. */
#define _POSIX_C_SOURCE 200809L

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backend_1_0.h"

#define MAX_OPS 8
#define MAX_SLOTS 16
#define MAX_ALTERNATES 4
#define IMPORT_ALIGNMENT 64

struct trine_backend {
  trine_host host;
};
struct trine_device {
  trine_backend* backend;
};
struct trine_buffer {
  char* data;
  uint64_t bytes;
  int imported, read_only;
};
struct trine_timeline {
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  uint64_t value;
  trine_status failure;
  char message[256];
};
typedef struct {
  trine_tensor a, b, y;
} add_op;
typedef struct {
  int64_t min, max; /* of the one parameter, when there is one */
  uint32_t n_params, n_slots, n_ops;
  uint32_t alternates[MAX_SLOTS];
  uint32_t roles[MAX_SLOTS];
  uint64_t slot_bytes[MAX_SLOTS];
  add_op ops[MAX_OPS];
} add_graph;
struct trine_plan {
  const trine_host* host;
  add_graph graph;
  char* base[MAX_SLOTS][MAX_ALTERNATES];
};

static trine_status fail(trine_error* err, trine_status status, const char* message) {
  if (err != NULL) snprintf(err->message, sizeof(err->message), "%s", message);
  return status;
}
static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }
static const void* at(const void* array, uint32_t stride, uint32_t i) {
  return (const char*)array + (size_t)stride * i;
}

/* ---- Backend and device ---- */

static trine_status open_backend(const trine_host* host, const char* options, trine_backend** out,
                                 trine_error* err) {
  if (options != NULL && *options != '\0') {
    char text[200];
    snprintf(text, sizeof(text), "unknown option: %s", options);
    return fail(err, TRINE_INVALID_ARGUMENT, text);
  }
  trine_backend* backend = calloc(1, sizeof(*backend));
  if (backend == NULL) return fail(err, TRINE_RESOURCE_EXHAUSTED, "out of memory");
  memcpy(&backend->host, host, smaller(host->struct_size, sizeof(*host)));
  backend->host.log(backend->host.self, TRINE_LOG_DEBUG, "the frozen backend is open");
  *out = backend;
  return TRINE_OK;
}
static void close_backend(trine_backend* backend) { free(backend); }
static uint32_t device_count(trine_backend* backend) {
  (void)backend;
  return 1;
}
static trine_status device_info(trine_backend* backend, uint32_t index, trine_device_info* out,
                                trine_error* err) {
  (void)backend;
  if (index != 0) return fail(err, TRINE_NOT_FOUND, "there is one device");
  trine_device_info info;
  memset(&info, 0, sizeof(info));
  info.struct_size = out->struct_size;
  info.tier = TRINE_TIER_OTHER;
  info.flags = TRINE_DEVICE_SOFTWARE;
  info.numerics = TRINE_NUMERICS_EXACT;
  info.memory_total = info.memory_free = (uint64_t)1 << 30;
  info.buffer_alignment = 16;
  info.import_alignment = IMPORT_ALIGNMENT;
  info.imports = TRINE_IMPORTS_TRIED | TRINE_IMPORTS_WRITABLE | TRINE_IMPORTS_READ_ONLY;
  strcpy(info.name, "frozen test device");
  strcpy(info.memory_pool, "system");
  strcpy(info.bandwidth_domain, "system");
  memcpy(out, &info, smaller(info.struct_size, sizeof(info)));
  return TRINE_OK;
}
static trine_status device_open(trine_backend* backend, uint32_t index, trine_device** out,
                                trine_error* err) {
  if (index != 0) return fail(err, TRINE_NOT_FOUND, "there is one device");
  *out = malloc(sizeof(**out));
  if (*out == NULL) return fail(err, TRINE_RESOURCE_EXHAUSTED, "out of memory");
  (*out)->backend = backend;
  return TRINE_OK;
}
static void device_close(trine_device* device) { free(device); }

/* ---- Memory ---- */

static trine_status buffer_alloc(trine_device* device, const trine_buffer_desc* desc,
                                 trine_buffer** out, trine_error* err) {
  (void)device;
  if (desc->bytes == 0) return fail(err, TRINE_INVALID_ARGUMENT, "a buffer has bytes");
  if (desc->memory < TRINE_MEMORY_WEIGHTS || desc->memory > TRINE_MEMORY_IO) {
    return fail(err, TRINE_INVALID_ARGUMENT, "unknown kind of memory");
  }
  if (desc->bytes > (uint64_t)1 << 40) return fail(err, TRINE_RESOURCE_EXHAUSTED, "too large");
  trine_buffer* buffer = calloc(1, sizeof(*buffer));
  char* data = malloc(desc->bytes);
  if (buffer == NULL || data == NULL) {
    free(buffer);
    free(data);
    return fail(err, TRINE_RESOURCE_EXHAUSTED, "out of memory");
  }
  buffer->data = data;
  buffer->bytes = desc->bytes;
  *out = buffer;
  return TRINE_OK;
}
static trine_status buffer_import(trine_device* device, const trine_import_desc* desc,
                                  trine_buffer** out, trine_error* err) {
  (void)device;
  if (desc->host_ptr == NULL || desc->bytes == 0) {
    return fail(err, TRINE_INVALID_ARGUMENT, "there is nothing to import");
  }
  if ((uintptr_t)desc->host_ptr % IMPORT_ALIGNMENT != 0 || desc->bytes % IMPORT_ALIGNMENT != 0) {
    return fail(err, TRINE_INVALID_ARGUMENT, "what is imported must be aligned");
  }
  trine_buffer* buffer = calloc(1, sizeof(*buffer));
  if (buffer == NULL) return fail(err, TRINE_RESOURCE_EXHAUSTED, "out of memory");
  buffer->data = desc->host_ptr;
  buffer->bytes = desc->bytes;
  buffer->imported = 1;
  buffer->read_only = (desc->flags & TRINE_IMPORT_READ_ONLY) != 0;
  *out = buffer;
  return TRINE_OK;
}
static void* buffer_host_ptr(trine_buffer* buffer) { return buffer->data; }
static void buffer_free(trine_buffer* buffer) {
  if (!buffer->imported) free(buffer->data);
  free(buffer);
}
static int in_range(const trine_buffer* buffer, uint64_t offset, uint64_t bytes) {
  return offset <= buffer->bytes && bytes <= buffer->bytes - offset;
}
static trine_status buffer_write(trine_buffer* buffer, uint64_t offset, const void* src,
                                 uint64_t bytes, trine_error* err) {
  if (!in_range(buffer, offset, bytes)) return fail(err, TRINE_OUT_OF_RANGE, "out of range");
  if (buffer->read_only) return fail(err, TRINE_INVALID_ARGUMENT, "the buffer is read-only");
  memcpy(buffer->data + offset, src, bytes);
  return TRINE_OK;
}
static trine_status buffer_read(trine_buffer* buffer, uint64_t offset, void* dst, uint64_t bytes,
                                trine_error* err) {
  if (!in_range(buffer, offset, bytes)) return fail(err, TRINE_OUT_OF_RANGE, "out of range");
  memcpy(dst, buffer->data + offset, bytes);
  return TRINE_OK;
}

/* ---- Timelines ---- */

static trine_status timeline_create(trine_device* device, uint64_t initial, trine_timeline** out,
                                    trine_error* err) {
  (void)device;
  trine_timeline* line = calloc(1, sizeof(*line));
  if (line == NULL) return fail(err, TRINE_RESOURCE_EXHAUSTED, "out of memory");
  pthread_mutex_init(&line->mutex, NULL);
  pthread_cond_init(&line->changed, NULL);
  line->value = initial;
  *out = line;
  return TRINE_OK;
}
static void timeline_destroy(trine_timeline* line) {
  pthread_cond_destroy(&line->changed);
  pthread_mutex_destroy(&line->mutex);
  free(line);
}
static trine_status timeline_signal(trine_timeline* line, uint64_t value, trine_error* err) {
  trine_status status = TRINE_OK;
  pthread_mutex_lock(&line->mutex);
  if (line->failure != TRINE_OK) {
    status = fail(err, line->failure, line->message);
  } else if (value <= line->value) {
    status = fail(err, TRINE_INVALID_ARGUMENT, "a timeline only grows");
  } else {
    line->value = value;
    pthread_cond_broadcast(&line->changed);
  }
  pthread_mutex_unlock(&line->mutex);
  return status;
}
static trine_status timeline_fail(trine_timeline* line, trine_status status, const char* message,
                                  trine_error* err) {
  if (status == TRINE_OK || status == TRINE_DEADLINE_EXCEEDED) {
    return fail(err, TRINE_INVALID_ARGUMENT, "that status is no failure");
  }
  pthread_mutex_lock(&line->mutex);
  if (line->failure == TRINE_OK) {
    line->failure = status;
    snprintf(line->message, sizeof(line->message), "%s", message != NULL ? message : "failed");
    pthread_cond_broadcast(&line->changed);
  }
  pthread_mutex_unlock(&line->mutex);
  return TRINE_OK;
}
static trine_status timeline_wait(trine_timeline* line, uint64_t value, uint64_t timeout_ns,
                                  trine_error* err) {
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  const int forever = timeout_ns > (uint64_t)1000000000 * 86400;
  if (!forever) {
    until.tv_sec += (time_t)(timeout_ns / 1000000000u);
    until.tv_nsec += (long)(timeout_ns % 1000000000u);
    if (until.tv_nsec >= 1000000000) until.tv_sec += 1, until.tv_nsec -= 1000000000;
  }
  trine_status status = TRINE_OK;
  int waited = 0;
  pthread_mutex_lock(&line->mutex);
  while (line->value < value && line->failure == TRINE_OK && waited != ETIMEDOUT) {
    waited = forever ? pthread_cond_wait(&line->changed, &line->mutex)
                     : pthread_cond_timedwait(&line->changed, &line->mutex, &until);
  }
  if (line->value < value) {
    status = line->failure != TRINE_OK ? fail(err, line->failure, line->message)
                                       : fail(err, TRINE_DEADLINE_EXCEEDED, "not yet");
  }
  pthread_mutex_unlock(&line->mutex);
  return status;
}
static trine_status timeline_query(trine_timeline* line, uint64_t* value, trine_error* err) {
  pthread_mutex_lock(&line->mutex);
  *value = line->value;
  const trine_status status =
      line->failure == TRINE_OK ? TRINE_OK : fail(err, line->failure, line->message);
  pthread_mutex_unlock(&line->mutex);
  return status;
}

static trine_status wait_all(const trine_sync* sync, trine_error* err) {
  for (uint32_t i = 0; i < sync->n_waits; ++i) {
    const trine_point* p = at(sync->waits, sync->point_stride, i);
    const trine_status status = timeline_wait(p->timeline, p->value, UINT64_MAX, err);
    if (status != TRINE_OK) return status;
  }
  return TRINE_OK;
}
/* Signals pass on what became of the waits, then of the work. Without any it is the answer; but the
 * caller must not take a failed wait, which is somebody else's failure, for this device's. */
static trine_status settle(const trine_sync* sync, trine_status waited, trine_status worked,
                           const trine_error* own, trine_error* err) {
  const trine_status outcome = waited != TRINE_OK ? waited : worked;
  for (uint32_t i = 0; i < sync->n_signals; ++i) {
    const trine_point* p = at(sync->signals, sync->point_stride, i);
    if (outcome == TRINE_OK) {
      timeline_signal(p->timeline, p->value, NULL);
    } else {
      timeline_fail(p->timeline, outcome, own->message, NULL);
    }
  }
  if (sync->n_signals != 0 || outcome == TRINE_OK) return TRINE_OK;
  return fail(err, waited != TRINE_OK ? TRINE_ABORTED : worked, own->message);
}

/* ---- Copies ---- */

static char* end_of(const trine_copy_end* end, uint64_t bytes) {
  if (end->buffer != NULL) {
    return in_range(end->buffer, end->offset, bytes) ? end->buffer->data + end->offset : NULL;
  }
  return end->host != NULL ? (char*)end->host + end->offset : NULL;
}
static trine_status copy_run(trine_device* device, const trine_copy_args* args, trine_error* err) {
  (void)device;
  trine_error own = {""};
  for (uint32_t i = 0; i < args->n_copies; ++i) {
    const trine_copy* c = at(args->copies, args->copy_stride, i);
    if (end_of(&c->src, c->bytes) == NULL || end_of(&c->dst, c->bytes) == NULL) {
      return fail(err, TRINE_OUT_OF_RANGE, "a copy has no end, or a wrong one");
    }
    if (c->dst.buffer != NULL && c->dst.buffer->read_only) {
      return fail(err, TRINE_INVALID_ARGUMENT, "a copy writes to a read-only buffer");
    }
  }
  const trine_status status = wait_all(&args->sync, &own);
  for (uint32_t i = 0; status == TRINE_OK && i < args->n_copies; ++i) {
    const trine_copy* c = at(args->copies, args->copy_stride, i);
    memcpy(end_of(&c->dst, c->bytes), end_of(&c->src, c->bytes), c->bytes);
  }
  return settle(&args->sync, status, TRINE_OK, &own, err);
}

/* ---- Plans ---- */

static int64_t size_of(const trine_tensor* t, int d, int64_t param) {
  if ((uint32_t)d >= t->rank) return 1;
  return t->dims[d] < 0 ? param : t->dims[d];
}
static int64_t stride_of(const trine_tensor* t, int d, int64_t param) {
  int64_t packed = 4 * size_of(t, 0, param);
  for (int i = 1; i <= d; ++i) {
    const int64_t stride = (uint32_t)i < t->rank && t->strides[i] != 0 ? t->strides[i] : packed;
    if (i == d) return stride;
    packed = stride * size_of(t, i, param);
  }
  return 4;
}

/* NULL, or what is wrong with the tensor. */
static const char* check_tensor(const add_graph* g, const trine_tensor* t) {
  const int64_t limit = (int64_t)1 << 20;
  if (t->dtype != TRINE_DTYPE_F32) return "every tensor must be f32";
  if (t->rank < 1 || t->rank > TRINE_MAX_RANK) return "bad rank";
  if (t->slot >= g->n_slots) return "no such slot";
  if (t->layout != TRINE_LAYOUT_PLAIN) return "unknown layout";
  if (g->roles[t->slot] < TRINE_ROLE_CONSTANT || g->roles[t->slot] >= TRINE_ROLE_TEMP) {
    return "unknown slot role";
  }
  uint64_t end = 4;
  for (int d = 0; d < (int)t->rank; ++d) {
    if (t->dims[d] < 0 && (t->dims[d] != -1 || g->n_params != 1)) return "no such parameter";
    if (t->dims[d] > limit || t->strides[d] < 0 || t->strides[d] > limit) return "too large";
  }
  for (int d = 0; d < (int)t->rank; ++d) {
    const int64_t size = size_of(t, d, g->max), stride = stride_of(t, d, g->max);
    if (size < 1) return "an empty tensor";
    if (stride > ((int64_t)1 << 40)) return "too large";
    end += (uint64_t)(size - 1) * (uint64_t)stride;
    if (end > (uint64_t)1 << 44) return "too large";
  }
  if (t->offset > g->slot_bytes[t->slot] || end > g->slot_bytes[t->slot] - t->offset) {
    return "a tensor reaches beyond its slot";
  }
  return NULL;
}

/* Reads all but the ops, of which some may be unknown. NULL, or what is wrong. */
static const char* read_frame(const trine_graph* in, add_graph* g) {
  memset(g, 0, sizeof(*g));
  if (in->numerics != TRINE_NUMERICS_EXACT && in->numerics != TRINE_NUMERICS_FAST) {
    return "unknown numerics";
  }
  if (in->n_slots > MAX_SLOTS || in->n_params > 1) return "the graph is too large";
  g->n_params = in->n_params;
  g->n_slots = in->n_slots;
  if (in->n_params == 1) {
    const trine_param* p = at(in->params, in->param_stride, 0);
    if (p->min < 1 || p->max < p->min || p->max > ((int64_t)1 << 20)) return "bad parameter range";
    g->min = p->min;
    g->max = p->max;
  }
  for (uint32_t i = 0; i < in->n_slots; ++i) {
    const trine_slot* s = at(in->slots, in->slot_stride, i);
    if (s->alternates < 1 || s->alternates > MAX_ALTERNATES) return "bad number of alternates";
    g->roles[i] = s->role;
    g->alternates[i] = s->alternates;
    g->slot_bytes[i] = s->bytes;
  }
  return NULL;
}

/* Reads one op as an add. NULL, or what is wrong with it. */
static const char* read_op(const trine_graph* in, const add_graph* g, uint32_t index, add_op* out) {
  const trine_op* op = at(in->ops, in->op_stride, index);
  if (op->kind != TRINE_OP_ADD) return "only add is offered";
  if (op->n_in != 2 || op->n_out != 1) return "add has two inputs and one output";
  if (op->in[0] >= in->n_tensors || op->in[1] >= in->n_tensors || op->out[0] >= in->n_tensors) {
    return "no such tensor";
  }
  out->a = *(const trine_tensor*)at(in->tensors, in->tensor_stride, op->in[0]);
  out->b = *(const trine_tensor*)at(in->tensors, in->tensor_stride, op->in[1]);
  out->y = *(const trine_tensor*)at(in->tensors, in->tensor_stride, op->out[0]);
  const trine_tensor* all[] = {&out->a, &out->b, &out->y};
  for (int i = 0; i < 3; ++i) {
    const char* wrong = check_tensor(g, all[i]);
    if (wrong != NULL) return wrong;
  }
  for (int i = 0; i < 2; ++i) {
    for (int d = 0; d < 4; ++d) {
      if (size_of(all[i], d, g->max) != size_of(&out->y, d, g->max) ||
          size_of(all[i], d, g->min) != size_of(&out->y, d, g->min)) {
        return "dimensions must be the same";
      }
    }
  }
  if (g->roles[out->y.slot] == TRINE_ROLE_CONSTANT) return "a constant is written";
  return NULL;
}

static const char* read_graph(const trine_graph* in, add_graph* g) {
  const char* wrong = read_frame(in, g);
  if (wrong == NULL && in->n_ops > MAX_OPS) wrong = "too many ops";
  for (uint32_t i = 0; wrong == NULL && i < in->n_ops; ++i) wrong = read_op(in, g, i, &g->ops[i]);
  g->n_ops = in->n_ops;
  return wrong;
}

static trine_status op_query(trine_device* device, const trine_graph* graph, uint32_t op,
                             const int64_t* params, trine_op_support* out, trine_error* err) {
  (void)device, (void)params;
  add_graph g;
  if (op >= graph->n_ops) return fail(err, TRINE_INVALID_ARGUMENT, "no such op");
  add_op add;
  const char* wrong = read_frame(graph, &g);
  if (wrong == NULL && graph->n_ops > MAX_OPS) wrong = "too many ops";
  if (wrong == NULL) wrong = read_op(graph, &g, op, &add);
  trine_op_support support;
  memset(&support, 0, sizeof(support));
  support.struct_size = out->struct_size;
  support.support = wrong == NULL ? TRINE_SUPPORT_EXACT : TRINE_SUPPORT_NO;
  if (wrong != NULL) snprintf(support.reason, sizeof(support.reason), "%s", wrong);
  memcpy(out, &support, smaller(support.struct_size, sizeof(support)));
  return TRINE_OK;
}
static trine_status plan_query(trine_device* device, const trine_graph* graph, trine_plan_info* out,
                               trine_error* err) {
  (void)device;
  add_graph g;
  const char* wrong = read_graph(graph, &g);
  if (wrong != NULL) return fail(err, TRINE_UNIMPLEMENTED, wrong);
  trine_plan_info info = {out->struct_size, 16, 0};
  memcpy(out, &info, smaller(info.struct_size, sizeof(info)));
  return TRINE_OK;
}
static trine_status bind(trine_plan* plan, const trine_plan_desc* desc, trine_error* err) {
  for (uint32_t i = 0; i < desc->n_bindings; ++i) {
    const trine_binding* b = at(desc->bindings, desc->binding_stride, i);
    if (b->slot >= plan->graph.n_slots || b->alternate >= plan->graph.alternates[b->slot]) {
      return fail(err, TRINE_INVALID_ARGUMENT, "a binding names no slot");
    }
    if (b->span.buffer == NULL || b->span.bytes < plan->graph.slot_bytes[b->slot] ||
        !in_range(b->span.buffer, b->span.offset, b->span.bytes)) {
      return fail(err, TRINE_INVALID_ARGUMENT, "a binding is too small or out of range");
    }
    if (b->span.buffer->read_only && plan->graph.roles[b->slot] != TRINE_ROLE_CONSTANT) {
      return fail(err, TRINE_INVALID_ARGUMENT, "read-only memory is for constants");
    }
    plan->base[b->slot][b->alternate] = b->span.buffer->data + b->span.offset;
  }
  for (uint32_t s = 0; s < plan->graph.n_slots; ++s) {
    for (uint32_t a = 0; a < plan->graph.alternates[s]; ++a) {
      if (plan->base[s][a] == NULL) return fail(err, TRINE_INVALID_ARGUMENT, "a slot is not bound");
    }
  }
  return TRINE_OK;
}
static trine_status plan_create(trine_device* device, const trine_plan_desc* desc, trine_plan** out,
                                trine_error* err) {
  trine_plan* plan = calloc(1, sizeof(*plan));
  if (plan == NULL) return fail(err, TRINE_RESOURCE_EXHAUSTED, "out of memory");
  plan->host = &device->backend->host;
  const char* wrong = read_graph(desc->graph, &plan->graph);
  const trine_status status =
      wrong != NULL ? fail(err, TRINE_UNIMPLEMENTED, wrong) : bind(plan, desc, err);
  if (status != TRINE_OK) {
    free(plan);
    return status;
  }
  *out = plan;
  return TRINE_OK;
}
static void plan_destroy(trine_plan* plan) { free(plan); }

static float canon(float x) {
  const float magnitude = fabsf(x);
  if (!(magnitude >= 0x1p-50f)) return 0.0f;
  if (magnitude > 0x1p+50f) return x < 0.0f ? -0x1p+50f : 0x1p+50f;
  return x;
}
static char* row_of(const trine_plan* plan, const trine_tensor* t, const uint32_t* alternates,
                    const int64_t* i, int64_t param) {
  const uint32_t a =
      alternates != NULL && plan->graph.roles[t->slot] == TRINE_ROLE_IO ? alternates[t->slot] : 0;
  char* row = plan->base[t->slot][a] + t->offset;
  for (int d = 1; d < 4; ++d) row += i[d] * stride_of(t, d, param);
  return row;
}
/* A worker's share of the rows: every `workers`th one. */
static void run_op(const trine_plan* plan, const add_op* op, const uint32_t* alternates,
                   int64_t param, uint32_t worker, uint32_t workers) {
  int64_t n[4], i[4] = {0, 0, 0, 0};
  uint64_t row = 0;
  for (int d = 0; d < 4; ++d) n[d] = size_of(&op->y, d, param);
  for (i[3] = 0; i[3] < n[3]; ++i[3]) {
    for (i[2] = 0; i[2] < n[2]; ++i[2]) {
      for (i[1] = 0; i[1] < n[1]; ++i[1]) {
        if (row++ % workers != worker) continue;
        const float* a = (const float*)row_of(plan, &op->a, alternates, i, param);
        const float* b = (const float*)row_of(plan, &op->b, alternates, i, param);
        float* y = (float*)row_of(plan, &op->y, alternates, i, param);
        for (int64_t k = 0; k < n[0]; ++k) y[k] = canon(a[k] + b[k]);
      }
    }
  }
}
typedef struct {
  const trine_plan* plan;
  const uint32_t* alternates;
  int64_t param;
  int timed;
} add_run;
static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}
/* One worker's part of a run. The first one tells the host what each op took. */
static void work(void* arg, uint32_t worker, uint32_t workers) {
  const add_run* run = arg;
  const trine_host* host = run->plan->host;
  const int timed = run->timed && worker == 0;
  uint64_t begin = timed ? now_ns() : 0;
  for (uint32_t i = 0; i < run->plan->graph.n_ops; ++i) {
    run_op(run->plan, &run->plan->graph.ops[i], run->alternates, run->param, worker, workers);
    host->barrier(host->self);
    if (timed) {
      const uint64_t end = now_ns();
      host->op_done(host->self, "add", end - begin);
      begin = end;
    }
  }
}
static trine_status plan_run(trine_plan* plan, const trine_run_args* args, trine_error* err) {
  const add_graph* g = &plan->graph;
  if (args->n_params != g->n_params) return fail(err, TRINE_INVALID_ARGUMENT, "wrong parameters");
  if (g->n_params == 1 && (args->params[0] < g->min || args->params[0] > g->max)) {
    return fail(err, TRINE_INVALID_ARGUMENT, "the parameter is out of its range");
  }
  if (args->n_alternates != 0 && args->n_alternates != g->n_slots) {
    return fail(err, TRINE_INVALID_ARGUMENT, "wrong number of alternates");
  }
  for (uint32_t s = 0; s < args->n_alternates; ++s) {
    if (g->roles[s] == TRINE_ROLE_IO && args->alternates[s] >= g->alternates[s]) {
      return fail(err, TRINE_INVALID_ARGUMENT, "no such alternate");
    }
  }
  trine_error own = {""};
  const trine_status status = wait_all(&args->sync, &own);
  trine_status worked = TRINE_OK;
  if (status == TRINE_OK) {
    add_run run = {plan, args->n_alternates != 0 ? args->alternates : NULL,
                   g->n_params == 1 ? args->params[0] : 0,
                   __atomic_load_n(plan->host->profiling, __ATOMIC_RELAXED) != 0};
    worked = plan->host->parallel_run(plan->host->self, work, &run);
    if (worked != TRINE_OK) fail(&own, worked, "the host has no workers for the run");
  }
  return settle(&args->sync, status, worked, &own, err);
}

const trine_plugin* trine_plugin_query(uint32_t host_abi_version) {
  static const trine_plugin table = {
      .struct_size = sizeof(trine_plugin),
      .abi_version = TRINE_ABI_VERSION,
      .numerics_version = TRINE_NUMERICS_VERSION,
      .sanitizer = TRINE_SANITIZER_HERE,
      .name = "frozen-1-0",
      .version = "1.0",
      .open = open_backend,
      .close = close_backend,
      .device_count = device_count,
      .device_info = device_info,
      .device_open = device_open,
      .device_close = device_close,
      .buffer_alloc = buffer_alloc,
      .buffer_free = buffer_free,
      .buffer_write = buffer_write,
      .buffer_read = buffer_read,
      .copy_run = copy_run,
      .op_query = op_query,
      .plan_query = plan_query,
      .plan_create = plan_create,
      .plan_run = plan_run,
      .plan_destroy = plan_destroy,
      .timeline_create = timeline_create,
      .timeline_destroy = timeline_destroy,
      .timeline_signal = timeline_signal,
      .timeline_fail = timeline_fail,
      .timeline_wait = timeline_wait,
      .timeline_query = timeline_query,
      .buffer_host_ptr = buffer_host_ptr,
      .buffer_import = buffer_import,
  };
  return host_abi_version >> 16 == TRINE_ABI_MAJOR ? &table : NULL;
}
