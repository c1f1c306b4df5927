// Offers a backend's own layouts in the ABI. PackedLayout is the layout of packed rows
// (kernels/quant/packed_rows.h).
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "trine/backend_sdk.h"

namespace trine::backends {

// Describes a tensor in the backend's layout. Returns layout 0 if the tensor can't have it.
using DescribeLayout = std::function<trine_layout_info(const trine_tensor& t)>;

// Returns whether a tensor can have a layout at all: it has no gaps and no parameters.
bool IsDense(const trine_tensor& t);

// Returns "" if the op can read all its packed tensors (or has none), else why it can't. An op can
// read only its first input packed, and only if `takes` is true; if it is false, `otherwise` says
// why.
std::string WhyNotPacked(const sdk::Graph& graph, size_t op, const char* backend,
                         const DescribeLayout& describe, bool takes, const char* otherwise);

// Implements layout_list for a backend with one layout.
trine_status ListLayout(const trine_graph* graph, uint32_t tensor, const DescribeLayout& describe,
                        trine_layout_list* out, trine_error* err);

// Returns the bytes of a row of t in the packed layout. t must have a packed layout.
uint64_t PackedRowBytesOf(const trine_tensor& t);

// The layout of packed rows, with the id that a backend gives it.
class PackedLayout {
 public:
  // `gathers`: the tables of gather_rows may be packed too.
  constexpr PackedLayout(const char* backend, uint64_t id, bool gathers)
      : backend_(backend), id_(id), gathers_(gathers) {}

  // Returns "" if the op can read all its packed tensors (or has none), else why it can't.
  std::string WhyNotIn(const sdk::Graph& graph, size_t op) const;

  // The entries of the plugin's table.
  trine_status List(const trine_graph* graph, uint32_t tensor, trine_layout_list* out,
                    trine_error* err) const;
  trine_status Convert(const trine_layout_convert_args* args, trine_error* err) const;

 private:
  trine_layout_info Describe(const trine_tensor& t) const;

  const char* backend_;
  uint64_t id_;
  bool gathers_;
};

}  // namespace trine::backends
