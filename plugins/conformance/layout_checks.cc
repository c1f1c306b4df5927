// layouts: packing of weights into the device's own order.
#include <algorithm>
#include <bit>
#include <thread>

#include "absl/strings/str_cat.h"
#include "plugins/conformance/oracle.h"
#include "plugins/conformance/sections.h"
#include "trine/sdk/dtype.h"

namespace trine::conformance {
namespace {

// One tensor and one of its layouts.
class Packing {
 public:
  Packing(Session& s, const trine_tensor& tensor, const trine_layout_info& info)
      : s_(s), tensor_(tensor), info_(info) {}

  uint64_t rows() const { return static_cast<uint64_t>(tensor_.dims[1]); }

  Answer Convert(Trial& trial, uint32_t direction, uint64_t begin, uint64_t end, const Bytes& src,
                 Bytes* dst) const {
    return trial.Call("layout_convert",
                      [&](trine_error* err) { return Call(direction, begin, end, src, dst, err); });
  }
  // Without a trial: for several threads.
  trine_status Call(uint32_t direction, uint64_t begin, uint64_t end, const Bytes& src, Bytes* dst,
                    trine_error* err) const {
    trine_layout_convert_args args{sizeof(args), direction, &tensor_,   info_.layout,
                                   begin,        end,       src.data(), dst->data()};
    return s_.table().layout_convert(s_.device(), &args, err);
  }

 private:
  Session& s_;
  trine_tensor tensor_;
  trine_layout_info info_;
};

std::vector<trine_layout_info> List(Trial& trial, Session& s, const GraphSpec& graph) {
  constexpr size_t kCapacity = 16;
  std::vector<trine_layout_info> infos(kCapacity);
  const PackedGraph packed(graph);
  trine_layout_list list{sizeof(list), sizeof(trine_layout_info), kCapacity, 0, infos.data()};
  const Answer answer = trial.Call("layout_list", [&](trine_error* err) {
    return s.table().layout_list(s.device(), packed.get(), graph.ops[0].in[0], &list, err);
  });
  trial.ExpectOk(answer, "layout_list");
  infos.resize(answer.Ok() ? std::min<size_t>(list.count, kCapacity) : 0);
  return infos;
}

void CheckInfo(Trial& trial, const trine_layout_info& info, uint64_t rows,
               const std::string& what) {
  if (!trial.Expect(info.group_rows > 0 && info.group_bytes > 0,
                    absl::StrCat(what, ": groups of 0 rows or bytes"))) {
    return;
  }
  const uint64_t groups = (rows + info.group_rows - 1) / info.group_rows;
  trial.Expect(info.packed_bytes >= groups * info.group_bytes,
               absl::StrCat(what, ": ", groups, " groups of ", info.group_bytes,
                            " bytes do not fit in packed_bytes ", info.packed_bytes));
  trial.Expect(std::has_single_bit(info.alignment),
               absl::StrCat(what, ": alignment ", info.alignment));
  trial.Expect(info.flags == 0, absl::StrCat(what, ": flags ", info.flags));
}

// All at once, group by group from the end, and by two threads: the same bytes. Empty on failure.
Bytes Pack(Trial& trial, const Packing& packing, const trine_layout_info& info, const Bytes& plain,
           const std::string& what) {
  Bytes whole(info.packed_bytes, kGarbage), pieces = whole, shared = whole;
  const uint64_t rows = packing.rows();
  if (!trial.ExpectOk(packing.Convert(trial, TRINE_LAYOUT_PACK, 0, rows, plain, &whole), what)) {
    return {};
  }
  const uint64_t groups = (rows + info.group_rows - 1) / info.group_rows;
  for (uint64_t g = groups; g-- > 0;) {
    const uint64_t end = std::min(rows, (g + 1) * info.group_rows);
    trial.ExpectOk(
        packing.Convert(trial, TRINE_LAYOUT_PACK, g * info.group_rows, end, plain, &pieces), what);
  }
  trial.Expect(pieces == whole, absl::StrCat(what, ": packed by groups differs from at once"));
  const uint64_t middle = groups / 2 * info.group_rows;
  std::thread other([&] { packing.Call(TRINE_LAYOUT_PACK, 0, middle, plain, &shared, nullptr); });
  packing.Call(TRINE_LAYOUT_PACK, middle, rows, plain, &shared, nullptr);
  other.join();
  trial.Expect(shared == whole, absl::StrCat(what, ": packed by two threads differs from at once"));
  return whole;
}

void CheckLayout(Trial& trial, Session& s, const OpCase& plain_case,
                 const trine_layout_info& info) {
  const uint32_t weight = plain_case.graph.ops[0].in[0];
  const trine_tensor& tensor = plain_case.graph.tensors[weight];
  const std::string what =
      absl::StrCat("layout ", info.layout, " of ", sdk::DtypeName(tensor.dtype), " [",
                   tensor.dims[0], ",", tensor.dims[1], "]");
  const Packing packing(s, tensor, info);
  CheckInfo(trial, info, packing.rows(), what);
  if (trial.failed() || info.layout == TRINE_LAYOUT_PLAIN) return;
  const Bytes& plain = plain_case.images[tensor.slot];
  const Bytes packed = Pack(trial, packing, info, plain, what);
  if (packed.empty()) return;

  Bytes back(plain.size(), kGarbage);
  const Answer unpacked =
      packing.Convert(trial, TRINE_LAYOUT_UNPACK, 0, packing.rows(), packed, &back);
  if (unpacked.Ok()) {
    trial.Expect(back == plain, absl::StrCat(what, ": unpacked differs from what was packed"));
  } else {
    trial.ExpectRefused(unpacked, absl::StrCat(what, ": UNPACK"), {TRINE_UNIMPLEMENTED});
  }

  OpCase op_case = plain_case;
  op_case.graph.tensors[weight].layout = info.layout;
  op_case.graph.slots[tensor.slot].bytes = info.packed_bytes;
  op_case.images[tensor.slot] = packed;
  std::string reason;
  if (!trial.Expect(Claim(trial, s, &op_case.graph, &reason) != TRINE_SUPPORT_NO,
                    absl::StrCat(what, " is listed, but refused: ", reason))) {
    return;
  }
  const auto plan = DevicePlan::Create(trial, s, op_case.graph, op_case.images);
  if (plan == nullptr) return;
  Images expected = plain_case.images, got;
  RunOracle(plain_case.graph, op_case.params, &expected);
  expected[tensor.slot] = packed;
  if (!trial.ExpectOk(plan->Run(trial, op_case.params), absl::StrCat("plan_run with ", what)) ||
      !plan->Download(trial, &got)) {
    return;
  }
  const std::string wrong = CompareImages(op_case.graph, op_case.params, expected, got,
                                          op_case.graph.numerics == TRINE_NUMERICS_EXACT);
  trial.Expect(wrong.empty(), absl::StrCat(what, ": matmul: ", wrong));
}

}  // namespace

void RunLayoutChecks(Bench& bench) {
  for (uint32_t dtype : WeightTypes()) {
    bench.Run(absl::StrCat("layouts/", sdk::DtypeName(dtype)), [&](Trial& trial, Session& s) {
      if (s.table().layout_list == nullptr || s.table().layout_convert == nullptr) {
        return trial.Skip("layouts are not offered");
      }
      Random random(bench.options().seed);
      int layouts = 0;
      for (int64_t n : {1, 17, 64, 130}) {
        OpCase op_case = MatmulCase(random, dtype, 512, n, 3, false, Spread32::kBell);
        std::string reason;
        if (Claim(trial, s, &op_case.graph, &reason) == TRINE_SUPPORT_NO) {
          return trial.Skip(absl::StrCat("matmul is refused: ", reason));
        }
        for (const trine_layout_info& info : List(trial, s, op_case.graph)) {
          CheckLayout(trial, s, op_case, info);
          ++layouts;
        }
        trial.Alive();
      }
      if (layouts == 0) trial.Skip("the device lists none but the plain layout");
    });
  }
}

}  // namespace trine::conformance
