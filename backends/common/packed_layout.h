// The packed rows of kernels/quant/packed_rows.h as a layout of a backend's own in the ABI.
#ifndef TRINE_BACKENDS_COMMON_PACKED_LAYOUT_H_
#define TRINE_BACKENDS_COMMON_PACKED_LAYOUT_H_

#include <cstdint>
#include <string>

#include "trine/backend_sdk.h"

namespace trine::backends {

// Bytes of a row of a tensor in the packed layout. The tensor has one.
uint64_t PackedRowBytesOf(const trine_tensor& t);

class PackedLayout {
 public:
  // `gathers`: tables of gather_rows may be packed too.
  constexpr PackedLayout(const char* backend, uint64_t id, bool gathers)
      : backend_(backend), id_(id), gathers_(gathers) {}

  // "" when the op reads no tensor, or only weights it can read, in the packed layout.
  std::string WhyNotIn(const sdk::Graph& graph, size_t op) const;

  // What the plugin's table offers.
  trine_status List(const trine_graph* graph, uint32_t tensor, trine_layout_list* out,
                    trine_error* err) const;
  trine_status Convert(const trine_layout_convert_args* args, trine_error* err) const;

 private:
  trine_layout_info Describe(const trine_tensor& t) const;
  bool TakesPacked(uint32_t op_kind) const;

  const char* backend_;
  uint64_t id_;
  bool gathers_;
};

}  // namespace trine::backends

#endif  // TRINE_BACKENDS_COMMON_PACKED_LAYOUT_H_
