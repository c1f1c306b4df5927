// make-tiny-model NAME FILE: writes one of the tests' models, for other engines to read.
#include <cstdio>
#include <fstream>

#include "tests/model/tiny_model.h"

int main(int argc, char** argv) {
  const auto spec = argc == 3 ? trine::TinyModelByName(argv[1])
                              : absl::StatusOr<trine::TinyModelSpec>(
                                    absl::InvalidArgumentError("make-tiny-model NAME FILE"));
  if (!spec.ok()) {
    std::fprintf(stderr, "%s\n", std::string(spec.status().message()).c_str());
    return 2;
  }
  const std::vector<std::byte> bytes = trine::MakeTinyModel(*spec).ToBytes();
  std::ofstream out(argv[2], std::ios::binary);
  out.write(reinterpret_cast<const char*>(bytes.data()),
            static_cast<std::streamsize>(bytes.size()));
  return !bytes.empty() && out.flush() ? 0 : 1;
}
