// Model: prepares passes and runs their stages.
#include <algorithm>
#include <chrono>

#include "absl/strings/str_cat.h"
#include "runtime/model/run/model.h"

namespace trine {
namespace {

// The most values of output rows that are reserved in advance.
constexpr size_t kMostReserved = size_t{4} << 20;

}  // namespace

void Model::ReserveForDecode(bool keep, Pass* pass) const {
  const auto n = static_cast<size_t>(limits_.max_sequences);
  for (auto* values : {&pass->tokens, &pass->kv_slots, &pass->kv_lengths, &pass->output_rows}) {
    values->reserve(n);
  }
  pass->q_offsets.reserve(n + 1);
  pass->block_table.reserve(n * static_cast<size_t>(limits_.max_blocks_per_sequence()));
  pass->params.reserve(kParams);
  pass->rope_rows.reserve(n * 2 * static_cast<size_t>(rope_->pairs()));
  if (rope_windowed_ != nullptr) {
    pass->rope_windowed_rows.reserve(n * 2 * static_cast<size_t>(rope_windowed_->pairs()));
  }
  if (config_.experts.count != 0) {
    const auto layers = static_cast<size_t>(config_.n_layers);
    pass->choices.Reserve(layers, n * layers * static_cast<size_t>(config_.experts.used));
  }
  if (!keep) return;
  const auto width = static_cast<size_t>(output_width());
  pass->output.reserve(std::min(n * width, std::max(width, kMostReserved)));
  if (limits_.hidden_rows) pass->hidden.reserve(n * static_cast<size_t>(config_.n_embd));
}

void Model::Prepare(const Batch& batch, size_t slot, Pass* pass) const {
  Pass& p = *pass;
  p.slot = slot;
  p.tokens.clear();
  p.kv_slots.clear();
  p.kv_lengths.clear();
  p.rope_rows.clear();
  p.rope_windowed_rows.clear();
  p.q_offsets.assign(1, 0);
  const auto table_width = static_cast<size_t>(limits_.max_blocks_per_sequence());
  p.block_table.assign(table_width * batch.parts.size(), 0);
  int64_t longest = 1;
  for (size_t s = 0; s < batch.parts.size(); ++s) {
    const BatchPart& part = batch.parts[s];
    const auto n = static_cast<int64_t>(part.tokens.size());
    p.tokens.insert(p.tokens.end(), part.tokens.begin(), part.tokens.end());
    for (int64_t i = 0; i < n; ++i) {
      const int64_t position = part.first_position + i;
      p.kv_slots.push_back(part.blocks->SlotOf(position));
      rope_->AppendRow(position, &p.rope_rows);
      if (rope_windowed_ != nullptr) rope_windowed_->AppendRow(position, &p.rope_windowed_rows);
    }
    p.q_offsets.push_back(static_cast<int32_t>(p.tokens.size()));
    p.kv_lengths.push_back(static_cast<int32_t>(part.first_position + n));
    longest = std::max(longest, part.first_position + n);
    const std::vector<int32_t>& blocks = part.blocks->blocks();
    std::copy_n(blocks.begin(), std::min(blocks.size(), table_width),
                p.block_table.begin() + static_cast<ptrdiff_t>(s * table_width));
  }
  // Entries beyond the last sequence hold no token.
  p.q_offsets.resize(static_cast<size_t>(limits_.max_sequences) + 1, p.q_offsets.back());
  p.output_rows = batch.output_rows;
  p.wants_hidden = batch.hidden && limits_.hidden_rows;
  p.params.assign(kParams, 0);
  p.params[kParamTokens] = static_cast<int64_t>(p.tokens.size());
  p.params[kParamSequences] = static_cast<int64_t>(batch.parts.size());
  p.params[kParamOutputRows] = static_cast<int64_t>(p.output_rows.size());
  p.params[kParamKvPositions] = longest;
  p.rows = {};
  p.moves = batch.moves;
  batch.BeginChoices(&p.choices);
}

absl::Status Model::WriteInputs(size_t stage, const Pass& pass, StageRoute* route,
                                uint64_t* bytes) const {
  absl::Status status;
  const auto write = [&](TensorId SegmentIo::*which, const auto& values) {
    if (!status.ok()) return;
    status = route->Write(which, values.data(), values.size() * sizeof(values[0]), bytes);
  };
  write(&SegmentIo::tokens, pass.tokens);
  if (stage > 0) {
    const size_t values = pass.tokens.size() * static_cast<size_t>(config_.n_embd);
    write(&SegmentIo::hidden_in, std::span(borders_[stage - 1]->At(pass.slot), values));
  }
  write(&SegmentIo::rope, pass.rope_rows);
  write(&SegmentIo::rope_windowed, pass.rope_windowed_rows);
  write(&SegmentIo::kv_slots, pass.kv_slots);
  write(&SegmentIo::block_table, pass.block_table);
  write(&SegmentIo::q_offsets, pass.q_offsets);
  write(&SegmentIo::kv_lengths, pass.kv_lengths);
  write(&SegmentIo::output_rows, pass.output_rows);
  return status;
}

absl::Status Model::Run(size_t index, Pass* pass, bool keep, StageRun* run) {
  *run = {};
  run->begin = StageRun::Clock::now();
  absl::Status status = RunParts(index, pass, keep, run);
  if (status.ok() && observer_) status = observer_(*this, index, *pass);
  run->end = StageRun::Clock::now();
  run->ok = status.ok();
  return status;
}

StageRoute* Model::ChooseRoute(size_t index, const Pass& pass, StageRun* run) {
  Stage& stage = stages_[index];
  const auto tokens = static_cast<int64_t>(pass.tokens.size());
  const size_t number = stage.route_switch.Choose(tokens);
  StageRoute* const route = number == 0 ? stage.home.get() : stage.helped[number - 1].get();
  const StageRoute* const before = stage.current.exchange(route);
  run->detour = number != 0;
  if (dispatch_log_ && stage.plan && before != route) {
    dispatch_log_(absl::StrCat("dispatch: ", places_[index].device_name, ", a pass of ", tokens,
                               tokens == 1 ? " token: " : " tokens: ",
                               number == 0 ? "where its layers are"
                               : stage.plan->kind == RouteKind::kFetched
                                   ? "with fetched weights"
                                   : absl::StrCat("with ", stage.plan->helper.name)));
  }
  return route;
}

// Returns where a stage's layers begin in the bytes of a block of all layers.
uint64_t Model::KvOffset(size_t stage) const {
  uint64_t offset = 0;
  for (size_t i = 0; i < stage; ++i) offset += stages_[i].caches.BlockBytes(limits_.kv_blocks);
  return offset;
}

absl::Status Model::MoveBlocks(size_t index, const KvMoves& moves, StageRun* run) const {
  const StageCaches& caches = stages_[index].caches;
  const uint64_t offset = KvOffset(index);
  for (const KvMoves::Load& load : moves.loads) {
    absl::Status s = caches.WriteBlock(limits_.kv_blocks, load.to, load.bytes->data() + offset);
    if (!s.ok()) return s;
    run->bytes_in += caches.BlockBytes(limits_.kv_blocks);
  }
  for (const KvMoves::Copy& copy : moves.copies) {
    absl::Status s = caches.CopyBlock(limits_.kv_blocks, copy.from, copy.to);
    if (!s.ok()) return s;
  }
  run->moved_blocks += moves.before();
  return absl::OkStatus();
}

absl::Status Model::SaveBlocks(size_t index, const KvMoves& moves, StageRun* run) const {
  const StageCaches& caches = stages_[index].caches;
  const uint64_t offset = KvOffset(index);
  for (const KvMoves::Save& save : moves.saves) {
    if (save.bytes->empty()) save.bytes->resize(kv_block_bytes());
    absl::Status s = caches.ReadBlock(limits_.kv_blocks, save.from, save.bytes->data() + offset);
    if (!s.ok()) return s;
    run->bytes_out += caches.BlockBytes(limits_.kv_blocks);
  }
  run->moved_blocks += moves.saves.size();
  return absl::OkStatus();
}

absl::Status Model::RunParts(size_t index, Pass* pass, bool keep, StageRun* run) {
  StageRoute* const route = ChooseRoute(index, *pass, run);
  absl::Status status;
  DividedExperts* const experts = stages_[index].experts.get();
  if (experts != nullptr && route == stages_[index].home.get()) status = experts->BetweenPasses();
  if (status.ok() && pass->moves.before() != 0) status = MoveBlocks(index, pass->moves, run);
  if (status.ok()) status = WriteInputs(index, *pass, route, &run->bytes_in);
  if (!status.ok()) return status;
  run->written = StageRun::Clock::now();
  status = route->Run(pass->params, pass->slot, &pass->choices);
  const StageRun::Clock::time_point ran = StageRun::Clock::now();
  const auto run_ns = static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(ran - run->written).count());
  run_ns_ += run_ns;
  if (stages_[index].plan || stages_[index].home->split() != nullptr) {
    route->TakeTimes(run_ns, &run->devices);
  }
  if (status.ok()) status = route->AddChoices(pass->params[kParamTokens], &pass->choices);
  if (!status.ok()) return status;
  run->ran = ran;
  if (!pass->moves.saves.empty()) status = SaveBlocks(index, pass->moves, run);
  if (!status.ok()) return status;
  const bool last = index + 1 == stages_.size();
  const int64_t width = last ? output_width() : config_.n_embd;
  const size_t rows = last ? pass->output_rows.size() : pass->tokens.size();
  const size_t values = rows * static_cast<size_t>(width);
  if (last) pass->output.resize(values);
  const auto left =
      route->Read(pass->params, values, keep || !last,
                  last ? pass->output.data() : borders_[index]->At(pass->slot), &run->bytes_out);
  if (!left.ok()) return left.status();
  if (!last) return absl::OkStatus();
  pass->rows = *left;
  if (!pass->wants_hidden) return absl::OkStatus();
  pass->hidden.resize(rows * static_cast<size_t>(config_.n_embd));
  return route->ReadHidden(pass->params, pass->hidden, &run->bytes_out);
}

}  // namespace trine
