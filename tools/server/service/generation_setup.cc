#include "tools/server/service/generation_setup.h"

#include <random>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tools/server/openai/api_error.h"
#include "tools/server/openai/tools/answer_plan.h"

namespace trine::server {
namespace {

const char* PromptParam(Endpoint endpoint, const GenerationRequest& request) {
  if (endpoint == Endpoint::kResponses) return "input";
  return request.prompt.chat ? "messages" : "prompt";
}

absl::Status CheckPrompt(const ServedModel& model, const GenerationRequest& request,
                         const std::string& param, const std::vector<int32_t>& prompt) {
  const auto size = static_cast<int64_t>(prompt.size());
  const int64_t context = model.engine().context();
  if (size == 0) return ParamError(param, "the prompt is empty");
  const bool writes = !request.max_tokens || *request.max_tokens != 0;
  if (size < context || (size == context && !writes)) return absl::OkStatus();
  return WithParam(absl::OutOfRangeError(absl::StrCat("the prompt has ", size,
                                                      " tokens, the context holds ", context)),
                   param);
}

absl::Status ReadPrompts(const ServedModel& model, Endpoint endpoint,
                         const GenerationRequest& request, const std::string& opening,
                         GenerationSetup* setup) {
  const char* const param = PromptParam(endpoint, request);
  if (request.prompt.chat) {
    auto tokens = model.EncodeConversation(*request.prompt.chat, opening);
    if (!tokens.ok()) return tokens.status();
    setup->prompts.push_back(*std::move(tokens));
  }
  const bool several = request.prompt.plain.size() > 1;
  const auto param_of = [&](size_t i) {
    return several ? absl::StrCat(param, "[", i, "]") : std::string(param);
  };
  for (size_t i = 0; i < request.prompt.plain.size(); ++i) {
    auto tokens = model.EncodePlain(request.prompt.plain[i]);
    if (!tokens.ok()) return WithParam(tokens.status(), param_of(i));
    setup->prompts.push_back(*std::move(tokens));
  }
  for (size_t i = 0; i < setup->prompts.size(); ++i) {
    const std::vector<int32_t>& prompt = setup->prompts[i];
    if (absl::Status s = CheckPrompt(model, request, param_of(i), prompt); !s.ok()) return s;
    setup->prompt_tokens += static_cast<int64_t>(prompt.size());
  }
  return absl::OkStatus();
}

std::unique_ptr<AnswerWriter> NewWriter(const ServedModel& model, Endpoint endpoint,
                                        const GenerationRequest& request, const AnswerPlan& plan) {
  const std::string name = model.card().id;
  switch (endpoint) {
    case Endpoint::kChat:
      return NewChatWriter(request, NewAnswerHead("chatcmpl-", name), model.family(), plan.start);
    case Endpoint::kResponses:
      return NewResponsesWriter(request, NewAnswerHead("resp_", name), model.family(), plan.start);
    case Endpoint::kCompletion:
    case Endpoint::kSession:
      break;
  }
  return NewCompletionWriter(request, NewAnswerHead("cmpl-", name));
}

}  // namespace

absl::StatusOr<GenerationSetup> SetUpGeneration(const ServedModel& model, Endpoint endpoint,
                                                const GenerationRequest& request,
                                                const std::string& space) {
  GenerationSetup setup;
  const bool plain = endpoint == Endpoint::kCompletion || endpoint == Endpoint::kSession;
  AnswerPlan plan;
  plan.constraint = request.constraint;
  if (!plain) plan = PlanAnswer(request, model.family());
  auto constraint = model.ConstraintOf(plan.constraint, space);
  if (!constraint.ok()) return constraint.status();
  setup.constraint = *std::move(constraint);
  setup.show_special = !plain && NeedsAnswerReader(model.family(), request);
  if (absl::Status s = ReadPrompts(model, endpoint, request, plan.opening, &setup); !s.ok()) {
    return s;
  }
  setup.writer = NewWriter(model, endpoint, request, plan);
  return setup;
}

void EarlySetup::Prepare() {
  std::lock_guard lock(mutex_);
  if (taken_ || made_) return;
  made_ = SetUpGeneration(*model_, endpoint_, *request_, *space_);
  if (!made_->ok()) return;
  GenerationSetup& setup = **made_;
  for (const std::vector<int32_t>& prompt : setup.prompts) {
    setup.prefetches.push_back(model_->engine().Prefetch(*space_, prompt));
  }
}

absl::StatusOr<GenerationSetup> EarlySetup::Take() {
  std::lock_guard lock(mutex_);
  taken_ = true;
  if (!made_) return SetUpGeneration(*model_, endpoint_, *request_, *space_);
  absl::StatusOr<GenerationSetup> setup = *std::move(made_);
  made_.reset();
  if (!setup.ok()) return setup;
  for (const auto& prefetch : setup->prefetches) {
    if (prefetch != nullptr) prefetch->Stop();
  }
  return setup;
}

absl::StatusOr<GenerationSetup> SetUpContinuation(const ServedModel& model,
                                                  const GenerationRequest& request,
                                                  const Session& session) {
  GenerationSetup setup;
  const Sequence& sequence = session.sequence();
  const bool writes = !request.max_tokens || *request.max_tokens != 0;
  if (writes && sequence.size() >= sequence.max_context()) {
    return absl::OutOfRangeError(absl::StrCat("the session has ", sequence.size(),
                                              " tokens, the context holds ",
                                              sequence.max_context()));
  }
  setup.prompt_tokens = sequence.size();
  setup.cached_tokens = sequence.evaluated();
  setup.writer = NewWriter(model, Endpoint::kSession, request, {});
  return setup;
}

SessionOptions SessionOptionsOf(const GenerationRequest& request, const GenerationSetup& setup,
                                uint64_t seed, const std::string& space) {
  SessionOptions options;
  options.sampler = request.sampler;
  options.sampler.seed = seed;
  options.stop = request.stop;
  options.ignore_eos = request.ignore_eos;
  options.show_special = setup.show_special;
  options.constraint = setup.constraint;
  options.prefix_space = space;
  return options;
}

uint64_t DrawSeed() {
  std::random_device random;
  // 53 bits, because clients read the seed as a double.
  return ((uint64_t{random()} << 32) | random()) >> 11;
}

}  // namespace trine::server
