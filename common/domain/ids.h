#pragma once

#include <cstdint>
#include <string>

#include "common/base/strong.h"

// The terms of docs/reference/glossary.md as types.
namespace stoker::domain {

// Dense ids 0..N-1 within one revision of a dataset, in the bytewise order of the keys.
using SampleId = Strong<std::uint64_t, struct SampleIdTag>;

// A sample id in 32 bits, for large plans and tables: a manifest has fewer than 2^32 samples.
using SampleIndex = std::uint32_t;

// Number of one segment file in a node directory. Never reused there, so it identifies the bytes.
using SegmentSeq = Strong<std::uint32_t, struct SegmentSeqTag>;

// Identifies one immutable listing of a dataset: a digest over every key, size and ETag. Written as
// sixteen hex digits in file names.
using RevisionId = Strong<std::uint64_t, struct RevisionIdTag>;

std::string to_string(RevisionId revision);

}  // namespace stoker::domain
