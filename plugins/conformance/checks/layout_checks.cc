// Section layouts: packing of weights and caches into the device's own order.
#include <algorithm>
#include <bit>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "plugins/conformance/cases/graph_spec.h"
#include "plugins/conformance/cases/oracle.h"
#include "plugins/conformance/checks/sections.h"
#include "plugins/conformance/session.h"
#include "trine/sdk/dtype.h"
#include "trine/sdk/layout.h"

namespace trine::conformance {
namespace {

// One tensor in one of its layouts. Knows where its groups lie, and checks how it is packed. Each
// matrix is grouped separately; a cache is one matrix whose rows are its blocks.
class Packing {
 public:
  Packing(Session& s, const GraphSpec& graph, uint32_t tensor, const trine_layout_info& info);

  struct Rows {
    uint64_t begin, end;
  };
  uint64_t rows() const { return matrices_ * matrix_rows_; }
  uint64_t groups() const { return matrices_ * MatrixGroups(); }
  Rows Group(uint64_t g) const {
    const uint64_t first = g / MatrixGroups() * matrix_rows_;
    const uint64_t begin = g % MatrixGroups() * info_.group_rows;
    return {first + begin, first + std::min(matrix_rows_, begin + info_.group_rows)};
  }
  bool is_cache() const { return is_cache_; }
  uint32_t slot() const { return tensor_.slot; }
  const trine_layout_info& info() const { return info_; }
  const std::string& what() const { return what_; }

  void CheckInfo(Trial& trial) const;
  // Packs in several ways that must give the same bytes. Returns an empty vector on failure.
  Bytes Pack(Trial& trial, const Bytes& plain) const;
  void CheckUnpack(Trial& trial, const Bytes& plain, const Bytes& packed) const;
  Answer Convert(Trial& trial, uint32_t direction, Rows rows, const Bytes& src, Bytes* dst) const {
    return trial.Call("layout_convert",
                      [&](trine_error* err) { return Call(direction, rows, src, dst, err); });
  }

 private:
  uint64_t MatrixGroups() const { return (matrix_rows_ + info_.group_rows - 1) / info_.group_rows; }
  // Converts without a trial, which only one thread may use.
  trine_status Call(uint32_t direction, Rows rows, const Bytes& src, Bytes* dst,
                    trine_error* err) const {
    trine_layout_convert_args args{sizeof(args), direction, &tensor_,   info_.layout,
                                   rows.begin,   rows.end,  src.data(), dst->data()};
    return s_.table().layout_convert(s_.device(), &args, err);
  }

  Session& s_;
  trine_tensor tensor_;
  trine_layout_info info_;
  bool is_cache_;
  uint64_t matrices_, matrix_rows_;
  std::string what_;
};

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
  const auto owner = static_cast<uint32_t>(sdk::OwnLayout(s_.table().name, 0) >> 32);
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
  // Divides rather than multiplies, because the plugin's numbers may be anything and must not wrap.
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
  for (uint64_t g = groups(); g-- > 0;) {  // last group first
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

  // Packing one group must write to its place and touch nothing else.
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
  // Unpacks one block alone, as when blocks move between devices.
  const uint64_t block = rows() / 2, bytes = plain.size() / rows();
  Bytes expected(plain.size(), kGarbage), one = expected;
  std::copy_n(plain.begin() + static_cast<ptrdiff_t>(block * bytes), bytes,
              expected.begin() + static_cast<ptrdiff_t>(block * bytes));
  trial.ExpectOk(Convert(trial, TRINE_LAYOUT_UNPACK, {block, block + 1}, packed, &one), what_);
  trial.Expect(one == expected, absl::StrCat(what_, ": block ", block, " unpacked alone is wrong"));
}

// Lists a tensor's layouts. An error fails the check only when the op is claimed.
std::vector<trine_layout_info> List(Trial& trial, Session& s, const GraphSpec& graph,
                                    uint32_t tensor, bool claimed) {
  constexpr size_t kCapacity = 16;
  std::vector<trine_layout_info> infos(kCapacity);
  const PackedGraph packed(graph);
  trine_layout_list list{sizeof(list), sizeof(trine_layout_info), kCapacity, 0, infos.data()};
  const Answer answer = s.Call(trial, "layout_list", &trine_plugin::layout_list, s.device(),
                               packed.get(), tensor, &list);
  if (claimed) trial.ExpectOk(answer, "layout_list");
  infos.resize(answer.Ok() ? std::min<size_t>(list.count, kCapacity) : 0);
  return infos;
}

// A tensor of a case, packed in a layout.
struct Choice {
  uint32_t tensor;
  Packing packing;
  Bytes packed;
};

// Runs the case with packed tensors and expects the results of the plain ones.
void RunPacked(Trial& trial, Session& s, const OpCase& plain_case,
               const std::vector<Choice>& choices) {
  OpCase op_case = plain_case;
  std::string what;
  for (const Choice& c : choices) {
    op_case.graph.tensors[c.tensor].layout = c.packing.info().layout;
    op_case.graph.slots[c.packing.slot()].bytes = c.packing.info().packed_bytes;
    op_case.images[c.packing.slot()] = c.packed;
    absl::StrAppend(&what, what.empty() ? "" : " with ", c.packing.what());
  }
  std::string reason;
  if (Claim(trial, s, &op_case.graph, &reason) == TRINE_SUPPORT_NO) {
    // Layouts are listed by tensor, so a device may refuse a combination of two.
    trial.Expect(choices.size() > 1, absl::StrCat(what, " is listed, but refused: ", reason));
    return;
  }
  const auto plan = DevicePlan::Create(trial, s, op_case.graph, op_case.images);
  if (plan == nullptr) return;
  GraphSpec plain_graph = plain_case.graph;
  plain_graph.numerics = op_case.graph.numerics;
  Images got;
  if (!trial.ExpectOk(plan->Run(trial, op_case.params), absl::StrCat("plan_run with ", what)) ||
      !plan->Download(trial, &got)) {
    return;
  }
  for (const Choice& c : choices) {
    const uint32_t slot = c.packing.slot();
    if (c.packing.is_cache()) {
      Bytes back(plain_case.images[slot].size(), kGarbage);
      trial.ExpectOk(
          c.packing.Convert(trial, TRINE_LAYOUT_UNPACK, {0, c.packing.rows()}, got[slot], &back),
          c.packing.what());
      got[slot] = std::move(back);
    } else if (trial.Expect(got[slot] == c.packed,
                            absl::StrCat(c.packing.what(), ": a run changed the weights"))) {
      got[slot] = plain_case.images[slot];
    }
  }
  const std::string wrong = CompareResults(
      plain_graph, op_case.params, RunOracle(plain_graph, op_case.params, plain_case.images), got);
  trial.Expect(wrong.empty(), absl::StrCat(what, ": ", op_case.graph.Describe(), ": ", wrong));
}

// Packs each of the tensors in all of its layouts. Runs the case with each layout of a single
// tensor, or with the best layouts of several. Returns the number of layouts.
int CheckCase(Trial& trial, Session& s, OpCase op_case, const std::vector<uint32_t>& tensors,
              std::string* reason) {
  const bool claimed = Claim(trial, s, &op_case.graph, reason) != TRINE_SUPPORT_NO;
  std::vector<Choice> best;
  int layouts = 0;
  for (uint32_t tensor : tensors) {
    const auto infos = List(trial, s, op_case.graph, tensor, claimed);
    for (const trine_layout_info& info : infos) {
      ++layouts;
      const Packing packing(s, op_case.graph, tensor, info);
      packing.CheckInfo(trial);
      if (trial.failed()) return layouts;
      const Bytes& plain = op_case.images[packing.slot()];
      Bytes packed = packing.Pack(trial, plain);
      if (packed.empty()) return layouts;
      packing.CheckUnpack(trial, plain, packed);
      Choice choice{tensor, packing, std::move(packed)};
      if (claimed && tensors.size() == 1) RunPacked(trial, s, op_case, {choice});
      if (&info == &infos.front()) best.push_back(std::move(choice));
    }
  }
  if (claimed && tensors.size() > 1 && best.size() == tensors.size()) {
    RunPacked(trial, s, op_case, best);
  }
  trial.Alive();
  return layouts;
}

void CheckWeights(Trial& trial, Bench& bench, Session& s, uint32_t dtype) {
  Random random(bench.options().seed);
  std::string reason;
  int layouts = 0;
  for (int64_t n : {1, 17, 64, 130}) {
    OpCase matmul = MatmulCase(random, dtype, 512, n, 3, false, Spread32::kBell);
    const uint32_t weight = matmul.graph.ops[0].in[0];
    layouts += CheckCase(trial, s, std::move(matmul), {weight}, &reason);
  }
  for (int64_t n : {5, 17, 64}) {  // rows of an expert that fill no whole groups, and that do
    OpCase experts = MoeMatmulCase(random, dtype, 512, n, 3);
    const uint32_t weight = experts.graph.ops[0].in[0];
    layouts += CheckCase(trial, s, std::move(experts), {weight}, &reason);
  }
  if (layouts == 0) {
    trial.Skip(absl::StrCat("none but the plain layout is listed",
                            reason.empty() ? "" : "; refused: ", reason));
  }
}

void CheckCaches(Trial& trial, Bench& bench, Session& s, uint32_t dtype) {
  Random random(bench.options().seed);
  std::string reason;
  int layouts = 0;
  for (OpCase& op_case : CacheCases(random, dtype)) {
    const OpSpec& op = op_case.graph.ops[0];
    const std::vector<uint32_t> caches = op.kind == TRINE_OP_KV_STORE
                                             ? std::vector<uint32_t>{op.out[0]}
                                             : std::vector<uint32_t>{op.in[1], op.in[2]};
    layouts += CheckCase(trial, s, op_case, caches, &reason);
  }
  if (layouts == 0) {
    trial.Skip(absl::StrCat("none but the canonical layout is listed",
                            reason.empty() ? "" : "; refused: ", reason));
  }
}

}  // namespace

void RunLayoutChecks(Bench& bench) {
  const auto run = [&](const std::string& name, auto check, uint32_t dtype) {
    bench.Run(name, [&](Trial& trial, Session& s) {
      if (s.table().layout_list == nullptr || s.table().layout_convert == nullptr) {
        return trial.Skip("layouts are not offered");
      }
      check(trial, bench, s, dtype);
    });
  };
  for (uint32_t dtype : WeightTypes()) {
    run(absl::StrCat("layouts/", sdk::DtypeName(dtype)), CheckWeights, dtype);
  }
  for (uint32_t dtype : CacheTypes()) {
    run(absl::StrCat("layouts/cache/", sdk::DtypeName(dtype)), CheckCaches, dtype);
  }
}

}  // namespace trine::conformance
