// Strict readers for the small text formats of /proc and /sys.
//
// Every parser takes the whole text or nothing. It returns nullopt for an empty text, trailing
// junk, a sign or an overflow, so that a garbage file is never mistaken for a number. All functions
// are pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace trine::detect {

// Processor numbers at or above this are treated as garbage. Linux builds stop at 8192.
inline constexpr int kMaxCpus = 65536;

// Removes leading and trailing blanks, line ends and NULs (device-tree strings end in one).
std::string_view Trim(std::string_view text);

// Returns the pieces between separators, not trimmed. Leaves out empty pieces.
std::vector<std::string_view> Split(std::string_view text, char separator);

// Returns the words of `text`, which blanks separate.
std::vector<std::string_view> Words(std::string_view text);

// Parses a decimal number.
std::optional<uint64_t> ParseU64(std::string_view text);

// Parses a hexadecimal number with or without "0x".
std::optional<uint64_t> ParseHex(std::string_view text);

// Parses a decimal number with an optional K, M or G, as in sysfs cache sizes: "32K" is 32768.
std::optional<uint64_t> ParseBytes(std::string_view text);

// Parses "0-3,8,10-11" into ascending numbers without repeats. Accepts an empty list, because an
// offline node has no processors. Refuses a number of kMaxCpus or more, and a range that runs
// backwards.
std::optional<std::vector<int>> ParseCpuList(std::string_view text);

// Returns the value of a "Key:   123 kB" line of /proc/meminfo or a file of the same format, in
// bytes. `key` is the text before the colon; a "Node 0 " prefix (per-node files) is skipped.
std::optional<uint64_t> FindKibibytes(std::string_view text, std::string_view key);

// Returns the number after `key` at the start of a line ("inactive_file 4096").
std::optional<uint64_t> FindNumber(std::string_view text, std::string_view key);

// Trims `text`, cuts it to `max` characters and replaces everything but printable ASCII by '?'. All
// text from files passes through this before it reaches a report, because reports are valid UTF-8.
std::string CleanText(std::string_view text, size_t max = 128);

// Returns "4.0 GiB" or "512.0 MiB": GiB from 1 GiB on, MiB below.
std::string FormatBytes(uint64_t bytes);

}  // namespace trine::detect
