// Formats the reports and choices of `trine head` as text and as JSON. Pure functions.
#pragma once

#include <string>

#include "nlohmann/json.hpp"
#include "runtime/engine/branch_choice_head.h"
#include "runtime/head/head.h"
#include "runtime/head/train_head.h"

namespace trine {

// Formats a report under a heading, in several lines.
std::string FormatHeadReport(const std::string& heading, const HeadReport& report);
nlohmann::ordered_json HeadReportJson(const HeadReport& report);

// Format the cost of a head. `prompt_ms`: the time to read one example.
std::string FormatHeadCost(double prompt_ms, const HeadCost& cost);
nlohmann::ordered_json HeadCostJson(double prompt_ms, const HeadCost& cost);

// Format a head's choice. If the head chooses branches, the choice is the branch's number, from 1.
std::string FormatChoice(const Head& head, const BranchChoiceHead::Choice& choice);
nlohmann::ordered_json ChoiceJson(const Head& head, const BranchChoiceHead::Choice& choice);

}  // namespace trine
