// The format of a capture: what a session's passes read and left, value by value, as hashes or in
// full.
//
//   8 bytes    "TRINECAP"
//   u32        version, 1
//   u32        0x01020304, which another byte order reads as another number
//   head:      u32 numerics version, u32 level (1 layers, 2 ops), u32 1 with values else 0,
//              u32 kv_type_k, u32 kv_type_v, u32 0, u64 context, u64 most tokens of a pass,
//              u64 n_layers, u64 model's id, string program, string model (u32 length and bytes),
//              u32 taps, each: u32 op, output, kind, dtype, i64 layer, u64 fixed, per_token,
//              per_row (bytes), string name
//   each pass: u32 1, u32 tokens, u32 rows, u32 0, i64 position of the first token, tokens i32,
//              rows i32, then for each tap u64 Hash64 (seed 0) and, with values, its bytes
//   end:       u32 0, u32 0, u64 passes, u64 Hash64 of each part before, from the first byte, the
//              one's result the next one's seed: the beginning with the head, then every pass
//
// Numbers are little-endian. Nothing follows the end.
#ifndef TRINE_RUNTIME_GRAPH_CAPTURE_FILE_H_
#define TRINE_RUNTIME_GRAPH_CAPTURE_FILE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/gguf/file_memory.h"
#include "runtime/gguf/output_file.h"
#include "runtime/graph/pass_graph.h"
#include "runtime/model/graph_taps.h"

namespace trine {

// A value that is captured of every pass.
struct CapturedTap {
  uint32_t op = 0;  // of the whole model
  uint32_t output = 0;
  uint32_t kind = 0;  // of the op
  uint32_t dtype = 0;
  int64_t layer = -1;
  uint64_t fixed = 0, per_token = 0, per_row = 0;  // bytes
  std::string name;

  uint64_t Bytes(const PassSizes& sizes) const {
    return fixed + per_token * static_cast<uint64_t>(sizes.tokens) +
           per_row * static_cast<uint64_t>(sizes.rows);
  }
  bool operator==(const CapturedTap&) const = default;
};

struct CaptureHead {
  uint32_t numerics = 0;
  TapLevel level = TapLevel::kLayers;
  bool values = false;
  uint32_t kv_type_k = 0, kv_type_v = 0;
  uint64_t context = 0;
  uint64_t max_tokens = 0;
  uint64_t n_layers = 0;
  uint64_t model_id = 0;
  std::string program;  // that wrote it
  std::string model;    // the file, as it was named
  std::vector<CapturedTap> taps;
};

struct CapturedPass {
  int64_t position = 0;
  std::vector<int32_t> tokens, rows;
  std::vector<uint64_t> hashes;                    // by tap
  std::vector<std::span<const std::byte>> values;  // likewise, where the file has them

  PassSizes sizes() const {
    return {static_cast<int64_t>(tokens.size()), static_cast<int64_t>(rows.size())};
  }
};

// What a graph's taps are in a file.
std::vector<CapturedTap> DescribeTaps(const PassGraph& graph);

// Appears under its name when it is finished. Not thread-safe.
class CaptureWriter {
 public:
  static absl::StatusOr<std::unique_ptr<CaptureWriter>> Create(const std::string& path);

  // In this order: the head, ...
  absl::Status Begin(const CaptureHead& head);
  // ... passes, with as many hashes as there are taps, and values if the head says so, ...
  absl::Status Add(const CapturedPass& pass);
  // ... and the end.
  absl::Status Finish();
  uint64_t passes() const { return passes_; }

 private:
  CaptureWriter() = default;
  absl::Status Put(const std::vector<std::byte>& bytes);

  std::unique_ptr<gguf::OutputFile> out_;
  uint64_t hash_ = 0, passes_ = 0;
  bool values_ = false;
};

// Every number is held against the file's size and against each other; INVALID_ARGUMENT says what
// is wrong. Owns the file's memory, which the passes' values point to.
class CaptureFile {
 public:
  static absl::StatusOr<std::unique_ptr<CaptureFile>> Open(const std::string& path);
  // The same of bytes in memory, which outlive it.
  static absl::StatusOr<std::unique_ptr<CaptureFile>> Parse(std::span<const std::byte> bytes);

  const CaptureHead& head() const { return head_; }
  const std::vector<CapturedPass>& passes() const { return passes_; }

 private:
  CaptureFile() = default;

  std::unique_ptr<gguf::FileMemory> memory_;
  CaptureHead head_;
  std::vector<CapturedPass> passes_;
};

}  // namespace trine

#endif  // TRINE_RUNTIME_GRAPH_CAPTURE_FILE_H_
