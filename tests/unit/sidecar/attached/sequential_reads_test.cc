#include "sidecar/attached/sequential_reads.h"

#include <gtest/gtest.h>

namespace stoker::attached {
namespace {

// Samples 7 to 11.
const domain::StoredObject kObject{domain::SampleId{7}, 5, 50, 10, "a", "e"};

std::optional<domain::SampleId> id(std::uint64_t number) {
    return domain::SampleId{number};
}

TEST(SequentialReads, TheThirdConsecutiveRangeRequestsTheNextBlock) {
    SequentialReads reads;
    EXPECT_EQ(reads.note(kObject, 0, 4), std::nullopt);
    EXPECT_EQ(reads.note(kObject, 4, 4), std::nullopt);
    EXPECT_EQ(reads.note(kObject, 8, 4), id(9));
    EXPECT_EQ(reads.note(kObject, 12, 4), std::nullopt) << "asked before";
    EXPECT_EQ(reads.note(kObject, 16, 4), std::nullopt) << "asked before";
    EXPECT_EQ(reads.note(kObject, 20, 10), id(10));
}

TEST(SequentialReads, RequestsNothingBehindTheLastBlock) {
    SequentialReads reads;
    reads.note(kObject, 20, 10);
    reads.note(kObject, 30, 9);
    EXPECT_EQ(reads.note(kObject, 39, 1), id(11));
    EXPECT_EQ(reads.note(kObject, 40, 5), std::nullopt);
}

TEST(SequentialReads, RangesWithGapsAreNotConsecutive) {
    SequentialReads reads;
    for (std::uint64_t offset = 0; offset < 40; offset += 5) {
        EXPECT_EQ(reads.note(kObject, offset, 4), std::nullopt);
    }
}

TEST(SequentialReads, RecognizesInterleavedSequentialReads) {
    SequentialReads reads;
    domain::StoredObject other = kObject;
    other.first = domain::SampleId{100};
    for (std::uint64_t offset = 0; offset < 8; offset += 4) {
        EXPECT_EQ(reads.note(kObject, offset, 4), std::nullopt);
        EXPECT_EQ(reads.note(other, offset, 4), std::nullopt);
        EXPECT_EQ(reads.note(kObject, 30 + offset, 4), std::nullopt);
    }
    EXPECT_EQ(reads.note(kObject, 8, 4), id(9));
    EXPECT_EQ(reads.note(other, 8, 4), id(102));
    EXPECT_EQ(reads.note(kObject, 38, 1), id(11));
}

TEST(SequentialReads, ForgetsTheOldestReadPositions) {
    SequentialReads reads{2};
    reads.note(kObject, 0, 4);
    reads.note(kObject, 4, 4);
    reads.note(kObject, 20, 1);
    reads.note(kObject, 30, 1);
    EXPECT_EQ(reads.note(kObject, 8, 4), std::nullopt);
}

}  // namespace
}  // namespace stoker::attached
