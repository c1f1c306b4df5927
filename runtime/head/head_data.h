// Reads the examples that a head is trained and tested with from lines of JSON, and divides them
// into examples for training and for testing. Plain values and pure functions; any thread may call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/head/head.h"

namespace trine {

struct Example {
  int64_t line = 0;                // the line of the file, counted from 1
  std::string group;               // examples of the same group are never separated
  std::vector<std::string> texts;  // one text for kLabel; one for each branch for kBranch
  std::string label;               // for kLabel
  size_t best = 0;                 // for kBranch: the index of the best text
  // The last token's row of each text. Empty until ReadRows has set them.
  std::vector<std::vector<float>> rows;
};

struct HeadData {
  HeadKind kind = HeadKind::kLabel;
  std::vector<Example> examples;
};

inline constexpr size_t kMostBranches = 64;

// Parses lines of the form {"prompt": text, "label": text} or, for branches, {"branches": [text,
// ...], "best": index} with an optional "prompt" that all branches begin with. A line may also have
// a "group". All lines must be of the same kind; empty lines are skipped. Returns INVALID_ARGUMENT,
// naming the line, for a wrong line.
absl::StatusOr<HeadData> ParseHeadData(std::string_view text);

// Returns the two labels, sorted. Returns INVALID_ARGUMENT, naming a line, if there are not exactly
// two labels.
absl::StatusOr<std::vector<std::string>> TwoLabels(const HeadData& data);

struct Division {
  std::vector<size_t> train, held_out;  // increasing indices of examples
};

// Holds out whole groups until the fraction `hold_out` of the examples (0 to less than 1) is held
// out. The choice depends on the groups' names and the seed, not on the order of lines. An example
// without a group forms its own group, named by its texts.
Division Divide(const HeadData& data, double hold_out, uint64_t seed);

}  // namespace trine
