// Makes GGUF files in memory, for tests. The product writes files to disk (writer.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "runtime/gguf/builder.h"
#include "runtime/gguf/quoted.h"
#include "runtime/gguf/writer.h"

namespace trine::gguf {

// Returns the bytes of a whole file. `data` must have one entry for each of the builder's tensors.
inline absl::StatusOr<std::vector<std::byte>> ToBytes(
    const Builder& builder, absl::Span<const absl::Span<const std::byte>> data,
    uint32_t version = 3) {
  const absl::StatusOr<Layout> layout = LayOut(builder, version, 0);
  if (!layout.ok()) return layout.status();
  const std::vector<Builder::Tensor>& tensors = builder.tensors();
  if (data.size() != tensors.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("data of ", data.size(), " tensors for a file of ", tensors.size()));
  }
  const std::string& header = layout->parts[0].header;
  std::vector<std::byte> bytes(header.size());
  std::memcpy(bytes.data(), header.data(), header.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (data[i].size() != tensors[i].bytes) {
      return absl::InvalidArgumentError(absl::StrCat("the tensor ", Quoted(tensors[i].name),
                                                     " has ", tensors[i].bytes, " bytes, not ",
                                                     data[i].size()));
    }
    bytes.insert(bytes.end(), data[i].begin(), data[i].end());
    bytes.resize(bytes.size() + layout->PaddingAfter(data[i].size()));
  }
  return bytes;
}

}  // namespace trine::gguf
