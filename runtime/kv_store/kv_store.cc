#include "runtime/kv_store/kv_store.h"

#include "absl/strings/str_cat.h"

namespace trine {

absl::Status CheckKvBlock(const KvBlock& block, const KvPayload& payload) {
  const KvSpace& space = *block.space;
  if (block.tokens.size() != space.layout().positions) {
    return absl::InvalidArgumentError(absl::StrCat("a block of ", block.tokens.size(),
                                                   " tokens where blocks have ",
                                                   space.layout().positions));
  }
  if (payload.form == KvForm::kRaw ? payload.size != space.block_bytes()
                                   : payload.size == 0 || payload.size > space.block_bytes()) {
    return absl::InvalidArgumentError(absl::StrCat(payload.size, " bytes of ",
                                                   KvFormName(payload.form), " for a block of ",
                                                   space.block_bytes()));
  }
  if (payload.form != KvForm::kRaw && payload.form != space.form()) {
    return absl::InvalidArgumentError(absl::StrCat("a block in the form ", KvFormName(payload.form),
                                                   " in a space of ", KvFormName(space.form())));
  }
  return absl::OkStatus();
}

}  // namespace trine
