#include "backends/vulkan/verdicts.h"

#include <sys/utsname.h>

#include <cstring>
#include <map>
#include <mutex>

#include "backends/vulkan/keyed_file.h"
#include "kernels/vulkan/shaders.h"

namespace trine::vulkan {
namespace {

// Changes when a verdict comes to mean something else: with what the self-test tests, say.
constexpr char kMagic[] = "trine-vulkan-verdict-2";

struct Remembered {
  std::mutex mutex;
  std::map<VerdictKey, Verdict> verdicts;
};

// Never destroyed: backends may be closed while the process ends.
Remembered& TheProcess() {
  static Remembered& remembered = *new Remembered();
  return remembered;
}

void AppendText(VerdictKey* key, const std::string& text) {
  AppendBytes(key, static_cast<uint64_t>(text.size()));
  key->insert(key->end(), text.begin(), text.end());
}

}  // namespace

VerdictKey VerdictKeyOf(const DeviceCaps& caps, const DeviceOptions& options) {
  VerdictKey key;
  AppendBytes(&key, kMagic);
  AppendBytes(&key, caps.uuid);
  AppendBytes(&key, caps.driver_id);
  AppendBytes(&key, caps.driver_version);
  AppendBytes(&key, caps.pipeline_cache_uuid);  // of the driver's build
  AppendText(&key, caps.driver);
  AppendBytes(&key, HashOfAllShaders());
  struct utsname kernel {};
  if (uname(&kernel) == 0) AppendText(&key, kernel.release);  // what it lets drivers import
  AppendBytes(&key, static_cast<uint32_t>(options.import));
  for (const auto& [name, value] : options.tuning) {
    AppendText(&key, name);
    AppendText(&key, value);
  }
  return key;
}

std::optional<Verdict> RecallVerdict(const VerdictKey& key, const std::string& path) {
  Remembered& remembered = TheProcess();
  const std::lock_guard<std::mutex> lock(remembered.mutex);
  if (const auto found = remembered.verdicts.find(key); found != remembered.verdicts.end()) {
    return found->second;
  }
  const auto data = KeyedFile(path, key).Read();
  Verdict verdict;
  if (!data.has_value() || data->size() < sizeof(verdict.imports.imports)) return std::nullopt;
  std::memcpy(&verdict.imports.imports, data->data(), sizeof(verdict.imports.imports));
  verdict.imports.refusal.assign(
      data->begin() + static_cast<ptrdiff_t>(sizeof(verdict.imports.imports)), data->end());
  remembered.verdicts.emplace(key, verdict);
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
  AppendBytes(&data, verdict.imports.imports);
  data.insert(data.end(), verdict.imports.refusal.begin(), verdict.imports.refusal.end());
  KeyedFile(path, key).Write(data).IgnoreError();  // it is found out again then
}

void ForgetVerdicts() {
  Remembered& remembered = TheProcess();
  const std::lock_guard<std::mutex> lock(remembered.mutex);
  remembered.verdicts.clear();
}

std::string DefaultVerdictPath(const DeviceCaps& caps) { return CachePath(caps, ".verdict"); }

}  // namespace trine::vulkan
