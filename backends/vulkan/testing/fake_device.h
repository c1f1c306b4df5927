// Opens a device of a FakeDriver.
#pragma once

#include <memory>

#include "backends/vulkan/device/device.h"
#include "backends/vulkan/testing/fake_driver.h"

namespace trine::vulkan::testing {

struct FakeDevice {
  explicit FakeDevice(const DeviceQuery& query) : driver({query}) {
    InstanceOptions options;
    options.allow_cpu = true;
    auto global = LoadGlobal(FakeDriver::Entry());
    auto made = Instance::Create(*global, options);
    instance = *std::move(made);
    auto opened = Device::Create(*instance, instance->devices()[0]);
    device = *std::move(opened);
    fixed = driver.live;
  }
  // Returns how many objects were made since the device was opened and have not been destroyed.
  int live() const { return driver.live - fixed; }

  FakeDriver driver;
  std::unique_ptr<Instance> instance;
  std::unique_ptr<Device> device;
  int fixed = 0;
};

}  // namespace trine::vulkan::testing
