#include "library.h"

#include <cstdint>

// Weak: null if the linked library lacks the function.
extern "C" {
[[gnu::weak]] void openblas_set_num_threads(int threads);
[[gnu::weak]] char* openblas_get_config(void);
[[gnu::weak]] char* openblas_get_corename(void);
[[gnu::weak]] void bli_thread_set_num_threads(int64_t threads);
[[gnu::weak]] const char* bli_info_get_version_str(void);
}

namespace blas {

void UseCallingThreadOnly() {
  thread_local bool done = false;
  if (done) return;
  done = true;
  if (openblas_set_num_threads != nullptr) openblas_set_num_threads(1);
  if (bli_thread_set_num_threads != nullptr) bli_thread_set_num_threads(1);
}

std::string LibraryVersion() {
  if (openblas_get_config != nullptr) return openblas_get_config();
  if (bli_info_get_version_str != nullptr) return std::string("BLIS ") + bli_info_get_version_str();
  return "CBLAS";
}

std::string LibraryProcessor() {
  return openblas_get_corename != nullptr ? openblas_get_corename() : "";
}

}  // namespace blas
