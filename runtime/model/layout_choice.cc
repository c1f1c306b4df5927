#include "runtime/model/layout_choice.h"

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"

namespace trine {
namespace {

using Uses = std::vector<WeightUse*>;  // of one weight of the file

void SetLayout(OpGraph* graph, WeightUse* use, const std::optional<PackedLayout>& layout) {
  use->packed = layout;
  graph->SetLayout(use->tensor, layout ? layout->id() : uint64_t{TRINE_LAYOUT_PLAIN},
                   layout ? layout->packed_bytes() : graph->Bytes(use->tensor));
}

class Chooser {
 public:
  Chooser(const Device& device, OpGraph* graph, const std::function<void(const std::string&)>& warn)
      : device_(device), graph_(*graph), warn_(warn) {}

  void Choose(const Uses& uses) {
    Uses multiplied;
    for (WeightUse* use : uses) {
      if (!graph_.AloneInSlot(use->tensor)) return;  // the ABI's rule
      if (!OnlyPicked(*use)) multiplied.push_back(use);
    }
    if (multiplied.empty()) return;
    // Layers repeat: what was answered for one holds for the others.
    const auto [found, is_new] = answers_.try_emplace(Signature(uses));
    if (is_new) found->second = Ask(uses, multiplied);
    const Answer& answer = found->second;
    if (!answer.layout) return;
    for (WeightUse* use : answer.all ? uses : multiplied) SetLayout(&graph_, use, answer.layout);
  }

 private:
  struct Answer {
    std::optional<PackedLayout> layout;
    bool all = false;  // for every tensor of the weight, else for those that are multiplied
  };

  bool OnlyPicked(const WeightUse& use) const {
    const std::vector<uint32_t> readers = graph_.Readers(use.tensor);
    return std::all_of(readers.begin(), readers.end(),
                       [&](uint32_t op) { return graph_.op(op).kind == TRINE_OP_GATHER_ROWS; });
  }

  // Everything an answer may depend on.
  std::string Signature(const Uses& uses) const {
    std::string text;
    const auto add_tensor = [&](TensorId id) {
      if (id == TRINE_NONE) return absl::StrAppend(&text, "none;");
      const trine_tensor& t = graph_.tensor(id);
      absl::StrAppend(&text, t.dtype, "[", t.dims[0], ",", t.dims[1], ",", t.dims[2], ",",
                      t.dims[3], "]", t.rank, ";");
    };
    for (const WeightUse* use : uses) {
      add_tensor(use->tensor);
      for (const uint32_t reader : graph_.Readers(use->tensor)) {
        const trine_op& op = graph_.op(reader);
        absl::StrAppend(&text, op.kind, "(");
        for (uint32_t i = 0; i < op.n_in; ++i) {
          absl::StrAppend(&text, op.in[i] == use->tensor ? "*" : "");
          add_tensor(op.in[i]);
        }
        absl::StrAppend(&text, ")");
      }
      absl::StrAppend(&text, "|");
    }
    return text;
  }

  Answer Ask(const Uses& uses, const Uses& multiplied) {
    const auto layouts =
        device_.ListLayouts(graph_.View(TRINE_NUMERICS_EXACT), multiplied.front()->tensor);
    if (!layouts.ok()) {
      if (absl::IsInternal(layouts.status())) {
        warn_(absl::StrCat(layouts.status().message(), "; the weight stays as in the file"));
      }
      return {};
    }
    for (const bool all : {true, false}) {
      if (!all && uses.size() == multiplied.size()) break;
      for (const PackedLayout& layout : *layouts) {
        if (Takes(all ? uses : multiplied, layout)) return {layout, all};
      }
    }
    return {};
  }

  // Whether all ops that read any of these run exactly with the layout. Leaves them plain.
  bool Takes(const Uses& uses, const PackedLayout& layout) {
    for (WeightUse* use : uses) SetLayout(&graph_, use, layout);
    const trine_graph view = graph_.View(TRINE_NUMERICS_EXACT);
    bool taken = true;
    for (const WeightUse* use : uses) {
      for (const uint32_t op : graph_.Readers(use->tensor)) {
        const auto support = device_.QueryOp(view, op);
        taken = taken && support.ok() && support->support >= TRINE_SUPPORT_EXACT;
      }
    }
    for (WeightUse* use : uses) SetLayout(&graph_, use, std::nullopt);
    return taken;
  }

  const Device& device_;
  OpGraph& graph_;
  const std::function<void(const std::string&)>& warn_;
  std::map<std::string, Answer> answers_;
};

}  // namespace

void ChooseLayouts(const Device& device, SegmentGraph* segment,
                   const std::function<void(const std::string&)>& warn) {
  if (device.table().layout_list == nullptr || device.table().layout_convert == nullptr) return;
  std::map<const gguf::TensorInfo*, Uses> weights;
  for (WeightUse& use : segment->weights) {
    if (!use.as_f32) weights[use.info].push_back(&use);
  }
  Chooser chooser(device, &segment->graph, warn);
  for (const auto& [info, uses] : weights) chooser.Choose(uses);
}

void ClearLayouts(SegmentGraph* segment) {
  for (WeightUse& use : segment->weights) {
    if (use.packed) SetLayout(&segment->graph, &use, std::nullopt);
  }
}

}  // namespace trine
