#include "sidecar/origin/chunk_reads.h"

#include <algorithm>
#include <set>

#include <gmock/gmock.h>

#include "common/base/prng.h"
#include "tests/support/test_seed.h"

namespace stoker::sidecar {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;

const ChunkObject kChunk{"3", "e", 100'000};
const ChunkObject kOther{"4", "f", 100'000};

std::vector<std::uint64_t> tickets(const std::optional<ChunkRead>& read) {
    std::vector<std::uint64_t> found;
    for (const ChunkPart& part : read.value().parts) {
        found.push_back(part.ticket);
    }
    return found;
}

TEST(ChunkReads, ReadsNeighboursWithOneRequest) {
    ChunkReads reads{{}};
    reads.add(kChunk, {300, 100, 3});
    reads.add(kChunk, {100, 100, 1});
    reads.add(kChunk, {200, 100, 2});
    const auto read = reads.next(0);
    EXPECT_THAT(tickets(read), ElementsAre(1, 2, 3));
    EXPECT_EQ(read->chunk, kChunk);
    EXPECT_EQ(read->offset, 100U);
    EXPECT_EQ(read->size_bytes, 300U);
    EXPECT_EQ(reads.next(0), std::nullopt);
}

TEST(ChunkReads, LongerGapNeedsAnotherRequest) {
    ChunkReads reads{{}};
    reads.add(kChunk, {100, 100, 1});
    reads.add(kChunk, {250, 100, 2});
    reads.add(kChunk, {401, 100, 3});
    EXPECT_THAT(tickets(reads.next(50)), ElementsAre(1, 2));
    EXPECT_THAT(tickets(reads.next(50)), ElementsAre(3));
}

TEST(ChunkReads, GapsOfARequestAddUpToAtMostTheBytesOfItsSamples) {
    ChunkReads reads{{}};
    for (std::uint64_t i = 0; i < 4; ++i) {
        reads.add(kChunk, {100 + 250 * i, 100, i});
    }
    EXPECT_THAT(tickets(reads.next(1000)), ElementsAre(0, 1, 2)) << "450 for 400 is too much";
    EXPECT_THAT(tickets(reads.next(1000)), ElementsAre(3));
}

TEST(ChunkReads, WaitingPartsOfAChunkAreJoined) {
    ChunkReads reads{{.reads_max = 1}};
    reads.add(kChunk, {100, 100, 1});
    EXPECT_THAT(tickets(reads.next(0)), ElementsAre(1));
    reads.add(kOther, {100, 100, 2});
    reads.add(kChunk, {200, 100, 3});
    reads.add(kOther, {200, 100, 4});
    EXPECT_EQ(reads.next(0), std::nullopt) << "no slot";
    reads.end();
    EXPECT_THAT(tickets(reads.next(0)), ElementsAre(2, 4)) << "the chunk that waits longest";
    reads.end();
    EXPECT_THAT(tickets(reads.next(0)), ElementsAre(3));
}

TEST(ChunkReads, ChunkOfAnotherETagIsAnotherChunk) {
    ChunkReads reads{{}};
    reads.add(kChunk, {100, 100, 1});
    reads.add({"3", "changed", 100'000}, {200, 100, 2});
    EXPECT_THAT(tickets(reads.next(0)), ElementsAre(1));
    EXPECT_THAT(tickets(reads.next(0)), ElementsAre(2));
}

TEST(ChunkReads, LongReadIsCut) {
    ChunkReads reads{{.read_bytes_max = 250}};
    for (std::uint64_t i = 0; i < 3; ++i) {
        reads.add(kChunk, {100 + 100 * i, 100, i});
    }
    reads.add(kChunk, {400, 300, 3});
    EXPECT_THAT(tickets(reads.next(0)), ElementsAre(0, 1));
    EXPECT_THAT(tickets(reads.next(0)), ElementsAre(2));
    EXPECT_THAT(tickets(reads.next(0)), ElementsAre(3)) << "a part is never cut";
}

// Parts may overlap or be equal: the part of an empty sample is the byte before it.
TEST(ChunkReads, EveryPartIsInOneReadThatHasItsBytes) {
    Prng prng{test::seed()};
    for (int round = 0; round < 300; ++round) {
        ChunkReads reads{
            {.reads_max = static_cast<std::uint32_t>(1 + prng.below(4)),
             .read_bytes_max = 1 + prng.below(3000)}};
        std::uint64_t added = 0;
        std::set<std::uint64_t> read_parts;
        for (int step = 0; step < 2000; ++step) {
            const std::uint64_t dice = prng.below(3);
            if (dice == 0 && added < 60) {
                const ChunkObject chunk{std::to_string(prng.below(3)), "e", 5000};
                reads.add(chunk, {prng.below(4000), 1 + prng.below(300), added++});
            } else if (dice == 1 && reads.running() > 0) {
                reads.end();
            } else if (const auto read = reads.next(prng.below(400))) {
                std::uint64_t wanted = 0;
                for (const ChunkPart& part : read->parts) {
                    EXPECT_TRUE(read_parts.insert(part.ticket).second) << "read twice";
                    EXPECT_GE(part.offset, read->offset);
                    EXPECT_LE(part.offset + part.size_bytes, read->offset + read->size_bytes);
                    wanted += part.size_bytes;
                }
                EXPECT_LE(read->size_bytes, 2 * wanted);
            }
        }
        EXPECT_EQ(read_parts.size(), 60U);
    }
}

TEST(GapLimit, IsTheBytesReceivedInTheTimeToFirstByte) {
    GapLimit gaps;
    EXPECT_EQ(gaps.bytes(), 0U);
    for (int i = 0; i < 50; ++i) {
        gaps.note(milliseconds{2}, milliseconds{12}, 1'000'000);  // 100 MB/s
    }
    EXPECT_NEAR(static_cast<double>(gaps.bytes()), 200'000, 2'000);
    for (int i = 0; i < 50; ++i) {
        gaps.note(milliseconds{1}, milliseconds{101}, 1'000'000);  // 10 MB/s
    }
    EXPECT_NEAR(static_cast<double>(gaps.bytes()), 10'000, 200);
}

TEST(GapLimit, IsBounded) {
    GapLimit gaps;
    gaps.note(milliseconds{50}, milliseconds{50}, 4096);
    EXPECT_EQ(gaps.bytes(), GapLimit::kGapBytesMax);
}

}  // namespace
}  // namespace stoker::sidecar
