#include "runtime/session.h"

#include <utility>

namespace trine {

Session::Session(Engine* engine, const SessionOptions& options, Sampler sampler, StopMatcher stop)
    : engine_(engine),
      options_(options),
      sequence_(engine->NewSequence()),
      sampler_(std::move(sampler)),
      detokenizer_(engine->tokenizer(),
                   {.special = options.show_special ? SpecialText::kShow : SpecialText::kHide}),
      stop_(std::move(stop)) {
  if (options.logits_hash) {
    sequence_->set_row_observer(
        [this](int64_t position, std::span<const float> row) { hash_.Add(position, row); });
  }
}

absl::StatusOr<std::unique_ptr<Session>> Session::Create(Engine* engine,
                                                         const SessionOptions& options) {
  if (engine->embeddings()) {
    return absl::FailedPreconditionError(
        "the engine was opened for embeddings: it has no logits to generate from");
  }
  auto sampler =
      Sampler::Create(options.sampler, static_cast<int32_t>(engine->model().config().n_vocab));
  if (!sampler.ok()) return sampler.status();
  auto stop = StopMatcher::Create(options.stop);
  if (!stop.ok()) return stop.status();
  return std::unique_ptr<Session>(
      new Session(engine, options, *std::move(sampler), *std::move(stop)));
}

void Session::BeginText() {
  detokenizer_.Flush();
  stop_.Reset();
  text_goes_on_ = false;
}

absl::Status Session::Append(std::span<const int32_t> tokens) {
  if (absl::Status s = sequence_->Append(tokens); !s.ok()) return s;
  if (!tokens.empty()) BeginText();
  return absl::OkStatus();
}

absl::Status Session::AppendText(std::string_view text, const EncodeOptions& encode) {
  auto tokens = engine_->tokenizer()->Encode(text, encode);
  if (!tokens.ok()) return tokens.status();
  return Append(*tokens);
}

void Session::Truncate(int64_t n) {
  if (n >= sequence_->size()) return;
  sequence_->Truncate(n);
  hash_.Truncate(n);
  BeginText();
  // The sampler's window is that of the tokens that remain; its count of draws goes on, so that
  // another try gives another answer.
  const uint64_t draws = sampler_.state().draws;
  sampler_.Reset();
  SamplerState state = sampler_.state();
  state.draws = n <= 0 ? 0 : draws;
  sampler_.Restore(state);
  accepted_ = 0;
}

absl::Status Session::Erase(int64_t begin, int64_t end) {
  const bool ends_text = end == sequence_->size();
  if (absl::Status s = sequence_->Erase(begin, end); !s.ok()) return s;
  if (begin == end) return absl::OkStatus();
  hash_.Truncate(begin);
  if (ends_text) BeginText();
  // The penalties' window is that of the tokens there are now; draws and mirostat go on.
  SamplerState state = sampler_.state();
  state.window.Clear();
  sampler_.Restore(state);
  accepted_ = 0;
  return absl::OkStatus();
}

absl::Status Session::Evaluate() {
  Session* const sessions[] = {this};
  return EvaluateTogether(sessions);
}

absl::Status EvaluateTogether(std::span<Session* const> sessions) {
  if (sessions.empty()) return absl::OkStatus();
  std::vector<Sequence*> sequences;
  for (Session* session : sessions) sequences.push_back(session->sequence_.get());
  absl::Status status = sessions.front()->engine_->Evaluate(sequences);
  for (Sequence* sequence : sequences) sequence->ClearCancel();
  return status;
}

absl::StatusOr<int32_t> Session::Sample() { return SampleNext(0, nullptr); }

absl::StatusOr<int32_t> Session::SampleWithLogprobs(int32_t n_top, SampleResult* result) {
  return SampleNext(n_top, result);
}

absl::StatusOr<int32_t> Session::SampleNext(int32_t n_top, SampleResult* result) {
  const std::span<const float> logits = sequence_->logits();
  if (logits.empty()) {
    return absl::FailedPreconditionError("there are no logits to sample from: evaluate first");
  }
  const std::vector<int32_t>& tokens = sequence_->tokens();
  for (; accepted_ < sequence_->size(); ++accepted_) {
    sampler_.Accept(tokens[static_cast<size_t>(accepted_)]);
  }
  int32_t token = kNoToken;
  if (result == nullptr) {
    token = sampler_.Sample(logits);
  } else {
    sampler_.SampleWithLogprobs(logits, {}, n_top, result);
    token = result->token;
  }
  if (token == kNoToken) {
    return absl::FailedPreconditionError("no token is allowed: every one of them is banned");
  }
  const int32_t appended[] = {token};
  if (absl::Status s = sequence_->Append(appended); !s.ok()) return s;
  return token;
}

}  // namespace trine
