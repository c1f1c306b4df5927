// Single ops as plans of a device, held against the reference: what the self-test's cases run on.
#ifndef TRINE_BACKENDS_VULKAN_SELF_TEST_RUNNER_H_
#define TRINE_BACKENDS_VULKAN_SELF_TEST_RUNNER_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <vector>

#include "backends/vulkan/self_test.h"
#include "kernels/quant/test_util.h"
#include "kernels/reference/ops.h"
#include "trine/backend.h"

namespace trine::vulkan {

// A dense tensor in host memory.
struct TestTensor {
  TestTensor(quant::Type type, std::initializer_list<int64_t> dims) {
    view.type = type;
    std::copy(dims.begin(), dims.end(), view.dims);
    uint64_t row_bytes = 0;
    quant::RowBytes(type, view.dims[0], &row_bytes);
    view.strides[1] = static_cast<int64_t>(row_bytes);
    view.strides[2] = view.strides[1] * view.dims[1];
    view.strides[3] = view.strides[2] * view.dims[2];
    bytes.resize(static_cast<size_t>(view.strides[3] * view.dims[3]));
    view.data = bytes.data();
  }
  TestTensor(const TestTensor&) = delete;
  TestTensor& operator=(const TestTensor&) = delete;

  TestTensor& Floats(quant::Fill fill, quant::Random* random) {
    for (size_t i = 0; i < bytes.size() / sizeof(float); ++i) {
      reinterpret_cast<float*>(view.data)[i] = quant::FillValue(fill, random);
    }
    return *this;
  }
  TestTensor& Weights(quant::Random* random) {
    bytes = quant::RandomWeights(view.type, view.dims[0] * reference::Rows(view), false, random);
    view.data = bytes.data();
    return *this;
  }
  TestTensor& Ints(std::initializer_list<int32_t> values) {
    std::copy(values.begin(), values.end(), reinterpret_cast<int32_t*>(view.data));
    return *this;
  }

  // The device gets it in its own layout.
  TestTensor& Packed(bool yes) {
    packed = yes;
    return *this;
  }

  reference::View view;
  std::vector<std::byte> bytes;
  bool packed = false;
};

class SelfTestRunner {
 public:
  explicit SelfTestRunner(trine_device* device) : device_(device) {}

  // One op over tensors of its own, null where an input is left out; its outputs must be as
  // `reference` leaves them. The first failure stays, and nothing is run after it.
  template <class Attr>
  void Check(const char* name, uint32_t kind, const std::vector<const TestTensor*>& in,
             const std::vector<TestTensor*>& out, Attr attr,
             const std::function<void()>& reference) {
    attr.struct_size = sizeof(attr);
    CheckOp(name, kind, in, out, &attr, reference);
  }

  const SelfTestResult& result() const { return result_; }

 private:
  void CheckOp(const char* name, uint32_t kind, const std::vector<const TestTensor*>& in,
               const std::vector<TestTensor*>& out, const void* attr,
               const std::function<void()>& reference);
  trine_status Run(uint32_t kind, const std::vector<const TestTensor*>& in,
                   const std::vector<TestTensor*>& out, const void* attr, trine_error* err);
  trine_status RunGraph(const trine_graph& graph, const std::vector<trine_binding>& bindings,
                        size_t first_out, const std::vector<TestTensor*>& out, trine_error* err);

  trine_device* device_;
  SelfTestResult result_;
};

struct NoAttr {
  uint32_t struct_size;
};

}  // namespace trine::vulkan

#endif  // TRINE_BACKENDS_VULKAN_SELF_TEST_RUNNER_H_
