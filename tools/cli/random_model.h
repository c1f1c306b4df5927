// A model of random weights for a benchmark that was given none: a file without a name, which is
// gone when the program is, however it ends.
#ifndef TRINE_TOOLS_CLI_RANDOM_MODEL_H_
#define TRINE_TOOLS_CLI_RANDOM_MODEL_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace trine {

class RandomModel {
 public:
  // As `trine make-model --like` has it, in the folder for temporary files.
  static absl::StatusOr<std::unique_ptr<RandomModel>> Make(std::string_view like, int64_t layers,
                                                           std::string_view type, int64_t context);
  ~RandomModel();
  RandomModel(const RandomModel&) = delete;
  RandomModel& operator=(const RandomModel&) = delete;

  const std::string& path() const { return path_; }

 private:
  explicit RandomModel(int file);

  const int file_;
  const std::string path_;
};

}  // namespace trine

#endif  // TRINE_TOOLS_CLI_RANDOM_MODEL_H_
