// A library with the functions of CBLAS: OpenBLAS, BLIS, or another one.
#include <cblas.h>

#include "library.h"

// Not part of CBLAS. Weak: null if the linked library lacks the function.
extern "C" {
[[gnu::weak]] int openblas_get_parallel(void);
[[gnu::weak]] void openblas_set_num_threads(int threads);
[[gnu::weak]] char* openblas_get_config(void);
[[gnu::weak]] char* openblas_get_corename(void);
[[gnu::weak]] void bli_thread_set_num_threads(int64_t threads);
[[gnu::weak]] const char* bli_info_get_version_str(void);
}

namespace blas {
namespace {

// Returns whether several threads may call the library at once. An OpenBLAS that was built without
// threads hands the same memory to all callers, unless it was built with locks, which it does not
// tell: one product in ten comes out wrong.
bool AllowsManyCallers() {
  return openblas_get_parallel == nullptr || openblas_get_parallel() != 0;
}

// Applies to the calling thread, or to the whole process, as the library has it: so every thread
// calls it once.
void UseCallingThreadOnly() {
  thread_local bool done = false;
  if (done) return;
  done = true;
  if (openblas_set_num_threads != nullptr) openblas_set_num_threads(1);
  if (bli_thread_set_num_threads != nullptr) bli_thread_set_num_threads(1);
}

class CblasLibrary : public Library {
 public:
  std::string Version() const override {
    if (openblas_get_config != nullptr) return openblas_get_config();
    if (bli_info_get_version_str == nullptr) return "CBLAS";
    return std::string("BLIS ") + bli_info_get_version_str();
  }

  std::string Processor() const override {
    return openblas_get_corename != nullptr ? openblas_get_corename() : "";
  }

  bool Add(const Operands<float>& p) const override {
    UseCallingThreadOnly();
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, static_cast<int>(p.tokens),
                static_cast<int>(p.rows), static_cast<int>(p.depth), 1.0f, p.x,
                static_cast<int>(p.x_stride), p.w, static_cast<int>(p.w_stride), 1.0f, p.y,
                static_cast<int>(p.y_stride));
    return true;
  }
};

}  // namespace

const Library* Cblas() {
  static const CblasLibrary library;
  return AllowsManyCallers() ? &library : nullptr;
}

}  // namespace blas
