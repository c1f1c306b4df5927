#include "runtime/engine/model_keeper.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "plugins/handles.h"
#include "runtime/engine/progress_relay.h"
#include "runtime/placement/elsewhere.h"
#include "runtime/placement/split_mode.h"

namespace trine {

ModelKeeper::ModelKeeper(std::shared_ptr<const gguf::File> file, const ModelConfig& config,
                         const SegmentLimits& limits, DeviceSet* devices, LoadOptions load,
                         const ReadmissionOptions& readmission, LogSink log)
    : file_(std::move(file)),
      config_(config),
      limits_(limits),
      devices_(devices),
      load_(std::move(load)),
      log_(std::move(log)),
      readmission_(readmission) {}

absl::StatusOr<std::shared_ptr<Model>> ModelKeeper::Load(ModelPlaces places) {
  asked_ = places_ = std::move(places);
  asked_for_fewer_ = NoteFailures();
  return LoadOnWhatWorks();
}

absl::StatusOr<std::shared_ptr<Model>> ModelKeeper::LoadOnWhatWorks() {
  while (true) {
    auto model = LoadOnce();
    const std::string device = FaultyDevice(model.status());
    if (model.ok() || device.empty()) return model;
    if (absl::IsDeadlineExceeded(model.status())) devices_->host().ReplaceTeam();
    if (absl::Status s = Lose(device, model.status()); !s.ok()) return s;
  }
}

absl::StatusOr<std::shared_ptr<Model>> ModelKeeper::Replace(const std::string& device,
                                                            const absl::Status& why) {
  // A worker of the team may still be in the work that was given up.
  if (absl::IsDeadlineExceeded(why)) devices_->host().ReplaceTeam();
  if (absl::Status s = Lose(device, why); !s.ok()) return s;
  load_.progress = nullptr;  // only the first load reports progress
  return LoadOnWhatWorks();
}

const LostDevice* ModelKeeper::FindLost(const std::string& device) const {
  const auto found = std::find_if(lost_.begin(), lost_.end(),
                                  [&](const LostDevice& lost) { return lost.name == device; });
  return found == lost_.end() ? nullptr : &*found;
}

absl::Status ModelKeeper::Probe(const std::string& device, std::chrono::milliseconds most) {
  absl::Status status = devices_->Open(device, most).status();
  if (status.ok()) status = CheckFile();
  if (!status.ok()) PutOff(device);
  return status;
}

// Checks that the file can be read again before a working model is given up.
absl::Status ModelKeeper::CheckFile() const {
  if (file_->mapped()) return absl::OkStatus();
  for (const gguf::Part& part : file_->parts()) {
    if (access(part.path.c_str(), R_OK) == 0) continue;
    return absl::UnavailableError(
        absl::StrCat(part.path, " can't be read again: ", std::strerror(errno)));
  }
  return absl::OkStatus();
}

void ModelKeeper::PutOff(const std::string& device) {
  readmission_.Failed(device, std::chrono::steady_clock::now());
}

absl::StatusOr<std::shared_ptr<Model>> ModelKeeper::Readmit(
    const std::vector<std::string>& devices) {
  for (const std::string& device : devices) {
    std::erase_if(lost_, [&](const LostDevice& lost) { return lost.name == device; });
    readmission_.Admitted(device, std::chrono::steady_clock::now());
  }
  places_ = asked_;
  for (const LostDevice& lost : lost_) {
    places_ = WithoutDevice(places_, lost.name, Successor(lost.name));
  }
  if (!lost_.empty() || asked_for_fewer_) PlanAnew();
  load_.progress = nullptr;
  auto model = LoadOnWhatWorks();
  for (const std::string& device : devices) {
    if (!model.ok() || FindLost(device) != nullptr || !log_) continue;
    const bool used = (*model)->Devices().count(device) != 0;
    log_(TRINE_LOG_WARNING, absl::StrCat(device, " is back", used ? " and is used again" : ""));
  }
  if (model.ok()) return model;
  // Even an error that names no device came with these devices: without them the model worked.
  bool fewer = false;
  for (const std::string& device : devices) {
    if (FindLost(device) != nullptr) continue;
    if (absl::Status s = Lose(device, model.status()); !s.ok()) return s;
    fewer = true;
  }
  return fewer ? LoadOnWhatWorks() : std::move(model);
}

absl::StatusOr<std::shared_ptr<Model>> ModelKeeper::LoadOnce() {
  auto opened = OpenPlaces(places_, devices_);
  LoadOptions load = load_;
  if (opened.ok()) load.tensors = std::move(opened->tensors);
  if (placer_ != nullptr) {
    std::vector<std::string> lost;
    for (const LostDevice& l : lost_) lost.push_back(l.name);
    DispatchChoice choice = placer_->ChooseDispatch(places_, lost);
    load.dispatch.rule = choice.rule;
    load.dispatch.costs = std::move(choice.costs);
    load.dispatch.limits = std::move(choice.limits);
    for (const std::string& name : choice.helpers) {
      auto device = devices_->Open(name);
      if (device.ok()) load.dispatch.helpers.push_back({*std::move(device), name});
    }
    if (choice.log) {
      load.dispatch.log = [host = &devices_->host()](const std::string& line) {
        host->Say(TRINE_LOG_INFO, line);
      };
    }
  }
  if (!opened.ok()) return opened.status();
  if (std::exchange(tried_, true) && !file_->mapped()) {
    auto again = gguf::File::Open(file_->parts()[0].path, {.use_mmap = false});
    if (!again.ok()) return again.status();
    file_ = *std::move(again);
  }
  auto model = LoadWatched(std::move(opened->segments), std::move(load));
  if (!model.ok()) return model.status();
  devices_->ForgetUnused((*model)->Devices());  // some were opened only to be asked
  return std::shared_ptr<Model>(*std::move(model));
}

absl::StatusOr<std::unique_ptr<Model>> ModelKeeper::LoadWatched(std::vector<SegmentPlace> places,
                                                                LoadOptions load) {
  std::vector<NamedDevice> used = load.dispatch.helpers;
  for (const SegmentPlace& place : places) used.push_back({place.device, place.device_name});
  for (const DeviceRows& rows : load.tensors.rows) used.push_back(rows.device);
  for (const auto& [tensor, device] : load.tensors.tensors) used.push_back(device);
  if (std::none_of(used.begin(), used.end(),
                   [&](const NamedDevice& d) { return devices_->IsWatched(d.name); })) {
    return Model::Load(file_, config_, limits_, std::move(places), devices_->host(), load);
  }
  // Progress is reported on this thread.
  const auto progress = std::make_shared<ProgressRelay>();
  const LoadProgress told = std::move(load.progress);
  if (told) {
    load.progress = [progress](double fraction) { return progress->Ask(fraction); };
  }
  load.wanted = [progress] { return progress->Wanted(); };
  Watched<absl::StatusOr<std::unique_ptr<Model>>> work(
      [file = file_, config = config_, limits = limits_, places = std::move(places),
       host = &devices_->host(),
       load = std::move(load)] { return Model::Load(file, config, limits, places, *host, load); },
      progress->bell());
  auto model = devices_->WaitFor(&work, used, [&] { return progress->Answer(told); });
  progress->Leave();
  return model;
}

// Returns the CPU, which can run everything. When the CPU is lost, returns a device that has layers
// or rows, or else any usable one; "": none is left.
std::string ModelKeeper::Successor(const std::string& device) const {
  const auto usable = [&](const std::string& name) {
    return name != device && FindLost(name) == nullptr;
  };
  if (usable("cpu")) return "cpu";
  for (const LayerRange& range : places_.ranges) {
    if (usable(range.device)) return range.device;
  }
  for (const DeviceShare& d : places_.rows) {
    if (usable(d.device)) return d.device;
  }
  for (const std::string& gpu : devices_->GpuNames()) {
    if (usable(gpu)) return gpu;
  }
  for (const std::string& name :
       placer_ == nullptr ? std::vector<std::string>() : placer_->Named()) {
    if (usable(name)) return name;
  }
  return "";
}

bool ModelKeeper::PlanAnew() {
  if (placer_ == nullptr || !placer_->searches()) return false;
  std::vector<std::string> names;
  for (const LostDevice& lost : lost_) names.push_back(lost.name);
  auto places = placer_->ChooseWithout(names);
  NoteFailures();
  if (!places.ok()) return false;
  places_ = *std::move(places);
  if (lost_.empty()) {
    asked_ = places_;
    asked_for_fewer_ = false;
  }
  return true;
}

bool ModelKeeper::NoteFailures() {
  if (placer_ == nullptr) return false;
  const std::vector<DeviceFailure> failed = placer_->TakeFailures();
  for (const DeviceFailure& f : failed) {
    Note(f.name, f.why);
    const std::string successor = Successor(f.name);  // it may still have tensors placed by name
    if (!successor.empty()) places_ = WithoutDevice(places_, f.name, successor);
  }
  return !failed.empty();
}

void ModelKeeper::Note(const std::string& device, const absl::Status& why) {
  const auto now = std::chrono::steady_clock::now();
  std::erase_if(lost_, [&](const LostDevice& lost) { return lost.name == device; });
  lost_.push_back({device, std::string(why.message()), now});
  // A model that does not fit would be loaded in vain again and again.
  if (absl::IsResourceExhausted(why)) {
    readmission_.LostForGood(device);
  } else {
    readmission_.Lost(device, now);
  }
}

bool ModelKeeper::HasLayers(const std::string& device) const {
  return std::any_of(places_.ranges.begin(), places_.ranges.end(),
                     [&](const LayerRange& range) { return range.device == device; });
}

bool ModelKeeper::HasTensors(const std::string& device) const {
  return std::any_of(places_.tensors.begin(), places_.tensors.end(),
                     [&](const auto& placed) { return placed.second == device; });
}

std::string ModelKeeper::Consequence(const std::string& device,
                                     const std::string& successor) const {
  const auto shares = [&](const DeviceShare& d) { return d.device == device; };
  if (std::any_of(places_.rows.begin(), places_.rows.end(), shares)) {
    return "its rows go to the others";
  }
  if (HasLayers(device)) return absl::StrCat("its layers go to ", successor);
  if (!HasTensors(device)) return "others go without its help";
  return "tensors that were placed there go back to their layers";
}

absl::Status ModelKeeper::Lose(const std::string& device, const absl::Status& why) {
  const std::string successor = Successor(device);
  Note(device, why);
  devices_->Forget(device);
  if (successor.empty()) {
    // more precise than the text below
    if (lost_.size() == 1 && absl::IsResourceExhausted(why)) return why;
    std::string text = "no device is left";
    for (const LostDevice& lost : lost_) {
      absl::StrAppend(&text, &lost == &lost_.front() ? ": " : "; ", lost.name, ": ", lost.reason);
    }
    return absl::UnavailableError(text);
  }
  std::string where = Consequence(device, successor);
  const bool had_part =
      HasLayers(device) || (HasTensors(device) && placer_ != nullptr && placer_->places_parts());
  places_ = WithoutDevice(places_, device, successor);
  if (had_part && PlanAnew()) {
    where = absl::StrCat("the model goes to ", PlacementText(places_.ranges));
  }
  if (log_) {
    log_(TRINE_LOG_WARNING, absl::StrCat(device, " is lost (", why.message(), "): ", where));
  }
  return absl::OkStatus();
}

}  // namespace trine
