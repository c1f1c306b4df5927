// What `trine head` prints: reports and choices, as text and as JSON. Pure functions.
#ifndef TRINE_TOOLS_CLI_HEAD_OUTPUT_H_
#define TRINE_TOOLS_CLI_HEAD_OUTPUT_H_

#include <optional>
#include <string>

#include "nlohmann/json.hpp"
#include "runtime/head/branch_choice_head.h"
#include "runtime/head/head.h"
#include "runtime/head/head_cost.h"
#include "runtime/head/head_report.h"

namespace trine {

// A report under a heading, several lines.
std::string FormatHeadReport(const std::string& heading, const HeadReport& report);
nlohmann::ordered_json HeadReportJson(const HeadReport& report);

// `prompt_ms` is what reading one example took.
std::string FormatHeadCost(double prompt_ms, const HeadCost& cost);
nlohmann::ordered_json HeadCostJson(double prompt_ms, const HeadCost& cost);

// Of a head for branches a choice is its number, from 1.
std::string FormatChoice(const Head& head, const BranchChoiceHead::Choice& choice);
nlohmann::ordered_json ChoiceJson(const Head& head, const BranchChoiceHead::Choice& choice);

}  // namespace trine

#endif  // TRINE_TOOLS_CLI_HEAD_OUTPUT_H_
