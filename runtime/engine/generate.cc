#include "runtime/engine/generate.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <optional>

#include "absl/cleanup/cleanup.h"
#include "runtime/base/invalid.h"

namespace trine {
namespace {

using Clock = std::chrono::steady_clock;

double MillisecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

// Returns how many tokens at the beginning no context shift may remove.
int64_t TokensToKeep(const Session& session, const GenerateOptions& options) {
  const Sequence& sequence = session.sequence();
  const Tokenizer& tokenizer = *session.engine().tokenizer();
  const int64_t keep =
      options.keep == -1 ? sequence.size() : std::min(options.keep, sequence.size());
  const bool begins = tokenizer.adds_bos() && sequence.tokens().front() == tokenizer.bos();
  return begins ? std::max<int64_t>(keep, 1) : keep;
}

}  // namespace

const char* FinishReasonName(FinishReason reason) {
  switch (reason) {
    case FinishReason::kNone:
      return "none";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kEndOfText:
      return "eos";
    case FinishReason::kStopString:
      return "stop";
    case FinishReason::kContextFull:
      return "context";
    case FinishReason::kCancelled:
      return "cancelled";
    case FinishReason::kCaller:
      return "caller";
  }
  return "none";
}

// Generates for several sessions, each at its own pace: while one samples, the tokens of others are
// in flight. A session leaves when it is finished; the others continue.
class GenerateLoop {
 public:
  GenerateLoop(std::span<Session* const> sessions, std::span<const GenerateOptions> options,
               std::span<Generation> results)
      : engine_(sessions.front()->engine_) {
    for (size_t i = 0; i < sessions.size(); ++i) {
      jobs_.emplace_back(sessions[i], &options[i], &results[i]);
    }
  }

  absl::Status Run() {
    if (absl::Status s = Begin(); !s.ok()) return s;
    // Also when memory runs out: the session must not keep callbacks of this call.
    const absl::Cleanup forget = [this] {
      DeliverPasses();
      for (Job& job : jobs_) {
        job.session->sequence_->set_progress(nullptr);
        job.session->sequence_->ClearCancel();
      }
    };
    absl::Status status;
    while (status.ok()) {
      running_.clear();
      sequences_.clear();
      for (Job& job : jobs_) {
        if (job.result->finish != FinishReason::kNone) continue;
        if (job.rerank) job.rerank->GoOn();
        running_.push_back(&job);
        sequences_.push_back(job.session->sequence_.get());
      }
      if (running_.empty()) break;
      status = engine_->EvaluateSome(sequences_);
      if (status.ok() || absl::IsCancelled(status)) status = Advance();
    }
    DeliverPasses();
    End();
    return status;
  }

 private:
  struct Job {
    Job(Session* s, const GenerateOptions* o, Generation* r) : session(s), options(o), result(r) {}
    Session* session;
    const GenerateOptions* options;
    Generation* result;
    std::string piece;
    SampleResult sampled;  // the token of this step; kNoToken: none
    int64_t keep = 0;      // tokens at the beginning that no context shift removes
    int64_t cached_before = 0;
    bool caller_has_enough = false;
    std::optional<RerankStep> rerank;
    absl::Status status;
  };

  void DeliverPasses() {
    std::vector<Sequence*> sequences;
    for (Job& job : jobs_) sequences.push_back(job.session->sequence_.get());
    engine_->Drain(sequences);
  }

  absl::Status Begin() {
    for (Job& job : jobs_) {
      *job.result = Generation{};
      if (absl::Status s = CheckGenerate(*job.session, *job.options); !s.ok()) return s;
      if (job.options->rerank != nullptr) {
        job.rerank.emplace(job.options->rerank, job.session->sequence_.get());
      }
      if (job.options->context_shift) job.keep = TokensToKeep(*job.session, *job.options);
    }
    begin_ = Clock::now();
    const bool fresh = std::none_of(jobs_.begin(), jobs_.end(), [](const Job& job) {
      return job.session->state_.text_goes_on;
    });
    if (fresh) engine_->BeginRequest();
    for (Job& job : jobs_) {
      Sequence& sequence = *job.session->sequence_;
      job.result->prompt_tokens = sequence.pending();
      job.cached_before = sequence.cached_tokens();
      if (!job.session->state_.text_goes_on) job.session->BeginText();
      if (job.options->on_prompt) sequence.set_progress(job.options->on_prompt);
    }
    return absl::OkStatus();
  }

  // Samples a token for each session that has logits. Sampling and detokenising run on the lane.
  absl::Status Advance() {
    ready_.clear();
    for (Job* job : running_) {
      Sequence& sequence = *job->session->sequence_;
      if (sequence.cancelled()) {
        job->result->finish = FinishReason::kCancelled;
      } else if (sequence.pending() == 0) {
        sequence.set_progress(nullptr);
        if (job->result->prompt_ms == 0) {
          job->result->prompt_ms = MillisecondsSince(begin_);
          job->result->cached_tokens = sequence.cached_tokens() - job->cached_before;
        }
        if (NeedsShift(*job)) {
          if (absl::Status s = Shift(job); !s.ok()) return s;
          continue;  // samples when the rest has been evaluated again
        }
        ready_.push_back(job);
      }  // else its tokens are pending or in flight
    }
    if (absl::Status s = TryCandidates(&ready_); !s.ok()) return s;
    const Clock::time_point begin = Clock::now();
    engine_->lane().RunSampling(static_cast<int>(ready_.size()),
                                static_cast<int32_t>(engine_->config().n_vocab),
                                [&](int i) { SampleOne(ready_[static_cast<size_t>(i)]); });
    for (Job* job : ready_) {
      if (!job->status.ok()) return job->status;
      Tell(job);
      Show(job, job->piece);
    }
    const double took = MillisecondsSince(begin);
    for (Job& job : jobs_) job.result->sample_ms += took;  // all sessions waited for that long
    return absl::OkStatus();
  }

  // Evaluates the candidates of all sessions with reranking together, before they sample.
  absl::Status TryCandidates(std::vector<Job*>* ready) {
    const Clock::time_point begin = Clock::now();
    std::vector<Job*> trying;
    std::vector<RerankStep*> steps;
    for (Job* job : *ready) {
      if (!job->rerank) continue;
      const auto ends = Ends(job);
      if (!ends.ok()) return ends.status();
      if (*ends) continue;
      const auto allowed = job->session->AllowedTokens(TokensLeft(*job));
      if (!allowed.ok()) return allowed.status();
      const auto& biases = job->session->sampler_.options().logit_bias;
      if (absl::Status s = job->rerank->Begin(*allowed, biases); !s.ok()) return s;
      trying.push_back(job);
      steps.push_back(&*job->rerank);
    }
    if (steps.empty()) return absl::OkStatus();
    if (absl::Status s = EvaluateCandidates(engine_, steps); !s.ok()) return s;
    const double took = MillisecondsSince(begin);
    for (Job* job : trying) {
      ++job->result->reranked_tokens;
      job->result->rerank_candidates += static_cast<int64_t>(job->rerank->candidates());
      job->result->rerank_ms += took;
      if (!job->session->sequence_->cancelled()) continue;
      job->result->finish = FinishReason::kCancelled;
      std::erase(*ready, job);
    }
    return absl::OkStatus();
  }

  // A constrained answer never shifts: it is closed before the context is full, since half of an
  // answer can't be followed in its constraint.
  static bool NeedsShift(const Job& job) {
    const Sequence& sequence = *job.session->sequence_;
    if (job.session->options_.constraint != nullptr) return false;
    return job.options->context_shift && job.options->max_tokens != 0 &&
           sequence.size() >= sequence.max_context();
  }

  static absl::Status Shift(Job* job) {
    const int64_t movable = job->session->sequence_->size() - job->keep;
    ++job->result->context_shifts;
    return job->session->Erase(job->keep, job->keep + movable / 2);
  }

  // Runs on a thread of the lane, where nothing may be thrown.
  static void SampleOne(Job* job) {
    try {
      job->status = NextToken(job);
    } catch (const std::exception&) {
      job->status = absl::ResourceExhaustedError("out of memory");
    }
  }

  // Returns whether no token can follow, and sets `finish` to the reason.
  static absl::StatusOr<bool> Ends(Job* job) {
    Session& session = *job->session;
    Generation& result = *job->result;
    if (job->options->max_tokens == 0) {
      result.finish = FinishReason::kLength;
      return true;
    }
    if (session.sequence_->size() >= session.sequence_->max_context()) {
      result.finish = FinishReason::kContextFull;
      return true;
    }
    const auto constraint = session.FollowConstraint();
    if (!constraint.ok()) return constraint.status();
    // If no text may follow and the model has no token that ends a text, generation ends here.
    if (*constraint != nullptr && (*constraint)->MustEnd() && !(*constraint)->ended() &&
        session.engine_->tokenizer()->end_of_generation().empty()) {
      result.finish = FinishReason::kEndOfText;
      return true;
    }
    return false;
  }

  static int64_t TokensLeft(const Job& job) {
    const int64_t max = job.options->max_tokens;
    const bool limited = max >= 0 && !job.options->more_follows;
    return limited ? max - job.result->n_tokens : ConstraintState::kNoLimit;
  }

  static absl::Status NextToken(Job* job) {
    Session& session = *job->session;
    Generation& result = *job->result;
    job->piece.clear();
    job->sampled.token = kNoToken;
    const int64_t max = job->options->max_tokens;
    const auto ends = Ends(job);
    if (!ends.ok()) return ends.status();
    if (*ends) return absl::OkStatus();
    const int64_t tokens_left = TokensLeft(*job);
    if (job->rerank) session.reranked_ = job->rerank->logits();
    const int32_t n_top = job->options->logprobs;
    const auto token = n_top < 0 ? session.Sample(tokens_left)
                                 : session.SampleWithLogprobs(n_top, &job->sampled, tokens_left);
    if (!token.ok()) return token.status();
    job->sampled.token = kNoToken;  // until it is known to belong to the answer
    if (!session.options_.ignore_eos && session.engine_->tokenizer()->IsEndOfGeneration(*token)) {
      result.finish = FinishReason::kEndOfText;
      if (job->options->tell_end) job->sampled.token = *token;
      return absl::OkStatus();
    }
    job->sampled.token = *token;
    ++result.n_tokens;
    if (job->options->collect) {
      result.tokens.push_back(*token);
      if (n_top >= 0) result.logprobs.push_back(job->sampled);
    }
    session.state_.detokenizer.Push(*token, &job->piece);
    if (max >= 0 && result.n_tokens >= max) {
      result.finish = FinishReason::kLength;
    }
    return absl::OkStatus();
  }

  static void Tell(Job* job) {
    if (job->sampled.token == kNoToken || !job->options->on_token || job->caller_has_enough) return;
    EndIf(!job->options->on_token(job->sampled), job);
  }

  // After `enough` the callbacks are not called again.
  static void EndIf(bool enough, Job* job) {
    job->caller_has_enough = enough;
    if (enough && job->result->finish == FinishReason::kNone) {
      job->result->finish = FinishReason::kCaller;
    }
  }

  static void Show(Job* job, std::string_view text) {
    StopMatcher& stop = job->session->state_.stop;
    if (stop.stopped()) return;
    Emit(job, stop.Push(text));
    if (stop.stopped()) job->result->finish = FinishReason::kStopString;
  }

  static void Emit(Job* job, std::string_view text) {
    if (text.empty()) return;
    if (job->options->collect) job->result->text.append(text);
    if (!job->options->on_text || job->caller_has_enough) return;
    EndIf(!job->options->on_text(text), job);
  }

  // Shows text that was held back, unless another round continues it.
  void End() {
    for (Job& job : jobs_) {
      Session& session = *job.session;
      const FinishReason finish = job.result->finish;
      session.state_.text_goes_on = job.options->more_follows &&
                                    finish != FinishReason::kEndOfText &&
                                    finish != FinishReason::kStopString;
      if (!session.state_.text_goes_on) {
        Show(&job, session.state_.detokenizer.Flush());
        if (!session.state_.stop.stopped()) Emit(&job, session.state_.stop.Flush());
      }
      const auto constraint = session.FollowConstraint();
      job.result->complete =
          constraint.ok() && (*constraint == nullptr ||
                              ((*constraint)->IsComplete() && finish != FinishReason::kStopString));
      job.result->generate_ms = MillisecondsSince(begin_) - job.result->prompt_ms;
    }
  }

  Engine* engine_;
  std::vector<Job> jobs_;
  // Lists of one step, kept so that a step allocates nothing.
  std::vector<Job*> running_, ready_;
  std::vector<Sequence*> sequences_;
  Clock::time_point begin_;
};

absl::Status CheckGenerate(const Session& session, const GenerateOptions& options) {
  const Sequence& sequence = session.sequence();
  if (sequence.size() == 0) {
    return absl::FailedPreconditionError("there is nothing to go on from: the prompt is empty");
  }
  if (options.max_tokens < -1) {
    return Invalid("max_tokens is ", options.max_tokens,
                   ": a count, or -1 to go on until the context "
                   "is full");
  }
  if (options.logprobs < -1 || options.logprobs > kMaxLogprobs) {
    return Invalid("logprobs is ", options.logprobs, ": 0 to ", kMaxLogprobs, ", or -1 for none");
  }
  if (options.rerank != nullptr && &options.rerank->engine() != &session.engine()) {
    return absl::InvalidArgumentError("the reranking was made for another engine");
  }
  if (!options.context_shift) return absl::OkStatus();
  if (options.keep < -1) {
    return Invalid("keep is ", options.keep, ": a count, or -1 for the whole prompt");
  }
  // A shift needs at least two tokens to remove half of.
  const int64_t keep = TokensToKeep(session, options);
  if (keep > sequence.max_context() - 2) {
    return Invalid("a context shift that keeps ", keep, " tokens needs a context of ", keep + 2,
                   " at least: it holds ", sequence.max_context());
  }
  return absl::OkStatus();
}

absl::Status Generate(Session* session, const GenerateOptions& options, Generation* result) {
  return GenerateTogether(std::span(&session, 1), std::span(&options, 1), std::span(result, 1));
}

absl::Status GenerateTogether(std::span<Session* const> sessions,
                              std::span<const GenerateOptions> options,
                              std::span<Generation> results) {
  if (sessions.empty()) return absl::OkStatus();
  for (const Session* s : sessions) {
    if (&s->engine() != &sessions.front()->engine()) {
      return absl::InvalidArgumentError("the sessions belong to different engines");
    }
  }
  return GenerateLoop(sessions, options, results).Run();
}

}  // namespace trine
