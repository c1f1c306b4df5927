// Strict readers for the small text formats of /proc and /sys.
//
// Every parser takes the whole text or nothing: an empty text, trailing junk, a sign or an overflow
// gives no value, so that a garbage file is never mistaken for a number. All functions are pure.

#ifndef TRINE_DETECT_TEXT_H_
#define TRINE_DETECT_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace trine::detect {

// Processor numbers at or above this are taken for garbage. Linux builds stop at 8192.
inline constexpr int kMaxCpus = 65536;

// Without leading and trailing blanks, line ends and NULs (device-tree strings end in one).
std::string_view Trim(std::string_view text);

// The pieces between separators, untrimmed; empty pieces are left out.
std::vector<std::string_view> Split(std::string_view text, char separator);

// Blank-separated words.
std::vector<std::string_view> Words(std::string_view text);

// Decimal.
std::optional<uint64_t> ParseU64(std::string_view text);

// Hexadecimal with or without "0x".
std::optional<uint64_t> ParseHex(std::string_view text);

// A decimal number with an optional K, M or G, as the cache sizes of sysfs: "32K" is 32768.
std::optional<uint64_t> ParseBytes(std::string_view text);

// "0-3,8,10-11" in ascending order without repeats. An empty list is a value (an offline node has
// no processors); a number of kMaxCpus or more, or a range that runs backwards, is not.
std::optional<std::vector<int>> ParseCpuList(std::string_view text);

// The value of a "Key:   123 kB" line of /proc/meminfo and its relatives, in bytes. `key` is the
// text before the colon; in per-node files a "Node 0 " prefix is skipped.
std::optional<uint64_t> FindKibibytes(std::string_view text, std::string_view key);

// The number after "key" at the start of a line ("inactive_file 4096").
std::optional<uint64_t> FindNumber(std::string_view text, std::string_view key);

// Trimmed, at most `max` characters, everything but printable ASCII replaced by '?'. Text that came
// from a file passes through this before it reaches a report: reports are valid UTF-8.
std::string CleanText(std::string_view text, size_t max = 128);

// "4.0 GiB", "512.0 MiB".
std::string FormatBytes(uint64_t bytes);

}  // namespace trine::detect

#endif  // TRINE_DETECT_TEXT_H_
