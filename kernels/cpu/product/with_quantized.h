// Turns a quantised type into a template argument.

#pragma once

#include "kernels/cpu/product/unpack.h"

namespace trine::cpu_kernels::TRINE_CPU_LEVEL {
namespace {

// Calls function.operator()<kType>() for a type of quantised weights; does nothing for another.
template <typename Function>
TRINE_INLINE void WithQuantizedType(Type type, Function function) {
  switch (type) {
    case Type::kQ4_0:
      return function.template operator()<Type::kQ4_0>();
    case Type::kQ4_1:
      return function.template operator()<Type::kQ4_1>();
    case Type::kQ5_0:
      return function.template operator()<Type::kQ5_0>();
    case Type::kQ5_1:
      return function.template operator()<Type::kQ5_1>();
    case Type::kQ8_0:
      return function.template operator()<Type::kQ8_0>();
    case Type::kQ2_K:
      return function.template operator()<Type::kQ2_K>();
    case Type::kQ3_K:
      return function.template operator()<Type::kQ3_K>();
    case Type::kQ4_K:
      return function.template operator()<Type::kQ4_K>();
    case Type::kQ5_K:
      return function.template operator()<Type::kQ5_K>();
    case Type::kQ6_K:
      return function.template operator()<Type::kQ6_K>();
    case Type::kIQ4_NL:
      return function.template operator()<Type::kIQ4_NL>();
    case Type::kIQ4_XS:
      return function.template operator()<Type::kIQ4_XS>();
    case Type::kTQ1_0:
      return function.template operator()<Type::kTQ1_0>();
    case Type::kTQ2_0:
      return function.template operator()<Type::kTQ2_0>();
    case Type::kMXFP4:
      return function.template operator()<Type::kMXFP4>();
    case Type::kF32:
    case Type::kF16:
    case Type::kBF16:
    case Type::kI32:
    case Type::kQ8_KV:
      return;
  }
}

}  // namespace
}  // namespace trine::cpu_kernels::TRINE_CPU_LEVEL
