// oneDNN: its sgemm, and its matmul of bf16 for processors with AMX.
#include <exception>
#include <memory>
#include <oneapi/dnnl/dnnl.hpp>
#include <string>
#include <utility>

#include "library.h"

// Weak: null if the linked oneDNN brings no OpenMP.
extern "C" {
[[gnu::weak]] int omp_get_max_threads(void);
[[gnu::weak]] void omp_set_num_threads(int threads);
}

namespace blas {
namespace {

using dnnl::memory;

// Makes OpenMP's regions run on the calling thread alone. OpenMP keeps the number for each thread,
// and a thread may be one of the program that embeds Trine: so it gets its number back.
class CallingThreadOnly {
 public:
  CallingThreadOnly() {
    if (omp_set_num_threads == nullptr) return;
    before_ = omp_get_max_threads();
    omp_set_num_threads(1);
  }
  ~CallingThreadOnly() {
    if (omp_set_num_threads != nullptr) omp_set_num_threads(before_);
  }
  CallingThreadOnly(const CallingThreadOnly&) = delete;
  CallingThreadOnly& operator=(const CallingThreadOnly&) = delete;

 private:
  int before_ = 1;
};

memory::desc Matrix(memory::data_type type, int64_t rows, int64_t columns, memory::dims strides) {
  return {{rows, columns}, type, std::move(strides)};
}

// A product of bf16 whose sizes are known when it runs. Making a primitive for each size would
// compile code for each length of a prompt.
dnnl::matmul::primitive_desc DescribeBf16Product(const dnnl::engine& engine) {
  constexpr int64_t kLater = DNNL_RUNTIME_DIM_VAL;
  const memory::desc x = Matrix(memory::data_type::bf16, kLater, kLater, {kLater, 1});
  const memory::desc w = Matrix(memory::data_type::bf16, kLater, kLater, {1, kLater});
  const memory::desc y = Matrix(memory::data_type::f32, kLater, kLater, {kLater, 1});
  dnnl::post_ops add;
  add.append_sum(1.0f);
  dnnl::primitive_attr attributes;
  attributes.set_post_ops(add);
  // Scratch of the library's own may be that of the thread that makes the primitive.
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
#if DNNL_VERSION_MAJOR >= 3
  return {engine, x, w, y, attributes};
#else
  return {{x, w, y}, attributes, engine};
#endif
}

// Returns bits for the sets of instructions that oneDNN makes kernels of. Elsewhere than on x86-64
// it may have none but plain C++.
unsigned Instructions() {
#ifdef __x86_64__
  return static_cast<unsigned>(dnnl_get_effective_cpu_isa());
#else
  return 0;
#endif
}

// Returns whether a call can be kept on the calling thread: oneDNN was built with OpenMP's threads
// or without threads. CallingThreadOnly has no say over a thread pool or TBB.
bool KeepsCallingThread() {
  const unsigned runtime = dnnl_version()->cpu_runtime;
  return runtime == DNNL_RUNTIME_SEQ ||
         (runtime == DNNL_RUNTIME_OMP && omp_set_num_threads != nullptr);
}

class OneDnnLibrary : public Library {
 public:
  // Throws dnnl::error if there is no engine.
  OneDnnLibrary() : engine_(dnnl::engine::kind::cpu, 0) {
    // AVX512-BF16 alone multiplies at half the speed of floats.
    constexpr unsigned kNeeded = dnnl_cpu_isa_avx512_core_amx;
    if ((Instructions() & kNeeded) != kNeeded) return;
    const CallingThreadOnly guard;
    try {
      const dnnl::matmul::primitive_desc description = DescribeBf16Product(engine_);
      scratch_ = description.scratchpad_desc();
      bf16_product_ = dnnl::matmul(description);
    } catch (const dnnl::error&) {
      // This version of oneDNN has no such product.
    }
  }

  std::string Version() const override {
    const dnnl_version_t* v = dnnl_version();
    return "oneDNN " + std::to_string(v->major) + "." + std::to_string(v->minor) + "." +
           std::to_string(v->patch);
  }

  bool KnowsProcessor() const override { return Instructions() != 0; }

  bool HasBf16() const override { return static_cast<bool>(bf16_product_); }

  bool Add(const Operands<float>& p) const override {
    const CallingThreadOnly guard;
    return dnnl_sgemm('N', 'T', p.tokens, p.rows, p.depth, 1.0f, p.x, p.x_stride, p.w, p.w_stride,
                      1.0f, p.y, p.y_stride) == dnnl_success;
  }

  bool Add(const Operands<uint16_t>& p) const override {
    const CallingThreadOnly guard;
    try {
      const auto bf16 = memory::data_type::bf16, f32 = memory::data_type::f32;
      // oneDNN's memory is for reading and writing, but a product reads x and w alone.
      memory x(Matrix(bf16, p.tokens, p.depth, {p.x_stride, 1}), engine_,
               const_cast<uint16_t*>(p.x));
      memory w(Matrix(bf16, p.depth, p.rows, {1, p.w_stride}), engine_, const_cast<uint16_t*>(p.w));
      memory y(Matrix(f32, p.tokens, p.rows, {p.y_stride, 1}), engine_, p.y);
      memory scratch(scratch_, engine_);
      dnnl::stream stream(engine_);
      bf16_product_.execute(stream, {{DNNL_ARG_SRC, x},
                                     {DNNL_ARG_WEIGHTS, w},
                                     {DNNL_ARG_DST, y},
                                     {DNNL_ARG_SCRATCHPAD, scratch}});
      stream.wait();
      return true;
    } catch (const std::exception&) {
      return false;
    }
  }

 private:
  dnnl::engine engine_;
  memory::desc scratch_;       // of a call
  dnnl::matmul bf16_product_;  // empty: the processor has no AMX
};

// Returns null if oneDNN can't be used here.
std::unique_ptr<const Library> MakeLibrary() {
  if (!KeepsCallingThread()) return nullptr;
  try {
    return std::make_unique<OneDnnLibrary>();
  } catch (const std::exception&) {
    return nullptr;
  }
}

}  // namespace

const Library* OneDnn() {
  static const std::unique_ptr<const Library> library = MakeLibrary();
  return library.get();
}

}  // namespace blas
