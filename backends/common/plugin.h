// Holds the parts that all plugins share: the table, timelines, texts.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>

#include "trine/backend_sdk.h"

struct trine_timeline : trine::sdk::Timeline {
  using Timeline::Timeline;
};

namespace trine::backends {

using Timelines = sdk::TimelineCalls<trine_timeline>;
inline sdk::Timeline& TimelineOf(trine_timeline* timeline) { return *timeline; }

// The type of a function of the plugin's table.
template <auto kMember>
using Call =
    std::remove_pointer_t<std::remove_cvref_t<decltype(std::declval<trine_plugin>().*kMember)>>;

// Makes a plugin's table from structs that hold its functions.
template <class Open, class Buffers, class Plans, class Layouts>
constexpr trine_plugin TableOf(const char* name, const char* version) {
  return {
      .struct_size = sizeof(trine_plugin),
      .abi_version = TRINE_ABI_VERSION,
      .numerics_version = TRINE_NUMERICS_VERSION,
      .sanitizer = TRINE_SANITIZER_HERE,
      .name = name,
      .version = version,
      .open = Open::Open,
      .close = Open::Close,
      .device_count = Open::DeviceCount,
      .device_info = Open::DeviceInfo,
      .device_open = Open::DeviceOpen,
      .device_close = Open::DeviceClose,
      .buffer_alloc = Buffers::Alloc,
      .buffer_free = Buffers::Free,
      .buffer_write = Buffers::Write,
      .buffer_read = Buffers::Read,
      .copy_run = Buffers::Copy,
      .op_query = Plans::QueryOp,
      .plan_query = Plans::Query,
      .plan_create = Plans::Create,
      .plan_run = Plans::Run,
      .plan_destroy = Plans::Destroy,
      .timeline_create = Timelines::Create,
      .timeline_destroy = Timelines::Destroy,
      .timeline_signal = Timelines::Signal,
      .timeline_fail = Timelines::SetFailed,
      .timeline_wait = Timelines::Wait,
      .timeline_query = Timelines::Query,
      .buffer_host_ptr = Buffers::HostPtr,
      .buffer_import = Buffers::Import,
      .layout_list = Layouts::List,
      .layout_convert = Layouts::Convert,
  };
}

// Sets a text of an ABI struct to as many whole UTF-8 characters as fit, and a terminating 0.
template <size_t N>
void SetText(char (&field)[N], const std::string& text) {
  size_t n = std::min(text.size(), N - 1);
  const auto goes_on = [](char c) { return (static_cast<uint8_t>(c) & 0xc0) == 0x80; };
  if (n < text.size()) {
    while (n > 0 && goes_on(text[n])) --n;
  }
  std::memcpy(field, text.data(), n);
  field[n] = 0;
}

}  // namespace trine::backends
