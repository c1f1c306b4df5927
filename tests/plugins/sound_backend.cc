#include "tests/plugins/sound_backend.h"

#include <cmath>
#include <cstdio>
#include <cstring>

namespace sound {

RowHook row_hook = nullptr;
bool skip_barrier = false;

// --- Arithmetic: docs/numerics.md, built without contraction

static float Canon(float x) {
  const float magnitude = std::fabs(x);
  if (!(magnitude >= 0x1p-50f)) return 0.0f;
  if (magnitude > 0x1p+50f) return x < 0.0f ? -0x1p+50f : 0x1p+50f;
  return x;
}

static float Dot(const float* a, const float* b, int64_t n) {
  float sums[32] = {};
  for (int64_t i = 0; i < n; ++i) sums[i % 32] += a[i] * b[i];
  for (int half = 16; half > 0; half /= 2) {
    for (int j = 0; j < half; ++j) sums[j] += sums[j + half];
  }
  return sums[0];
}

struct Run {
  const trine_plan* plan;
  const int64_t* params;
  const uint32_t* alternates;
  const trine_host* host;

  sdk::View Of(uint32_t tensor) const {
    return plan->storage.ViewOf(plan->graph, tensor, params, alternates);
  }
};

// --- The device's own layouts: ids begin with the FNV-1a hash of the plugin's name

uint64_t OwnLayout(const char* name, uint32_t number) {
  uint32_t hash = 2166136261u;
  for (; *name != '\0'; ++name) hash = (hash ^ static_cast<unsigned char>(*name)) * 16777619u;
  return (uint64_t{hash != 0 ? hash : 1} << 32) + number;
}

// For f32 matrices: groups of four rows, the last row of each first.
const uint64_t kMirrored = OwnLayout(fixture_name, 1);
// For f32 caches: inside a block, the heads of a position are together.
const uint64_t kSwapped = OwnLayout(fixture_name, 2);

constexpr int64_t kGroupRows = 4;
static int64_t PackedRow(uint64_t layout, int64_t row) {
  return layout == kMirrored ? row / kGroupRows * kGroupRows + kGroupRows - 1 - row % kGroupRows
                             : row;
}
// Returns the rows that a matrix of n rows takes.
int64_t RoomFor(uint64_t layout, int64_t n) {
  return layout == kMirrored ? (n + kGroupRows - 1) / kGroupRows * kGroupRows : n;
}
// Returns the row of position p and head h in a block.
static int64_t RowInBlock(uint64_t layout, const sdk::Dims& cache, int64_t p, int64_t h) {
  return layout == kSwapped ? p * cache[2] + h : h * cache[1] + p;
}

// Computes one row of y: x times the matrix at w.
static void MultiplyRow(const sdk::View& w, const std::byte* matrix, uint64_t layout,
                        const float* x, const float* bias, float* y) {
  for (int64_t i = 0; i < w.dims[1]; ++i) {
    const std::byte* row = matrix + PackedRow(layout, i) * w.strides[1];
    const float sum = Canon(Dot(reinterpret_cast<const float*>(row), x, w.dims[0]));
    y[i] = bias == nullptr ? sum : Canon(sum + bias[i]);
  }
}

static void Matmul(const Run& run, const sdk::Op& op, uint32_t worker, uint32_t workers) {
  const sdk::View w = run.Of(op.in[0]), x = run.Of(op.in[1]), y = run.Of(op.out[0]);
  const uint64_t layout = run.plan->graph.tensors[op.in[0]].layout;
  const float* bias = op.HasInput(2) ? run.Of(op.in[2]).RowAs<float>(0) : nullptr;
  for (int64_t r = worker; r < y.Rows(); r += workers) {
    MultiplyRow(w, w.data, layout, x.RowAs<float>(r), bias, y.RowAs<float>(r));
    if (row_hook != nullptr) row_hook(y.RowAs<float>(r), y.dims[0], workers);
  }
}

static void MoeMatmul(const Run& run, const sdk::Op& op, uint32_t worker, uint32_t workers) {
  const sdk::View w = run.Of(op.in[0]), x = run.Of(op.in[1]), ids = run.Of(op.in[2]);
  const sdk::View y = run.Of(op.out[0]);
  const uint64_t layout = run.plan->graph.tensors[op.in[0]].layout;
  const int64_t matrix =
      layout == kMirrored ? RoomFor(layout, w.dims[1]) * w.strides[1] : w.strides[2];
  for (int64_t r = worker; r < y.Rows(); r += workers) {
    const int64_t used = r % y.dims[1], token = r / y.dims[1];
    const int64_t expert = ids.RowAs<int32_t>(token)[used];
    float* to = y.RowAs<float>(r);
    if (expert < 0 || expert >= w.dims[2]) {
      std::fill_n(to, y.dims[0], 0.0f);
      continue;
    }
    MultiplyRow(w, w.data + expert * matrix, layout, x.RowAs<float>(x.dims[1] == 1 ? token : r),
                op.HasInput(3) ? run.Of(op.in[3]).RowAs<float>(expert) : nullptr, to);
  }
}

static void KvStore(const Run& run, const sdk::Op& op, uint32_t worker, uint32_t workers) {
  const sdk::View x = run.Of(op.in[0]), slots = run.Of(op.in[1]), cache = run.Of(op.out[0]);
  const uint64_t layout = run.plan->graph.tensors[op.out[0]].layout;
  const int64_t positions = cache.dims[1];
  for (int64_t r = worker; r < x.Rows(); r += workers) {
    const int64_t head = r % x.dims[1], slot = slots.RowAs<int32_t>(0)[r / x.dims[1]];
    if (slot < 0 || slot >= positions * cache.dims[3]) continue;
    std::byte* to = cache.data + slot / positions * cache.strides[3];
    to += layout == kSwapped
              ? RowInBlock(layout, cache.dims, slot % positions, head) * cache.strides[1]
              : slot % positions * cache.strides[1] + head * cache.strides[2];
    for (int64_t i = 0; i < x.dims[0]; ++i) {
      const float value = x.RowAs<float>(r)[i];
      reinterpret_cast<float*>(to)[i] = std::fabs(value) < 0x1p-30f ? 0.0f : value;
    }
  }
}

// Returns the row of b for row r of y; dimensions of 1 repeat.
static const float* BroadcastRow(const sdk::View& b, const sdk::View& y, int64_t r) {
  const int64_t i1 = r % y.dims[1], i2 = r / y.dims[1] % y.dims[2], i3 = r / y.dims[1] / y.dims[2];
  const auto at = [&](int d, int64_t i) { return b.dims[d] == 1 ? 0 : i * b.strides[d]; };
  return reinterpret_cast<const float*>(b.data + at(1, i1) + at(2, i2) + at(3, i3));
}

static void ElementWise(const Run& run, const sdk::Op& op, uint32_t worker, uint32_t workers) {
  const sdk::View x = run.Of(op.in[0]), y = run.Of(op.out[0]);
  const sdk::View b = op.in.size() > 1 ? run.Of(op.in[1]) : x;
  const float scale = op.kind == TRINE_OP_SCALE ? op.Attr<trine_scale_attr>().scale : 0.0f;
  for (int64_t r = worker; r < y.Rows(); r += workers) {
    const float* from = x.RowAs<float>(r);
    const float* other = BroadcastRow(b, y, r);
    for (int64_t i = 0; i < y.dims[0]; ++i) {
      const float second = other[b.dims[0] == 1 ? 0 : i];
      y.RowAs<float>(r)[i] = Canon(op.kind == TRINE_OP_ADD   ? from[i] + second
                                   : op.kind == TRINE_OP_MUL ? from[i] * second
                                                             : from[i] * scale);
    }
  }
}

static void RunWorker(void* arg, uint32_t worker, uint32_t workers) {
  const Run& run = *static_cast<const Run*>(arg);
  for (const sdk::Op& op : run.plan->graph.ops) {
    const auto kernel = op.kind == TRINE_OP_MATMUL       ? Matmul
                        : op.kind == TRINE_OP_MOE_MATMUL ? MoeMatmul
                        : op.kind == TRINE_OP_KV_STORE   ? KvStore
                                                         : ElementWise;
    kernel(run, op, worker, workers);
    if (!skip_barrier) run.host->barrier(run.host->self);
  }
}

// --- Backend and device

trine_status Open(const trine_host* host, const char* options, trine_backend** out,
                  trine_error* err) {
  return sdk::Guard(err, [&] {
    if (options != nullptr && *options != '\0') {
      return sdk::Fail(err, TRINE_INVALID_ARGUMENT, std::string("unknown option ") + options);
    }
    *out = new trine_backend{sdk::ReadIn(host)};
    return trine_status{TRINE_OK};
  });
}
void Close(trine_backend* backend) { delete backend; }
uint32_t DeviceCount(trine_backend*) { return 1; }

trine_status DeviceInfo(trine_backend*, uint32_t index, trine_device_info* out, trine_error* err) {
  if (index != 0) return sdk::Fail(err, TRINE_NOT_FOUND, "there is one device, 0");
  trine_device_info info{};
  info.tier = TRINE_TIER_OTHER;
  info.flags = TRINE_DEVICE_UNIFIED_MEMORY | TRINE_DEVICE_SOFTWARE;
  info.numerics = TRINE_NUMERICS_EXACT;
  info.memory_total = info.memory_free = uint64_t{1} << 30;
  info.buffer_alignment = 64;
  info.import_alignment = kImportAlignment;
  info.imports = TRINE_IMPORTS_TRIED | TRINE_IMPORTS_WRITABLE | TRINE_IMPORTS_READ_ONLY;
  std::strcpy(info.name, "test device");
  std::strcpy(info.memory_pool, "system");
  std::strcpy(info.bandwidth_domain, "system");
  sdk::WriteOut(out, info);
  return TRINE_OK;
}

trine_status DeviceOpen(trine_backend* backend, uint32_t index, trine_device** out,
                        trine_error* err) {
  return sdk::Guard(err, [&] {
    if (index != 0) return sdk::Fail(err, TRINE_NOT_FOUND, "there is one device, 0");
    *out = new trine_device{backend};
    return trine_status{TRINE_OK};
  });
}
void DeviceClose(trine_device* device) { delete device; }

// --- Memory

trine_status BufferAlloc(trine_device*, const trine_buffer_desc* in, trine_buffer** out,
                         trine_error* err) {
  return sdk::Guard(err, [&] {
    const trine_buffer_desc desc = sdk::ReadIn(in);
    if (desc.bytes == 0)
      return sdk::Fail(err, TRINE_INVALID_ARGUMENT, "a buffer has 1 byte or more");
    if (desc.memory < TRINE_MEMORY_WEIGHTS || desc.memory > TRINE_MEMORY_IO) {
      return sdk::Fail(err, TRINE_INVALID_ARGUMENT, "unknown kind of memory");
    }
    auto buffer = std::make_unique<trine_buffer>();
    const uint64_t room = (desc.bytes + 63) / 64 * 64;
    if (room >= desc.bytes && room < PTRDIFF_MAX) {
      buffer->data.reset(static_cast<std::byte*>(std::aligned_alloc(64, room)));
    }
    if (buffer->data == nullptr) {
      return sdk::Fail(err, TRINE_RESOURCE_EXHAUSTED, "out of memory");
    }
    buffer->bytes = desc.bytes;
    *out = buffer.release();
    return trine_status{TRINE_OK};
  });
}
trine_status BufferImport(trine_device*, const trine_import_desc* in, trine_buffer** out,
                          trine_error* err) {
  return sdk::Guard(err, [&] {
    const trine_import_desc desc = sdk::ReadIn(in);
    if (desc.host_ptr == nullptr || desc.bytes == 0) {
      return sdk::Fail(err, TRINE_INVALID_ARGUMENT, "there is nothing to import");
    }
    if (reinterpret_cast<uintptr_t>(desc.host_ptr) % kImportAlignment != 0 ||
        desc.bytes % kImportAlignment != 0) {
      return sdk::Fail(err, TRINE_INVALID_ARGUMENT, "what is imported must be aligned");
    }
    auto buffer = std::make_unique<trine_buffer>();
    const auto keep = [](void*) {};
    buffer->data = {static_cast<std::byte*>(desc.host_ptr), keep};
    buffer->bytes = desc.bytes;
    buffer->imported = true;
    buffer->read_only = (desc.flags & TRINE_IMPORT_READ_ONLY) != 0;
    *out = buffer.release();
    return trine_status{TRINE_OK};
  });
}
void BufferFree(trine_buffer* buffer) { delete buffer; }

bool InRange(const trine_buffer* buffer, uint64_t offset, uint64_t bytes) {
  return offset <= buffer->bytes && bytes <= buffer->bytes - offset;
}
trine_status BufferWrite(trine_buffer* buffer, uint64_t offset, const void* src, uint64_t bytes,
                         trine_error* err) {
  if (!InRange(buffer, offset, bytes)) {
    return sdk::Fail(err, TRINE_OUT_OF_RANGE, "the write ends behind the buffer");
  }
  if (buffer->read_only) return sdk::Fail(err, TRINE_INVALID_ARGUMENT, "the buffer is read-only");
  std::memcpy(buffer->data.get() + offset, src, bytes);
  return TRINE_OK;
}
trine_status BufferRead(trine_buffer* buffer, uint64_t offset, void* dst, uint64_t bytes,
                        trine_error* err) {
  if (!InRange(buffer, offset, bytes)) {
    return sdk::Fail(err, TRINE_OUT_OF_RANGE, "the read ends behind the buffer");
  }
  std::memcpy(dst, buffer->data.get() + offset, bytes);
  return TRINE_OK;
}
void* BufferHostPtr(trine_buffer* buffer) { return buffer->data.get(); }

// Returns the address of one end of a copy, or null.
std::byte* EndOf(const trine_copy_end& end, uint64_t bytes) {
  if (end.buffer != nullptr) {
    return InRange(end.buffer, end.offset, bytes) ? end.buffer->data.get() + end.offset : nullptr;
  }
  return end.host != nullptr ? static_cast<std::byte*>(end.host) + end.offset : nullptr;
}

sdk::Timeline& TimelineOf(trine_timeline* timeline) { return timeline->timeline; }

trine_status CopyRun(trine_device*, const trine_copy_args* in, trine_error* err) {
  return sdk::Guard(err, [&] {
    const trine_copy_args args = sdk::ReadIn(in);
    for (uint32_t i = 0; i < args.n_copies; ++i) {
      const trine_copy copy = sdk::At(args.copies, args.copy_stride, i);
      if (EndOf(copy.src, copy.bytes) == nullptr || EndOf(copy.dst, copy.bytes) == nullptr) {
        return sdk::Fail(err, TRINE_OUT_OF_RANGE, "a copy ends behind its buffer or has no end");
      }
      if (copy.dst.buffer != nullptr && copy.dst.buffer->read_only) {
        return sdk::Fail(err, TRINE_INVALID_ARGUMENT, "a copy goes into a read-only buffer");
      }
    }
    return sdk::SubmitSynchronously(args.sync, TimelineOf, err, [&](trine_error*) {
      for (uint32_t i = 0; i < args.n_copies; ++i) {
        const trine_copy copy = sdk::At(args.copies, args.copy_stride, i);
        std::memcpy(EndOf(copy.dst, copy.bytes), EndOf(copy.src, copy.bytes), copy.bytes);
      }
      return trine_status{TRINE_OK};
    });
  });
}

// --- Plans

uint64_t RowBytes(const trine_tensor& t) {
  return static_cast<uint64_t>(sdk::ValueBytes(t.dtype, t.dims[0]));
}

// Returns the device's layout for a tensor as `op` uses it; PLAIN when it has none.
static trine_layout_info LayoutFor(const sdk::Graph& graph, const sdk::Op& op, uint32_t tensor) {
  trine_layout_info info{};
  const trine_tensor& t = graph.tensors[tensor];
  const bool weights = (op.kind == TRINE_OP_MATMUL || op.kind == TRINE_OP_MOE_MATMUL) &&
                       !op.in.empty() && op.in[0] == tensor &&
                       graph.slots[t.slot].role == TRINE_ROLE_CONSTANT;
  const bool cache = op.kind == TRINE_OP_KV_STORE && !op.out.empty() && op.out[0] == tensor &&
                     graph.slots[t.slot].role == TRINE_ROLE_STATE;
  if ((!weights && !cache) || t.dtype != TRINE_DTYPE_F32) return info;
  const sdk::Dims dims = sdk::ResolveDims(t, graph.MaxParams().data());
  const auto rows = [](int64_t n) { return static_cast<uint64_t>(n); };
  info.layout = weights ? kMirrored : kSwapped;
  info.group_rows = weights ? kGroupRows : 1;
  info.group_bytes = RowBytes(t) * (weights ? rows(kGroupRows) : rows(dims[1] * dims[2]));
  info.packed_bytes = weights ? rows(RoomFor(kMirrored, dims[1]) * dims[2] * dims[3]) * RowBytes(t)
                              : rows(dims[3]) * info.group_bytes;
  info.alignment = 64;
  return info;
}

// Returns "" or the reason for a refusal.
static std::string Refusal(const sdk::Graph& graph, uint32_t index) {
  const sdk::Op& op = graph.ops[index];
  if (op.kind != TRINE_OP_ADD && op.kind != TRINE_OP_MUL && op.kind != TRINE_OP_SCALE &&
      op.kind != TRINE_OP_MATMUL && op.kind != TRINE_OP_MOE_MATMUL &&
      op.kind != TRINE_OP_KV_STORE) {
    return std::string(sdk::OpName(op.kind)) + " is not offered";
  }
  std::string wrong = sdk::CheckOp(graph, index);
  if (!wrong.empty()) return wrong;
  for (const auto* operands : {&op.in, &op.out}) {
    for (uint32_t t : *operands) {
      if (t == TRINE_NONE) continue;
      const trine_tensor& tensor = graph.tensors[t];
      if (tensor.dtype != TRINE_DTYPE_F32 && tensor.dtype != TRINE_DTYPE_I32) {
        return "weights and caches must be f32";
      }
      if (tensor.layout == TRINE_LAYOUT_PLAIN) continue;
      const trine_layout_info own = LayoutFor(graph, op, t);
      if (tensor.layout != own.layout) return "unknown layout";
      const uint64_t room = graph.slots[tensor.slot].bytes;
      if (tensor.offset > room || own.packed_bytes > room - tensor.offset) {
        return "a packed tensor reaches beyond its slot";
      }
    }
  }
  return "";
}

trine_status OpQuery(trine_device*, const trine_graph* in, uint32_t index, const int64_t*,
                     trine_op_support* out, trine_error* err) {
  return sdk::Guard(err, [&] {
    sdk::Graph graph;
    const trine_status status = sdk::CopyGraph(in, &graph, err);
    if (status != TRINE_OK) return status;
    if (index >= graph.ops.size()) return sdk::Fail(err, TRINE_INVALID_ARGUMENT, "no such op");
    const std::string refusal = Refusal(graph, index);
    trine_op_support support{};
    support.support = refusal.empty() ? TRINE_SUPPORT_EXACT : TRINE_SUPPORT_NO;
    std::snprintf(support.reason, sizeof(support.reason), "%s", refusal.c_str());
    sdk::WriteOut(out, support);
    return trine_status{TRINE_OK};
  });
}

trine_status PlanQuery(trine_device*, const trine_graph* in, trine_plan_info* out,
                       trine_error* err) {
  return sdk::Guard(err, [&] {
    sdk::Graph graph;
    const trine_status status = sdk::CopyGraph(in, &graph, err);
    if (status != TRINE_OK) return status;
    trine_plan_info info{};
    info.scratch_alignment = sdk::kScratchAlignment;
    info.scratch_bytes = sdk::LayOutScratch(graph, nullptr);
    sdk::WriteOut(out, info);
    return trine_status{TRINE_OK};
  });
}

trine_status PlanCreate(trine_device* device, const trine_plan_desc* in, trine_plan** out,
                        trine_error* err) {
  return sdk::Guard(err, [&] {
    const trine_plan_desc desc = sdk::ReadIn(in);
    auto plan = std::make_unique<trine_plan>();
    plan->device = device;
    trine_status status = sdk::CopyGraph(desc.graph, &plan->graph, err);
    for (uint32_t i = 0; status == TRINE_OK && i < plan->graph.ops.size(); ++i) {
      const std::string refusal = Refusal(plan->graph, i);
      if (!refusal.empty()) status = sdk::Fail(err, TRINE_UNIMPLEMENTED, refusal);
    }
    const auto memory_of = [](const trine_span& span) -> std::byte* {
      const bool good = span.buffer != nullptr && span.offset % 64 == 0 &&
                        InRange(span.buffer, span.offset, span.bytes);
      return good ? span.buffer->data.get() + span.offset : nullptr;
    };
    if (status == TRINE_OK) status = plan->storage.Bind(plan->graph, desc, memory_of, err);
    if (status == TRINE_OK) *out = plan.release();
    return status;
  });
}
void PlanDestroy(trine_plan* plan) { delete plan; }

trine_status PlanRun(trine_plan* plan, const trine_run_args* in, trine_error* err) {
  return sdk::Guard(err, [&] {
    const trine_run_args args = sdk::ReadIn(in);
    const trine_status status = sdk::CheckRun(plan->graph, args, err);
    if (status != TRINE_OK) return status;
    return sdk::SubmitSynchronously(args.sync, TimelineOf, err, [&](trine_error* own) {
      const trine_host& host = plan->device->backend->host;
      Run run{plan, args.params, args.n_alternates == 0 ? nullptr : args.alternates, &host};
      const trine_status ran = host.parallel_run(host.self, RunWorker, &run);
      return ran == TRINE_OK ? ran : sdk::Fail(own, ran, "the host's team is not to be had");
    });
  });
}

// --- Timelines

trine_status TimelineCreate(trine_device*, uint64_t initial, trine_timeline** out,
                            trine_error* err) {
  return sdk::Guard(err, [&] {
    *out = new trine_timeline(initial);
    return trine_status{TRINE_OK};
  });
}
void TimelineDestroy(trine_timeline* timeline) { delete timeline; }
trine_status TimelineSignal(trine_timeline* timeline, uint64_t value, trine_error* err) {
  return sdk::Guard(err, [&] { return timeline->timeline.Signal(value, err); });
}
trine_status TimelineFail(trine_timeline* timeline, trine_status status, const char* message,
                          trine_error* err) {
  return sdk::Guard(err, [&] {
    return timeline->timeline.SetFailed(status, message != nullptr ? message : "", err);
  });
}
trine_status TimelineWait(trine_timeline* timeline, uint64_t value, uint64_t timeout_ns,
                          trine_error* err) {
  return sdk::Guard(err, [&] { return timeline->timeline.Wait(value, timeout_ns, err); });
}
trine_status TimelineQuery(trine_timeline* timeline, uint64_t* value, trine_error* err) {
  return sdk::Guard(err, [&] { return timeline->timeline.Query(value, err); });
}

// --- Layouts

trine_status LayoutList(trine_device*, const trine_graph* in, uint32_t tensor,
                        trine_layout_list* out, trine_error* err) {
  return sdk::Guard(err, [&] {
    sdk::Graph graph;
    const trine_status status = sdk::CopyGraph(in, &graph, err);
    if (status != TRINE_OK) return status;
    if (tensor >= graph.tensors.size())
      return sdk::Fail(err, TRINE_INVALID_ARGUMENT, "no such tensor");
    trine_layout_info info{};
    for (const sdk::Op& op : graph.ops) {
      if (info.layout == TRINE_LAYOUT_PLAIN) info = LayoutFor(graph, op, tensor);
    }
    out->count = info.layout != TRINE_LAYOUT_PLAIN ? 1 : 0;
    if (out->count != 0 && out->capacity != 0) {
      std::memcpy(out->infos, &info, std::min<size_t>(out->stride, sizeof(info)));
    }
    return trine_status{TRINE_OK};
  });
}

// Returns where row `row` of the plain tensor is in the packed one, in rows of dims[0] values.
static int64_t PackedPlace(uint64_t layout, const trine_tensor& t, int64_t row) {
  if (layout == kMirrored) {
    return row / t.dims[1] * RoomFor(layout, t.dims[1]) + PackedRow(layout, row % t.dims[1]);
  }
  const sdk::Dims dims{t.dims[0], t.dims[1], t.dims[2], t.dims[3]};
  const int64_t block = dims[1] * dims[2];
  return row / block * block + RowInBlock(layout, dims, row % dims[1], row / dims[1] % dims[2]);
}

trine_status LayoutConvert(trine_device*, const trine_layout_convert_args* in, trine_error* err) {
  return sdk::Guard(err, [&] {
    const trine_layout_convert_args args = sdk::ReadIn(in);
    if (args.layout != kMirrored && args.layout != kSwapped) {
      return sdk::Fail(err, TRINE_INVALID_ARGUMENT, "unknown layout");
    }
    const trine_tensor& t = *args.tensor;
    const uint64_t bytes = RowBytes(t);
    const auto* src = static_cast<const std::byte*>(args.src);
    auto* dst = static_cast<std::byte*>(args.dst);
    const bool pack = args.direction == TRINE_LAYOUT_PACK;
    // A row of a cache is a block.
    const auto lines = static_cast<uint64_t>(args.layout == kSwapped ? t.dims[1] * t.dims[2] : 1);
    for (uint64_t row = args.row_begin * lines; row < args.row_end * lines; ++row) {
      const auto packed =
          static_cast<uint64_t>(PackedPlace(args.layout, t, static_cast<int64_t>(row)));
      std::memcpy(dst + (pack ? packed : row) * bytes, src + (pack ? row : packed) * bytes, bytes);
    }
    return trine_status{TRINE_OK};
  });
}

trine_plugin Table() {
  trine_plugin t{};
  t.struct_size = sizeof(t);
  t.abi_version = TRINE_ABI_VERSION;
  t.numerics_version = TRINE_NUMERICS_VERSION;
  t.sanitizer = TRINE_SANITIZER_HERE;
  t.name = fixture_name;
  t.version = "1.0";
  t.open = Open;
  t.close = Close;
  t.device_count = DeviceCount;
  t.device_info = DeviceInfo;
  t.device_open = DeviceOpen;
  t.device_close = DeviceClose;
  t.buffer_alloc = BufferAlloc;
  t.buffer_free = BufferFree;
  t.buffer_write = BufferWrite;
  t.buffer_read = BufferRead;
  t.copy_run = CopyRun;
  t.op_query = OpQuery;
  t.plan_query = PlanQuery;
  t.plan_create = PlanCreate;
  t.plan_run = PlanRun;
  t.plan_destroy = PlanDestroy;
  t.timeline_create = TimelineCreate;
  t.timeline_destroy = TimelineDestroy;
  t.timeline_signal = TimelineSignal;
  t.timeline_fail = TimelineFail;
  t.timeline_wait = TimelineWait;
  t.timeline_query = TimelineQuery;
  t.buffer_host_ptr = BufferHostPtr;
  t.buffer_import = BufferImport;
  t.layout_list = LayoutList;
  t.layout_convert = LayoutConvert;
  return t;
}

}  // namespace sound
