// Notes: what detection could not read or had to guess, as sentences for a person.
//
// Detection has no error path: whatever goes wrong becomes a note and a default value. A Notes
// belongs to the one call that fills it; it is plain data and needs no lock.

#ifndef TRINE_DETECT_NOTES_H_
#define TRINE_DETECT_NOTES_H_

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace trine::detect {

using Notes = std::vector<std::string>;

// A broken /sys can be wrong in thousands of places; nobody reads more than a page of that.
inline constexpr size_t kMaxNotes = 100;

inline void AddNote(Notes* notes, std::string note) {
  if (notes->size() < kMaxNotes) notes->push_back(std::move(note));
}

}  // namespace trine::detect

#endif  // TRINE_DETECT_NOTES_H_
