#include "common/domain/residency_word.h"

#include <gtest/gtest.h>

namespace stoker::domain {
namespace {

TEST(ResidencyWord, ZeroMeansAbsent) {
    EXPECT_EQ(unpack_residency(0), std::nullopt);
    EXPECT_EQ(pack_residency(Residency{}), 0U);
}

TEST(ResidencyWord, FieldsDoNotOverlapAtTheirLimits) {
    for (const auto segment_class : {SegmentClass::kResident, SegmentClass::kWindow}) {
        for (const std::uint32_t segment : {0U, 1U, UINT32_MAX}) {
            for (const std::uint64_t offset :
                 {std::uint64_t{0}, kRecordAlignment, kSegmentBytesMax - 64}) {
                const Residency where{segment_class, SegmentSeq{segment}, offset};
                EXPECT_EQ(unpack_residency(pack_residency(where)), where);
            }
        }
    }
}

TEST(ResidencyWord, UnknownClassIsAMiss) {
    EXPECT_EQ(unpack_residency(3ULL << 62U), std::nullopt);
    EXPECT_EQ(unpack_residency(1ULL << 40U), std::nullopt);
}

}  // namespace
}  // namespace stoker::domain
