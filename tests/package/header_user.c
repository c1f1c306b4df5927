/* A plugin's author who writes C: the header is all there is. */
#include <stdio.h>

#include "trine/backend.h"

const trine_plugin* trine_plugin_query(uint32_t host_abi_version) {
  (void)host_abi_version;
  return NULL;
}

int main(void) {
  printf("%u.%u\n", (unsigned)TRINE_ABI_MAJOR, (unsigned)TRINE_ABI_MINOR);
  return trine_plugin_query(TRINE_ABI_VERSION) != NULL;
}
