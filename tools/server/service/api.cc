#include "tools/server/service/api.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "tools/report/plan_report.h"
#include "tools/server/openai/api_error.h"
#include "tools/server/openai/chat_request.h"
#include "tools/server/openai/completion_request.h"
#include "tools/server/openai/embedding_request.h"
#include "tools/server/openai/plain_answers.h"
#include "tools/server/openai/responses_request.h"
#include "tools/server/openai/tokenize_request.h"
#include "tools/server/service/embedding_job.h"
#include "tools/server/service/reports.h"

namespace trine::server {

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
  if (trace == nullptr) {
    return call.reply->Error(SwitchedOff("--no-trace"));
  }
  const auto since = Trace::Clock::now() - std::chrono::seconds(seconds);
  call.reply->Body(200, "application/json", trace->trace()->Json(since),
                   {{"Content-Disposition", "inline; filename=\"trine-trace.json\""}});
}

void Api::GetPlan(Call call) {
  const ServedModel& model = *call.model;
  const std::string format = call.reply->request().QueryValue("format").value_or("json");
  if (format == "json") return call.reply->Json(PlanJson(model));
  const auto& plan = model.engine().plan();
  if (format != "svg" || !plan) {
    return call.reply->Error(ParamError("format", "json or svg is expected"));
  }
  PlanReport report;
  report.model = model.card().id;
  report.context = model.engine().context();
  report.report = *plan;
  call.reply->Body(200, "image/svg+xml", FormatPlanPicture(report));
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
  Exchange* const exchange = &call.reply->exchange();
  exchange->ForgetBody();
  const HttpRequest& http = exchange->request();
  desk_->Take(access_->ClientOf(http),
              std::make_shared<GenerationJob>(std::move(call.model), endpoint, *std::move(request),
                                              access_->SpaceOf(http), limits_,
                                              std::move(call.reply), metrics_),
              exchange);
}

void Api::PostEmbeddings(Call call) {
  if (!call.model->engine().can_embed()) {
    return call.reply->Error(SwitchedOff("--no-embeddings"));
  }
  auto request = ParseEmbeddingRequest(call.reply->request().body, call.model->defaults());
  if (!request.ok()) return call.reply->Error(request.status());
  Exchange* const exchange = &call.reply->exchange();
  exchange->ForgetBody();
  desk_->Take(access_->ClientOf(exchange->request()),
              std::make_shared<EmbeddingJob>(std::move(call.model), *std::move(request),
                                             limits_.time, std::move(call.reply), metrics_),
              exchange);
}

}  // namespace trine::server
