// A complete Trine backend: one device, plain loops, everything done before a call returns.
//
// It is a program to copy. docs/add-a-backend.md leads from the copy to a backend of your own. In
// short, and in the order of this file:
//
//   Kernels   Replace the loops by your device's kernels. These loops keep the exactness contract
//             (docs/numerics.md): the order and the rounding of every step are as it defines them.
//   Support   Say which ops you run, and why you refuse the others, which the host runs elsewhere.
//   Device    Describe your hardware. Several devices are several indices.
//   Plans     Translate a graph once, in plan_create; run it often, in plan_run.
//   Table     Rename the plugin: kName, and the name in CMakeLists.txt. Its memory and timelines
//             are the SDK's, which suit a device without its own memory and queues. A backend for
//             other devices implements those calls too.
//
// Every index, size and offset that arrives is checked here, most of them by the SDK: for a host's
// mistake a call returns an error with a sentence. No exception leaves the plugin, because Guard
// wraps code that can throw.
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "trine/backend_sdk.h"

namespace sdk = trine::sdk;
using sdk::Fail;
using sdk::Guard;
using sdk::View;

constexpr char kName[] = "example";

// A plugin defines the handles of the ABI as it likes.
struct trine_backend {
  const trine_host* host;  // valid until close
};
struct trine_device {
  const trine_host* host;
  bool exact;  // the device has passed the self-test
};
struct trine_buffer : sdk::HostBuffer {};
struct trine_plan {
  const trine_host* host;
  sdk::Graph graph;
  sdk::PlanStorage storage;
};
struct trine_timeline : sdk::Timeline {
  using Timeline::Timeline;
};

namespace {

using Memory = sdk::HostMemory<trine_buffer, trine_timeline>;
using Timelines = sdk::TimelineCalls<trine_timeline>;

template <class T, class... Args>
trine_status Make(T** out, trine_error* err, Args&&... args) {
  return Guard(err, [&] {
    *out = new T{std::forward<Args>(args)...};
    return TRINE_OK;
  });
}

// ---- Kernels ------------------------------------------------------------------------------------
// Exactness needs +, - and * rounded one by one (-ffp-contract=off), and every sum in its written
// order. Division and square root are exact by IEEE 754 on a CPU, and seldom on a GPU.

// Brings a result into the range that ops may exchange: +0, or a magnitude of 2^-50 to 2^50.
float Canon(float x) {
  const float magnitude = std::fabs(x);
  if (!(magnitude >= 0x1p-50f)) return 0.0f;  // also when x is NaN
  return magnitude > 0x1p50f ? std::copysign(0x1p50f, x) : x;
}

float Recip(float x) {
  const float magnitude = std::fabs(x);
  return magnitude >= 0x1p-126f && magnitude < 0x1p126f ? 1.0f / x : 0.0f;
}

float Rsqrt(float x) { return x >= 0x1p-126f ? Recip(std::sqrt(x)) : 0.0f; }

// Returns the nearest integer, ties to even. REQUIRES: |x| < 2^22.
int32_t Round(float x) {
  return static_cast<int32_t>(std::bit_cast<uint32_t>(x + 12582912.0f) - 0x4b400000u);
}

// Converts an f16 exactly. REQUIRES: `half` is finite; the loader refuses other weights.
float F16ToF32(uint16_t half) {
  const uint32_t exponent = half >> 10 & 31u, fraction = half & 1023u;
  const float magnitude = exponent == 0
                              ? static_cast<float>(fraction) * 0x1p-24f
                              : std::bit_cast<float>((exponent + 112u) << 23 | fraction << 13);
  return half >> 15 != 0 ? -magnitude : magnitude;
}

// Sums n terms in N partial sums, term k in sum k mod N, and joins those by halves.
template <int N, class Term>
float Sum(int64_t n, Term term) {
  float sums[N] = {};
  for (int64_t k = 0; k < n; ++k) sums[k % N] += term(k);
  for (int half = N / 2; half > 0; half /= 2) {
    for (int j = 0; j < half; ++j) sums[j] += sums[j + half];
  }
  return sums[0];
}

// 32 weights of a Q8_0 row, as in the file.
struct Q8Block {
  uint16_t d;  // the scale, an f16
  int8_t q[32];
};

// Returns one block's term of a dot product: quantises the activations like the weights and sums
// the products as integers. Quantising again for every row is simple and slow; do it once per op.
float BlockTerm(const Q8Block& w, const float* x) {
  float largest = 0.0f;
  for (int i = 0; i < 32; ++i) largest = std::max(largest, std::fabs(x[i]));
  if (largest < 0x1p-50f) return 0.0f;
  const float d = largest * 0x1.020408p-7f;  // 1/127
  const float inverse = Recip(d);
  int32_t sum = 0;
  for (int i = 0; i < 32; ++i) sum += w.q[i] * std::clamp(Round(x[i] * inverse), -127, 127);
  return F16ToF32(w.d) * d * static_cast<float>(sum);
}

// Multiplies a row of weights with a row of activations.
float Dot(uint32_t dtype, const std::byte* row, const float* x, int64_t k) {
  if (dtype == TRINE_DTYPE_Q8_0) {
    const auto* w = reinterpret_cast<const Q8Block*>(row);
    return Sum<8>(k / 32, [=](int64_t b) { return BlockTerm(w[b], x + 32 * b); });
  }
  if (dtype == TRINE_DTYPE_F16) {
    const auto* w = reinterpret_cast<const uint16_t*>(row);
    return Sum<32>(k, [=](int64_t i) { return F16ToF32(w[i]) * x[i]; });
  }
  const auto* w = reinterpret_cast<const float*>(row);
  return Sum<32>(k, [=](int64_t i) { return w[i] * x[i]; });
}

// The range of n rows that one worker computes. Any division gives the same bits.
struct Share {
  uint32_t worker, workers;
  int64_t Begin(int64_t n) const { return n * worker / workers; }
  int64_t End(int64_t n) const { return n * (worker + 1) / workers; }
};

// Divides the weights' rows among the workers: each is read once, however many tokens there are.
void Matmul(const View& w, const View& x, const float* bias, const View& y, Share share) {
  for (int64_t n = share.Begin(w.dims[1]); n < share.End(w.dims[1]); ++n) {
    for (int64_t m = 0; m < x.dims[1]; ++m) {
      const float dot = Canon(Dot(w.dtype, w.Row(n), x.RowAs<float>(m), w.dims[0]));
      y.RowAs<float>(m)[n] = bias != nullptr ? Canon(dot + bias[n]) : dot;
    }
  }
}

void RmsNorm(const View& x, const float* weight, float eps, const View& y, Share share) {
  const int64_t n = x.dims[0];
  const float inverse_n = Recip(static_cast<float>(n));
  for (int64_t r = share.Begin(x.Rows()); r < share.End(x.Rows()); ++r) {
    const float* in = x.RowAs<float>(r);
    float* out = y.RowAs<float>(r);
    const float squares = Sum<32>(n, [&](int64_t i) { return in[i] * in[i]; });
    const float inverse_rms = Rsqrt(squares * inverse_n + eps);
    for (int64_t i = 0; i < n; ++i) {
      const float normed = in[i] * inverse_rms;
      out[i] = Canon(weight != nullptr ? normed * weight[i] : normed);
    }
  }
}

// Computes y = f(a, b), where a dimension of 1 in b repeats.
template <class Function>
void ElementWise(const View& a, View b, const View& y, Share share, Function f) {
  const int64_t step = b.dims[0] == 1 ? 0 : 1;
  for (int i = 1; i < 4; ++i) {
    if (b.dims[i] == 1) b.strides[i] = 0;
    b.dims[i] = y.dims[i];
  }
  for (int64_t r = share.Begin(y.Rows()); r < share.End(y.Rows()); ++r) {
    const float* left = a.RowAs<float>(r);
    const float* right = b.RowAs<float>(r);
    float* out = y.RowAs<float>(r);
    for (int64_t i = 0; i < y.dims[0]; ++i) out[i] = Canon(f(left[i], right[i * step]));
  }
}

void Copy(const View& x, const View& y, Share share) {
  const auto bytes = static_cast<size_t>(sdk::ValueBytes(x.dtype, x.dims[0]));
  for (int64_t r = share.Begin(x.Rows()); r < share.End(x.Rows()); ++r) {
    std::memmove(y.Row(r), x.Row(r), bytes);
  }
}

// Returns whether the device may call itself exact, by a self-test. Arithmetic that rounds once
// where it should round twice, because the compiler was allowed to use fma, leaves 2^-24 here.
bool SelfTest() {
  volatile float near_one = 1.0f + 0x1p-12f;
  float w[33] = {-(1.0f + 0x1p-11f)}, x[33] = {1.0f};
  w[32] = x[32] = near_one;
  return Dot(TRINE_DTYPE_F32, reinterpret_cast<const std::byte*>(w), x, 33) == 0.0f;
}

// ---- Support ------------------------------------------------------------------------------------

// Returns why the op can't run here, or "" if it can. The SDK has checked that its shapes, types
// and counts keep the op's rules.
std::string Refusal(const sdk::Graph& graph, size_t index) {
  const sdk::Op& op = graph.ops[index];
  for (const auto* list : {&op.in, &op.out}) {
    for (uint32_t t : *list) {
      if (t != TRINE_NONE && graph.tensors[t].layout != TRINE_LAYOUT_PLAIN) return "unknown layout";
    }
  }
  const std::string name = sdk::OpName(op.kind);
  const uint32_t in0 = graph.tensors[op.in[0]].dtype, out0 = graph.tensors[op.out[0]].dtype;
  switch (op.kind) {
    case TRINE_OP_ADD:
    case TRINE_OP_MUL:
    case TRINE_OP_SCALE:
    case TRINE_OP_RMS_NORM:
      return "";
    case TRINE_OP_COPY:
      return in0 == out0 ? "" : name + ": does not convert";
    case TRINE_OP_MATMUL:
      if (in0 == TRINE_DTYPE_F32 || in0 == TRINE_DTYPE_F16 || in0 == TRINE_DTYPE_Q8_0) return "";
      return name + ": weights may be f32, f16 or q8_0, not " + sdk::DtypeName(in0);
    default:
      return name + ": not implemented";
  }
}

uint32_t SupportOf(const trine_device& device) {
  return device.exact ? TRINE_SUPPORT_EXACT : TRINE_SUPPORT_FAST;
}

trine_status OpQuery(trine_device* device, const trine_graph* graph, uint32_t op, const int64_t*,
                     trine_op_support* out, trine_error* err) {
  return sdk::AnswerOpQuery(graph, op, SupportOf(*device), Refusal, out, err);
}

// ---- Device -------------------------------------------------------------------------------------

trine_status Open(const trine_host* host, const char* options, trine_backend** out,
                  trine_error* err) {
  if (options != nullptr && *options != '\0') {
    return Fail(err, TRINE_INVALID_ARGUMENT, std::string("unknown option: ") + options);
  }
  return Make(out, err, host);
}

uint64_t PagesInBytes(int pages) {
  return static_cast<uint64_t>(sysconf(pages)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

trine_status DeviceInfo(trine_backend*, uint32_t index, trine_device_info* out, trine_error* err) {
  if (index != 0) return Fail(err, TRINE_NOT_FOUND, "there is only device 0");
  trine_device_info info{};
  info.tier = TRINE_TIER_OTHER;
  info.flags = TRINE_DEVICE_UNIFIED_MEMORY | TRINE_DEVICE_SOFTWARE;
  info.numerics = SelfTest() ? TRINE_NUMERICS_EXACT : TRINE_NUMERICS_FAST;
  info.memory_total = PagesInBytes(_SC_PHYS_PAGES);
  info.memory_free = PagesInBytes(_SC_AVPHYS_PAGES);
  info.buffer_alignment = Memory::kAlignment;
  // The device reads and writes all memory of the process, and reads mapped files. So the host
  // gives it weights where they are, without a copy.
  info.import_alignment = Memory::kAlignment;
  info.imports = TRINE_IMPORTS_TRIED | TRINE_IMPORTS_WRITABLE | TRINE_IMPORTS_READ_ONLY;
  std::snprintf(info.name, sizeof(info.name), "Example");
  std::snprintf(info.driver, sizeof(info.driver), "%s 0.1.0", kName);
  std::snprintf(info.memory_pool, sizeof(info.memory_pool), "system");
  std::snprintf(info.bandwidth_domain, sizeof(info.bandwidth_domain), "system");
  sdk::WriteOut(out, info);
  return TRINE_OK;
}

trine_status DeviceOpen(trine_backend* backend, uint32_t index, trine_device** out,
                        trine_error* err) {
  if (index != 0) return Fail(err, TRINE_NOT_FOUND, "there is only device 0");
  return Make(out, err, backend->host, SelfTest());
}

// ---- Plans --------------------------------------------------------------------------------------

// The host allocates the memory of a run, so it asks for the size first.
trine_status PlanQuery(trine_device* device, const trine_graph* graph, trine_plan_info* out,
                       trine_error* err) {
  return sdk::AnswerPlanQuery(graph, SupportOf(*device), Refusal, out, err);
}

trine_status PlanCreate(trine_device* device, const trine_plan_desc* in, trine_plan** out,
                        trine_error* err) {
  return Guard(err, [&]() -> trine_status {
    const trine_plan_desc desc = sdk::ReadIn(in);
    auto plan = std::make_unique<trine_plan>();
    plan->host = device->host;
    trine_status s = sdk::AcceptGraph(desc.graph, SupportOf(*device), Refusal, &plan->graph, err);
    if (s == TRINE_OK) s = plan->storage.Bind(plan->graph, desc, Memory::SpanData, err);
    if (s == TRINE_OK) *out = plan.release();
    return s;
  });
}

struct Run {
  const trine_plan* plan;
  const int64_t* params;
  const uint32_t* alternates;  // null: alternate 0 everywhere
};

void RunOp(const Run& run, const sdk::Op& op, Share share) {
  const trine_plan& plan = *run.plan;
  const auto view = [&](uint32_t tensor) {
    return plan.storage.ViewOf(plan.graph, tensor, run.params, run.alternates);
  };
  const auto vector = [&](size_t input) {  // null when it is absent
    return op.HasInput(input) ? view(op.in[input]).RowAs<const float>(0) : nullptr;
  };
  const View x = view(op.in[0]), y = view(op.out[0]);
  switch (op.kind) {
    case TRINE_OP_COPY:
      return Copy(x, y, share);
    case TRINE_OP_ADD:
      return ElementWise(x, view(op.in[1]), y, share, [](float a, float b) { return a + b; });
    case TRINE_OP_MUL:
      return ElementWise(x, view(op.in[1]), y, share, [](float a, float b) { return a * b; });
    case TRINE_OP_SCALE: {
      const float scale = op.Attr<trine_scale_attr>().scale;
      return ElementWise(x, x, y, share, [=](float a, float) { return a * scale; });
    }
    case TRINE_OP_RMS_NORM:
      return RmsNorm(x, vector(1), op.Attr<trine_norm_attr>().eps, y, share);
    case TRINE_OP_MATMUL:
      return Matmul(x, view(op.in[1]), vector(2), y, share);
  }
}

// Runs on every worker of the host's team: all ops, and a part of each.
void RunOps(void* arg, uint32_t worker, uint32_t workers) {
  const Run& run = *static_cast<const Run*>(arg);
  const trine_host* host = run.plan->host;
  for (const sdk::Op& op : run.plan->graph.ops) {
    RunOp(run, op, Share{worker, workers});
    host->barrier(host->self);  // the next op reads what all workers have written
  }
}

trine_status PlanRun(trine_plan* plan, const trine_run_args* in, trine_error* err) {
  const auto timeline_of = [](trine_timeline* t) -> sdk::Timeline& { return *t; };
  return Guard(err, [&] {
    const trine_run_args args = sdk::ReadIn(in);
    if (trine_status s = sdk::CheckRun(plan->graph, args, err); s != TRINE_OK) return s;
    return sdk::SubmitSynchronously(args.sync, timeline_of, err, [&](trine_error* failure) {
      Run run{plan, args.params, args.n_alternates != 0 ? args.alternates : nullptr};
      const trine_status s = plan->host->parallel_run(plan->host->self, RunOps, &run);
      return s == TRINE_OK ? s : Fail(failure, s, "the host's team did not run");
    });
  });
}

// ---- Table --------------------------------------------------------------------------------------

constexpr trine_plugin kPlugin = {
    .struct_size = sizeof(trine_plugin),
    .abi_version = TRINE_ABI_VERSION,
    .numerics_version = TRINE_NUMERICS_VERSION,
    .sanitizer = TRINE_SANITIZER_HERE,
    .name = kName,
    .version = "0.1.0",
    .open = Open,
    .close = [](trine_backend* backend) { delete backend; },
    .device_count = [](trine_backend*) { return 1u; },
    .device_info = DeviceInfo,
    .device_open = DeviceOpen,
    .device_close = [](trine_device* device) { delete device; },
    .buffer_alloc = Memory::Alloc,
    .buffer_free = Memory::Free,
    .buffer_write = Memory::Write,
    .buffer_read = Memory::Read,
    .copy_run = Memory::Copy,
    .op_query = OpQuery,
    .plan_query = PlanQuery,
    .plan_create = PlanCreate,
    .plan_run = PlanRun,
    .plan_destroy = [](trine_plan* plan) { delete plan; },
    .timeline_create = Timelines::Create,
    .timeline_destroy = Timelines::Destroy,
    .timeline_signal = Timelines::Signal,
    .timeline_fail = Timelines::SetFailed,
    .timeline_wait = Timelines::Wait,
    .timeline_query = Timelines::Query,
    .buffer_host_ptr = Memory::HostPtr,
    .buffer_import = Memory::Import,
    .layout_list = nullptr,  // not offered, like the next
    .layout_convert = nullptr,
};

}  // namespace

const trine_plugin* trine_plugin_query(uint32_t host_abi_version) {
  return host_abi_version >> 16 == TRINE_ABI_MAJOR ? &kPlugin : nullptr;
}
