#include "runtime/gguf/writer.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "runtime/base/invalid.h"
#include "runtime/gguf/format.h"
#include "runtime/gguf/output_file.h"
#include "runtime/gguf/quoted.h"

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

// The first part has all metadata; the others have only what is needed to read and place them.
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

std::vector<std::string> PartPaths(const std::string& path, size_t parts) {
  if (parts == 1) return {path};
  const std::string prefix(absl::StripSuffix(path, ".gguf"));
  std::vector<std::string> paths;
  for (size_t i = 0; i < parts; ++i) {
    paths.push_back(SplitPath(prefix, static_cast<int64_t>(i), static_cast<int64_t>(parts)));
  }
  return paths;
}

}  // namespace

absl::StatusOr<Layout> LayOut(const Builder& builder, uint32_t version, uint64_t max_part_bytes) {
  if (!builder.status().ok()) return builder.status();
  if (version != 2 && version != 3) {
    return Invalid("version ", version, " of GGUF can not be written; expected 2 or 3");
  }
  const absl::StatusOr<uint32_t> alignment = builder.Alignment();
  if (!alignment.ok()) return alignment.status();
  Layout layout;
  layout.alignment = *alignment;
  layout.parts = Divide(builder.tensors(), layout, max_part_bytes);
  if (layout.parts.size() > static_cast<size_t>(kMaxParts)) {
    return Invalid("parts of ", max_part_bytes, " bytes would be ", layout.parts.size(),
                   " files; at most ", kMaxParts, " are written");
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

Writer::Writer(Builder builder, Layout layout, std::vector<std::string> paths)
    : builder_(std::move(builder)), layout_(std::move(layout)), paths_(std::move(paths)) {}

Writer::~Writer() = default;

absl::StatusOr<std::unique_ptr<Writer>> Writer::Create(const std::string& path, Builder builder,
                                                       const WriterOptions& options) {
  absl::StatusOr<Layout> layout = LayOut(builder, options.version, options.max_part_bytes);
  if (!layout.ok()) return About(path, layout.status());
  absl::Status status = CheckDiskSpace(path, TotalBytes(builder, *layout));
  if (!status.ok()) return status;
  std::vector<std::string> paths = PartPaths(path, layout->parts.size());
  std::unique_ptr<Writer> writer(
      new Writer(std::move(builder), std::move(*layout), std::move(paths)));
  status = writer->Advance();
  if (!status.ok()) return status;
  return writer;
}

absl::Status Writer::Advance() {
  const std::vector<PartLayout>& parts = layout_.parts;
  while (files_.size() < parts.size() &&
         (files_.empty() || tensor_ == parts[files_.size() - 1].last_tensor)) {
    if (!files_.empty()) {
      if (absl::Status s = files_.back()->Close(); !s.ok()) return s;
    }
    const std::string& header = parts[files_.size()].header;
    absl::StatusOr<std::unique_ptr<OutputFile>> file = OutputFile::Create(paths_[files_.size()]);
    if (!file.ok()) return file.status();
    files_.push_back(std::move(*file));
    if (absl::Status s = files_.back()->Append(header.data(), header.size()); !s.ok()) return s;
  }
  return absl::OkStatus();
}

absl::Status Writer::Write(absl::Span<const std::byte> data) {
  if (status_.ok()) status_ = Append(data);
  return status_;
}

absl::Status Writer::Append(absl::Span<const std::byte> data) {
  while (!data.empty()) {
    if (tensor_ == builder_.tensors().size()) {
      return Invalid(paths_.back(), ": ", data.size(), " bytes more than the tensors have");
    }
    const uint64_t total = builder_.tensors()[tensor_].bytes;
    const uint64_t n = std::min<uint64_t>(data.size(), total - tensor_bytes_);
    absl::Status status = files_.back()->Append(data.data(), n);
    if (!status.ok()) return status;
    data.remove_prefix(n);
    tensor_bytes_ += n;
    if (tensor_bytes_ < total) continue;
    status = files_.back()->AppendZeros(layout_.PaddingAfter(total));
    if (!status.ok()) return status;
    ++tensor_;
    tensor_bytes_ = 0;
    status = Advance();
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status Writer::Finish() {
  if (!status_.ok()) return status_;
  const absl::Status status = Publish();
  status_ = status.ok() ? absl::FailedPreconditionError(
                              absl::StrCat(paths_.front(), ": has been written already"))
                        : status;
  return status;
}

absl::Status Writer::Publish() {
  if (tensor_ != builder_.tensors().size()) {
    const Builder::Tensor& tensor = builder_.tensors()[tensor_];
    return absl::FailedPreconditionError(absl::StrCat(paths_.back(), ": the tensor ",
                                                      Quoted(tensor.name), " got ", tensor_bytes_,
                                                      " of its ", tensor.bytes, " bytes"));
  }
  absl::Status status = files_.back()->Close();
  for (size_t i = files_.size(); status.ok() && i-- > 0;) status = files_[i]->Publish();
  return status;
}

}  // namespace trine::gguf
