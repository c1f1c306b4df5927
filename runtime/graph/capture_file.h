// Reads and writes captures. A capture is a file with the values that a session's passes read and
// produced, as hashes or in full. Its format:
//
//   8 bytes    "TRINECAP"
//   u32        version, 1
//   u32        0x01020304, which another byte order reads as another number
//   head:      u32 numerics version, u32 level (1 layers, 2 ops), u32 1 with values else 0,
//              u32 kv_type_k, u32 kv_type_v, u32 0, u64 context, u64 most tokens of a pass,
//              u64 n_layers, u64 model's id, string program, string model (u32 length and bytes),
//              u32 taps, each: u32 op, output, kind, dtype, i64 layer, u64 fixed, per_token,
//              per_row (bytes), string name
//   each pass: u32 1, u32 n tokens, u32 n rows, u32 0, i64 position of first token, tokens i32,
//              rows i32, then for each tap u64 Hash64 (seed 0) and, with values, its bytes
//   end:       u32 0, u32 0, u64 passes, u64 Hash64 of all parts before, each seeded with the hash
//              of the part before it: first everything up to the head's end, then every pass
//
// Numbers are little-endian. Nothing follows the end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/gguf/file_memory.h"
#include "runtime/gguf/output_file.h"
#include "runtime/graph/pass_graph.h"
#include "runtime/model/arch/graph_taps.h"
#include "runtime/model/run/model.h"

namespace trine {

// A value that is captured in every pass.
struct CapturedTap {
  uint32_t op = 0;  // index in the whole model
  uint32_t output = 0;
  uint32_t kind = 0;  // the op's kind
  uint32_t dtype = 0;
  int64_t layer = -1;
  PassBytes bytes;
  std::string name;

  bool operator==(const CapturedTap&) const = default;
};

struct CaptureHead {
  uint32_t numerics = 0;
  TapLevel level = TapLevel::kLayers;
  bool values = false;
  uint32_t kv_type_k = 0, kv_type_v = 0;
  bool fast = false;  // fast numerics were allowed, so its values need not be exact
  uint64_t context = 0;
  uint64_t max_tokens = 0;
  uint64_t n_layers = 0;
  uint64_t model_id = 0;
  std::string program;  // the program that wrote the file
  std::string model;    // the model's file as the user named it
  std::vector<CapturedTap> taps;
};

struct CapturedPass {
  int64_t position = 0;
  std::vector<int32_t> tokens, rows;
  std::vector<uint64_t> hashes;                    // one for each tap
  std::vector<std::span<const std::byte>> values;  // one for each tap; empty: the file has none

  PassSizes sizes() const {
    return {static_cast<int64_t>(tokens.size()), static_cast<int64_t>(rows.size())};
  }
};

// Returns the descriptions of a graph's taps for a capture's head.
std::vector<CapturedTap> DescribeTaps(const PassGraph& graph);

// Reads a capture. Checks every number against the file's size and against other numbers, and
// returns INVALID_ARGUMENT, saying what is wrong, if one is impossible. Owns the file's memory,
// which the passes' values view.
class CaptureFile {
 public:
  static absl::StatusOr<std::unique_ptr<CaptureFile>> Open(const std::string& path);
  // Reads a capture from bytes in memory, which must outlive the result.
  static absl::StatusOr<std::unique_ptr<CaptureFile>> Parse(std::span<const std::byte> bytes);

  const CaptureHead& head() const { return head_; }
  const std::vector<CapturedPass>& passes() const { return passes_; }

 private:
  CaptureFile() = default;

  std::unique_ptr<gguf::FileMemory> memory_;
  CaptureHead head_;
  std::vector<CapturedPass> passes_;
};

struct CaptureOptions {
  std::string path;
  std::string program;  // the program that writes the file
  std::string model;    // the model's file as the user named it
  uint64_t model_id = 0;
  bool values = false;  // true: writes values in full, in addition to their hashes
};

// Records the passes of one sequence into a capture file while they go through the model's stages.
// Several passes may be in flight at once. Thread-safe.
class CaptureRecorder {
 public:
  // Creates the file, which gets its name in Finish.
  static absl::StatusOr<std::unique_ptr<CaptureRecorder>> Create(const CaptureOptions& options);

  // Records a stage of a pass: a StageObserver, called after the stage. Records nothing of passes
  // that fail, because they are run again.
  absl::Status Ran(const Model& model, size_t stage, const Pass& pass);

  // Completes the file. Call it when no pass is in flight. Returns FAILED_PRECONDITION if no pass
  // was recorded.
  absl::Status Finish();
  uint64_t passes() const;

 private:
  // The values of a pass in flight that have been recorded so far.
  struct Recorded {
    std::vector<uint64_t> hashes;
    std::vector<std::vector<std::byte>> values;
  };

  explicit CaptureRecorder(const CaptureOptions& options) : options_(options) {}
  absl::Status WriteHead(const Model& model);
  absl::Status WritePass(const Pass& pass, const Recorded& recorded);
  absl::Status Write(const std::vector<std::byte>& bytes);

  const CaptureOptions options_;
  mutable std::mutex mutex_;  // guards all members after it
  std::unique_ptr<gguf::OutputFile> out_;
  uint64_t hash_ = 0, passes_ = 0;
  bool begun_ = false;
  std::map<const Pass*, Recorded> under_way_;
};

}  // namespace trine
