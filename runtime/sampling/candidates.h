// Candidates: the tokens still in the running, and the ways to thin them out and to draw one.
//
// Candidates are in order of descending logit, equal ones by lowest token. That order is never made
// for a whole vocabulary unless it has to be: candidates start as a *row*, indexed by token, where
// the passes are linear and branch-free; the first truncation leaves a short sorted *list*. Which
// of the two it is shows in speed alone.
//
// A candidate's weight is the integer floor(2^40 e^(x - max)). Sums of integers are exact, so they
// may run over the row, the list or a histogram and agree. docs/numerics.md is the normative text.
//
// Memory is reserved when it is made, about 28 bytes per token, of which pages never used stay
// untouched; a copy reserves its own and copies no content. One thread at a time.

#ifndef TRINE_RUNTIME_SAMPLING_CANDIDATES_H_
#define TRINE_RUNTIME_SAMPLING_CANDIDATES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "runtime/sampling/candidate_order.h"
#include "runtime/sampling/row_passes.h"

namespace trine {

class Candidates {
 public:
  explicit Candidates(int32_t vocab_size);
  Candidates(const Candidates& other) : Candidates(other.vocab_size_) {}
  Candidates& operator=(const Candidates& other);
  Candidates(Candidates&&) = default;
  Candidates& operator=(Candidates&&) = default;

  // A row again: every allowed token with its logit, made canonical (a NaN becomes -2^50). The
  // caller keeps the logits as they are until the next Load, or until it asks for nothing more:
  // they are copied only where something about them has to change.
  void Load(std::span<const float> logits, std::span<const uint32_t> allowed);

  bool is_row() const { return is_row_; }
  // The logit of a token, to read or to change; null when it is no candidate. Rows only.
  float* RowLogit(int32_t token);
  void RemoveFromRow(int32_t token);

  // Replaces each logit of the list by change(token, logit).
  template <typename Change>
  void ChangeList(Change change) {
    for (TokenCandidate& candidate : list_)
      candidate.logit = change(candidate.token, candidate.logit);
    SortCandidates(&list_, &spare_);
    n_weights_ = 0;
  }

  // Each logit times a factor >= 0, canonical.
  void Scale(float factor);

  // The truncations. Each leaves at least the first min_keep candidates, if there were as many.
  void KeepFirst(int64_t n);
  // The shortest beginning whose weight is at least p of the whole.
  void KeepTopP(float p, int64_t min_keep);
  // As KeepTopP, but in order of the distance between a candidate's surprise and the mean surprise.
  void KeepTypical(float p, int64_t min_keep);
  // What is at most `gap` below the best logit.
  void KeepWithin(float gap, int64_t min_keep);

  // All candidates in order, which makes a row a list. Valid until the next call.
  std::span<const TokenCandidate> Ordered();

  // The best candidate, -1 when there is none.
  int32_t First();
  // The best logit. There is at least one candidate.
  float Max();
  uint64_t TotalWeight();

  struct Drawn {
    int32_t token;
    float gap;        // below the best logit
    uint64_t weight;  // of all candidates
  };
  // The candidate at which the running sum of weights first exceeds random * total / 2^64.
  Drawn Draw(uint64_t random);

 private:
  std::span<const float> Row();
  float* OwnRow();  // to be changed
  std::span<const float> Peaks();
  void EnsureWeights();  // of the list
  void Truncate(size_t n);
  void MakeList();
  void CutTypical(float max, float mean_gap, uint64_t need, int64_t min_keep);

  int32_t vocab_size_;
  bool is_row_ = true;
  const float* row_ = nullptr;  // by token; kRemoved where the token is no candidate
  bool is_looked_at_ = true;    // else it is the caller's, and may not be canonical
  std::vector<float> own_row_;
  bool has_peaks_ = false, has_max_ = false;  // of the row
  std::vector<float> peaks_;
  float max_ = 0.0f;
  std::vector<TokenCandidate> list_, spare_;
  std::vector<uint64_t> weights_;  // of the first n_weights_ of list_
  size_t n_weights_ = 0;
  std::unique_ptr<WeightHistogram> histogram_;
};

}  // namespace trine

#endif  // TRINE_RUNTIME_SAMPLING_CANDIDATES_H_
