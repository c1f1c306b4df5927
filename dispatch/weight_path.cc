#include "dispatch/weight_path.h"

#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "plugins/device_text.h"

namespace trine {
namespace {

uint64_t PageBytes() { return static_cast<uint64_t>(sysconf(_SC_PAGESIZE)); }

// Whether importing a kind of memory failed already.
bool SeenToFail(const trine_device_info& info, bool read_only) {
  const uint32_t kind = read_only ? TRINE_IMPORTS_READ_ONLY : TRINE_IMPORTS_WRITABLE;
  return (info.imports & TRINE_IMPORTS_TRIED) != 0 && (info.imports & kind) == 0;
}

}  // namespace

const char* WeightPathName(WeightPath path) {
  switch (path) {
    case WeightPath::kFile:
      return "file";
    case WeightPath::kArena:
      return "arena";
    case WeightPath::kCopy:
      break;
  }
  return "copy";
}

bool MayImport(const trine_device_info& info, bool read_only) {
  // Over a bus, at each run: of use for what is streamed on purpose, not to keep a model's weights.
  if ((info.flags & TRINE_DEVICE_UNIFIED_MEMORY) == 0) return false;
  if (info.import_alignment == 0) return false;
  if (read_only && info.import_alignment > PageBytes()) return false;
  return !SeenToFail(info, read_only);
}

std::string ImportRefusal(const trine_device_info& info) {
  std::string refusal = FieldText(info.import_refusal);
  const bool unified = (info.flags & TRINE_DEVICE_UNIFIED_MEMORY) != 0;
  if (!unified || info.import_alignment <= PageBytes() || SeenToFail(info, true)) return refusal;
  absl::StrAppend(&refusal, refusal.empty() ? "" : "; ",
                  "mapped files: they begin at multiples of ", PageBytes(),
                  " bytes, and the device imports at multiples of ", info.import_alignment);
  return refusal;
}

WeightPath ExpectedWeightPath(const trine_device_info& info) {
  if (MayImport(info, true)) return WeightPath::kFile;
  return MayImport(info, false) ? WeightPath::kArena : WeightPath::kCopy;
}

std::string DescribeWeightPath(const trine_device_info& info) {
  const std::string refusal = ImportRefusal(info);
  const std::string why = refusal.empty() ? "" : absl::StrCat(" (", refusal, ")");
  switch (ExpectedWeightPath(info)) {
    case WeightPath::kFile:
      return absl::StrCat("read in the mapped file's own pages", why);
    case WeightPath::kArena:
      return absl::StrCat("read in memory shared with the CPU, filled from the file", why);
    case WeightPath::kCopy:
      break;
  }
  const bool unified = (info.flags & TRINE_DEVICE_UNIFIED_MEMORY) != 0;
  if (unified && refusal.empty()) return "copied: the device does not import memory";
  return absl::StrCat(unified ? "copied" : "copied to the device's own memory", why);
}

}  // namespace trine
