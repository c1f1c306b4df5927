// How the matrix products use a device: a pure function of what it can do.
#ifndef TRINE_BACKENDS_VULKAN_PRODUCT_TUNING_H_
#define TRINE_BACKENDS_VULKAN_PRODUCT_TUNING_H_

#include "backends/vulkan/tuning.h"
#include "kernels/vulkan/products.h"

namespace trine::vulkan {

ProductTuning ChooseProductTuning(const DeviceCaps& caps, const Tuning& tuning);

}  // namespace trine::vulkan

#endif  // TRINE_BACKENDS_VULKAN_PRODUCT_TUNING_H_
