// The table of the CPU backend, for plugins that are the CPU with something else in front of it.
#ifndef TRINE_TESTS_PLUGINS_CPU_TABLE_H_
#define TRINE_TESTS_PLUGINS_CPU_TABLE_H_

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

#endif  // TRINE_TESTS_PLUGINS_CPU_TABLE_H_
