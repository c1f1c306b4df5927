#include "tools/server/service/api.h"

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "runtime/engine/embed.h"
#include "tools/server/openai/answers/plain_answers.h"
#include "tools/server/openai/api_error.h"
#include "tools/server/openai/requests/generation_request.h"
#include "tools/server/openai/requests/plain_requests.h"
#include "tools/server/service/job_desk.h"
#include "tools/server/service/metrics.h"
#include "tools/server/service/reports.h"
#include "tools/server/service/served_model.h"

namespace trine::server {
namespace {

// A request for embeddings. Runs on a thread of the job queue and takes the place of one sequence.
class EmbeddingJob final : public Job {
 public:
  EmbeddingJob(std::shared_ptr<const ServedModel> model, EmbeddingRequest request,
               std::chrono::seconds time, std::unique_ptr<Reply> reply, Metrics* metrics)
      : Job(std::move(reply), time),
        model_(std::move(model)),
        request_(std::move(request)),
        metrics_(metrics) {}

 private:
  absl::Status Work(const AddParts&) override {
    std::vector<std::vector<int32_t>> texts;
    int64_t n_tokens = 0;
    const int64_t context = model_->engine().context();
    for (size_t i = 0; i < request_.inputs.size(); ++i) {
      const std::string param =
          request_.inputs.size() == 1 ? "input" : absl::StrCat("input[", i, "]");
      auto tokens = model_->EncodePlain(request_.inputs[i]);
      if (!tokens.ok()) return WithParam(tokens.status(), param);
      const auto size = static_cast<int64_t>(tokens->size());
      if (size > context) {
        return WithParam(absl::OutOfRangeError(absl::StrCat(
                             "the text has ", size, " tokens, the context holds ", context)),
                         param);
      }
      n_tokens += size;
      texts.push_back(*std::move(tokens));
    }
    EmbedOptions options;
    options.wanted = [this] { return Interruption().ok(); };
    options.on_progress = [this](int64_t, int64_t) { return Interruption().ok(); };
    const std::vector<TokenSpan> spans(texts.begin(), texts.end());
    const auto vectors = Embed(&model_->engine(), spans, options);
    if (absl::Status s = Interruption(); !s.ok()) return s;
    if (!vectors.ok()) return vectors.status();
    metrics_->Embedded(n_tokens);
    reply().Note("texts", static_cast<int64_t>(texts.size()));
    reply().Note("prompt_tokens", n_tokens);
    reply().Json(EmbeddingsBody(*vectors, request_.base64, model_->card().id, n_tokens));
    return absl::OkStatus();
  }

  void Finish(const absl::Status& status) override {
    if (!status.ok()) reply().Error(status);
  }

  const std::shared_ptr<const ServedModel> model_;
  const EmbeddingRequest request_;
  Metrics* const metrics_;
};

}  // namespace

void Api::GetModels(Call call) {
  const ModelCard card = call.model->card();
  call.reply->Json(ModelsBody({&card, 1}));
}

void Api::GetModel(Call call) {
  const ModelCard card = call.model->card();
  const std::string name = call.reply->request().path.substr(kModelPath.size());
  if (!call.model->IsCalled(name)) {
    const std::string message = absl::StrCat("there is no model '", name, "'");
    return call.reply->Error(WithParam(HttpError(404, message, "model_not_found"), "model"));
  }
  call.reply->Json(ModelBody(card));
}

void Api::GetTrace(Call call) {
  constexpr int kDefault = 10, kMost = 600;
  int seconds = kDefault;
  if (const auto asked = call.reply->request().QueryValue("seconds")) {
    if (!absl::SimpleAtoi(*asked, &seconds) || seconds < 1 || seconds > kMost) {
      return call.reply->Error(ParamError("seconds", absl::StrCat("1 to ", kMost, " is expected")));
    }
  }
  const TraceFile* const trace = call.model->engine().trace();
  if (trace == nullptr) return call.reply->Error(SwitchedOff("--no-trace"));
  const auto since = Trace::Clock::now() - std::chrono::seconds(seconds);
  call.reply->Body(200, "application/json", trace->trace()->Json(since),
                   {{"Content-Disposition", "inline; filename=\"trine-trace.json\""}});
}

void Api::GetPlan(Call call) {
  const ServedModel& model = *call.model;
  const std::string format = call.reply->request().QueryValue("format").value_or("json");
  if (format == "json") return call.reply->Json(PlanJson(model));
  if (format != "svg" || !model.engine().plan()) {
    return call.reply->Error(ParamError("format", "json or svg is expected"));
  }
  call.reply->Body(200, "image/svg+xml", FormatPlanPicture(PlanReportOf(model)));
}

void Api::PostTokenize(Call call) {
  const auto request = ParseTokenizeRequest(call.reply->request().body);
  if (!request.ok()) return call.reply->Error(request.status());
  const ServedModel& model = *call.model;
  const Tokenizer& tokenizer = *model.engine().tokenizer();
  const auto tokens = tokenizer.Encode(request->text, {.add_special = request->add_special,
                                                       .parse_special = request->parse_special});
  if (!tokens.ok()) return call.reply->Error(WithParam(tokens.status(), "content"));
  std::vector<std::string> pieces;
  for (size_t i = 0; request->with_pieces && i < tokens->size(); ++i) {
    pieces.emplace_back(tokenizer.TokenBytes((*tokens)[i], SpecialText::kShow));
  }
  call.reply->Json(TokenizeBody(*tokens, pieces));
}

void Api::PostDetokenize(Call call) {
  const ServedModel& model = *call.model;
  const auto request =
      ParseDetokenizeRequest(call.reply->request().body, model.defaults().vocab_size);
  if (!request.ok()) return call.reply->Error(request.status());
  Detokenizer detokenizer(model.engine().tokenizer(), {.special = SpecialText::kShow});
  std::string text;
  for (const int32_t token : request->tokens) detokenizer.Push(token, &text);
  call.reply->Json(DetokenizeBody(text + detokenizer.Flush()));
}

void Api::PostChat(Call call) {
  auto request = ParseChatRequest(call.reply->request().body, call.model->defaults());
  Generate(Endpoint::kChat, std::move(request), std::move(call));
}

void Api::PostCompletion(Call call) {
  auto request = ParseCompletionRequest(call.reply->request().body, call.model->defaults());
  Generate(Endpoint::kCompletion, std::move(request), std::move(call));
}

void Api::PostResponses(Call call) {
  auto request = ParseResponsesRequest(call.reply->request().body, call.model->defaults());
  Generate(Endpoint::kResponses, std::move(request), std::move(call));
}

void Api::Generate(Endpoint endpoint, absl::StatusOr<GenerationRequest> request, Call call) {
  if (!request.ok()) return call.reply->Error(request.status());
  const std::string client = access_->ClientOf(call.reply->request());
  desk_->Take(client, std::make_shared<GenerationJob>(
                          std::move(call.model), endpoint, *std::move(request), OwnerOf(call),
                          request_time_, std::move(call.reply), metrics_));
}

void Api::PostEmbeddings(Call call) {
  if (!call.model->engine().can_embed()) return call.reply->Error(SwitchedOff("--no-embeddings"));
  auto request = ParseEmbeddingRequest(call.reply->request().body, call.model->defaults());
  if (!request.ok()) return call.reply->Error(request.status());
  const std::string client = access_->ClientOf(call.reply->request());
  desk_->Take(client,
              std::make_shared<EmbeddingJob>(std::move(call.model), *std::move(request),
                                             request_time_, std::move(call.reply), metrics_));
}

}  // namespace trine::server
