// Was built for ABI 0.12, and gives its table only to hosts of that major.
#include "tests/plugins/sound_backend.h"

extern "C" const trine_plugin* trine_plugin_query(uint32_t host_abi_version) {
  static const trine_plugin table = [] {
    trine_plugin t = sound::Table();
    t.abi_version = 12;
    return t;
  }();
  return host_abi_version >> 16 == 0 ? &table : nullptr;
}
