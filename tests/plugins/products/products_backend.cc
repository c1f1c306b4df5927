// The CPU backend as a device that multiplies and does nothing else, with fast numerics, so that
// code for such devices can be tested anywhere. It takes weights in the layout of the file alone.
// TRINE_FIXTURE_PRODUCTS=exact: it says that its results are exact.
// TRINE_FIXTURE_PRODUCTS=lies: it says so as well, but the lowest bit of a run's first result is
// wrong, unless the run signals a timeline.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>

#include "tests/plugins/cpu_table.h"
#include "trine/backend_sdk.h"

namespace sdk = trine::sdk;

namespace {

std::string Mode() {
  const char* text = std::getenv("TRINE_FIXTURE_PRODUCTS");
  return text != nullptr ? text : "";
}

bool ClaimsExact() { return !Mode().empty(); }

// Where the first output of each plan is.
struct Outputs {
  std::mutex mutex;
  std::map<trine_plan*, trine_span> spans;
};
Outputs& TheOutputs() {
  static Outputs& outputs = *new Outputs();
  return outputs;
}

trine_status DeviceInfo(trine_backend* backend, uint32_t index, trine_device_info* out,
                        trine_error* err) {
  trine_device_info info{};
  info.struct_size = sizeof(info);
  const trine_status s = Cpu().device_info(backend, index, &info, err);
  if (s != TRINE_OK) return s;
  info.tier = TRINE_TIER_OTHER;
  info.numerics = ClaimsExact() ? TRINE_NUMERICS_EXACT : TRINE_NUMERICS_FAST;
  std::snprintf(info.name, sizeof(info.name), "Products");
  // A test of the device counts for one mode.
  std::snprintf(info.driver, sizeof(info.driver), "fixture %s", Mode().c_str());
  sdk::WriteOut(out, info);
  return TRINE_OK;
}

std::string Refusal(const sdk::Graph& graph, size_t op) {
  const bool product = graph.ops[op].kind == TRINE_OP_MATMUL;
  if (!product) return sdk::OpName(graph.ops[op].kind) + std::string(": only products run here");
  const bool plain = graph.tensors[graph.ops[op].in[0]].layout == TRINE_LAYOUT_PLAIN;
  return plain ? "" : "matmul: unknown layout";
}

uint32_t Support() { return ClaimsExact() ? TRINE_SUPPORT_EXACT : TRINE_SUPPORT_FAST; }

trine_status OpQuery(trine_device*, const trine_graph* graph, uint32_t op, const int64_t*,
                     trine_op_support* out, trine_error* err) {
  return sdk::AnswerOpQuery(graph, op, Support(), Refusal, out, err);
}

trine_status PlanQuery(trine_device* device, const trine_graph* graph, trine_plan_info* out,
                       trine_error* err) {
  sdk::Graph accepted;
  const trine_status s = sdk::AcceptGraph(graph, Support(), Refusal, &accepted, err);
  return s == TRINE_OK ? Cpu().plan_query(device, graph, out, err) : s;
}

trine_status PlanCreate(trine_device* device, const trine_plan_desc* desc, trine_plan** out,
                        trine_error* err) {
  sdk::Graph accepted;
  trine_status s = sdk::AcceptGraph(desc->graph, Support(), Refusal, &accepted, err);
  if (s == TRINE_OK) s = Cpu().plan_create(device, desc, out, err);
  if (s != TRINE_OK || Mode() != "lies") return s;
  const trine_tensor& y = accepted.tensors[accepted.ops[0].out[0]];
  for (uint32_t i = 0; i < desc->n_bindings; ++i) {
    const trine_binding& bound = desc->bindings[i];
    if (bound.slot != y.slot) continue;
    const std::lock_guard lock(TheOutputs().mutex);
    TheOutputs().spans[*out] = {bound.span.buffer, bound.span.offset + y.offset, sizeof(float)};
  }
  return s;
}

trine_status PlanRun(trine_plan* plan, const trine_run_args* args, trine_error* err) {
  trine_status s = Cpu().plan_run(plan, args, err);
  if (s != TRINE_OK || Mode() != "lies" || args->sync.n_signals != 0) return s;
  trine_span at{};
  {
    const std::lock_guard lock(TheOutputs().mutex);
    at = TheOutputs().spans[plan];
  }
  if (at.buffer == nullptr) return s;
  uint32_t bits = 0;
  s = Cpu().buffer_read(at.buffer, at.offset, &bits, sizeof(bits), err);
  bits ^= 1;
  return s == TRINE_OK ? Cpu().buffer_write(at.buffer, at.offset, &bits, sizeof(bits), err) : s;
}

void PlanDestroy(trine_plan* plan) {
  {
    const std::lock_guard lock(TheOutputs().mutex);
    TheOutputs().spans.erase(plan);
  }
  Cpu().plan_destroy(plan);
}

trine_status NoLayouts(trine_device*, const trine_graph*, uint32_t, trine_layout_list* list,
                       trine_error*) {
  list->count = 0;
  return TRINE_OK;
}

trine_plugin Table() {
  trine_plugin t = Cpu();
  t.name = TRINE_FIXTURE_NAME;
  t.version = "1.0";
  t.device_info = DeviceInfo;
  t.op_query = OpQuery;
  t.plan_query = PlanQuery;
  t.plan_create = PlanCreate;
  t.plan_run = PlanRun;
  t.plan_destroy = PlanDestroy;
  t.layout_list = NoLayouts;
  return t;
}

}  // namespace

extern "C" const trine_plugin* trine_plugin_query(uint32_t host_abi_version) {
  static const trine_plugin table = Table();
  return host_abi_version >> 16 == TRINE_ABI_MAJOR ? &table : nullptr;
}
