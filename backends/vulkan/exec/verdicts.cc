#include "backends/vulkan/exec/verdicts.h"

#include <sys/utsname.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "backends/vulkan/memory/keyed_file.h"
#include "detect/cpu/cpu.h"
#include "kernels/vulkan/spirv/shaders.h"

namespace trine::vulkan {
namespace {

// Must change when the meaning of a verdict changes, for example with the content of the self-test.
constexpr char kMagic[] = "trine-vulkan-verdict-4";

struct Remembered {
  std::mutex mutex;
  std::map<VerdictKey, Verdict> verdicts;
};

// Never destroyed, because backends may be closed while the process exits.
Remembered& TheProcess() {
  static Remembered& remembered = *new Remembered();
  return remembered;
}

void AppendText(std::vector<uint8_t>* bytes, const std::string& text) {
  AppendBytes(bytes, static_cast<uint64_t>(text.size()));
  bytes->insert(bytes->end(), text.begin(), text.end());
}

// Appends members one by one, because padding between members of a struct has undefined bytes.
template <class... Members>
void AppendAll(std::vector<uint8_t>* bytes, const Members&... members) {
  (AppendBytes(bytes, members), ...);
}

// Names all members, so that a new member does not compile until it is added here.
void AppendTuning(VerdictKey* key, const ChosenTuning& tuning) {
  {
    const auto& [executor, int_dot, subgroup_size, fuse, elementwise_workgroup, gemv_workgroup,
                 gemv_rows, submit_operations, submit_dispatches] = tuning.ops;
    AppendAll(key, executor, int_dot, subgroup_size, fuse, elementwise_workgroup, gemv_workgroup,
              gemv_rows, submit_operations, submit_dispatches);
  }
  const auto& [int_dot, gemv_workgroup, gemv_subgroup, gemv_lanes, gemv_rows, gemv_blocks,
               gemv_columns, gemv_fill, gemm_rows, gemm_columns] = tuning.products;
  AppendAll(key, int_dot, gemv_workgroup, gemv_subgroup, gemv_lanes, gemv_rows, gemv_blocks,
            gemv_columns, gemv_fill, gemm_rows, gemm_columns);
}

// Appends the processor that a software device's programs are compiled for: its name and what it
// can do. A driver on another machine makes other programs, and says nothing of that.
void AppendProcessor(VerdictKey* key) {
  detect::Notes notes;
  const detect::ProcessorInfo processor = detect::ReadProcessor(detect::FileRoot(""), &notes);
  AppendText(key, processor.model);
  for (const detect::SimdFeature& feature : processor.features) {
    if (feature.advertised) AppendText(key, feature.name);
  }
}

// Appends a trial as a file holds it: its outcome, its reason's length and its reason.
void AppendKind(std::vector<uint8_t>* data, const KindTrial& kind) {
  AppendBytes(data, kind.outcome);
  AppendText(data, kind.reason);
}

// Takes a value from the front of the remaining data. Returns false if too little remains.
template <class T>
bool Take(const uint8_t** at, const uint8_t* end, T* value) {
  if (static_cast<size_t>(end - *at) < sizeof(*value)) return false;
  std::memcpy(value, *at, sizeof(*value));
  *at += sizeof(*value);
  return true;
}

bool TakeKind(const uint8_t** at, const uint8_t* end, KindTrial* kind) {
  uint8_t outcome = 0;
  uint64_t length = 0;
  if (!Take(at, end, &outcome) || outcome > KindTrial::kRefused || !Take(at, end, &length) ||
      length > static_cast<uint64_t>(end - *at)) {
    return false;
  }
  kind->outcome = static_cast<KindTrial::Outcome>(outcome);
  kind->reason.assign(*at, *at + length);
  *at += length;
  return true;
}

std::optional<Verdict> ReadVerdict(const VerdictKey& key, const std::string& path) {
  const auto data = KeyedFile(path, key).Read();
  if (!data.has_value()) return std::nullopt;
  Verdict verdict;
  const uint8_t* at = data->data();
  const uint8_t* const end = at + data->size();
  const bool whole = TakeKind(&at, end, &verdict.imports.memory) &&
                     TakeKind(&at, end, &verdict.imports.files) && at == end;
  return whole ? std::optional(std::move(verdict)) : std::nullopt;
}

}  // namespace

VerdictKey VerdictKeyOf(const DeviceCaps& caps, const DeviceOptions& options) {
  VerdictKey key;
  AppendBytes(&key, kMagic);
  AppendText(&key, TRINE_VERSION);
  AppendBytes(&key, caps.uuid);
  AppendBytes(&key, caps.driver_id);
  AppendBytes(&key, caps.driver_version);
  AppendBytes(&key, caps.pipeline_cache_uuid);  // identifies the driver's build
  AppendText(&key, caps.driver);
  AppendBytes(&key, caps.api_version);
  AppendBytes(&key, HashOfAllShaders());
  struct utsname kernel {};
  if (uname(&kernel) == 0) AppendText(&key, kernel.release);  // decides what drivers may import
  if (caps.kind == DeviceKind::kCpu) AppendProcessor(&key);
  AppendBytes(&key, static_cast<uint32_t>(options.import));
  // With too little time, a trial may lose the device that would succeed with more.
  AppendBytes(&key, std::min(options.timeout, kImportTrialTimeout).count());
  if (const auto tuning = TuningFor(caps, options); tuning.ok()) {
    AppendTuning(&key, *tuning);
  } else {
    AppendText(&key, std::string(tuning.status().message()));  // it can't be opened this way
  }
  return key;
}

std::optional<Verdict> RecallVerdict(const VerdictKey& key, const std::string& path) {
  Remembered& remembered = TheProcess();
  const std::lock_guard<std::mutex> lock(remembered.mutex);
  if (const auto found = remembered.verdicts.find(key); found != remembered.verdicts.end()) {
    return found->second;
  }
  std::optional<Verdict> verdict = ReadVerdict(key, path);
  if (verdict.has_value()) remembered.verdicts.emplace(key, *verdict);
  return verdict;
}

void RememberVerdict(const VerdictKey& key, const std::string& path, const Verdict& verdict) {
  {
    Remembered& remembered = TheProcess();
    const std::lock_guard<std::mutex> lock(remembered.mutex);
    remembered.verdicts.insert_or_assign(key, verdict);
  }
  if (!verdict.failure.empty()) return;
  std::vector<uint8_t> data;
  AppendKind(&data, verdict.imports.memory);
  AppendKind(&data, verdict.imports.files);
  if (KeyedFile(path, key).Write(data).ok())
    KeepNewest(path, kVerdictFiles);  // a verdict that was not written is found out again
}

void ForgetVerdicts() {
  Remembered& remembered = TheProcess();
  const std::lock_guard<std::mutex> lock(remembered.mutex);
  remembered.verdicts.clear();
}

std::string DefaultVerdictPath(const DeviceCaps& caps, const VerdictKey& key) {
  const uint64_t hash = HashOf(key.data(), key.size());
  return CachePath(caps, absl::StrCat("-", absl::Hex(hash, absl::kZeroPad16), ".verdict"));
}

}  // namespace trine::vulkan
