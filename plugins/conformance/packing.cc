#include "plugins/conformance/packing.h"

#include <bit>
#include <thread>

#include "absl/strings/str_cat.h"
#include "trine/sdk/dtype.h"

namespace trine::conformance {
namespace {

// The high half of a plugin's own layout ids.
uint32_t OwnerOf(const std::string& plugin) {
  uint32_t hash = 2166136261u;  // FNV-1a
  for (const char c : plugin) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return hash != 0 ? hash : 1;
}

}  // namespace

Packing::Packing(Session& s, const GraphSpec& graph, uint32_t tensor, const trine_layout_info& info)
    : s_(s), tensor_(graph.tensors[tensor]), info_(info) {
  is_cache_ = graph.slots[tensor_.slot].role == TRINE_ROLE_STATE;
  const int64_t* dims = tensor_.dims;
  matrices_ = is_cache_ ? 1 : static_cast<uint64_t>(dims[2] * dims[3]);
  matrix_rows_ = static_cast<uint64_t>(is_cache_ ? dims[3] : dims[1]);
  what_ = absl::StrCat("layout ", info.layout, " of ", sdk::DtypeName(tensor_.dtype), " [");
  for (uint32_t i = 0; i < tensor_.rank; ++i) {
    absl::StrAppend(&what_, i == 0 ? "" : ",", dims[i]);
  }
  absl::StrAppend(&what_, "]");
}

void Packing::CheckInfo(Trial& trial) const {
  const uint32_t owner = OwnerOf(s_.table().name);
  if (info_.layout == TRINE_LAYOUT_PLAIN) {
    return trial.Fail(absl::StrCat(what_, ": the plain layout is not to be listed"));
  }
  if (info_.layout >> 32 == 0) {
    return trial.Fail(absl::StrCat(what_, ": no public layout exists yet: the plugin's own are ",
                                   uint64_t{owner} << 32, " and up"));
  }
  trial.Expect(info_.layout >> 32 == owner,
               absl::StrCat(what_, ": the high half of the plugin's own ids is ", owner,
                            ", the hash of its name, not ", info_.layout >> 32));
  if (!trial.Expect(info_.group_rows > 0 && info_.group_rows >> 32 == 0 && info_.group_bytes > 0,
                    absl::StrCat(what_, ": groups of ", info_.group_rows, " rows, ",
                                 info_.group_bytes, " bytes"))) {
    return;
  }
  trial.Expect(!is_cache_ || info_.group_rows == 1,
               absl::StrCat(what_, ": a group of a cache is one block, not ", info_.group_rows));
  // Divided, not multiplied: the plugin's numbers may be anything.
  trial.Expect(info_.packed_bytes / info_.group_bytes >= groups(),
               absl::StrCat(what_, ": ", groups(), " groups of ", info_.group_bytes,
                            " bytes do not fit in packed_bytes ", info_.packed_bytes));
  trial.Expect(info_.packed_bytes <= uint64_t{1} << 30,
               absl::StrCat(what_, ": packed_bytes ", info_.packed_bytes));
  trial.Expect(
      std::has_single_bit(info_.alignment) && info_.alignment <= s_.info().buffer_alignment,
      absl::StrCat(what_, ": alignment ", info_.alignment));
  trial.Expect(info_.flags == 0, absl::StrCat(what_, ": flags ", info_.flags));
}

Bytes Packing::Pack(Trial& trial, const Bytes& plain) const {
  Bytes whole(info_.packed_bytes, kGarbage);
  const Bytes nothing = whole;
  Bytes pieces = whole, shared = whole, alone = whole;
  if (!trial.ExpectOk(Convert(trial, TRINE_LAYOUT_PACK, {0, rows()}, plain, &whole), what_)) {
    return {};
  }
  for (uint64_t g = groups(); g-- > 0;) {  // from the end
    trial.ExpectOk(Convert(trial, TRINE_LAYOUT_PACK, Group(g), plain, &pieces), what_);
  }
  trial.Expect(pieces == whole, absl::StrCat(what_, ": packed by groups differs from at once"));

  const uint64_t middle = groups() / 2;
  const uint64_t split = Group(middle).begin;
  std::thread other([&] { Call(TRINE_LAYOUT_PACK, {0, split}, plain, &shared, nullptr); });
  Call(TRINE_LAYOUT_PACK, {split, rows()}, plain, &shared, nullptr);
  other.join();
  trial.Expect(shared == whole,
               absl::StrCat(what_, ": packed by two threads differs from at once"));

  // The middle group lies where it must, and nothing else is touched.
  trial.ExpectOk(Convert(trial, TRINE_LAYOUT_PACK, Group(middle), plain, &alone), what_);
  const auto begin = static_cast<ptrdiff_t>(middle * info_.group_bytes);
  const auto end = begin + static_cast<ptrdiff_t>(info_.group_bytes);
  trial.Expect(std::equal(alone.begin() + begin, alone.begin() + end, whole.begin() + begin),
               absl::StrCat(what_, ": group ", middle, " packed alone is not at its place"));
  std::copy_n(nothing.begin() + begin, end - begin, alone.begin() + begin);
  trial.Expect(alone == nothing,
               absl::StrCat(what_, ": packing group ", middle, " touched another one"));
  return trial.failed() ? Bytes{} : whole;
}

void Packing::CheckUnpack(Trial& trial, const Bytes& plain, const Bytes& packed) const {
  Bytes back(plain.size(), kGarbage);
  const Answer unpacked = Convert(trial, TRINE_LAYOUT_UNPACK, {0, rows()}, packed, &back);
  if (!unpacked.Ok()) {
    if (is_cache_) {
      trial.Fail(absl::StrCat(what_, ": UNPACK of a cache is refused: ", unpacked.Text()));
    } else {
      trial.ExpectRefused(unpacked, absl::StrCat(what_, ": UNPACK"), {TRINE_UNIMPLEMENTED});
    }
    return;
  }
  trial.Expect(back == plain, absl::StrCat(what_, ": unpacked differs from what was packed"));
  if (!is_cache_) return;
  // Blocks move one by one.
  const uint64_t block = rows() / 2, bytes = plain.size() / rows();
  Bytes expected(plain.size(), kGarbage), one = expected;
  std::copy_n(plain.begin() + static_cast<ptrdiff_t>(block * bytes), bytes,
              expected.begin() + static_cast<ptrdiff_t>(block * bytes));
  trial.ExpectOk(Convert(trial, TRINE_LAYOUT_UNPACK, {block, block + 1}, packed, &one), what_);
  trial.Expect(one == expected, absl::StrCat(what_, ": block ", block, " unpacked alone is wrong"));
}

}  // namespace trine::conformance
