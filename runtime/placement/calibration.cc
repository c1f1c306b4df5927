#include "runtime/placement/calibration.h"

#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "kernels/quant/block_types.h"
#include "nlohmann/json.hpp"
#include "plugins/device_text.h"
#include "runtime/base/file_lock.h"
#include "runtime/gguf/output_file.h"
#include "trine/backend_sdk.h"

namespace trine {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kVersion = 2;
constexpr char kVersionKey[] = "trine_calibration";

Json CurveJson(const CostCurve& curve) {
  Json points = Json::array();
  for (const CostCurve::Point& p : curve.points()) points.push_back({p.at, p.cost});
  return points;
}

Json SpreadJson(const CostTrust& trust) {
  Json spread = Json::object();
  for (const auto& [type, parts] : trust.spread) spread[sdk::DtypeName(type)] = parts;
  return spread;
}

Json ToJson(const MeasuredCosts& measured) {
  const DeviceCosts& c = measured.costs;
  Json matmul = Json::object();
  for (const auto& [type, curve] : c.matmul) matmul[sdk::DtypeName(type)] = CurveJson(curve);
  const auto op = [](const OpCost& cost) { return Json{cost.op_ns, cost.value_ns}; };
  const auto move = [](const MoveCost& cost) { return Json{cost.call_ns, cost.byte_ns}; };
  return {{"run_ns", c.run_ns},
          {"matmul_ns", c.matmul_ns},
          {"matmul", std::move(matmul)},
          {"attention_ns", c.attention_ns},
          {"attention", CurveJson(c.attention)},
          {"attention_kv_ns", c.attention_kv_ns},
          {"norm", op(c.norm)},
          {"rope", op(c.rope)},
          {"glu", op(c.glu)},
          {"plain", op(c.plain)},
          {"in", move(c.in)},
          {"out", move(c.out)},
          {"bytes_per_second", c.bytes_per_second},
          {"correction", CurveJson(c.correction)},
          {"unpacked", CurveJson(c.unpacked)},
          {"stream_byte_ns", c.stream_byte_ns},
          {"reuse", CurveJson(c.reuse)},
          {"spread", SpreadJson(measured.trust)},
          {"busy", measured.trust.busy}};
}

// Reads the JSON of ToJson. `ok` says whether all values were there and made sense.
class Reader {
 public:
  explicit Reader(const Json& json) : json_(json) {}

  bool ok() const { return ok_; }
  double Number(const char* name) { return Number(Member(name)); }
  double Number(const Json& json) {
    ok_ = ok_ && json.is_number();
    const double value = ok_ ? json.get<double>() : 0;
    ok_ = ok_ && std::isfinite(value) && value >= 0;
    return value;
  }
  // Reads a list of two numbers.
  void Pair(const char* name, double* first, double* second) {
    const Json& json = Member(name);
    ok_ = ok_ && json.is_array() && json.size() == 2;
    if (!ok_) return;
    *first = Number(json[0]);
    *second = Number(json[1]);
  }
  CostCurve Curve(const Json& json) {
    std::vector<CostCurve::Point> points;
    ok_ = ok_ && json.is_array() && json.size() <= 64;
    for (size_t i = 0; ok_ && i < json.size(); ++i) {
      ok_ = json[i].is_array() && json[i].size() == 2;
      if (ok_) points.push_back({Number(json[i][0]), Number(json[i][1])});
    }
    const bool none = points.empty();
    CostCurve curve(std::move(points));
    ok_ = ok_ && (none || !curve.empty());
    return curve;
  }
  const Json& Member(const char* name) {
    static const Json kNothing;
    const auto found = json_.find(name);
    ok_ = ok_ && found != json_.end();
    return ok_ ? *found : kNothing;
  }

 private:
  const Json& json_;
  bool ok_ = true;
};

// Calls `take(type, value)` for each member that is named after a type of weights.
template <class Take>
void ForEachType(const Json& json, Take take) {
  for (const auto& [name, value] : json.items()) {
    for (const quant::Type type : quant::kAllTypes) {
      const auto dtype = static_cast<uint32_t>(type);
      if (name == sdk::DtypeName(dtype)) take(dtype, value);
    }
  }
}

// Reads what files of older versions lack. Costs are as good without it, so nothing is refused.
CostTrust TrustFromJson(const Json& json) {
  constexpr size_t kMostSpreads = 64, kLongestText = 200;
  CostTrust trust;
  if (const auto busy = json.find("busy"); busy != json.end() && busy->is_string()) {
    const std::string text = busy->get<std::string>();
    trust.busy = FieldText(text.data(), std::min(text.size(), kLongestText));
  }
  const auto spread = json.find("spread");
  if (spread == json.end() || !spread->is_object()) return trust;
  ForEachType(*spread, [&](uint32_t type, const Json& parts) {
    if (!parts.is_array()) return;
    Reader r(parts);
    std::vector<double> values;
    for (size_t i = 0; i < std::min(parts.size(), kMostSpreads); ++i) {
      values.push_back(r.Number(parts[i]));
    }
    if (r.ok()) trust.spread[type] = std::move(values);
  });
  return trust;
}

bool FromJson(const Json& json, MeasuredCosts* measured) {
  if (!json.is_object()) return false;
  measured->trust = TrustFromJson(json);
  DeviceCosts* const c = &measured->costs;
  Reader r(json);
  c->run_ns = r.Number("run_ns");
  c->matmul_ns = r.Number("matmul_ns");
  const Json& matmul = r.Member("matmul");
  if (!r.ok() || !matmul.is_object()) return false;
  ForEachType(matmul, [&](uint32_t type, const Json& curve) { c->matmul[type] = r.Curve(curve); });
  c->attention_ns = r.Number("attention_ns");
  c->attention = r.Curve(r.Member("attention"));
  c->attention_kv_ns = r.Number("attention_kv_ns");
  const auto op = [&](const char* name, OpCost* cost) {
    r.Pair(name, &cost->op_ns, &cost->value_ns);
  };
  op("norm", &c->norm);
  op("rope", &c->rope);
  op("glu", &c->glu);
  op("plain", &c->plain);
  r.Pair("in", &c->in.call_ns, &c->in.byte_ns);
  r.Pair("out", &c->out.call_ns, &c->out.byte_ns);
  c->bytes_per_second = r.Number("bytes_per_second");
  c->correction = r.Curve(r.Member("correction"));
  c->unpacked = r.Curve(r.Member("unpacked"));
  c->stream_byte_ns = r.Number("stream_byte_ns");
  c->reuse = r.Curve(r.Member("reuse"));
  return r.ok();
}

void MakeFolder(const std::string& path) {
  std::error_code ignored;  // creating the file reports what is wrong
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
}

// Locks the calibration at the path for this process.
absl::Status LockFile(FileLock* lock, const std::string& path) {
  if (const absl::Status s = lock->Lock(); !s.ok()) {
    return absl::Status(s.code(), absl::StrCat(path, ".lock: ", s.message()));
  }
  return absl::OkStatus();
}

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

}  // namespace

std::string Calibration::DefaultPath() {
  const std::string named = Variable("TRINE_CALIBRATION");
  if (absl::EqualsIgnoreCase(named, "off")) return "";
  if (!named.empty()) return named;
  const std::string cache = Variable("XDG_CACHE_HOME"), home = Variable("HOME");
  if (absl::StartsWith(cache, "/")) return cache + "/trine/calibration.json";
  if (absl::StartsWith(home, "/")) return home + "/.cache/trine/calibration.json";
  return "";
}

absl::StatusOr<Calibration> Calibration::Read(const std::string& path) {
  Calibration calibration;
  if (path.empty()) return calibration;
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (status.type() == std::filesystem::file_type::not_found) return calibration;
  const auto damaged = [&](const char* what) {
    return absl::DataLossError(absl::StrCat(path, ": ", what));
  };
  // There may be a folder or a pipe at this path.
  if (!std::filesystem::is_regular_file(status)) return damaged("it is no file");
  std::ifstream file(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (!file.is_open() || file.bad()) {
    return absl::UnavailableError(absl::StrCat(path, ": it can't be read"));
  }
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains(kVersionKey) || !json.contains("devices") ||
      !json["devices"].is_object()) {
    return damaged("it is no calibration");
  }
  // Ignores a file of another version, and entries that make no sense.
  if (json[kVersionKey] != kVersion) return calibration;
  for (const auto& [key, value] : json["devices"].items()) {
    MeasuredCosts measured;
    if (FromJson(value, &measured)) {
      calibration.devices_[key] = std::move(measured);
    } else {
      ++calibration.senseless_;
    }
  }
  return calibration;
}

absl::Status Calibration::Write(const std::string& path) const {
  Json devices = Json::object();
  for (const auto& [key, measured] : devices_) devices[key] = ToJson(measured);
  const std::string text =
      Json{{kVersionKey, kVersion}, {"devices", std::move(devices)}}.dump(1) + "\n";
  MakeFolder(path);
  return gguf::OutputFile::Write(path, text);
}

absl::Status Calibration::AddTo(const std::string& path) const {
  MakeFolder(path);
  FileLock lock(path + ".lock", FileLock::Kind::kFile);
  if (absl::Status s = LockFile(&lock, path); !s.ok()) return s;
  auto all = Read(path);
  if (absl::IsDataLoss(all.status())) all = Calibration();
  if (!all.ok()) return all.status();
  for (const auto& [key, measured] : devices_) all->devices_[key] = measured;
  return all->Write(path);
}

absl::Status Calibration::CheckWritable(const std::string& path) {
  MakeFolder(path);
  FileLock lock(path + ".lock", FileLock::Kind::kFile);
  if (absl::Status s = LockFile(&lock, path); !s.ok()) return s;
  return gguf::OutputFile::Create(path).status();  // removed again, since nothing is published
}

const MeasuredCosts* Calibration::Find(const std::string& key) const {
  const auto found = devices_.find(key);
  return found == devices_.end() ? nullptr : &found->second;
}

std::string CalibrationKey(const Inventory& inventory, const InventoryDevice& device,
                           uint32_t threads) {
  const DeviceFinding& found = inventory.registry.devices[device.registry_device];
  const PluginFinding& plugin = inventory.registry.plugins[found.plugin];
  struct stat file {};  // a rebuilt plugin has another time or size
  stat(plugin.path.c_str(), &file);
  std::string key = absl::StrCat(plugin.probe.name, " ", plugin.probe.version, " ", file.st_size,
                                 ".", file.st_mtime, "; ", FieldText(found.info.name), "; ",
                                 FieldText(found.info.arch), "; ", FieldText(found.info.driver));
  if (const std::string pci = FieldText(found.info.pci_id); !pci.empty()) {
    absl::StrAppend(&key, "; ", pci);
  }
  if (!plugin.options.empty()) absl::StrAppend(&key, "; ", plugin.options);
  if (found.info.tier == TRINE_TIER_CPU) absl::StrAppend(&key, "; ", threads, " threads");
  return key;
}

}  // namespace trine
