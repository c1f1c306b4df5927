#include "tools/cli/output/head_output.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/tokenizer/utf8.h"
#include "tools/report/text_table.h"

namespace trine {
namespace {

using Json = nlohmann::ordered_json;

std::string Percent(double share) { return absl::StrFormat("%.1f %%", 100 * share); }

std::string AnswerName(const Head& head, size_t i) {
  return head.kind == HeadKind::kLabel ? head.labels[i] : absl::StrCat(i + 1);
}

}  // namespace

std::string FormatHeadReport(const std::string& heading, const HeadReport& r) {
  std::string text = absl::StrFormat(
      "%s: %d of %d right, %s (95 %%: %s to %s); the most frequent answer alone: %s\n", heading,
      r.correct, r.examples, Percent(r.Accuracy()), Percent(r.accuracy.low),
      Percent(r.accuracy.high), Percent(r.MajorityShare()));
  if (r.swaps > 0) {
    absl::StrAppendFormat(
        &text, "  swapped: in %d of %d pairs the choice goes with the branch, %s\n",
        r.swaps_followed, r.swaps,
        Percent(static_cast<double>(r.swaps_followed) / static_cast<double>(r.swaps)));
  }
  std::vector<std::string> header = {"right \\ chosen"};
  for (const std::string& answer : r.answers) header.push_back(Printable(answer));
  TextTable table(std::move(header));
  for (size_t i = 0; i < r.answers.size(); ++i) {
    std::vector<std::string> row = {Printable(r.answers[i])};
    for (const int64_t count : r.confusion[i]) row.push_back(absl::StrCat(count));
    table.Add(std::move(row));
  }
  return absl::StrCat(text, table.Format("  "));
}

Json HeadReportJson(const HeadReport& r) {
  Json json = {{"examples", r.examples},        {"correct", r.correct},
               {"accuracy", r.Accuracy()},      {"accuracy_95", {r.accuracy.low, r.accuracy.high}},
               {"majority", r.MajorityShare()}, {"log_loss", r.log_loss},
               {"answers", r.answers},          {"confusion", r.confusion}};
  json["swaps"] = {{"pairs", r.swaps}, {"followed", r.swaps_followed}};
  return json;
}

std::string FormatHeadCost(double prompt_ms, const HeadCost& cost) {
  return absl::StrFormat(
      "cost: %.2f ms to read an example; the head %.2f us, %.3f %% of a token (%.2f ms)\n",
      prompt_ms, cost.head_us, cost.PercentOfToken(), cost.token_ms);
}

Json HeadCostJson(double prompt_ms, const HeadCost& cost) {
  return {{"prompt_ms", prompt_ms},
          {"head_us", cost.head_us},
          {"token_ms", cost.token_ms},
          {"head_percent_of_token", cost.PercentOfToken()}};
}

std::string FormatChoice(const Head& head, const BranchChoiceHead::Choice& choice) {
  return absl::StrFormat("%s (%.4f)\n", Printable(AnswerName(head, choice.best)),
                         choice.probabilities[choice.best]);
}

Json ChoiceJson(const Head& head, const BranchChoiceHead::Choice& choice) {
  Json probabilities = Json::object();
  for (size_t i = 0; i < choice.probabilities.size(); ++i) {
    probabilities[AnswerName(head, i)] = choice.probabilities[i];
  }
  return {{"choice", AnswerName(head, choice.best)}, {"probabilities", std::move(probabilities)}};
}

}  // namespace trine
