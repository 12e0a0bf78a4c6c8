#pragma once

// Expected figures of SHADE (FAST 2023), from an independent simulation. Law T5 checks them
// (docs/reference/simulate.md).
namespace stoker::simulate {

// With a share `w` of the samples cached: hit ratio, and share of the samples that an epoch reads.
struct ReplicationFigures {
    double w;
    double replication;
    double hits;
    double coverage;
};

inline constexpr ReplicationFigures kReplication[] = {
    {.1, 1, .18, .62},
    {.1, 2, .30, .57},
    {.1, 3, .42, .51},
    {.2, 1, .33, .62},
    {.2, 2, .55, .51},
    {.2, 3, .85, .29},
    {.3, 1, .45, .62},
    {.3, 2, .81, .40},
    {.3, 3, 1.0, .22},
    {.5, 1, .66, .62},
    {.5, 2, 1.0, .36},
    {.5, 3, 1.0, .34},
};

}  // namespace stoker::simulate
