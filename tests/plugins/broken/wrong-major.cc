// Was built for another major version and ignores the host's.
#include "tests/plugins/sound_backend.h"

extern "C" const trine_plugin* trine_plugin_query(uint32_t) {
  static const trine_plugin table = [] {
    trine_plugin t = sound::Table();
    t.abi_version = 7u << 16;
    return t;
  }();
  return &table;
}
