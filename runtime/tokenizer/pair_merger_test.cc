#include "runtime/tokenizer/pair_merger.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <utility>

namespace trine {
namespace {

using Rules = std::map<std::pair<int32_t, int32_t>, PairMerge>;

// The rule in its plainest form: merges the cheapest of all pairs, of equals the leftmost, again
// and again.
std::vector<int32_t> MergeOneByOne(std::vector<int32_t> ids, const Rules& rules) {
  while (true) {
    size_t best = ids.size();
    double cost = 0;
    for (size_t i = 0; i + 1 < ids.size(); ++i) {
      const auto rule = rules.find({ids[i], ids[i + 1]});
      if (rule == rules.end() || (best < ids.size() && rule->second.cost >= cost)) continue;
      best = i;
      cost = rule->second.cost;
    }
    if (best == ids.size()) return ids;
    ids[best] = rules.at({ids[best], ids[best + 1]}).id;
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
}

std::vector<int32_t> MergeWithMerger(const std::vector<int32_t>& ids, const Rules& rules,
                                     PairMerger* merger) {
  std::vector<Symbol>& symbols = merger->symbols();
  symbols.clear();
  for (uint32_t i = 0; i < ids.size(); ++i) symbols.push_back({i, 1, ids[i]});
  merger->Merge([&rules](const Symbol& left, const Symbol& right) {
    EXPECT_EQ(left.begin + left.bytes, right.begin);
    const auto rule = rules.find({left.id, right.id});
    return rule == rules.end() ? kNoMerge : rule->second;
  });
  std::vector<int32_t> merged;
  uint32_t end = 0;
  for (const Symbol& symbol : symbols) {
    EXPECT_EQ(symbol.begin, end);
    end = symbol.begin + symbol.bytes;
    merged.push_back(symbol.id);
  }
  EXPECT_EQ(end, ids.size());
  return merged;
}

// Short words are scanned, long ones use the heap; the lengths are on both sides of the limit.
TEST(PairMergerTest, MergesAsThePlainRuleDoes) {
  std::mt19937 random(7);
  PairMerger merger;
  for (int round = 0; round < 600; ++round) {
    Rules rules;
    int32_t next = 3;
    for (int i = 0; i < 12; ++i) {
      const int32_t left = static_cast<int32_t>(random() % next);
      const int32_t right = static_cast<int32_t>(random() % next);
      // Costs repeat, as scores do.
      rules.try_emplace({left, right}, PairMerge{static_cast<double>(random() % 6), next++});
    }
    std::vector<int32_t> ids(random() % (3 * PairMerger::kScanLimit));
    for (int32_t& id : ids) id = static_cast<int32_t>(random() % 3);
    ASSERT_EQ(MergeWithMerger(ids, rules, &merger), MergeOneByOne(ids, rules)) << "round " << round;
  }
}

TEST(PairMergerTest, LeavesNothingAndOneSymbolAlone) {
  PairMerger merger;
  EXPECT_TRUE(MergeWithMerger({}, {}, &merger).empty());
  EXPECT_EQ(MergeWithMerger({5}, {}, &merger), std::vector<int32_t>{5});
}

// 2^18 equal symbols become one in 18 rounds of halving.
TEST(PairMergerTest, HalvesALongRun) {
  Rules rules;
  for (int32_t id = 0; id < 18; ++id) rules[{id, id}] = {static_cast<double>(id), id + 1};
  PairMerger merger;
  EXPECT_EQ(MergeWithMerger(std::vector<int32_t>(size_t{1} << 18, 0), rules, &merger),
            std::vector<int32_t>{18});
}

}  // namespace
}  // namespace trine
