#include "runtime/graph/capture_file.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/invalid.h"
#include "runtime/gguf/cursor.h"
#include "runtime/gguf/quoted.h"
#include "runtime/pack_cache/hash64.h"
#include "trine/backend_sdk.h"

namespace trine {
namespace {

constexpr std::string_view kMagic = "TRINECAP";
constexpr uint32_t kVersion = 1;
constexpr uint32_t kByteOrder = 0x01020304;
constexpr uint32_t kEnd = 0, kPass = 1;
constexpr uint32_t kMaxText = 1 << 12;
constexpr uint32_t kMaxTaps = 1 << 20;
constexpr uint64_t kMaxTokens = 1 << 20;  // tokens of a pass
constexpr uint64_t kMaxPositions = uint64_t{1} << 31;
constexpr uint64_t kMaxSize = uint64_t{1} << 36;  // bytes of a tap, for each token or row

// Cuts the beginning of a text that is too long for the format.
std::string Short(const std::string& text) {
  return text.size() <= kMaxText ? text : text.substr(text.size() - kMaxText);
}

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes)
      : data_(bytes.data()), cursor_(bytes.data(), bytes.size()) {}

  template <class... T>
  bool Numbers(T*... numbers) {
    return (cursor_.Read(numbers) && ...);
  }
  bool Text(std::string* text) {
    std::string_view view;
    if (!cursor_.ReadString<uint32_t>(&view, kMaxText)) return false;
    text->assign(view);
    return true;
  }
  bool Take(uint64_t bytes, std::span<const std::byte>* part) {
    if (bytes > cursor_.remaining()) return false;
    *part = {data_ + cursor_.position(), static_cast<size_t>(bytes)};
    return cursor_.Skip(bytes);
  }
  // Hashes what was read since the last call, with the hash so far as the seed.
  uint64_t HashOfPart() {
    hash_ = Hash64(data_ + part_, cursor_.position() - part_, hash_);
    part_ = cursor_.position();
    return hash_;
  }
  uint64_t hash() const { return hash_; }
  uint64_t remaining() const { return cursor_.remaining(); }
  absl::Status Ends(std::string_view inside) const {
    return cursor_.Ends(absl::string_view(inside.data(), inside.size()));
  }

 private:
  const std::byte* const data_;
  gguf::Cursor cursor_;
  uint64_t part_ = 0, hash_ = 0;
};

absl::Status ReadTap(const CaptureHead& head, Reader* in, CapturedTap* tap) {
  if (!in->Numbers(&tap->op, &tap->output, &tap->kind, &tap->dtype, &tap->layer, &tap->bytes.fixed,
                   &tap->bytes.per_token, &tap->bytes.per_row) ||
      !in->Text(&tap->name)) {
    return in->Ends("the list of values");
  }
  if (sdk::FindDtype(tap->dtype) == nullptr) return Invalid("has a value of type ", tap->dtype);
  if (tap->layer < -1 || tap->layer > static_cast<int64_t>(head.n_layers)) {
    return Invalid("has a value of layer ", tap->layer, " of ", head.n_layers);
  }
  if (std::max({tap->bytes.fixed, tap->bytes.per_token, tap->bytes.per_row}) > kMaxSize) {
    return Invalid("has a value too large to be one: ", tap->name);
  }
  return absl::OkStatus();
}

absl::Status ReadHead(Reader* in, CaptureHead* head) {
  std::span<const std::byte> magic;
  uint32_t version = 0, order = 0, level = 0, values = 0, fast = 0, n_taps = 0;
  if (!in->Take(kMagic.size(), &magic) ||
      std::memcmp(magic.data(), kMagic.data(), kMagic.size()) != 0) {
    return Invalid("is no capture");
  }
  if (!in->Numbers(&version)) return in->Ends("the version");
  if (version != kVersion) return Invalid("is of version ", version, ", not ", kVersion);
  if (!in->Numbers(&order)) return in->Ends("the head");
  if (order != kByteOrder) return Invalid("has another byte order");
  if (!in->Numbers(&head->numerics, &level, &values, &head->kv_type_k, &head->kv_type_v, &fast,
                   &head->context, &head->max_tokens, &head->n_layers, &head->model_id) ||
      !in->Text(&head->program) || !in->Text(&head->model) || !in->Numbers(&n_taps)) {
    return in->Ends("the head");
  }
  if ((level != 1 && level != 2) || values > 1 || fast > 1) return Invalid("has a damaged head");
  if (head->context == 0 || head->context > kMaxPositions || head->max_tokens == 0 ||
      head->max_tokens > kMaxTokens || head->n_layers > (1 << 20)) {
    return Invalid("has sizes that no model has");
  }
  if (n_taps == 0 || n_taps > kMaxTaps) return Invalid("has ", n_taps, " values in a pass");
  head->level = static_cast<TapLevel>(level);
  head->values = values == 1;
  head->fast = fast == 1;
  for (uint32_t i = 0; i < n_taps; ++i) {
    CapturedTap tap;
    if (absl::Status s = ReadTap(*head, in, &tap); !s.ok()) return s;
    if (i > 0 && tap.op < head->taps.back().op) return Invalid("has values out of order");
    head->taps.push_back(std::move(tap));
  }
  in->HashOfPart();
  return absl::OkStatus();
}

bool ReadInts(uint32_t n, Reader* in, std::vector<int32_t>* ints) {
  std::span<const std::byte> bytes;
  if (!in->Take(uint64_t{n} * sizeof(int32_t), &bytes)) return false;
  ints->resize(n);
  std::memcpy(ints->data(), bytes.data(), bytes.size());
  return true;
}

absl::Status ReadPass(const CaptureHead& head, Reader* in, CapturedPass* pass) {
  uint32_t n_tokens = 0, n_rows = 0, zero = 0;
  if (!in->Numbers(&n_tokens, &n_rows, &zero, &pass->position)) return in->Ends("a pass");
  if (n_tokens == 0 || n_tokens > head.max_tokens || n_rows == 0 || n_rows > n_tokens ||
      zero != 0) {
    return Invalid("has a pass of ", n_tokens, " tokens and ", n_rows, " rows");
  }
  if (pass->position < 0 || pass->position > static_cast<int64_t>(head.context - n_tokens)) {
    return Invalid("has a pass at position ", pass->position, " of ", head.context);
  }
  if (!ReadInts(n_tokens, in, &pass->tokens) || !ReadInts(n_rows, in, &pass->rows)) {
    return in->Ends("the tokens of a pass");
  }
  const auto outside = [&](int32_t row) {
    return row < 0 || static_cast<uint32_t>(row) >= n_tokens;
  };
  if (std::any_of(pass->rows.begin(), pass->rows.end(), outside)) {
    return Invalid("has a pass with a row that it has not");
  }
  for (const CapturedTap& tap : head.taps) {
    uint64_t hash = 0;
    if (!in->Numbers(&hash)) return in->Ends("the values of a pass");
    pass->hashes.push_back(hash);
    if (!head.values) continue;
    std::span<const std::byte> bytes;
    if (!in->Take(tap.bytes.At(pass->sizes()), &bytes)) return in->Ends("the values of a pass");
    if (Hash64(bytes.data(), bytes.size(), 0) != hash) return Invalid("has damaged values");
    pass->values.push_back(bytes);
  }
  in->HashOfPart();
  return absl::OkStatus();
}

}  // namespace

std::vector<CapturedTap> DescribeTaps(const PassGraph& graph) {
  std::vector<CapturedTap> taps;
  for (const size_t v : graph.taps()) {
    const GraphValue& value = graph.values()[v];
    CapturedTap tap;
    tap.op = static_cast<uint32_t>(value.op);
    tap.output = value.output;
    tap.kind = graph.whole().graph.op(value.op).kind;
    tap.dtype = value.tensor.dtype;
    tap.layer = graph.LayerOfOp(value.op);
    tap.bytes = graph.PlaceOf(v).bytes;
    tap.name = Short(value.name);
    taps.push_back(std::move(tap));
  }
  return taps;
}

absl::StatusOr<std::unique_ptr<CaptureFile>> CaptureFile::Open(const std::string& path) {
  auto memory = gguf::FileMemory::Map(path);
  if (!memory.ok()) return gguf::About(path, memory.status());
  auto file = Parse({memory->data(), static_cast<size_t>(memory->bytes())});
  if (!file.ok()) {
    return absl::Status(file.status().code(), absl::StrCat(path, " ", file.status().message()));
  }
  (*file)->memory_ = std::make_unique<gguf::FileMemory>(*std::move(memory));
  return file;
}

absl::StatusOr<std::unique_ptr<CaptureFile>> CaptureFile::Parse(std::span<const std::byte> bytes) {
  std::unique_ptr<CaptureFile> file(new CaptureFile());
  Reader in(bytes);
  if (absl::Status s = ReadHead(&in, &file->head_); !s.ok()) return s;
  while (true) {
    uint32_t tag = 0;
    if (!in.Numbers(&tag)) return in.Ends("the list of passes");
    if (tag == kEnd) break;
    if (tag != kPass) return Invalid("has something in it that is no pass");
    CapturedPass pass;
    if (absl::Status s = ReadPass(file->head_, &in, &pass); !s.ok()) return s;
    file->passes_.push_back(std::move(pass));
  }
  uint32_t zero = 0;
  uint64_t passes = 0, hash = 0;
  if (!in.Numbers(&zero, &passes, &hash)) return in.Ends("its end");
  if (zero != 0 || passes != file->passes_.size()) return Invalid("has a damaged end");
  if (hash != in.hash()) return Invalid("is damaged");
  if (in.remaining() != 0) return Invalid("goes on behind its end");
  return file;
}

absl::StatusOr<std::unique_ptr<CaptureRecorder>> CaptureRecorder::Create(
    const CaptureOptions& options) {
  auto out = gguf::OutputFile::Create(options.path);
  if (!out.ok()) return out.status();
  std::unique_ptr<CaptureRecorder> recorder(new CaptureRecorder(options));
  recorder->out_ = *std::move(out);
  return recorder;
}

absl::Status CaptureRecorder::Write(const std::vector<std::byte>& bytes) {
  hash_ = Hash64(bytes.data(), bytes.size(), hash_);
  return out_->Append(bytes.data(), bytes.size());
}

absl::Status CaptureRecorder::WriteHead(const Model& model) {
  const auto graph = PassGraph::Create(model);
  if (!graph.ok()) return graph.status();
  const std::vector<CapturedTap> taps = DescribeTaps(**graph);
  const SegmentLimits& limits = model.limits();
  gguf::ByteWriter w;
  w.Bytes(kMagic.data(), kMagic.size()).Number(kVersion).Number(kByteOrder);
  w.Number(uint32_t{TRINE_NUMERICS_VERSION}).Number(static_cast<uint32_t>(model.taps()));
  w.Number(uint32_t{options_.values});
  w.Number(uint32_t{limits.kv_type_k})
      .Number(uint32_t{limits.kv_type_v})
      .Number(uint32_t{limits.exact() ? 0u : 1u});
  w.Number(static_cast<uint64_t>(limits.max_context));
  w.Number(static_cast<uint64_t>(limits.max_tokens));
  w.Number(static_cast<uint64_t>(model.config().n_layers));
  w.Number(options_.model_id).Text(Short(options_.program)).Text(Short(options_.model));
  w.Number(static_cast<uint32_t>(taps.size()));
  for (const CapturedTap& tap : taps) {
    w.Number(tap.op).Number(tap.output).Number(tap.kind).Number(tap.dtype).Number(tap.layer);
    w.Number(tap.bytes.fixed).Number(tap.bytes.per_token).Number(tap.bytes.per_row).Text(tap.name);
  }
  begun_ = true;
  return Write(w.bytes);
}

absl::Status CaptureRecorder::Ran(const Model& model, size_t stage, const Pass& pass) {
  if (pass.kv_lengths.size() != 1) {
    return absl::FailedPreconditionError("a capture is of one sequence, and a pass has several");
  }
  // The values belong to the stage until this returns, so they are read without holding the lock.
  Recorded here;
  std::vector<std::byte> bytes;
  for (size_t i = 0; i < model.StageTaps(stage).size(); ++i) {
    bytes.resize(model.TapBytes(stage, i, pass));
    if (absl::Status s = model.ReadTap(stage, i, pass, bytes.data()); !s.ok()) return s;
    here.hashes.push_back(Hash64(bytes.data(), bytes.size(), 0));
    if (options_.values) here.values.push_back(std::exchange(bytes, {}));
  }
  std::lock_guard lock(mutex_);
  Recorded& all = under_way_[&pass];
  if (stage == 0) all = {};  // a pass that failed may have had this address
  all.hashes.insert(all.hashes.end(), here.hashes.begin(), here.hashes.end());
  for (auto& values : here.values) all.values.push_back(std::move(values));
  if (stage + 1 < model.stage_count()) return absl::OkStatus();
  const Recorded whole = std::move(all);
  under_way_.erase(&pass);
  if (!begun_) {
    if (absl::Status s = WriteHead(model); !s.ok()) return s;
  }
  return WritePass(pass, whole);
}

absl::Status CaptureRecorder::WritePass(const Pass& pass, const Recorded& recorded) {
  const auto n_tokens = static_cast<int64_t>(pass.tokens.size());
  gguf::ByteWriter w;
  w.Number(kPass).Number(static_cast<uint32_t>(n_tokens));
  w.Number(static_cast<uint32_t>(pass.output_rows.size())).Number(uint32_t{0});
  w.Number(int64_t{pass.kv_lengths[0] - n_tokens});
  w.Bytes(pass.tokens.data(), pass.tokens.size() * sizeof(int32_t));
  w.Bytes(pass.output_rows.data(), pass.output_rows.size() * sizeof(int32_t));
  for (size_t i = 0; i < recorded.hashes.size(); ++i) {
    w.Number(recorded.hashes[i]);
    if (options_.values) w.Bytes(recorded.values[i].data(), recorded.values[i].size());
  }
  ++passes_;
  return Write(w.bytes);
}

absl::Status CaptureRecorder::Finish() {
  std::lock_guard lock(mutex_);
  if (!begun_) return absl::FailedPreconditionError("there was no pass to capture");
  gguf::ByteWriter w;
  w.Number(kEnd).Number(uint32_t{0}).Number(passes_).Number(hash_);
  absl::Status s = out_->Append(w.bytes.data(), w.bytes.size());
  if (s.ok()) s = out_->Close();
  if (s.ok()) s = out_->Publish();
  return s;
}

uint64_t CaptureRecorder::passes() const {
  std::lock_guard lock(mutex_);
  return passes_;
}

}  // namespace trine
