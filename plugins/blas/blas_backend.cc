// A backend for one op, MATMUL, on a library of the processor: one with the functions of BLAS, or
// oneDNN.
//
// Prompts are large products, which such libraries are made for. Their results differ from the
// contract's in the last bits, and quantised weights are multiplied with activations that are not
// quantised, so the device is FAST. The host runs all other ops elsewhere.
//
// The order is that of plugins/example: options, support, device, plans, table. The arithmetic is
// in product.cc, and what differs between libraries behind library.h. Memory and timelines are the
// SDK's, because the device is the processor.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <climits>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "library.h"
#include "product.h"
#include "trine/backend_sdk.h"

namespace sdk = trine::sdk;
using sdk::Fail;
using sdk::Guard;

constexpr char kName[] = "blas";

// What the options say.
struct Options {
  const blas::Library* library = nullptr;    // `library`
  int64_t most_rows = blas::kUsualTileRows;  // `tile`
};

struct trine_backend {
  const trine_host* host;  // valid until close
  Options options;
};
struct trine_device {
  const trine_host* host;
  Options options;
};
struct trine_buffer : sdk::HostBuffer {};
// The extra scratch of a plan, which all ops use, one after the other.
struct Scratch {
  uint64_t room_bytes = 0;    // of each worker's room, for decoded weights
  uint64_t halves_bytes = 0;  // of the halves of the activations, behind the rooms
};
struct trine_plan {
  const trine_host* host;
  Options options;
  sdk::Graph graph;
  sdk::PlanStorage storage;
  Scratch scratch;
  std::vector<const char*> names;  // of the ops, for op_done
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

// ---- Options ------------------------------------------------------------------------------------

// Reads a value of the option `tile`. Returns "", or what is wrong.
std::string ReadTile(std::string_view value, Options* out) {
  const char* end = value.data() + value.size();
  const auto [stop, error] = std::from_chars(value.data(), end, out->most_rows);
  if (error == std::errc() && stop == end && out->most_rows >= blas::kFewestTileRows &&
      out->most_rows <= blas::kMostTileRows) {
    return "";
  }
  return "the option tile is '" + std::string(value) + "': expected " +
         std::to_string(blas::kFewestTileRows) + " to " + std::to_string(blas::kMostTileRows);
}

// Reads a value of the option `library`. Returns "", or what is wrong.
std::string ReadLibrary(std::string_view value, Options* out) {
  out->library = value.empty() ? nullptr : blas::ChooseLibrary(value);
  if (out->library != nullptr) return "";
  std::string has;
  for (const char* name : {"cblas", "onednn"}) {
    if (blas::ChooseLibrary(name) != nullptr) {
      has += (has.empty() ? "" : " and ") + std::string(name);
    }
  }
  return "the option library is '" + std::string(value) + "': this plugin can use " +
         (has.empty() ? "none" : has);
}

// Reads options such as "tile=64;library=cblas". Returns "", or what is wrong.
std::string ReadOptions(std::string_view text, Options* out) {
  std::string wrong;
  while (!text.empty() && wrong.empty()) {
    const std::string_view option = text.substr(0, text.find(';'));
    text.remove_prefix(std::min(option.size() + 1, text.size()));
    const std::string_view key = option.substr(0, option.find('='));
    const std::string_view value = option.substr(std::min(key.size() + 1, option.size()));
    if (key == "tile") {
      wrong = ReadTile(value, out);
    } else if (key == "library") {
      wrong = ReadLibrary(value, out);
    } else {
      wrong = "unknown option: " + std::string(key);
    }
  }
  if (!wrong.empty()) return wrong;
  // The default is made last: making a library that the options leave out takes time, and may fail.
  if (out->library == nullptr) out->library = blas::ChooseLibrary("");
  return out->library != nullptr ? "" : "this plugin can use no library of matrix products here";
}

trine_status Open(const trine_host* host, const char* text, trine_backend** out, trine_error* err) {
  return Guard(err, [&]() -> trine_status {
    Options options;
    const std::string wrong = ReadOptions(text != nullptr ? text : "", &options);
    if (!wrong.empty()) return Fail(err, TRINE_INVALID_ARGUMENT, wrong);
    return Make(out, err, host, options);
  });
}

// ---- Support ------------------------------------------------------------------------------------

// Returns whether a library can use a matrix of f32 or bf16 where it is: BLAS counts in ints, and
// takes no rows that overlap.
bool FitsBlas(const trine_tensor& t, const std::vector<int64_t>& max_params) {
  const sdk::Dims dims = sdk::ResolveDims(t, max_params.data());
  const sdk::Dims strides = sdk::ResolveStrides(t, dims);
  const int64_t row_stride = strides[1] / sdk::ValueBytes(t.dtype, 1);
  return dims[0] <= row_stride && row_stride <= INT_MAX && dims[1] <= INT_MAX;
}

// Returns why the op can't run here, or "" if it can. The SDK has checked that its shapes, types
// and counts keep the op's rules.
std::string Refusal(const sdk::Graph& graph, size_t index) {
  const sdk::Op& op = graph.ops[index];
  const std::string name = sdk::OpName(op.kind);
  if (op.kind != TRINE_OP_MATMUL) return name + ": this backend has matmul alone";
  const std::vector<int64_t> max = graph.MaxParams();
  for (const auto* list : {&op.in, &op.out}) {
    for (uint32_t t : *list) {
      if (t == TRINE_NONE) continue;
      const trine_tensor& tensor = graph.tensors[t];
      if (tensor.layout != TRINE_LAYOUT_PLAIN) return name + ": unknown layout";
      // Weights of other types are decoded to another place.
      const bool used_in_place =
          tensor.dtype == TRINE_DTYPE_F32 || tensor.dtype == TRINE_DTYPE_BF16;
      if (used_in_place && !FitsBlas(tensor, max)) {
        return name + ": BLAS takes no rows that overlap and no sizes of 2^31 or more";
      }
    }
  }
  return "";
}

trine_status OpQuery(trine_device*, const trine_graph* graph, uint32_t op, const int64_t*,
                     trine_op_support* out, trine_error* err) {
  return sdk::AnswerOpQuery(graph, op, TRINE_SUPPORT_FAST, Refusal, out, err);
}

// ---- Device -------------------------------------------------------------------------------------

uint64_t PagesInBytes(int pages) {
  return static_cast<uint64_t>(sysconf(pages)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

template <size_t kSize>
void SetText(char (&to)[kSize], const std::string& text) {
  std::snprintf(to, kSize, "%s", text.c_str());
}

trine_status DeviceInfo(trine_backend* backend, uint32_t index, trine_device_info* out,
                        trine_error* err) {
  return Guard(err, [&]() -> trine_status {
    if (index != 0) return Fail(err, TRINE_NOT_FOUND, "there is only device 0");
    trine_device_info info{};
    info.tier = TRINE_TIER_OTHER;
    info.flags = TRINE_DEVICE_UNIFIED_MEMORY;
    info.numerics = TRINE_NUMERICS_FAST;
    info.memory_total = PagesInBytes(_SC_PHYS_PAGES);
    info.memory_free = PagesInBytes(_SC_AVPHYS_PAGES);
    info.buffer_alignment = Memory::kAlignment;
    info.import_alignment = Memory::kAlignment;
    // The device can read all memory that the process can read.
    info.imports = TRINE_IMPORTS_TRIED | TRINE_IMPORTS_WRITABLE | TRINE_IMPORTS_READ_ONLY;
    SetText(info.name, "BLAS");
    SetText(info.arch, backend->options.library->Processor());
    SetText(info.driver, backend->options.library->Version());
    SetText(info.memory_pool, "system");
    SetText(info.bandwidth_domain, "system");
    sdk::WriteOut(out, info);
    return TRINE_OK;
  });
}

trine_status DeviceOpen(trine_backend* backend, uint32_t index, trine_device** out,
                        trine_error* err) {
  if (index != 0) return Fail(err, TRINE_NOT_FOUND, "there is only device 0");
  return Make(out, err, backend->host, backend->options);
}

// ---- Plans --------------------------------------------------------------------------------------

// Returns whether weights are multiplied as bf16, which takes halves of the activations.
bool TakesHalves(const Options& options, uint32_t dtype) {
  return dtype == TRINE_DTYPE_BF16 && options.library->HasBf16();
}

Scratch ScratchOf(const sdk::Graph& graph, const Options& options) {
  const std::vector<int64_t> max = graph.MaxParams();
  Scratch scratch;
  for (const sdk::Op& op : graph.ops) {
    const uint32_t dtype = graph.tensors[op.in[0]].dtype;
    if (TakesHalves(options, dtype)) {
      const sdk::Dims x = sdk::ResolveDims(graph.tensors[op.in[1]], max.data());
      scratch.halves_bytes = std::max(scratch.halves_bytes, blas::HalvesBytes(x[0], x[1]));
    } else {
      scratch.room_bytes = std::max(scratch.room_bytes, blas::RoomBytes(dtype, options.most_rows));
    }
  }
  return scratch;
}

uint64_t ScratchBytes(const Scratch& scratch, const trine_host& host) {
  return scratch.room_bytes * host.worker_count + scratch.halves_bytes;
}

trine_status PlanQuery(trine_device* device, const trine_graph* graph, trine_plan_info* out,
                       trine_error* err) {
  const auto extra = [device](const sdk::Graph& accepted) {
    return ScratchBytes(ScratchOf(accepted, device->options), *device->host);
  };
  return sdk::AnswerPlanQuery(graph, TRINE_SUPPORT_FAST, Refusal, extra, out, err);
}

trine_status PlanCreate(trine_device* device, const trine_plan_desc* in, trine_plan** out,
                        trine_error* err) {
  return Guard(err, [&]() -> trine_status {
    const trine_plan_desc desc = sdk::ReadIn(in);
    auto plan = std::make_unique<trine_plan>();
    plan->host = device->host;
    plan->options = device->options;
    trine_status s = sdk::AcceptGraph(desc.graph, TRINE_SUPPORT_FAST, Refusal, &plan->graph, err);
    if (s != TRINE_OK) return s;
    plan->scratch = ScratchOf(plan->graph, plan->options);
    s = plan->storage.Bind(plan->graph, desc, Memory::SpanData, err,
                           ScratchBytes(plan->scratch, *plan->host));
    if (s != TRINE_OK) return s;
    for (const sdk::Op& op : plan->graph.ops) {
      plan->names.push_back(sdk::TimedName(plan->graph, op));
    }
    *out = plan.release();
    return TRINE_OK;
  });
}

struct Run {
  const trine_plan* plan;
  const int64_t* params;
  const uint32_t* alternates;  // null: alternate 0 everywhere
  bool timed;                  // the host wants op_done to be called
  std::atomic<bool> failed = false;
};

blas::Product ProductOf(const Run& run, const sdk::Op& op) {
  const trine_plan& plan = *run.plan;
  const auto view = [&](uint32_t tensor) {
    return plan.storage.ViewOf(plan.graph, tensor, run.params, run.alternates);
  };
  const sdk::View w = view(op.in[0]);
  const float* bias = op.HasInput(2) ? view(op.in[2]).RowAs<const float>(0) : nullptr;
  const int64_t tile_rows = blas::TileRows(w.dims[1], plan.options.most_rows);
  std::byte* halves = plan.storage.extra() + plan.scratch.room_bytes * plan.host->worker_count;
  return {w,
          view(op.in[1]),
          bias,
          view(op.out[0]),
          tile_rows,
          plan.options.library,
          TakesHalves(plan.options, w.dtype) ? reinterpret_cast<uint16_t*>(halves) : nullptr};
}

// Computes a worker's part of a product. All workers call it.
void RunProduct(Run* run, const blas::Product& product, uint32_t worker, uint32_t workers) {
  const trine_plan& plan = *run->plan;
  if (product.halves != nullptr) {
    const int64_t tokens = product.x.dims[1];
    blas::SplitTokens(product, tokens * worker / workers, tokens * (worker + 1) / workers);
    plan.host->barrier(plan.host->self);  // a tile takes all tokens
  }
  auto* room = reinterpret_cast<float*>(plan.storage.extra() + worker * plan.scratch.room_bytes);
  const int64_t tiles = product.Tiles();
  for (int64_t t = tiles * worker / workers; t < tiles * (worker + 1) / workers; ++t) {
    if (!blas::MultiplyTile(product, t, room)) run->failed = true;
  }
}

// Runs on every worker of the host's team: all ops, and a part of each.
void RunOps(void* arg, uint32_t worker, uint32_t workers) {
  using Clock = std::chrono::steady_clock;
  Run& run = *static_cast<Run*>(arg);
  const trine_plan& plan = *run.plan;
  for (size_t i = 0; i < plan.graph.ops.size(); ++i) {
    const Clock::time_point begin = run.timed ? Clock::now() : Clock::time_point();
    RunProduct(&run, ProductOf(run, plan.graph.ops[i]), worker, workers);
    plan.host->barrier(plan.host->self);  // the next op reads what all workers have written
    if (!run.timed || worker != 0) continue;
    const auto took = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin);
    plan.host->op_done(plan.host->self, plan.names[i], static_cast<uint64_t>(took.count()));
  }
}

trine_status PlanRun(trine_plan* plan, const trine_run_args* in, trine_error* err) {
  const auto timeline_of = [](trine_timeline* t) -> sdk::Timeline& { return *t; };
  return Guard(err, [&] {
    const trine_run_args args = sdk::ReadIn(in);
    if (trine_status s = sdk::CheckRun(plan->graph, args, err); s != TRINE_OK) return s;
    return sdk::SubmitSynchronously(
        args.sync, timeline_of, err, [&](trine_error* failure) -> trine_status {
          Run run{plan, args.params, args.n_alternates != 0 ? args.alternates : nullptr,
                  sdk::WantsOpTimes(*plan->host)};
          const trine_status s = plan->host->parallel_run(plan->host->self, RunOps, &run);
          if (s != TRINE_OK) return Fail(failure, s, "the host's team did not run");
          if (run.failed) return Fail(failure, TRINE_INTERNAL, "the library could not multiply");
          return TRINE_OK;
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
