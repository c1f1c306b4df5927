#include "plugins/conformance/session.h"

namespace trine::conformance {

std::unique_ptr<Session> Session::Open(Trial& trial, Runner& runner, const trine_plugin& table,
                                       uint32_t device_index, uint32_t workers,
                                       const std::string& options) {
  std::unique_ptr<Session> session(new Session(runner, table, workers));
  Session& s = *session;
  Answer answer = trial.Call("open", [&](trine_error* err) {
    return table.open(s.host_->get(), options.c_str(), &s.backend_, err);
  });
  if (!trial.ExpectOk(answer, "open") ||
      !trial.Expect(s.backend_ != nullptr, "open returned OK and no backend")) {
    return nullptr;
  }
  s.info_.struct_size = sizeof(s.info_);
  answer = trial.Call("device_info", [&](trine_error* err) {
    return table.device_info(s.backend_, device_index, &s.info_, err);
  });
  if (!trial.ExpectOk(answer, "device_info")) return nullptr;
  answer = trial.Call("device_open", [&](trine_error* err) {
    return table.device_open(s.backend_, device_index, &s.device_, err);
  });
  if (!trial.ExpectOk(answer, "device_open") ||
      !trial.Expect(s.device_ != nullptr, "device_open returned OK and no device")) {
    return nullptr;
  }
  return session;
}

Session::~Session() {
  if (device_ != nullptr) CallVoid("device_close", [&] { table_.device_close(device_); });
  if (backend_ != nullptr) CallVoid("close", [&] { table_.close(backend_); });
}

BufferPtr Session::Own(trine_buffer* buffer) {
  return BufferPtr(
      buffer, [this](trine_buffer* b) { CallVoid("buffer_free", [&] { table_.buffer_free(b); }); });
}

Answer Session::TryAlloc(Trial& trial, uint64_t bytes, uint32_t memory, BufferPtr* out) {
  trine_buffer_desc desc{sizeof(desc), memory, bytes};
  trine_buffer* buffer = nullptr;
  Answer answer = trial.Call("buffer_alloc", [&](trine_error* err) {
    return table_.buffer_alloc(device_, &desc, &buffer, err);
  });
  if (answer.Ok()) {
    trial.Expect(buffer != nullptr, "buffer_alloc returned OK and no buffer");
    *out = Own(buffer);
  }
  return answer;
}

BufferPtr Session::Alloc(Trial& trial, uint64_t bytes, uint32_t memory) {
  BufferPtr buffer;
  trial.ExpectOk(TryAlloc(trial, bytes, memory, &buffer),
                 "buffer_alloc of " + std::to_string(bytes) + " bytes");
  return buffer;
}

Answer Session::Write(Trial& trial, trine_buffer* buffer, uint64_t offset, const void* src,
                      uint64_t bytes) {
  return trial.Call("buffer_write", [&](trine_error* err) {
    return table_.buffer_write(buffer, offset, src, bytes, err);
  });
}

Answer Session::Read(Trial& trial, trine_buffer* buffer, uint64_t offset, void* dst,
                     uint64_t bytes) {
  return trial.Call("buffer_read", [&](trine_error* err) {
    return table_.buffer_read(buffer, offset, dst, bytes, err);
  });
}

TimelinePtr Session::NewTimeline(Trial& trial, uint64_t initial) {
  trine_timeline* timeline = nullptr;
  const Answer answer = trial.Call("timeline_create", [&](trine_error* err) {
    return table_.timeline_create(device_, initial, &timeline, err);
  });
  if (!trial.ExpectOk(answer, "timeline_create") ||
      !trial.Expect(timeline != nullptr, "timeline_create returned OK and no timeline")) {
    return nullptr;
  }
  return TimelinePtr(timeline, [this](trine_timeline* t) {
    CallVoid("timeline_destroy", [&] { table_.timeline_destroy(t); });
  });
}

Answer Session::CreatePlan(Trial& trial, const trine_plan_desc& desc, PlanPtr* out) {
  trine_plan* plan = nullptr;
  Answer answer = trial.Call("plan_create", [&](trine_error* err) {
    return table_.plan_create(device_, &desc, &plan, err);
  });
  if (answer.Ok() && trial.Expect(plan != nullptr, "plan_create returned OK and no plan")) {
    *out = PlanPtr(
        plan, [this](trine_plan* p) { CallVoid("plan_destroy", [&] { table_.plan_destroy(p); }); });
  }
  return answer;
}

void Session::ReportBreaches(Trial& trial) {
  for (const std::string& breach : host_->TakeBreaches()) trial.FailFirst(breach);
}

Sessions::Sessions(Runner& runner, const trine_plugin& table, const KitOptions& options,
                   uint32_t device)
    : runner_(runner), table_(table), options_(options), device_(device), worker_counts_{1} {
  for (uint32_t count : {2u, 3u, 5u}) {
    if (count <= options.workers) worker_counts_.push_back(count);
  }
}

Session* Sessions::Get(Trial& trial, uint32_t workers) {
  std::unique_ptr<Session>& session = open_[workers];
  if (session == nullptr) {
    session = Session::Open(trial, runner_, table_, device_, workers, options_.options);
  }
  return session.get();
}

}  // namespace trine::conformance
