// A library that multiplies matrices: one with the functions of CBLAS, or oneDNN. A plugin is built
// with one or both, and this is what differs between them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace blas {

// The matrices of y = y + x * transposed(w). Rows are contiguous, and strides count elements from
// one row to the next. T is float, or uint16_t for the bits of a bf16.
template <class T>
struct Operands {
  int64_t rows, tokens, depth;
  const T* w;  // [rows][depth]
  int64_t w_stride;
  const T* x;  // [tokens][depth]
  int64_t x_stride;
  float* y;  // [tokens][rows]
  int64_t y_stride;
};

// Many threads may call a library at once. A call computes on the calling thread alone: the host
// has a team of threads already, and two teams on one processor would take turns.
class Library {
 public:
  virtual ~Library() = default;

  // Returns the library's name and version, with what it says of its build.
  virtual std::string Version() const = 0;
  // Returns the processor that the library has chosen kernels for, or "" if it does not tell.
  virtual std::string Processor() const { return ""; }
  // Returns whether the library has kernels for this processor, as far as it tells.
  virtual bool KnowsProcessor() const { return true; }
  // Returns whether products of bf16 are faster here than decoding to floats.
  virtual bool HasBf16() const { return false; }

  // Adds a product. Returns false if the library has failed.
  virtual bool Add(const Operands<float>& product) const = 0;
  virtual bool Add(const Operands<uint16_t>&) const { return false; }
};

// Return the library, or null if the plugin was built without it or can't use it here.
const Library* Cblas();
const Library* OneDnn();

// Returns the library that the option `library` names: "cblas" or "onednn", or "" for the one that
// is likely to be the fastest. Returns null if there is no such library, or the plugin was built
// without it or can't use it here.
const Library* ChooseLibrary(std::string_view name);

}  // namespace blas
