// Says what is wrong with the value of an option, in sentences of one form: the value, and what is
// allowed. The parser puts the option's name before them: "--threads: 'x' is no whole number from 0
// to 1024".
#pragma once

#include <string>
#include <vector>

namespace trine {

// Each function returns "" for a value that is right.

// Checks a number. T: int, int64_t, uint32_t, uint64_t, float or double.
template <typename T>
std::string WrongNumber(const std::string& text);
// Checks a number that must not be outside of [low, high].
template <typename T>
std::string WrongNumber(const std::string& text, T low, T high);

// Checks a word that must be one of a few.
std::string WrongWord(const std::string& text, const std::vector<std::string>& choices);

// Reads a number of bytes, such as 512M, and writes it to `text` without a unit.
std::string WrongSize(std::string* text);

// Says that the value given to a flag is neither true nor false.
std::string WrongFlag(const std::string& text);

// Says that a value is not what is expected: "'x' is no number of layers", or "it is empty:
// expected a number of layers".
std::string IsNo(const std::string& text, const std::string& expected,
                 const std::string& article = "a");

}  // namespace trine
