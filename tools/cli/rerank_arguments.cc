#include "tools/cli/rerank_arguments.h"

#include <cmath>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "runtime/head/head_file.h"

namespace trine {
namespace {

// For CLI::Option::check, of --rerank-weight: every range has one.
std::string NotNan(const std::string& text) {
  double value = 0;
  return absl::SimpleAtod(text, &value) && std::isnan(value) ? "it is no number" : "";
}

}  // namespace

void AddRerankOptions(CLI::App* command, RerankArguments* a) {
  CLI::Option* head =
      command
          ->add_option("--rerank-head", a->head,
                       "Choose tokens by what this head (trine head train) says of the text with "
                       "them: for each token the likeliest candidates are read")
          ->check(NotEmpty)
          ->type_name("FILE")
          ->excludes("--capture");
  command->add_option("--rerank-top", a->options.top, "Candidates that are read for a token")
      ->check(CLI::Range(1, RerankOptions::kMostTop))
      ->needs(head)
      ->capture_default_str();
  command
      ->add_option("--rerank-weight", a->options.weight,
                   "What the head's log-odds are multiplied by before they are added to a "
                   "candidate's logit; below 0: what it holds for worse is preferred; 0: nothing "
                   "changes")
      ->check(CLI::Range(-RerankOptions::kMostWeight, RerankOptions::kMostWeight))
      ->check(NotNan)
      ->needs(head)
      ->capture_default_str();
}

absl::StatusOr<std::optional<Head>> BeginRerank(const RerankArguments& a, EngineArguments* engine) {
  if (a.head.empty()) return std::nullopt;
  auto head = ReadHead(a.head);
  if (!head.ok()) return head.status();
  engine->hidden_rows = true;
  engine->branches = engine->parallel * a.options.top;
  return *std::move(head);
}

absl::StatusOr<std::shared_ptr<const Rerank>> MakeRerank(const RerankArguments& a,
                                                         std::optional<Head> head,
                                                         const Engine& engine) {
  if (!head.has_value()) return nullptr;
  auto rerank = Rerank::Create(engine, *std::move(head), a.options);
  if (rerank.ok()) return rerank;
  return absl::Status(rerank.status().code(),
                      absl::StrCat(a.head, ": ", rerank.status().message()));
}

}  // namespace trine
