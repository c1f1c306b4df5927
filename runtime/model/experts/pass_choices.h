// The experts that the tokens of one pass choose. They are collected while the pass goes through
// its stages, and count once it has been through all of them. So the choices of a pass that fails
// don't count, and tokens that are read again count once.
//
// One thread at a time may use it: the thread of the stage that runs the pass, and afterwards the
// thread that ends the pass. Allocates nothing once there have been passes of the same size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/model/experts/expert_hits.h"

namespace trine {

class PassChoices {
 public:
  // Makes room for passes with this many choices in this many layers.
  void Reserve(size_t layers, size_t choices);
  // Begins a pass that has no tokens yet.
  void Clear();
  // Adds tokens behind those that the pass has. The choices of the first `counted` have counted
  // when an earlier pass read these tokens.
  void AddTokens(int64_t tokens, int64_t counted);

  // Collects what the pass's tokens chose in a layer: `ids` has as many experts for each token.
  // `slots`: the slot of each of them, or ExpertSlots::kNone; empty: the layer has no slots. Does
  // nothing for tokens that have counted.
  void Add(int64_t layer, std::span<const int32_t> ids, std::span<const int32_t> slots = {});
  // Counts what was collected, and forgets it.
  void CountIn(ExpertHits* hits);

 private:
  struct Tokens {
    int64_t begin = 0, end = 0;
  };
  struct Layer {
    int64_t layer = 0;
    size_t begin = 0, end = 0;  // of its choices in ids_
  };

  int64_t tokens_ = 0;
  std::vector<Tokens> fresh_;  // the tokens that have not counted
  std::vector<Layer> layers_;
  std::vector<int32_t> ids_;  // of fresh tokens, layer by layer
  uint64_t in_slots_ = 0;     // how many of these choices were of experts in slots
};

}  // namespace trine
