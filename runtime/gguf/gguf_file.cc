#include "runtime/gguf/gguf_file.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/invalid.h"
#include "runtime/gguf/format.h"
#include "runtime/gguf/quoted.h"

namespace trine::gguf {
namespace {

// NOT_FOUND is for missing files only, so a missing key becomes INVALID_ARGUMENT.
absl::Status AsInvalid(const absl::Status& status) {
  return absl::InvalidArgumentError(status.message());
}

struct LoadedPart {
  FileMemory memory;
  PartContents contents;
};

absl::StatusOr<LoadedPart> LoadPart(const std::string& path, bool use_mmap) {
  absl::StatusOr<FileMemory> memory = use_mmap ? FileMemory::Map(path) : FileMemory::Read(path);
  if (!memory.ok()) return About(path, memory.status());
  absl::StatusOr<PartContents> contents = ReadPart(memory->data(), memory->bytes());
  if (!contents.ok()) return About(path, contents.status());
  return LoadedPart{std::move(*memory), std::move(*contents)};
}

// The statements of a part about the whole file.
struct SplitFacts {
  int64_t number = 0;
  int64_t count = 1;
  int64_t tensors = 0;
};

absl::StatusOr<SplitFacts> ReadSplitFacts(const PartContents& part) {
  SplitFacts facts;
  facts.tensors = static_cast<int64_t>(part.tensors.size());
  const absl::StatusOr<int64_t> count = part.metadata.IntegerOr(kSplitCountKey, 0, kMaxParts, 1);
  if (!count.ok()) return count.status();
  if (*count <= 1) return facts;
  const absl::StatusOr<int64_t> number = part.metadata.Integer(kSplitNumberKey, 0, *count - 1);
  if (!number.ok()) return AsInvalid(number.status());
  const absl::StatusOr<int64_t> tensors =
      part.metadata.Integer(kSplitTensorsKey, 0, static_cast<int64_t>(kMaxTensors));
  if (!tensors.ok()) return AsInvalid(tensors.status());
  return SplitFacts{*number, *count, *tensors};
}

std::string PartText(int64_t number, int64_t count) {
  return absl::StrCat("part ", number + 1, " of ", count);
}

// `found`: what the part with index `number` says. `whole`: what the part that the user named says.
absl::Status CheckPart(const SplitFacts& found, int64_t number, const SplitFacts& whole) {
  if (found.number != number || found.count != whole.count) {
    return Invalid("says it is ", PartText(found.number, found.count),
                   " of a model; by its name it is ", PartText(number, whole.count));
  }
  if (found.tensors != whole.tensors) {
    return Invalid("is part of a model of ", found.tensors,
                   " tensors, but another part is of one of ", whole.tensors,
                   ": the parts belong to different models");
  }
  return absl::OkStatus();
}

}  // namespace

File::File() = default;
File::~File() = default;

absl::StatusOr<std::shared_ptr<const File>> File::Open(const std::string& path,
                                                       const OpenOptions& options) {
  std::shared_ptr<File> file(new File);
  file->mapped_ = options.use_mmap;
  if (absl::Status s = file->LoadParts(path, options.use_mmap); !s.ok()) return s;
  return file;
}

absl::StatusOr<std::shared_ptr<const File>> File::FromMemory(absl::Span<const std::byte> bytes,
                                                             std::string name) {
  absl::StatusOr<FileMemory> memory = FileMemory::Copy(bytes);
  if (!memory.ok()) return About(name, memory.status());
  absl::StatusOr<PartContents> contents = ReadPart(memory->data(), memory->bytes());
  if (!contents.ok()) return About(name, contents.status());
  const absl::StatusOr<SplitFacts> facts = ReadSplitFacts(*contents);
  if (!facts.ok()) return About(name, facts.status());
  if (facts->count > 1) {
    return absl::UnimplementedError(absl::StrCat(name, ": is ",
                                                 PartText(facts->number, facts->count),
                                                 " of a split model; a split model is opened from "
                                                 "files"));
  }
  std::shared_ptr<File> file(new File);
  const absl::Status status = file->AddPart(name, std::move(*memory), std::move(*contents));
  if (!status.ok()) return About(name, status);
  return file;
}

absl::Status File::LoadParts(const std::string& path, bool use_mmap) {
  absl::StatusOr<LoadedPart> named = LoadPart(path, use_mmap);
  if (!named.ok()) return named.status();
  const absl::StatusOr<SplitFacts> whole = ReadSplitFacts(named->contents);
  if (!whole.ok()) return About(path, whole.status());
  if (whole->count == 1) {
    const absl::Status status = AddPart(path, std::move(named->memory), std::move(named->contents));
    return status.ok() ? status : About(path, status);
  }

  const std::optional<SplitName> name = ParseSplitName(path);
  if (!name || name->number != whole->number || name->count != whole->count) {
    return Invalid(path, ": is ", PartText(whole->number, whole->count),
                   " of a split model; its name must ", "end in ",
                   SplitPath("", whole->number, whole->count), " for the others to be found");
  }
  for (int64_t i = 0; i < whole->count; ++i) {
    const std::string part_path = SplitPath(name->prefix, i, whole->count);
    absl::StatusOr<LoadedPart> part =
        i == whole->number ? std::move(named) : LoadPart(part_path, use_mmap);
    if (absl::IsNotFound(part.status())) {
      return absl::NotFoundError(
          absl::StrCat(part_path, ": ", PartText(i, whole->count), " of the model is missing"));
    }
    if (!part.ok()) return part.status();
    const absl::StatusOr<SplitFacts> facts = ReadSplitFacts(part->contents);
    if (!facts.ok()) return About(part_path, facts.status());
    absl::Status status = CheckPart(*facts, i, *whole);
    if (status.ok()) {
      status = AddPart(part_path, std::move(part->memory), std::move(part->contents));
    }
    if (!status.ok()) return About(part_path, status);
  }
  if (tensors_.size() != static_cast<size_t>(whole->tensors)) {
    return Invalid(path, ": the ", whole->count, " parts of the model have ", tensors_.size(),
                   " tensors together; expected ", whole->tensors);
  }
  return absl::OkStatus();
}

absl::Status File::AddPart(std::string path, FileMemory memory, PartContents contents) {
  if (parts_.empty()) {
    version_ = contents.version;
    metadata_ = std::move(contents.metadata);
  }
  parts_.push_back(
      {std::move(path), memory.data(), memory.bytes(), memory.mapped_bytes(), memory.stamp()});
  memory_.push_back(std::move(memory));
  return AddTensors(std::move(contents.tensors));
}

absl::Status File::AddTensors(std::vector<TensorInfo> tensors) {
  const size_t part = parts_.size() - 1;
  tensors_.reserve(tensors_.size() + tensors.size());
  tensor_index_.reserve(tensors_.size() + tensors.size());
  for (TensorInfo& tensor : tensors) {
    tensor.part = part;
    const absl::string_view name(tensor.name.data(), tensor.name.size());
    if (!tensor_index_.emplace(name, static_cast<uint32_t>(tensors_.size())).second) {
      return Invalid("there are two tensors ", Quoted(tensor.name));
    }
    tensor_bytes_ += tensor.bytes;
    tensors_.push_back(tensor);
  }
  return absl::OkStatus();
}

const TensorInfo* File::FindTensor(std::string_view name) const {
  const auto found = tensor_index_.find(absl::string_view(name.data(), name.size()));
  return found == tensor_index_.end() ? nullptr : &tensors_[found->second];
}

absl::Status File::Lock() const {
  for (size_t i = 0; i < memory_.size(); ++i) {
    const absl::Status status = memory_[i].Lock();
    if (status.ok()) continue;
    for (size_t j = 0; j < i; ++j) memory_[j].Unlock();
    return About(parts_[i].path, status);
  }
  return absl::OkStatus();
}

void File::Release(const TensorInfo& tensor, uint64_t begin, uint64_t end) const {
  memory_[tensor.part].Release(tensor.offset + begin, tensor.offset + end);
}

}  // namespace trine::gguf
