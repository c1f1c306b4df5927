#include "runtime/graph/capture_recorder.h"

#include <utility>

#include "runtime/pack_cache/hash64.h"

namespace trine {

absl::StatusOr<std::unique_ptr<CaptureRecorder>> CaptureRecorder::Create(
    const CaptureOptions& options) {
  auto writer = CaptureWriter::Create(options.path);
  if (!writer.ok()) return writer.status();
  std::unique_ptr<CaptureRecorder> recorder(new CaptureRecorder(options));
  recorder->writer_ = *std::move(writer);
  return recorder;
}

absl::Status CaptureRecorder::Begin(const Model& model) {
  const auto graph = PassGraph::Create(model);
  if (!graph.ok()) return graph.status();
  CaptureHead head;
  head.numerics = TRINE_NUMERICS_VERSION;
  head.level = model.taps();
  head.values = options_.values;
  head.kv_type_k = model.limits().kv_type_k;
  head.kv_type_v = model.limits().kv_type_v;
  head.context = static_cast<uint64_t>(model.limits().max_context);
  head.max_tokens = static_cast<uint64_t>(model.limits().max_tokens);
  head.n_layers = static_cast<uint64_t>(model.config().n_layers);
  head.model_id = options_.model_id;
  head.program = options_.program;
  head.model = options_.model;
  head.taps = DescribeTaps(**graph);
  begun_ = true;
  return writer_->Begin(head);
}

absl::Status CaptureRecorder::Ran(const Model& model, size_t stage, const Pass& pass) {
  if (pass.kv_lengths.size() != 1) {
    return absl::FailedPreconditionError("a capture is of one sequence, and a pass has several");
  }
  // The values are the stage's until it returns: nobody else is kept waiting while they are read.
  Recorded here;
  std::vector<std::byte> bytes;
  for (size_t i = 0; i < model.StageTaps(stage).size(); ++i) {
    bytes.resize(model.TapBytes(stage, i, pass));
    if (absl::Status s = model.ReadTap(stage, i, pass, bytes.data()); !s.ok()) return s;
    here.hashes.push_back(Hash64(bytes.data(), bytes.size(), 0));
    if (options_.values) here.values.push_back(std::exchange(bytes, {}));
  }
  std::lock_guard lock(mutex_);
  Recorded& all = under_way_[&pass];
  if (stage == 0) all = {};  // one that failed may have had the place
  all.hashes.insert(all.hashes.end(), here.hashes.begin(), here.hashes.end());
  for (auto& values : here.values) all.values.push_back(std::move(values));
  if (stage + 1 < model.stage_count()) return absl::OkStatus();
  Recorded whole = std::move(all);
  under_way_.erase(&pass);
  if (!begun_) {
    if (absl::Status s = Begin(model); !s.ok()) return s;
  }
  return Put(pass, std::move(whole));
}

absl::Status CaptureRecorder::Put(const Pass& pass, Recorded recorded) {
  CapturedPass captured;
  captured.position = pass.kv_lengths[0] - static_cast<int64_t>(pass.tokens.size());
  captured.tokens = pass.tokens;
  captured.rows = pass.output_rows;
  captured.hashes = std::move(recorded.hashes);
  for (const auto& values : recorded.values) captured.values.emplace_back(values);
  return writer_->Add(captured);
}

absl::Status CaptureRecorder::Finish() {
  std::lock_guard lock(mutex_);
  if (!begun_) return absl::FailedPreconditionError("there was no pass to capture");
  return writer_->Finish();
}

uint64_t CaptureRecorder::passes() const {
  std::lock_guard lock(mutex_);
  return writer_->passes();
}

}  // namespace trine
