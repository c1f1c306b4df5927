#include "runtime/gguf/layout.h"

#include <limits>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/gguf/encode.h"
#include "runtime/gguf/format.h"

namespace trine::gguf {
namespace {

std::vector<PartLayout> Divide(const std::vector<Builder::Tensor>& tensors, const Layout& layout,
                               uint64_t max_part_bytes) {
  std::vector<PartLayout> parts(1);
  uint64_t part_bytes = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const uint64_t bytes = tensors[i].bytes + layout.PaddingAfter(tensors[i].bytes);
    if (max_part_bytes > 0 && part_bytes > 0 && bytes > max_part_bytes - part_bytes) {
      parts.push_back({"", i, i});
      part_bytes = 0;
    }
    part_bytes = bytes > max_part_bytes ? max_part_bytes : part_bytes + bytes;
    parts.back().last_tensor = i + 1;
  }
  return parts;
}

bool IsSplitKey(std::string_view key) {
  return key == kSplitNumberKey || key == kSplitCountKey || key == kSplitTensorsKey;
}

// The first part has all the metadata; the others have what it takes to read and place them.
std::vector<Builder::Pair> PartPairs(const Builder& builder, size_t part, size_t part_count) {
  if (part_count == 1) return builder.pairs();
  std::vector<Builder::Pair> pairs;
  for (const Builder::Pair& pair : builder.pairs()) {
    if (!IsSplitKey(pair.key) && (part == 0 || pair.key == kAlignmentKey)) pairs.push_back(pair);
  }
  Builder split;
  split.SetUint16(kSplitNumberKey, static_cast<uint16_t>(part));
  split.SetUint16(kSplitCountKey, static_cast<uint16_t>(part_count));
  split.SetInt32(kSplitTensorsKey, static_cast<int32_t>(builder.tensors().size()));
  pairs.insert(pairs.end(), split.pairs().begin(), split.pairs().end());
  return pairs;
}

std::string Header(const Builder& builder, uint32_t version,
                   const std::vector<Builder::Pair>& pairs, const PartLayout& part,
                   const Layout& layout) {
  std::string header(kMagic, sizeof(kMagic));
  AppendNumber(version, &header);
  AppendNumber<uint64_t>(part.last_tensor - part.first_tensor, &header);
  AppendNumber<uint64_t>(pairs.size(), &header);
  for (const Builder::Pair& pair : pairs) {
    AppendString(pair.key, &header);
    header += pair.value;
  }
  uint64_t offset = 0;
  for (size_t i = part.first_tensor; i < part.last_tensor; ++i) {
    const Builder::Tensor& tensor = builder.tensors()[i];
    AppendString(tensor.name, &header);
    AppendNumber<uint32_t>(static_cast<uint32_t>(tensor.dims.size()), &header);
    for (const int64_t dim : tensor.dims) AppendNumber(dim, &header);
    AppendNumber<uint32_t>(*NumberFromTensorType(tensor.type), &header);
    AppendNumber<uint64_t>(offset, &header);
    offset += tensor.bytes + layout.PaddingAfter(tensor.bytes);
  }
  header.append(layout.PaddingAfter(header.size()), '\0');
  return header;
}

}  // namespace

absl::StatusOr<Layout> LayOut(const Builder& builder, uint32_t version, uint64_t max_part_bytes) {
  if (!builder.status().ok()) return builder.status();
  if (version != 2 && version != 3) {
    return absl::InvalidArgumentError(
        absl::StrCat("version ", version, " of GGUF can not be written; expected 2 or 3"));
  }
  const absl::StatusOr<uint32_t> alignment = builder.Alignment();
  if (!alignment.ok()) return alignment.status();
  Layout layout;
  layout.alignment = *alignment;
  layout.parts = Divide(builder.tensors(), layout, max_part_bytes);
  if (layout.parts.size() > static_cast<size_t>(kMaxParts)) {
    return absl::InvalidArgumentError(absl::StrCat("parts of ", max_part_bytes, " bytes would be ",
                                                   layout.parts.size(), " files; at most ",
                                                   kMaxParts, " are written"));
  }
  for (size_t i = 0; i < layout.parts.size(); ++i) {
    PartLayout& part = layout.parts[i];
    part.header =
        Header(builder, version, PartPairs(builder, i, layout.parts.size()), part, layout);
  }
  return layout;
}

uint64_t TotalBytes(const Builder& builder, const Layout& layout) {
  uint64_t total = 0;
  for (const PartLayout& part : layout.parts) total += part.header.size();
  for (const Builder::Tensor& tensor : builder.tensors()) {
    const uint64_t bytes = tensor.bytes + layout.PaddingAfter(tensor.bytes);
    if (__builtin_add_overflow(total, bytes, &total)) return std::numeric_limits<uint64_t>::max();
  }
  return total;
}

}  // namespace trine::gguf
