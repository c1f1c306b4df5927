// The storage of a plan: checks bindings once, lays out TEMP slots in the scratch, and, for devices
// whose buffers the CPU can address, turns tensors into pointers and strides at each run.
#ifndef TRINE_SDK_PLAN_H_
#define TRINE_SDK_PLAN_H_

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "trine/sdk/graph.h"

namespace trine::sdk {

// A tensor of a run: a pointer with dimensions and strides.
struct View {
  std::byte* data;
  uint32_t dtype;
  Dims dims;
  Dims strides;  // in bytes; strides[0] is one block

  int64_t Rows() const { return dims[1] * dims[2] * dims[3]; }
  // Returns the start of row r, counted over dimensions 1 to 3.
  std::byte* Row(int64_t r) const {
    return data + r % dims[1] * strides[1] + r / dims[1] % dims[2] * strides[2] +
           r / dims[1] / dims[2] * strides[3];
  }
  template <class T>
  T* RowAs(int64_t r) const {
    return reinterpret_cast<T*>(Row(r));
  }
};

inline constexpr uint64_t kScratchAlignment = 64;

// Returns the size of the scratch. Sets `offsets`, unless it is null, to the offset of each slot in
// the scratch; only those of TEMP slots mean anything.
inline uint64_t LayOutScratch(const Graph& graph, std::vector<uint64_t>* offsets) {
  uint64_t total = 0;
  if (offsets != nullptr) offsets->assign(graph.slots.size(), 0);
  for (size_t i = 0; i < graph.slots.size(); ++i) {
    if (graph.slots[i].role != TRINE_ROLE_TEMP) continue;
    if (offsets != nullptr) (*offsets)[i] = total;
    total += (graph.slots[i].bytes + kScratchAlignment - 1) / kScratchAlignment * kScratchAlignment;
  }
  return total;
}

// Knows where a plan's slots are. A Place is the plugin's way to address memory, such as a pointer.
// A default-constructed Place stands for no memory, and a Place plus a number of bytes is a Place.
template <class Place>
class PlanPlaces {
 public:
  // Checks the bindings and lays out the scratch. `place_of(trine_span)` returns where a span
  // begins, or a default Place if the span is out of range. `desc` must have been read with ReadIn;
  // `graph` is its checked copy. `extra_bytes`: the scratch that the plan needs besides TEMP slots.
  template <class Locate>
  trine_status Bind(const Graph& graph, const trine_plan_desc& desc, Locate place_of,
                    trine_error* err, uint64_t extra_bytes = 0) {
    if (desc.bindings == nullptr && desc.n_bindings != 0) {
      return Fail(err, TRINE_INVALID_ARGUMENT, "the bindings are null");
    }
    bases_.assign(graph.slots.size(), {});
    for (size_t i = 0; i < graph.slots.size(); ++i) {
      bases_[i].assign(graph.slots[i].alternates, Place{});
    }
    for (uint32_t i = 0; i < desc.n_bindings; ++i) {
      const trine_binding b = At(desc.bindings, desc.binding_stride, i);
      if (b.slot >= bases_.size() || b.alternate >= bases_[b.slot].size() ||
          graph.slots[b.slot].role == TRINE_ROLE_TEMP) {
        return Fail(err, TRINE_INVALID_ARGUMENT, "a binding names no slot that can be bound");
      }
      if (b.span.bytes < graph.slots[b.slot].bytes) {
        return Fail(err, TRINE_INVALID_ARGUMENT,
                    "slot " + std::to_string(b.slot) + " is bound to fewer bytes than it needs");
      }
      if (bases_[b.slot][b.alternate] != Place{}) {
        return Fail(err, TRINE_INVALID_ARGUMENT,
                    "slot " + std::to_string(b.slot) + " is bound twice");
      }
      const Place base = place_of(b.span);
      if (base == Place{}) return Fail(err, TRINE_INVALID_ARGUMENT, "a binding is out of range");
      bases_[b.slot][b.alternate] = base;
    }
    std::vector<uint64_t> offsets;
    const uint64_t temp_bytes = LayOutScratch(graph, &offsets);
    const uint64_t scratch_bytes = temp_bytes + extra_bytes;
    const Place scratch = scratch_bytes == 0 ? Place{} : place_of(desc.scratch);
    if (scratch_bytes != 0 && (scratch == Place{} || desc.scratch.bytes < scratch_bytes)) {
      return Fail(err, TRINE_INVALID_ARGUMENT, "the scratch is missing or too small");
    }
    if (extra_bytes != 0) extra_ = scratch + temp_bytes;
    for (size_t i = 0; i < graph.slots.size(); ++i) {
      if (graph.slots[i].role == TRINE_ROLE_TEMP && scratch != Place{}) {
        bases_[i][0] = scratch + offsets[i];
      }
      for (const Place& base : bases_[i]) {
        if (base == Place{} && graph.slots[i].bytes != 0) {
          return Fail(err, TRINE_INVALID_ARGUMENT, "slot " + std::to_string(i) + " is not bound");
        }
      }
    }
    return TRINE_OK;
  }

  // Returns where the scratch besides TEMP slots begins, at a multiple of kScratchAlignment from
  // the scratch's beginning. Returns Place{} if Bind was given no extra bytes.
  Place extra() const { return extra_; }

  // Returns where a tensor begins, or Place{} if its slot is empty. `alternates` has an entry for
  // each slot; null: alternate 0 everywhere.
  Place PlaceOf(const Graph& graph, const trine_tensor& t, const uint32_t* alternates) const {
    const bool io = graph.slots[t.slot].role == TRINE_ROLE_IO && alternates != nullptr;
    const Place base = bases_[t.slot][io ? alternates[t.slot] : 0];
    return base == Place{} ? base : base + t.offset;
  }

 private:
  std::vector<std::vector<Place>> bases_;  // by slot, then alternate
  Place extra_{};
};

// Knows where a plan's slots are by pointers, for devices whose buffers the CPU can address.
class PlanStorage : public PlanPlaces<std::byte*> {
 public:
  View ViewOf(const Graph& graph, uint32_t tensor, const int64_t* params,
              const uint32_t* alternates) const {
    const trine_tensor& t = graph.tensors[tensor];
    View view{PlaceOf(graph, t, alternates), t.dtype, ResolveDims(t, params), {}};
    view.strides = ResolveStrides(t, view.dims);
    return view;
  }
};

// Checks that parameters are within their ranges and alternates within their counts.
inline trine_status CheckRun(const Graph& graph, const trine_run_args& args, trine_error* err) {
  if (args.n_params != graph.params.size()) {
    return Fail(err, TRINE_INVALID_ARGUMENT, "the run has another number of parameters");
  }
  if ((args.params == nullptr && args.n_params != 0) ||
      (args.alternates == nullptr && args.n_alternates != 0)) {
    return Fail(err, TRINE_INVALID_ARGUMENT, "the run's parameters or alternates are null");
  }
  for (size_t i = 0; i < graph.params.size(); ++i) {
    const trine_param& p = graph.params[i];
    if (args.params[i] < p.min || args.params[i] > p.max) {
      return Fail(err, TRINE_INVALID_ARGUMENT,
                  "parameter " + std::to_string(i) + " is " + std::to_string(args.params[i]) +
                      ", outside " + std::to_string(p.min) + " to " + std::to_string(p.max));
    }
  }
  if (args.n_alternates != 0 && args.n_alternates != graph.slots.size()) {
    return Fail(err, TRINE_INVALID_ARGUMENT, "alternates are given for another number of slots");
  }
  for (uint32_t i = 0; i < args.n_alternates; ++i) {
    if (graph.slots[i].role == TRINE_ROLE_IO && args.alternates[i] >= graph.slots[i].alternates) {
      return Fail(
          err, TRINE_INVALID_ARGUMENT,
          "slot " + std::to_string(i) + " has no alternate " + std::to_string(args.alternates[i]));
    }
  }
  return TRINE_OK;
}

}  // namespace trine::sdk

#endif  // TRINE_SDK_PLAN_H_
