// Says which experts of a layer home has in its slots, and which of them to exchange for others.
// Not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace trine {

class ExpertSlots {
 public:
  // Slot i has expert i. REQUIRES: slots <= experts.
  ExpertSlots(int64_t experts, int64_t slots);

  int64_t experts() const { return static_cast<int64_t>(slot_of_.size()); }
  int64_t slots() const { return static_cast<int64_t>(in_slot_.size()); }
  static constexpr int32_t kNone = -1;
  int32_t InSlot(int64_t slot) const { return in_slot_[static_cast<size_t>(slot)]; }

  // Divides chosen experts. `home`: the numbers of slots; otherwise the numbers of experts that
  // home lacks. Others are kNone. REQUIRES: each id is at least 0 and less than experts().
  void Divide(std::span<const int32_t> ids, bool home, int32_t* out) const;

  // Takes notice of the experts that the tokens of a pass chose. Hits of passes long ago count less
  // and less.
  void Notice(std::span<const int32_t> ids, int64_t tokens);
  // Lets hits count as if tokens had just chosen experts so often.
  void Expect(const std::vector<uint64_t>& hits);

  // An expert to bring into a slot.
  struct Exchange {
    int64_t slot = 0;
    int32_t expert = 0;
    double gain = 0;  // how many more of the recent hits home would have had
  };
  // Returns the exchange that gains most; nullopt if none is worth the copy. An expert that is
  // chosen about as often as another one does not replace it. Leaves out slots that await an
  // expert, and the experts that they await.
  std::optional<Exchange> Best() const;

  // Returns the exchanges after which home has the experts with the most recent hits.
  std::vector<Exchange> ToTheMostChosen() const;

  // Empties a slot, so that its memory may be written. It awaits the expert until Fill is called.
  void Await(int64_t slot, int32_t expert);
  // Puts an expert into a slot, in place of the one that is there.
  void Fill(int64_t slot, int32_t expert);

 private:
  void Empty(int64_t slot);

  std::vector<int32_t> slot_of_;  // by expert
  std::vector<int32_t> in_slot_;  // by slot
  std::vector<int32_t> awaited_;  // by slot: the expert that it awaits
  std::vector<double> recent_;    // by expert: its recent hits
};

}  // namespace trine
