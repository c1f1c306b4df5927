// The CPU backend behind layouts of this plugin's own, to test what a host does about them. Weights
// come packed in groups of four rows; a plan unpacks them when it is created. Faults and
// peculiarities are words in TRINE_FIXTURE_PACKING, separated by commas:
//
//   same         packed is as plain, so that no second copy is made (rows by fours)
//   no-gather    rows can't be picked from a packed table
//   hidden       the host does not see buffers
//   no-import    the host can't lend memory
//   no-files     memory that can't be written is not imported
//   no-memory    memory that can be written is not imported
//   coarse       memory is imported at multiples of 1 MiB
//   told         device_info says what is not imported
//   full         there is no memory for weights
//   full-once    there is none at the first request only
//   fails        layout_convert fails
//   tires        layout_convert fails after a while
//   lies         group_bytes that do not fit in packed_bytes
//   refuses      op_query refuses what layout_list lists
//   none         no layouts
//   free:N       N bytes of memory are free
//
// Device 0 is the CPU; device 1 is the same as another tier, for splits.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "tests/plugins/cpu_table.h"
#include "trine/backend_sdk.h"

namespace sdk = trine::sdk;

// Handles are the CPU backend's own, except plans.
struct trine_plan {
  trine_plan* inner;
  std::vector<trine_buffer*> unpacked;
};

namespace {

constexpr uint64_t OwnLayout(const char* name, uint32_t number) {
  uint32_t hash = 2166136261u;  // FNV-1a
  for (; *name != '\0'; ++name) hash = (hash ^ static_cast<unsigned char>(*name)) * 16777619u;
  return (uint64_t{hash} << 32) + number;
}
// Interleaves the bytes of four rows and inverts each.
constexpr uint64_t kWoven = OwnLayout(TRINE_FIXTURE_NAME, 1);
// Keeps the rows as they are.
constexpr uint64_t kSame = OwnLayout(TRINE_FIXTURE_NAME, 2);
constexpr uint64_t kGroupRows = 4;

bool Says(const char* word) {
  const char* words = std::getenv("TRINE_FIXTURE_PACKING");
  return words != nullptr &&
         ("," + std::string(words) + ",").find("," + std::string(word) + ",") != std::string::npos;
}

uint64_t RowBytes(const trine_tensor& t) {
  return static_cast<uint64_t>(sdk::ValueBytes(t.dtype, t.dims[0]));
}
int64_t Dim(const trine_tensor& t, uint32_t i) { return i < t.rank ? t.dims[i] : 1; }

trine_layout_info LayoutOf(const trine_tensor& t) {
  const auto rows = static_cast<uint64_t>(Dim(t, 1));
  const auto matrices = static_cast<uint64_t>(Dim(t, 2) * Dim(t, 3));
  trine_layout_info info{};
  info.layout = Says("same") ? kSame : kWoven;
  info.group_rows = kGroupRows;
  info.group_bytes = kGroupRows * RowBytes(t);
  info.packed_bytes = matrices * ((rows + kGroupRows - 1) / kGroupRows) * info.group_bytes;
  info.alignment = 64;
  if (Says("lies")) info.group_bytes *= 3;
  return info;
}

// A graph with plain weights, for the CPU backend.
struct PlainGraph {
  explicit PlainGraph(const trine_graph& given) : graph(given) {
    const auto copy = [](const auto* from, uint32_t n, uint32_t stride, auto* to) {
      for (uint32_t i = 0; i < n; ++i) to->push_back(sdk::At(from, stride, i));
    };
    copy(given.tensors, given.n_tensors, given.tensor_stride, &tensors);
    copy(given.slots, given.n_slots, given.slot_stride, &slots);
    for (uint32_t i = 0; i < tensors.size(); ++i) {
      trine_tensor& t = tensors[i];
      if (t.layout != kWoven && t.layout != kSame) continue;
      packed.push_back({i, t.layout});
      t.layout = TRINE_LAYOUT_PLAIN;
      slots[t.slot].bytes = PlainBytes(t);
    }
    graph.tensors = tensors.data();
    graph.tensor_stride = sizeof(trine_tensor);
    graph.slots = slots.data();
    graph.slot_stride = sizeof(trine_slot);
  }
  static uint64_t PlainBytes(const trine_tensor& t) {
    return RowBytes(t) * static_cast<uint64_t>(Dim(t, 1) * Dim(t, 2) * Dim(t, 3));
  }
  struct Packed {
    uint32_t tensor;
    uint64_t layout;
  };
  trine_graph graph;
  std::vector<trine_tensor> tensors;
  std::vector<trine_slot> slots;
  std::vector<Packed> packed;
};

bool TakesPacked(const trine_op& op) {
  return op.kind == TRINE_OP_MATMUL || op.kind == TRINE_OP_MOE_MATMUL ||
         (op.kind == TRINE_OP_GATHER_ROWS && !Says("no-gather"));
}

constexpr uint32_t kCoarse = 1u << 20;
constexpr char kNoFiles[] = "files are not for it", kNoMemory[] = "memory is not for it";

trine_status DeviceInfo(trine_backend* backend, uint32_t index, trine_device_info* out,
                        trine_error* err) {
  trine_device_info info{};
  info.struct_size = sizeof(info);
  if (index > 1) return sdk::Fail(err, TRINE_NOT_FOUND, "there are two devices");
  const trine_status s = Cpu().device_info(backend, 0, &info, err);
  if (s != TRINE_OK) return s;
  if (index == 1) info.tier = TRINE_TIER_OTHER;
  if (Says("coarse")) info.import_alignment = kCoarse;
  if (Says("no-import")) info.import_alignment = 0;
  const bool files = !Says("no-files"), memory = !Says("no-memory");
  info.imports = Says("told") ? uint32_t{TRINE_IMPORTS_TRIED} : 0;
  if (Says("told") && files) info.imports |= TRINE_IMPORTS_READ_ONLY;
  if (Says("told") && memory) info.imports |= TRINE_IMPORTS_WRITABLE;
  if (Says("told")) {
    const std::string refusal = std::string(files ? "" : kNoFiles) + (memory ? "" : kNoMemory);
    std::strncpy(info.import_refusal, refusal.c_str(), sizeof(info.import_refusal) - 1);
  }
  const char* words = std::getenv("TRINE_FIXTURE_PACKING");
  const char* free = words != nullptr ? std::strstr(words, "free:") : nullptr;
  if (free != nullptr) info.memory_free = std::strtoull(free + 5, nullptr, 10);
  sdk::WriteOut(out, info);
  return TRINE_OK;
}

trine_status OpQuery(trine_device* device, const trine_graph* graph, uint32_t op,
                     const int64_t* params, trine_op_support* out, trine_error* err) {
  return sdk::Guard(err, [&]() -> trine_status {
    const PlainGraph plain(*graph);
    if (op >= graph->n_ops) return Cpu().op_query(device, &plain.graph, op, params, out, err);
    const trine_op asked = sdk::At(graph->ops, graph->op_stride, op);
    for (const PlainGraph::Packed& p : plain.packed) {
      const bool reads =
          std::find(asked.in, asked.in + asked.n_in, p.tensor) != asked.in + asked.n_in;
      if (!reads || (TakesPacked(asked) && !Says("refuses"))) continue;
      trine_op_support no{};
      no.support = TRINE_SUPPORT_NO;
      std::strcpy(no.reason, "not packed");
      sdk::WriteOut(out, no);
      return TRINE_OK;
    }
    return Cpu().op_query(device, &plain.graph, op, params, out, err);
  });
}

trine_status PlanQuery(trine_device* device, const trine_graph* graph, trine_plan_info* out,
                       trine_error* err) {
  return sdk::Guard(err, [&] {
    const PlainGraph plain(*graph);
    return Cpu().plan_query(device, &plain.graph, out, err);
  });
}

// Row `row` of all matrices: its bytes in the packed tensor, one every `step`.
struct PackedRow {
  uint64_t begin, step;
};
PackedRow PlaceOf(const trine_tensor& t, uint64_t layout, uint64_t row) {
  const auto rows = static_cast<uint64_t>(Dim(t, 1));
  const uint64_t groups = (rows + kGroupRows - 1) / kGroupRows;
  const uint64_t group = row / rows * groups + row % rows / kGroupRows;
  const uint64_t within = row % rows % kGroupRows;
  const uint64_t begin = group * kGroupRows * RowBytes(t);
  return layout == kWoven ? PackedRow{begin + within, kGroupRows}
                          : PackedRow{begin + within * RowBytes(t), 1};
}

void Convert(const trine_tensor& t, uint64_t layout, uint64_t begin, uint64_t end, bool pack,
             const std::byte* src, std::byte* dst) {
  const uint64_t bytes = RowBytes(t);
  const std::byte flip{layout == kWoven ? uint8_t{0xff} : uint8_t{0}};
  for (uint64_t r = begin; r < end; ++r) {
    const PackedRow place = PlaceOf(t, layout, r);
    for (uint64_t i = 0; i < bytes; ++i) {
      const uint64_t packed = place.begin + i * place.step, plain = r * bytes + i;
      if (pack) dst[packed] = src[plain] ^ flip;
      if (!pack) dst[plain] = src[packed] ^ flip;
    }
  }
}

trine_status PlanCreate(trine_device* device, const trine_plan_desc* in, trine_plan** out,
                        trine_error* err) {
  return sdk::Guard(err, [&]() -> trine_status {
    trine_plan_desc desc = sdk::ReadIn(in);
    const PlainGraph plain(*desc.graph);
    std::vector<trine_binding> bindings;
    for (uint32_t i = 0; i < desc.n_bindings; ++i) {
      bindings.push_back(sdk::At(desc.bindings, desc.binding_stride, i));
    }
    auto plan = std::make_unique<trine_plan>();
    for (const PlainGraph::Packed& p : plain.packed) {
      const trine_tensor& t = plain.tensors[p.tensor];
      if (p.layout == kSame && Dim(t, 1) % 4 == 0) continue;
      const auto binding = std::find_if(bindings.begin(), bindings.end(),
                                        [&](const trine_binding& b) { return b.slot == t.slot; });
      const uint64_t bytes = PlainGraph::PlainBytes(t);
      const trine_buffer_desc wanted{sizeof(wanted), TRINE_MEMORY_WEIGHTS, bytes};
      trine_buffer* buffer = nullptr;
      const trine_status s = Cpu().buffer_alloc(device, &wanted, &buffer, err);
      if (s != TRINE_OK) return s;
      plan->unpacked.push_back(buffer);
      const auto rows = static_cast<uint64_t>(Dim(t, 1) * Dim(t, 2) * Dim(t, 3));
      const auto* from = static_cast<const std::byte*>(Cpu().buffer_host_ptr(binding->span.buffer));
      Convert(t, p.layout, 0, rows, false, from + binding->span.offset,
              static_cast<std::byte*>(Cpu().buffer_host_ptr(buffer)));
      binding->span = {buffer, 0, bytes};
    }
    desc.graph = &plain.graph;
    desc.bindings = bindings.data();
    desc.binding_stride = sizeof(trine_binding);
    const trine_status s = Cpu().plan_create(device, &desc, &plan->inner, err);
    if (s == TRINE_OK) *out = plan.release();
    return s;
  });
}

void PlanDestroy(trine_plan* plan) {
  Cpu().plan_destroy(plan->inner);
  for (trine_buffer* buffer : plan->unpacked) Cpu().buffer_free(buffer);
  delete plan;
}

trine_status LayoutList(trine_device*, const trine_graph* graph, uint32_t tensor,
                        trine_layout_list* out, trine_error*) {
  const trine_tensor t = sdk::At(graph->tensors, graph->tensor_stride, tensor);
  const trine_layout_info info = LayoutOf(t);
  const bool weight = sdk::At(graph->slots, graph->slot_stride, t.slot).role == TRINE_ROLE_CONSTANT;
  out->count = weight ? 1 : 0;
  if (weight && out->capacity != 0)
    std::memcpy(out->infos, &info, std::min<size_t>(out->stride, sizeof(info)));
  return TRINE_OK;
}

// Counts conversions for "tires", since the plugin was loaded.
std::atomic<int> conversions;
constexpr int kTiredAfter = 110;

trine_status LayoutConvert(trine_device*, const trine_layout_convert_args* in, trine_error* err) {
  const trine_layout_convert_args args = sdk::ReadIn(in);
  if (Says("fails") || (Says("tires") && conversions++ >= kTiredAfter)) {
    return sdk::Fail(err, TRINE_INVALID_ARGUMENT, "it does not feel like it");
  }
  Convert(*args.tensor, args.layout, args.row_begin, args.row_end,
          args.direction == TRINE_LAYOUT_PACK, static_cast<const std::byte*>(args.src),
          static_cast<std::byte*>(args.dst));
  return TRINE_OK;
}

// Counts allocations of weights since the plugin was loaded.
std::atomic<int> allocations;

trine_status BufferAlloc(trine_device* device, const trine_buffer_desc* in, trine_buffer** out,
                         trine_error* err) {
  const bool weights = sdk::ReadIn(in).memory == TRINE_MEMORY_WEIGHTS;
  if (weights && (Says("full") || (Says("full-once") && allocations++ == 0))) {
    return sdk::Fail(err, TRINE_RESOURCE_EXHAUSTED, "it is full");
  }
  return Cpu().buffer_alloc(device, in, out, err);
}

trine_status BufferImport(trine_device* device, const trine_import_desc* in, trine_buffer** out,
                          trine_error* err) {
  const bool read_only = (sdk::ReadIn(in).flags & TRINE_IMPORT_READ_ONLY) != 0;
  if (Says(read_only ? "no-files" : "no-memory")) {
    return sdk::Fail(err, TRINE_UNIMPLEMENTED, read_only ? kNoFiles : kNoMemory);
  }
  if (Says("coarse") && reinterpret_cast<uintptr_t>(sdk::ReadIn(in).host_ptr) % kCoarse != 0) {
    return sdk::Fail(err, TRINE_INVALID_ARGUMENT, "it lies between multiples");
  }
  return Cpu().buffer_import(device, in, out, err);
}

trine_plugin Table() {
  trine_plugin t = Cpu();
  t.name = TRINE_FIXTURE_NAME;
  t.version = "1.0";
  t.device_count = [](trine_backend*) { return 2u; };
  t.device_info = DeviceInfo;
  t.device_open = [](trine_backend* backend, uint32_t index, trine_device** out, trine_error* err) {
    return Cpu().device_open(backend, index > 1 ? index : 0, out, err);
  };
  t.buffer_alloc = BufferAlloc;
  t.buffer_import = BufferImport;
  t.op_query = OpQuery;
  t.plan_query = PlanQuery;
  t.plan_create = PlanCreate;
  t.plan_run = [](trine_plan* plan, const trine_run_args* args, trine_error* err) {
    return Cpu().plan_run(plan->inner, args, err);
  };
  t.plan_destroy = PlanDestroy;
  t.layout_list = LayoutList;
  t.layout_convert = LayoutConvert;
  if (Says("hidden")) t.buffer_host_ptr = [](trine_buffer*) -> void* { return nullptr; };
  if (Says("no-import")) t.buffer_import = nullptr;
  if (Says("none")) {
    t.layout_list = nullptr;
    t.layout_convert = nullptr;
  }
  return t;
}

}  // namespace

// Makes a new table each time: the variable is read when the plugin is loaded.
extern "C" const trine_plugin* trine_plugin_query(uint32_t host_abi_version) {
  static trine_plugin table;
  if (host_abi_version >> 16 != TRINE_ABI_MAJOR) return nullptr;
  table = Table();
  conversions = 0;
  allocations = 0;
  return &table;
}
