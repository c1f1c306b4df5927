// A packed type's number as a template argument.

#ifndef TRINE_KERNELS_CPU_WITH_PACKED_H_
#define TRINE_KERNELS_CPU_WITH_PACKED_H_

#include "kernels/cpu/packed_format.h"

namespace trine::cpu_kernels::TRINE_CPU_LEVEL {
namespace {

// Calls function.operator()<kType>() for a type that is packed; does nothing for another.
template <typename Function>
TRINE_INLINE void WithPackedType(Type type, Function function) {
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
    case Type::kIQ4_NL:
      return function.template operator()<Type::kIQ4_NL>();
    case Type::kMXFP4:
      return function.template operator()<Type::kMXFP4>();
    case Type::kQ4_K:
      return function.template operator()<Type::kQ4_K>();
    case Type::kQ5_K:
      return function.template operator()<Type::kQ5_K>();
    case Type::kQ6_K:
      return function.template operator()<Type::kQ6_K>();
    case Type::kIQ4_XS:
      return function.template operator()<Type::kIQ4_XS>();
    default:
      return;
  }
}

}  // namespace
}  // namespace trine::cpu_kernels::TRINE_CPU_LEVEL

#endif  // TRINE_KERNELS_CPU_WITH_PACKED_H_
