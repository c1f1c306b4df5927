#include "runtime/engine/session.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace trine {

Session::Session(Engine* engine, const SessionOptions& options, std::unique_ptr<Sequence> sequence,
                 Sampler sampler, State state)
    : engine_(engine),
      options_(options),
      sequence_(std::move(sequence)),
      sampler_(std::move(sampler)),
      state_(std::move(state)),
      hash_(!engine->limits().exact()) {
  if (!options.logits_hash && !options.on_row) return;
  sequence_->set_row_observer([this](int64_t position, std::span<const float> row) {
    if (options_.logits_hash) hash_.Add(position, row);
    if (options_.on_row) options_.on_row(position, row);
  });
}

absl::StatusOr<std::unique_ptr<Session>> Session::Create(Engine* engine,
                                                         const SessionOptions& options) {
  if (engine->embeddings()) {
    return absl::FailedPreconditionError(
        "the engine was opened for embeddings: it has no logits to generate from");
  }
  auto sampler = Sampler::Create(options.sampler, static_cast<int32_t>(engine->config().n_vocab));
  if (!sampler.ok()) return sampler.status();
  if (options.constraint != nullptr &&
      &options.constraint->tokenizer() != engine->tokenizer().get()) {
    return absl::InvalidArgumentError("the constraint was made for another engine's vocabulary");
  }
  if (options.constraint != nullptr && options.ignore_eos) {
    return absl::InvalidArgumentError(
        "a constraint says where the text ends: the end of the text can't be ignored with it");
  }
  auto stop = StopMatcher::Create(options.stop);
  if (!stop.ok()) return stop.status();
  Detokenizer detokenizer(
      engine->tokenizer(),
      {.special = options.show_special ? SpecialText::kShow : SpecialText::kHide});
  State state{.detokenizer = std::move(detokenizer), .stop = *std::move(stop)};
  auto sequence = engine->NewSequence();
  if (options.prefix_space) sequence->set_prefix_space(*options.prefix_space);
  return std::unique_ptr<Session>(
      new Session(engine, options, std::move(sequence), *std::move(sampler), std::move(state)));
}

void Session::Rest() {
  Sequence* const sequences[] = {sequence_.get()};
  engine_->Drain(sequences);
}

Session::Point Session::PointHere() {
  Rest();
  return {next_point_, sequence_->MarkHere(), sampler_.state(), state_};
}

void Session::Restore(Point point) {
  Rest();
  sampler_.Restore(std::move(point.sampler));
  state_ = std::move(point.state);
  sequence_->Regress(point.sequence);
  hash_.Truncate(point.sequence.size);
}

absl::StatusOr<int64_t> Session::Checkpoint() {
  checkpoints_.push_back(PointHere());
  return next_point_++;
}

Session::Place Session::Here() { return Place(PointHere()); }

void Session::GoBack(Place place) {
  const int64_t t = place.point_.t;
  Restore(std::move(place.point_));
  std::erase_if(checkpoints_, [t](const Point& point) { return point.t >= t; });
}

absl::StatusOr<std::vector<Session::Point>::iterator> Session::FindPoint(int64_t t) {
  const auto found = std::ranges::lower_bound(checkpoints_, t, {}, &Point::t);
  if (found != checkpoints_.end() && found->t == t) return found;
  return absl::NotFoundError(absl::StrCat("the session has no checkpoint ", t));
}

absl::Status Session::Regress(int64_t t) {
  const auto point = FindPoint(t);
  if (!point.ok()) return point.status();
  Restore(**point);
  checkpoints_.erase(*point + 1, checkpoints_.end());
  return absl::OkStatus();
}

absl::Status Session::Forget(int64_t t) {
  const auto point = FindPoint(t);
  if (point.ok()) checkpoints_.erase(*point);
  return point.status();
}

std::vector<Session::CheckpointInfo> Session::ListCheckpoints() const {
  std::vector<CheckpointInfo> list;
  for (const Point& point : checkpoints_) list.push_back({point.t, point.sequence.size});
  return list;
}

// Drops the checkpoints that have more than `n_tokens` tokens.
void Session::ForgetBeyond(int64_t n_tokens) {
  std::erase_if(checkpoints_, [&](const Point& point) { return point.sequence.size > n_tokens; });
}

absl::StatusOr<std::unique_ptr<Session>> Session::Fork(std::optional<uint64_t> seed) {
  Rest();
  std::unique_ptr<Session> fork(
      new Session(engine_, options_, sequence_->Fork(), sampler_, state_));
  fork->hash_ = hash_;
  if (seed) fork->sampler_.Reseed(*seed);
  return fork;
}

void Session::BeginText() {
  state_.detokenizer.Flush();
  state_.stop.Reset();
  state_.text_goes_on = false;
}

absl::Status Session::Append(std::span<const int32_t> tokens) {
  if (absl::Status s = sequence_->Append(tokens); !s.ok()) return s;
  if (tokens.empty()) return absl::OkStatus();
  BeginAnswer();
  return absl::OkStatus();
}

void Session::BeginAnswer() {
  BeginText();
  state_.constraint.reset();
  state_.answer_begin = sequence_->size();
}

absl::Status Session::AppendText(std::string_view text, const EncodeOptions& encode) {
  auto tokens = engine_->tokenizer()->Encode(text, encode);
  if (!tokens.ok()) return tokens.status();
  return Append(*tokens);
}

void Session::Truncate(int64_t n) {
  if (n >= sequence_->size()) return;
  ForgetBeyond(n);
  sequence_->Truncate(n);
  hash_.Truncate(n);
  BeginText();
  state_.constraint.reset();  // rebuilt from the answer's remaining tokens
  state_.answer_begin = std::min(state_.answer_begin, std::max<int64_t>(n, 0));
  // The sampler's window is rebuilt from the remaining tokens. Its count of draws is kept, so that
  // another try gives another answer.
  const uint64_t draws = sampler_.state().draws;
  sampler_.Reset();
  SamplerState state = sampler_.state();
  state.draws = n <= 0 ? 0 : draws;
  sampler_.Restore(state);
  state_.accepted = 0;
}

absl::Status Session::Erase(int64_t begin, int64_t end) {
  const bool ends_text = end == sequence_->size();
  if (options_.constraint != nullptr && begin < end && end > state_.answer_begin) {
    return absl::FailedPreconditionError(
        "what is left of a constrained answer would be no text of its grammar");
  }
  if (absl::Status s = sequence_->Erase(begin, end); !s.ok()) return s;
  if (begin == end) return absl::OkStatus();
  ForgetBeyond(begin);
  hash_.Truncate(begin);
  if (options_.constraint != nullptr) {
    state_.answer_begin -= end - begin;
    state_.followed -= end - begin;
  }
  if (ends_text) BeginText();
  // The penalties' window is rebuilt from the remaining tokens. The count of draws and mirostat's
  // state are kept.
  SamplerState state = sampler_.state();
  state.window.Clear();
  sampler_.Restore(state);
  state_.accepted = 0;
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
  const bool fresh = std::all_of(sequences.begin(), sequences.end(),
                                 [](const Sequence* s) { return s->evaluated() == 0; });
  if (fresh) sessions.front()->engine_->BeginRequest();
  absl::Status status = sessions.front()->engine_->Evaluate(sequences);
  for (Sequence* sequence : sequences) sequence->ClearCancel();
  return status;
}

absl::StatusOr<std::span<const float>> Session::HiddenRow() {
  if (!engine_->limits().hidden_rows) {
    return absl::FailedPreconditionError(
        "the engine was opened without rows of the hidden state, which a head looks at");
  }
  if (sequence_->size() == 0) {
    return absl::FailedPreconditionError("there is no token whose row could be looked at");
  }
  Rest();
  sequence_->set_keeps_hidden(true);
  if (sequence_->hidden_row().empty()) sequence_->ReadLastAgain();
  if (absl::Status s = Evaluate(); !s.ok()) return s;
  return sequence_->hidden_row();
}

absl::StatusOr<const ConstraintState*> Session::FollowConstraint() {
  if (options_.constraint == nullptr) return nullptr;
  if (!state_.constraint.has_value()) {
    state_.constraint.emplace(options_.constraint);
    state_.followed = state_.answer_begin;
  }
  const std::vector<int32_t>& tokens = sequence_->tokens();
  for (; state_.followed < sequence_->size(); ++state_.followed) {
    const absl::Status status =
        state_.constraint->Accept(tokens[static_cast<size_t>(state_.followed)]);
    if (!status.ok()) return status;
  }
  return &*state_.constraint;
}

absl::StatusOr<int32_t> Session::Sample(int64_t tokens_left) {
  return SampleWithLogprobs(0, nullptr, tokens_left);
}

absl::StatusOr<int32_t> Session::SampleWithLogprobs(int32_t n_top, SampleResult* result,
                                                    int64_t tokens_left) {
  TraceFile* const trace = engine_->trace();
  if (trace == nullptr) return SampleQuietly(n_top, result, tokens_left);
  const auto begin = Trace::Clock::now();
  auto token = SampleQuietly(n_top, result, tokens_left);
  trace->trace()->Add(trace->lane_track(), "sample", begin, Trace::Clock::now(),
                      {{"position", sequence_->size() - 1}});
  return token;
}

absl::StatusOr<std::span<const uint32_t>> Session::AllowedTokens(int64_t tokens_left) {
  const auto state = FollowConstraint();
  if (!state.ok()) return state.status();
  if (*state == nullptr) return std::span<const uint32_t>();
  if ((*state)->ended()) {  // a second answer, without a prompt before it
    state_.constraint.emplace(options_.constraint);
    state_.answer_begin = state_.followed;
  }
  allowed_.resize(options_.constraint->mask_words());
  const int64_t room = sequence_->max_context() - sequence_->size();
  state_.constraint->Mask(std::min(tokens_left, room), allowed_);
  return allowed_;
}

absl::StatusOr<int32_t> Session::SampleQuietly(int32_t n_top, SampleResult* result,
                                               int64_t tokens_left) {
  const std::span<const float> logits = sequence_->logits();
  const std::span<const float> reranked = std::exchange(reranked_, {});
  if (logits.empty()) {
    return absl::FailedPreconditionError("there are no logits to sample from: evaluate first");
  }
  // Checked before sampling: a token that does not fit must not advance the sampler.
  if (sequence_->size() >= sequence_->max_context()) {
    return absl::OutOfRangeError(
        absl::StrCat("the context of ", sequence_->max_context(), " is full"));
  }
  const std::vector<int32_t>& tokens = sequence_->tokens();
  for (; state_.accepted < sequence_->size(); ++state_.accepted) {
    sampler_.Accept(tokens[static_cast<size_t>(state_.accepted)]);
  }
  const auto allowed = AllowedTokens(tokens_left);
  if (!allowed.ok()) return allowed.status();
  const int32_t token = sampler_.Sample(reranked.empty() ? logits : reranked, *allowed);
  if (result != nullptr) {
    result->token = token;
    sampler_.AddLogprobs(logits, n_top, result);
  }
  if (token == kNoToken && options_.constraint != nullptr) {
    return absl::FailedPreconditionError(
        "no token is allowed: the constraint's are banned, or the vocabulary has none that ends "
        "the text");
  }
  if (token == kNoToken) {
    return absl::FailedPreconditionError("no token is allowed: every one of them is banned");
  }
  const int32_t appended[] = {token};
  if (absl::Status s = sequence_->Append(appended); !s.ok()) return s;
  return token;
}

}  // namespace trine
