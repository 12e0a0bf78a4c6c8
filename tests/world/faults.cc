#include "tests/world/faults.h"

namespace stoker::world {

namespace {

constexpr std::array<std::string_view, kFaultKinds> kFaultNames = {
    "kill",          "kill in change", "shut down",      "stop",
    "cut",           "trainer killed", "power cut",      "node lost",
    "node restart",  "disk broken",    "disk full",      "disk read-only",
    "bit rot",       "origin down",    "origin stalled", "origin throttled",
    "origin lies",   "key refused",    "grant",          "link cut",
    "link slow",     "link reset",     "link half-open", "wrong bytes",
    "peers refused", "leaf refused",   "group late",     "group lost",
    "group old"};

constexpr std::array<std::string_view, kSituations> kSituationNames = {
    "seeking",
    "following",
    "recovering",
    "leading",
    "shrinking",
    "borrowing",
    "retiring",
    "in a group"};

}  // namespace

std::string_view to_string(Fault fault) {
    return kFaultNames.at(static_cast<std::size_t>(fault));
}

std::string_view to_string(Situation situation) {
    return kSituationNames.at(static_cast<std::size_t>(situation));
}

}  // namespace stoker::world
