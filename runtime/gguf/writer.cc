#include "runtime/gguf/writer.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "runtime/gguf/disk_space.h"
#include "runtime/gguf/output_file.h"
#include "runtime/gguf/quoted.h"
#include "runtime/gguf/split_name.h"

namespace trine::gguf {
namespace {

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

Writer::Writer(Builder builder, Layout layout, std::vector<std::string> paths)
    : builder_(std::move(builder)), layout_(std::move(layout)), paths_(std::move(paths)) {}

Writer::~Writer() = default;

absl::StatusOr<std::unique_ptr<Writer>> Writer::Create(const std::string& path, Builder builder,
                                                       const WriterOptions& options) {
  absl::StatusOr<Layout> layout = LayOut(builder, options.version, options.max_part_bytes);
  if (!layout.ok()) {
    return absl::Status(layout.status().code(),
                        absl::StrCat(path, ": ", layout.status().message()));
  }
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
      const absl::Status status = files_.back()->Close();
      if (!status.ok()) return status;
    }
    const std::string& header = parts[files_.size()].header;
    absl::StatusOr<std::unique_ptr<OutputFile>> file = OutputFile::Create(paths_[files_.size()]);
    if (!file.ok()) return file.status();
    files_.push_back(std::move(*file));
    const absl::Status status = files_.back()->Append(header.data(), header.size());
    if (!status.ok()) return status;
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
      return absl::InvalidArgumentError(
          absl::StrCat(paths_.back(), ": ", data.size(), " bytes more than the tensors have"));
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

absl::StatusOr<std::vector<std::byte>> ToBytes(const Builder& builder,
                                               absl::Span<const absl::Span<const std::byte>> data,
                                               uint32_t version) {
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
