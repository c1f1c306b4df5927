// The CPU backend's table, for plugins that wrap it.
#pragma once

#include <dlfcn.h>

#include <cstdlib>

#include "trine/backend.h"

inline const trine_plugin& Cpu() {
  static const trine_plugin* table = [] {
    void* library = dlopen(TRINE_CPU_PLUGIN, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) std::abort();
    return reinterpret_cast<trine_plugin_query_fn>(dlsym(library, "trine_plugin_query"))(
        TRINE_ABI_VERSION);
  }();
  return *table;
}
