// Divides the experts that the tokens of a pass chose between two devices that both have all
// experts. Says nothing about which experts are chosen often: every device reads every expert in
// the same memory.
#pragma once

#include <cstdint>
#include <span>

namespace trine {

// Gives home about `part` of `whole` of the choices, as whole experts: those of one expert stay
// together, because a device reads an expert's weights once for all of its tokens. Experts with
// many and with few tokens are divided alike. `out` has the ids of home or, without `home`, of the
// other device; the rest of it are `none`. The same ids always give the same answer. REQUIRES: each
// id is at least 0 and less than `whole`.
void DivideEvenly(std::span<const int32_t> ids, int64_t part, int64_t whole, bool home,
                  int32_t none, int32_t* out);

}  // namespace trine
