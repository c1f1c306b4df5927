// A candidate token, the order of candidates, and sorting a list into it in linear time.

#ifndef TRINE_RUNTIME_SAMPLING_CANDIDATE_ORDER_H_
#define TRINE_RUNTIME_SAMPLING_CANDIDATE_ORDER_H_

#include <cstdint>
#include <vector>

namespace trine {

struct TokenCandidate {
  float logit;  // canonical
  int32_t token;

  bool operator==(const TokenCandidate&) const = default;
};

// Descending logit, equal ones by lowest token: a total order, so every sort gives one result.
inline bool RanksBefore(const TokenCandidate& a, const TokenCandidate& b) {
  return a.logit > b.logit || (a.logit == b.logit && a.token < b.token);
}

// *spare is working memory; it must have the capacity of *list where nothing may be allocated.
void SortCandidates(std::vector<TokenCandidate>* list, std::vector<TokenCandidate>* spare);

// By ascending abs((max - logit) - center), equal ones in the order of candidates.
void SortByDistance(float max, float center, std::vector<TokenCandidate>* list,
                    std::vector<TokenCandidate>* spare);

}  // namespace trine

#endif  // TRINE_RUNTIME_SAMPLING_CANDIDATE_ORDER_H_
