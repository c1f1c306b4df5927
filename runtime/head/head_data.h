// What a head is trained and tested with: lines of JSON, and how they are divided. Plain values and
// pure functions; any thread.
#ifndef TRINE_RUNTIME_HEAD_HEAD_DATA_H_
#define TRINE_RUNTIME_HEAD_HEAD_DATA_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/head/head.h"

namespace trine {

struct Example {
  int64_t line = 0;                // in the file, from 1
  std::string group;               // those of one group are never divided
  std::vector<std::string> texts;  // kLabel: one; kBranch: one for each branch
  std::string label;               // kLabel
  size_t best = 0;                 // kBranch: which of the texts
  // The model's last row for each text, once they have been read.
  std::vector<std::vector<float>> rows;
};

struct HeadData {
  HeadKind kind = HeadKind::kLabel;
  std::vector<Example> examples;
};

inline constexpr size_t kMostBranches = 64;

// Each line is {"prompt": text, "label": text} or, for branches, {"branches": [text, ...], "best":
// number from 0} with an optional "prompt" that all of them begin with; either with an optional
// "group". All lines are of one kind; empty ones do not count. INVALID_ARGUMENT names the line.
absl::StatusOr<HeadData> ParseHeadData(std::string_view text);

// The labels there are, sorted. INVALID_ARGUMENT, naming a line, unless there are two.
absl::StatusOr<std::vector<std::string>> TwoLabels(const HeadData& data);

struct Division {
  std::vector<size_t> train, held_out;  // indices of examples, increasing
};

// Holds whole groups back, until `hold_out` (0 to less than 1) of the examples are. Which ones
// depends on the groups' names and the seed, not on the order of lines; an example without a group
// is one of its own, by its texts.
Division Divide(const HeadData& data, double hold_out, uint64_t seed);

}  // namespace trine

#endif  // TRINE_RUNTIME_HEAD_HEAD_DATA_H_
