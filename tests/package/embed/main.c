#include <stdio.h>

#include "trine/trine.h"

int main(void) {
  printf("%s\n", trine_version());
  return 0;
}
