// A profile of experts: how often tokens chose each expert of a model, in a file that later runs
// read. docs/moe.md describes the file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/model/experts/expert_hits.h"

namespace trine {

// Identifies the model whose experts were counted, and says how many there are.
struct ExpertModel {
  std::string architecture;
  uint64_t hash = 0;  // ModelId of the file
  int64_t layers = 0;
  int64_t experts = 0;  // of each layer that has any
  int64_t used = 0;     // how many of them a token chooses

  bool operator==(const ExpertModel&) const = default;
};

struct ExpertProfile {
  ExpertModel model;
  ExpertCounts counts;

  // Returns the number of tokens that chose experts.
  uint64_t tokens() const;
  // Adds the hits of another run. Hits beyond the most that a file may have are dropped.
  void Add(const ExpertCounts& counts);
};

// The most hits of an expert in a file, so that the sum of all hits fits into 64 bits.
inline constexpr uint64_t kMostHits = uint64_t{1} << 38;

// Returns the profile's text: JSON, with the hits of a layer in each line.
std::string FormatExpertProfile(const ExpertProfile& profile);
// Returns INVALID_ARGUMENT, saying what is wrong, for a text that is no profile. Does not read the
// number of tokens, which follows from the hits.
absl::StatusOr<ExpertProfile> ParseExpertProfile(std::string_view text);

// Returns FAILED_PRECONDITION, saying what differs, for a profile of another model.
absl::Status CheckFits(const ExpertProfile& profile, const ExpertModel& model);

// Returns the path that symbolic links lead to. A file that is replaced there leaves the links as
// they are.
std::string WithoutLinks(const std::string& path);
// Reads a file. All errors name it; NOT_FOUND: there is none.
absl::StatusOr<ExpertProfile> ReadExpertProfile(const std::string& path);
// Adds the hits of a run to those of the file, which may have grown since it was read, and replaces
// the file in one step. If the file is gone, what was read of it is written again. Returns an error
// that names the file, and leaves it as it is, if it is no profile of the model any more, or if
// others that write to its folder keep it locked for 2 s (UNAVAILABLE).
absl::Status AddToExpertProfile(const std::string& path, const ExpertProfile& read,
                                const ExpertCounts& run);

}  // namespace trine
