// The CPU backend as a device that multiplies and does nothing else, with fast numerics, so that
// code for such devices can be tested anywhere. It takes weights in the layout of the file alone.
// TRINE_FIXTURE_PRODUCTS=exact: it says that its results are exact.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/plugins/cpu_table.h"
#include "trine/backend_sdk.h"

namespace sdk = trine::sdk;

namespace {

bool ClaimsExact() {
  const char* text = std::getenv("TRINE_FIXTURE_PRODUCTS");
  return text != nullptr && std::strcmp(text, "exact") == 0;
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
  const trine_status s = sdk::AcceptGraph(desc->graph, Support(), Refusal, &accepted, err);
  return s == TRINE_OK ? Cpu().plan_create(device, desc, out, err) : s;
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
  t.layout_list = NoLayouts;
  return t;
}

}  // namespace

extern "C" const trine_plugin* trine_plugin_query(uint32_t host_abi_version) {
  static const trine_plugin table = Table();
  return host_abi_version >> 16 == TRINE_ABI_MAJOR ? &table : nullptr;
}
