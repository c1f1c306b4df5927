// Crashes in a static constructor.
#include <csignal>

#include "tests/plugins/sound_backend.h"

[[gnu::constructor]] static void Crash() { std::raise(SIGSEGV); }
static void Keep(trine_plugin&) {}
TRINE_FIXTURE(Keep)
