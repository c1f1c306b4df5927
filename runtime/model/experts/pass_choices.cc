#include "runtime/model/experts/pass_choices.h"

#include <algorithm>

#include "runtime/model/experts/expert_slots.h"

namespace trine {

void PassChoices::Reserve(size_t layers, size_t choices) {
  layers_.reserve(layers);
  ids_.reserve(choices);
}

void PassChoices::Clear() {
  tokens_ = 0;
  fresh_.clear();
  layers_.clear();
  ids_.clear();
  in_slots_ = 0;
}

void PassChoices::AddTokens(int64_t tokens, int64_t counted) {
  const int64_t begin = tokens_ + counted;
  tokens_ += tokens;
  if (begin == tokens_) return;
  const bool joined = !fresh_.empty() && fresh_.back().end == begin;
  if (!joined) fresh_.push_back({begin, begin});
  fresh_.back().end = tokens_;
}

void PassChoices::Add(int64_t layer, std::span<const int32_t> ids, std::span<const int32_t> slots) {
  if (tokens_ == 0) return;
  const size_t used = ids.size() / static_cast<size_t>(tokens_);
  const size_t before = ids_.size();
  for (const Tokens& fresh : fresh_) {
    const size_t begin = static_cast<size_t>(fresh.begin) * used;
    const size_t count = static_cast<size_t>(fresh.end - fresh.begin) * used;
    const std::span<const int32_t> chosen = ids.subspan(begin, count);
    ids_.insert(ids_.end(), chosen.begin(), chosen.end());
    if (slots.empty()) continue;
    const std::span<const int32_t> of = slots.subspan(begin, count);
    in_slots_ += static_cast<uint64_t>(std::count_if(
        of.begin(), of.end(), [](int32_t slot) { return slot != ExpertSlots::kNone; }));
  }
  layers_.push_back({layer, before, ids_.size()});
}

void PassChoices::CountIn(ExpertHits* hits) {
  for (const Layer& layer : layers_) {
    hits->Count(layer.layer, std::span(ids_).subspan(layer.begin, layer.end - layer.begin));
  }
  hits->CountInSlots(in_slots_);
  layers_.clear();
  ids_.clear();
  in_slots_ = 0;
}

}  // namespace trine
