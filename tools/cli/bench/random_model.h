// Makes a model of random weights for a benchmark without a model. Its file has no name, so it
// disappears when the program ends, however it ends.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace trine {

class RandomModel {
 public:
  // Makes the model as `trine make-model --like` does, in the folder for temporary files.
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
