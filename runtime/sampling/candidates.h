// Candidates: the tokens that may still be chosen. Truncates them, and draws one of them.
//
// Candidates are ordered by descending logit; among equal logits the lowest token comes first. To
// avoid sorting a whole vocabulary, candidates start as a *row*, indexed by token, over which
// passes are linear and branch-free. The first truncation leaves a short sorted *list*. Row and
// list give the same results and differ only in speed.
//
// A candidate with logit x has the weight floor(2^40 e^(x - max)), an integer. Sums of integers are
// exact, so sums over the row, the list or a histogram agree. docs/numerics.md is the normative
// text.
//
// The constructor reserves all memory, about 28 bytes per token; pages that are never used stay
// untouched. A copy reserves its own memory and copies no content. One thread at a time.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "runtime/sampling/row_passes.h"

namespace trine {

// Sorts *list into the order of candidates, in linear time. *spare is working memory; the call
// allocates unless *spare has the capacity of *list.
void SortCandidates(std::vector<TokenCandidate>* list, std::vector<TokenCandidate>* spare);

// Sorts *list by ascending abs((max - logit) - center). Equal distances stay in the order of
// candidates.
void SortByDistance(float max, float center, std::vector<TokenCandidate>* list,
                    std::vector<TokenCandidate>* spare);

class Candidates {
 public:
  explicit Candidates(int32_t vocab_size);
  Candidates(const Candidates& other) : Candidates(other.vocab_size_) {}
  Candidates& operator=(const Candidates& other);
  Candidates(Candidates&&) = default;
  Candidates& operator=(Candidates&&) = default;

  // Starts again with a row that has every allowed token and its logit, made canonical (a NaN
  // becomes -2^50). Copies the logits only if one of them has to change, so the caller must keep
  // them unchanged until the next Load or the last use. `allowed` is as in Sampler::Sample.
  void Load(std::span<const float> logits, std::span<const uint32_t> allowed);

  bool is_row() const { return is_row_; }
  // Returns a token's logit, to read or to change, or null if the token is no candidate. Rows only.
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

  // Multiplies each logit by a factor >= 0 and makes it canonical.
  void Scale(float factor);

  // The truncations. All but KeepFirst keep at least the first min_keep candidates.
  void KeepFirst(int64_t n);
  // Keeps as few first candidates as have together at least the fraction p of the total weight.
  void KeepTopP(float p, int64_t min_keep);
  // Does what KeepTopP does, with candidates ordered by how far their surprise is from the mean
  // surprise, the nearest first.
  void KeepTypical(float p, int64_t min_keep);
  // Keeps the candidates whose logits are at most `gap` below the best logit.
  void KeepWithin(float gap, int64_t min_keep);

  // Turns a row into a list and returns all candidates in order. Valid until the next call.
  std::span<const TokenCandidate> Ordered();

  // Returns the best candidate, or -1 if there is none.
  int32_t First();
  // Returns the best logit, or kRemoved if there is no candidate.
  float Max();
  uint64_t TotalWeight();  // the sum of all candidates' weights

  struct Drawn {
    int32_t token;
    float gap;        // how far the token's logit is below the best
    uint64_t weight;  // the sum of the weights of all candidates
  };
  // Returns the candidate at which the running sum of weights first exceeds random * total / 2^64.
  Drawn Draw(uint64_t random);

 private:
  std::span<const float> Row();
  float* OwnRow();  // returns the row for changes, in this object's memory
  std::span<const float> Peaks();
  void EnsureWeights();  // fills weights_
  void Truncate(size_t n);
  void MakeList();
  void CutTypical(float max, float mean_gap, uint64_t need, int64_t min_keep);

  int32_t vocab_size_;
  bool is_row_ = true;
  const float* row_ = nullptr;  // by token; kRemoved where the token is no candidate
  bool is_looked_at_ = true;    // false: row_ is the caller's, and may not be canonical
  std::vector<float> own_row_;
  bool has_peaks_ = false, has_max_ = false;  // true: peaks_, or max_, is up to date with the row
  std::vector<float> peaks_;
  float max_ = 0.0f;
  std::vector<TokenCandidate> list_, spare_;
  std::vector<uint64_t> weights_;  // the weights of the first n_weights_ candidates of list_
  size_t n_weights_ = 0;
  std::unique_ptr<WeightHistogram> histogram_;
};

}  // namespace trine
