// The library that missing-library needs. Built, linked to, and deleted.
extern "C" __attribute__((visibility("default"))) int trine_fixture_absent() { return 1; }
