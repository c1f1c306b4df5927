#include "runtime/model/stage_border.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "plugins/device_fault.h"

namespace trine {
namespace {

constexpr uint64_t kPage = 4096;

bool CanImportWritable(const trine_device_info& info) {
  const bool ruled_out =
      (info.imports & TRINE_IMPORTS_TRIED) != 0 && (info.imports & TRINE_IMPORTS_WRITABLE) == 0;
  return info.import_alignment != 0 && !ruled_out;
}

}  // namespace

absl::StatusOr<std::unique_ptr<StageBorder>> StageBorder::Create(
    size_t places, uint64_t bytes, const std::vector<std::shared_ptr<Device>>& devices) {
  uint64_t grain = kPage;
  for (const std::shared_ptr<Device>& device : devices) {
    const trine_device_info& info = device->info();
    if (!CanImportWritable(info)) continue;
    grain = std::max<uint64_t>({grain, info.import_alignment, info.buffer_alignment});
  }
  std::unique_ptr<StageBorder> border(new StageBorder());
  border->places_ = places;
  border->place_bytes_ = (bytes + grain - 1) / grain * grain;
  border->memory_ = std::make_unique<LentMemory>(grain, border->bytes());
  if (border->memory_->data() == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat("there is no memory for ", border->bytes(), " bytes between two segments"));
  }
  return border;
}

absl::StatusOr<std::vector<trine_span>> StageBorder::Import(const std::shared_ptr<Device>& device,
                                                            uint64_t bytes) {
  const trine_device_info& info = device->info();
  const bool fits = info.import_alignment != 0 &&
                    reinterpret_cast<uintptr_t>(memory_->data()) % info.import_alignment == 0 &&
                    place_bytes_ % info.import_alignment == 0 &&
                    place_bytes_ % std::max<uint64_t>(info.buffer_alignment, 1) == 0;
  std::vector<trine_span> spans;
  if (!fits || !CanImportWritable(info)) return spans;
  auto buffer = memory_->LendTo(device, this->bytes(), TRINE_MEMORY_IO);
  if (!buffer.ok()) {
    // A device that is well takes copies instead.
    const bool well =
        FaultyDevice(buffer.status()).empty() || absl::IsResourceExhausted(buffer.status());
    return well ? absl::StatusOr<std::vector<trine_span>>(spans) : buffer.status();
  }
  for (size_t i = 0; i < places_; ++i) spans.push_back(buffer->Span(i * place_bytes_, bytes));
  buffers_.push_back(*std::move(buffer));
  return spans;
}

}  // namespace trine
