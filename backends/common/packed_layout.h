// Offers a backend's own layouts in the ABI. PackedLayout is the layout of packed rows
// (kernels/quant/packed_rows.h).
#pragma once

#include <cstdint>
#include <string>

#include "trine/backend_sdk.h"

namespace trine::backends {

// Returns whether a tensor can have a layout at all: it has no gaps and no parameters.
bool IsDense(const trine_tensor& t);

// Returns the bytes of a row of t in the packed layout. t must have a packed layout.
uint64_t PackedRowBytesOf(const trine_tensor& t);

// Return the bytes of a row of t, and the strides of t, in its layout: plain, or packed rows.
// `dims` are its dimensions in a run.
uint64_t RowBytesOf(const trine_tensor& t, const sdk::Dims& dims);
sdk::Dims StridesOf(const trine_tensor& t, const sdk::Dims& dims);

// The one layout that a backend offers, for weights of products.
class BackendLayout {
 public:
  // `gathers`: the tables of gather_rows may have the layout too.
  constexpr BackendLayout(const char* backend, bool gathers)
      : backend_(backend), gathers_(gathers) {}

  // Returns "" if the op can read all its packed tensors (or has none), else why it can't. An op
  // can read only its first input packed.
  std::string WhyNotIn(const sdk::Graph& graph, size_t op) const;

  // The entries of the plugin's table.
  trine_status List(const trine_graph* graph, uint32_t tensor, trine_layout_list* out,
                    trine_error* err) const;
  trine_status Convert(const trine_layout_convert_args* args, trine_error* err) const;

 protected:
  ~BackendLayout() = default;

 private:
  // Describes a tensor in the layout. Returns layout 0 if the tensor can't have it.
  virtual trine_layout_info Describe(const trine_tensor& t) const = 0;
  // Converts whole groups of rows. Returns whether the layout has the direction.
  virtual bool ConvertRows(const trine_layout_convert_args& args,
                           const trine_layout_info& info) const = 0;

  const char* backend_;
  bool gathers_;
};

// The layout of packed rows, with the id that a backend gives it.
class PackedLayout final : public BackendLayout {
 public:
  constexpr PackedLayout(const char* backend, uint64_t id, bool gathers)
      : BackendLayout(backend, gathers), id_(id) {}

 private:
  trine_layout_info Describe(const trine_tensor& t) const override;
  bool ConvertRows(const trine_layout_convert_args& args,
                   const trine_layout_info& info) const override;

  uint64_t id_;
};

}  // namespace trine::backends
