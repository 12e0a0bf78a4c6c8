#include "client/src/core/node_reader.h"

#include <filesystem>
#include <fstream>

#include <fcntl.h>
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/base/prng.h"
#include "common/base/unique_fd.h"
#include "common/domain/residency_word.h"
#include "tests/support/child.h"
#include "tests/support/node_directory.h"
#include "tests/support/temp_folder.h"
#include "tests/support/test_seed.h"

namespace stoker::client {
namespace {

using domain::SampleId;
using domain::SegmentSeq;

constexpr std::uint64_t kSamples = 40;
constexpr std::uint64_t kSegmentBytes = 4096;

std::uint64_t size_of(std::uint64_t id) {
    return 1 + id * 37 % 900;
}

std::vector<std::byte> payload_of(std::uint64_t id) {
    std::vector<std::byte> payload(size_of(id));
    Prng prng{id + 1};
    for (auto& byte : payload) {
        byte = static_cast<std::byte>(prng());
    }
    return payload;
}

std::vector<domain::ListedObject> objects() {
    std::vector<domain::ListedObject> out;
    for (std::uint64_t id = 0; id < kSamples; ++id) {
        out.push_back({fmt::format("c/{:03}", id), size_of(id), "etag"});
    }
    return out;
}

class NodeReaderTest : public testing::Test {
protected:
    NodeReaderTest()
        : node_(folder_.path(), objects()) {}

    std::unique_ptr<NodeReader> open(NodeReaderOptions options = {}) {
        options.directory = folder_.path();
        options.revision = node_.revision();
        return NodeReader::open(std::move(options)).value();
    }

    // One segment per sample, so that segment and sample numbers match.
    SegmentSeq store(std::uint64_t id) {
        const auto seq = node_.start_segment(kSegmentBytes);
        places_[id] = node_.put(SampleId{id}, payload_of(id));
        return seq;
    }

    void store_all() {
        for (std::uint64_t id = 0; id < kSamples; ++id) {
            store(id);
        }
    }

    // Flips one bit of a stored record, `at` bytes from its beginning.
    void damage(std::uint64_t id, std::uint64_t at) {
        const auto& where = places_.at(id);
        std::fstream file{
            node_.segment_path(where.segment), std::ios::in | std::ios::out | std::ios::binary};
        file.seekg(static_cast<std::streamoff>(where.record_offset + at));
        const auto byte = static_cast<char>(file.get() ^ 1);
        file.seekp(static_cast<std::streamoff>(where.record_offset + at));
        file.put(byte);
    }

    // Whether the reader still maps the view's segment. Only valid if no other view shares the map.
    static bool is_mapped(const SampleView& view) { return view.pin.use_count() > 1; }

    static bool serves(NodeReader& reader, std::uint64_t id) {
        const auto view = reader.read(SampleId{id});
        return view && std::ranges::equal(view->bytes, payload_of(id));
    }

    test::TempFolder folder_;
    test::NodeDirectory node_;
    std::map<std::uint64_t, domain::Residency> places_;
};

TEST_F(NodeReaderTest, ServesSamplesOfTheTable) {
    store_all();
    const auto reader = open();
    for (std::uint64_t id = 0; id < kSamples; ++id) {
        EXPECT_TRUE(serves(*reader, id)) << id;
    }
    EXPECT_EQ(reader->counts().hits, kSamples);
}

TEST_F(NodeReaderTest, AnAbsentSampleMissesUntilItIsPublished) {
    const auto reader = open();
    EXPECT_FALSE(reader->read(SampleId{3}).has_value());
    store(3);
    EXPECT_TRUE(serves(*reader, 3));
    EXPECT_EQ(reader->counts().hits, 1U);
}

TEST_F(NodeReaderTest, AViewOutlivesEvictionAndTheReader) {
    const auto seq = store(3);
    auto reader = open();
    const auto view = reader->read(SampleId{3});
    node_.set_word(SampleId{3}, 0);
    node_.unlink_segment(seq);
    EXPECT_FALSE(reader->read(SampleId{3}).has_value());
    reader.reset();
    EXPECT_TRUE(std::ranges::equal(view->bytes, payload_of(3)));
}

TEST_F(NodeReaderTest, AResidencyWordOfAnUnlinkedSegmentIsAMiss) {
    node_.unlink_segment(store(3));
    EXPECT_FALSE(open()->read(SampleId{3}).has_value());
}

TEST_F(NodeReaderTest, NeverServesADamagedSample) {
    for (const std::uint64_t at : {0U, 5U, 9U, 17U, 25U, 63U, 64U, 70U}) {
        store(3);
        damage(3, at);
        const auto reader = open();
        EXPECT_FALSE(reader->read(SampleId{3}).has_value()) << "bit flipped at " << at;
        EXPECT_EQ(reader->counts().corrupt, 1U);
    }
}

TEST_F(NodeReaderTest, AResidencyWordOfAnotherSamplesRecordIsAMiss) {
    store(4);
    node_.set_word(SampleId{3}, domain::pack_residency(places_.at(4)));
    const auto reader = open();
    EXPECT_FALSE(reader->read(SampleId{3}).has_value());
    EXPECT_EQ(reader->counts().corrupt, 1U);
}

TEST_F(NodeReaderTest, RandomResidencyWordsNeverCauseWrongReads) {
    store_all();
    const auto reader = open();
    Prng prng{20261121};
    for (int round = 0; round < 5000; ++round) {
        const SampleId id{prng.below(kSamples)};
        auto where = places_.at(id.value());
        where.segment = SegmentSeq{static_cast<std::uint32_t>(prng.below(kSamples + 5))};
        where.record_offset = prng.below(80) * domain::kRecordAlignment;
        node_.set_word(id, prng.below(4) == 0 ? prng() : domain::pack_residency(where));
        if (const auto view = reader->read(id)) {
            EXPECT_TRUE(std::ranges::equal(view->bytes, payload_of(id.value())));
        }
    }
}

TEST_F(NodeReaderTest, VerifiesEachCopyOnlyAtTheFirstTouch) {
    store(3);
    const auto reader = open();
    EXPECT_TRUE(serves(*reader, 3));
    damage(3, 64);
    EXPECT_TRUE(reader->read(SampleId{3}).has_value()) << "this process has verified this copy";
    store(3);
    damage(3, 64);
    EXPECT_FALSE(reader->read(SampleId{3}).has_value()) << "another copy is looked at again";
}

TEST_F(NodeReaderTest, VerifyAlwaysChecksEveryReadAndVerifyNeverChecksNone) {
    store(3);
    const auto always = open({.verify = Verify::kAlways});
    const auto never = open({.verify = Verify::kNever});
    EXPECT_TRUE(serves(*always, 3));
    damage(3, 64);
    EXPECT_FALSE(always->read(SampleId{3}).has_value());
    EXPECT_TRUE(never->read(SampleId{3}).has_value());
    damage(3, 9);
    EXPECT_FALSE(open({.verify = Verify::kNever})->read(SampleId{3}).has_value())
        << "the record's own header is always looked at once";
}

TEST_F(NodeReaderTest, ATruncatedSegmentIsAMiss) {
    store(38);
    const auto reader = open();
    ASSERT_TRUE(serves(*open(), 38));
    std::filesystem::resize_file(node_.segment_path(places_.at(38).segment), 100);
    EXPECT_FALSE(reader->read(SampleId{38}).has_value());
}

TEST_F(NodeReaderTest, ATableTruncatedUnderItsMapGivesMisses) {
    const auto path = folder_.path() + "/residency." + domain::to_string(node_.revision());
    store(3);
    const auto reader = open();
    ASSERT_TRUE(serves(*reader, 3));
    std::filesystem::resize_file(path, 0);
    for (std::uint64_t id = 0; id < kSamples; ++id) {
        EXPECT_FALSE(reader->read(SampleId{id}).has_value());
        EXPECT_FALSE(reader->is_resident(SampleId{id}));
    }
    EXPECT_EQ(reader->refresh().error().code, ErrorCode::kCorruption);
    std::filesystem::remove(path);
    node_.replace_residency_table();
    store(4);
    ASSERT_TRUE(reader->refresh().has_value());
    EXPECT_TRUE(serves(*reader, 4));
}

TEST_F(NodeReaderTest, ReadsARestoredTableAgain) {
    const auto path = folder_.path() + "/residency." + domain::to_string(node_.revision());
    store(3);
    const auto reader = open();
    std::filesystem::copy_file(path, path + ".copy");
    std::filesystem::resize_file(path, 0);
    EXPECT_FALSE(reader->read(SampleId{3}).has_value());
    std::filesystem::copy_file(
        path + ".copy", path, std::filesystem::copy_options::overwrite_existing);
    ASSERT_TRUE(reader->refresh().has_value());
    EXPECT_TRUE(serves(*reader, 3));
}

TEST_F(NodeReaderTest, AGuestsViewIsACopyAndEachOfItsReadsIsVerified) {
    store(3);
    store(38);
    const auto reader = open({.guest = true});
    const auto view = reader->read(SampleId{38});
    ASSERT_TRUE(view.has_value());
    std::filesystem::resize_file(node_.segment_path(places_.at(38).segment), 100);
    EXPECT_TRUE(std::ranges::equal(view->bytes, payload_of(38)));
    EXPECT_FALSE(reader->read(SampleId{38}).has_value()) << "cut after it was verified once";
    EXPECT_EQ(reader->counts().corrupt, 1U);
    ASSERT_TRUE(serves(*reader, 3));
    damage(3, domain::kRecordHeaderBytes + 5);
    EXPECT_FALSE(reader->read(SampleId{3}).has_value()) << "changed after it was verified once";
}

TEST_F(NodeReaderTest, AGuestsManifestIsACopy) {
    const auto path = folder_.path() + "/manifest." + domain::to_string(node_.revision());
    store(3);
    const auto reader = open({.guest = true});
    std::filesystem::resize_file(path, 0);
    EXPECT_EQ(reader->manifest().sample(SampleId{7}).key, "c/007");
    EXPECT_TRUE(serves(*reader, 3));
}

TEST_F(NodeReaderTest, KeepsAtMostFourSegmentMapsAndTheViewsOfClosedOnesReadable) {
    store_all();
    const auto reader = open({.segment_maps_max = 4});
    std::vector<SampleView> views;
    for (std::uint64_t id = 0; id < kSamples; ++id) {
        views.push_back(reader->read(SampleId{id}).value());
        EXPECT_EQ(std::ranges::count_if(views, is_mapped), std::min<std::uint64_t>(id + 1, 4));
    }
    for (std::uint64_t id = 0; id < kSamples; ++id) {
        EXPECT_TRUE(std::ranges::equal(views[id].bytes, payload_of(id)));
    }
}

TEST_F(NodeReaderTest, ForkedProcessesVerifyASampleOnce) {
    store(3);
    const auto reader = open();
    EXPECT_EQ(test::exit_code_of_child([&] { return serves(*reader, 3) ? 0 : 1; }), 0);
    damage(3, domain::kRecordHeaderBytes);
    EXPECT_TRUE(reader->read(SampleId{3}).has_value()) << "checked by the child before the damage";
    EXPECT_FALSE(open()->read(SampleId{3}).has_value());
}

TEST_F(NodeReaderTest, ClosesMapsWhenAddressSpaceRunsOut) {
    constexpr std::uint64_t kLarge = 256U << 20U;  // sparse
    for (std::uint64_t id = 0; id < kSamples; ++id) {
        node_.start_segment(kLarge);
        node_.put(SampleId{id}, payload_of(id));
    }
    const auto reader = open();
    const int served = test::exit_code_of_child([&] {
        std::uint64_t pages = 0;
        std::ifstream{"/proc/self/statm"} >> pages;
        const rlim_t now = pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE));
        const rlimit limit{now + 5 * kLarge, RLIM_INFINITY};
        ::setrlimit(RLIMIT_AS, &limit);
        int count = 0;
        for (std::uint64_t id = 0; id < kSamples; ++id) {
            count += serves(*reader, id) ? 1 : 0;
        }
        return reader->map_count() <= 5 ? count : 0;
    });
    EXPECT_EQ(served, kSamples);
}

TEST_F(NodeReaderTest, ReadsInAnyOrderWithFewMaps) {
    store_all();
    const auto reader = open({.segment_maps_max = 12});
    Prng prng{test::seed()};
    for (int round = 0; round < 1000; ++round) {
        EXPECT_TRUE(serves(*reader, prng() % kSamples));
    }
}

TEST_F(NodeReaderTest, ClosesTheLeastRecentlyUsedMapFirst) {
    store_all();
    const auto reader = open({.segment_maps_max = 2});
    std::vector<SampleView> views;
    for (const std::uint64_t id : {0U, 1U, 0U, 2U, 0U}) {
        views.push_back(reader->read(SampleId{id}).value());
    }
    EXPECT_FALSE(is_mapped(views[1]));
    EXPECT_TRUE(is_mapped(views[3]));
    EXPECT_EQ(views[0].pin, views[4].pin) << "segment of sample 0 was kept";
}

TEST_F(NodeReaderTest, UnmapsUnlinkedSegments) {
    store_all();
    const auto reader = open();
    std::vector<SampleView> views;
    for (std::uint64_t id = 0; id < kSamples; ++id) {
        views.push_back(reader->read(SampleId{id}).value());
    }
    for (const std::uint64_t id : {3U, 4U, 30U}) {
        node_.set_word(SampleId{id}, 0);
        node_.unlink_segment(places_.at(id).segment);
    }
    for (std::uint64_t round = 0; round < kSamples; ++round) {
        reader->retire_unlinked(1);
    }
    for (std::uint64_t id = 0; id < kSamples; ++id) {
        EXPECT_EQ(is_mapped(views[id]), id != 3 && id != 4 && id != 30) << id;
    }
    EXPECT_TRUE(serves(*reader, 5));
}

TEST_F(NodeReaderTest, FollowsALeaderThatReplacedTheTable) {
    store(3);
    const auto reader = open();
    EXPECT_TRUE(serves(*reader, 3));
    node_.replace_residency_table();
    store(4);
    EXPECT_FALSE(reader->read(SampleId{4}).has_value());
    ASSERT_TRUE(reader->refresh().has_value());
    EXPECT_TRUE(serves(*reader, 4));
    EXPECT_FALSE(reader->read(SampleId{3}).has_value());
}

TEST_F(NodeReaderTest, EverythingMissesUntilATableExists) {
    const auto path = folder_.path() + "/residency." + domain::to_string(node_.revision());
    store(3);
    std::filesystem::rename(path, path + ".away");
    const auto reader = open();
    EXPECT_FALSE(reader->read(SampleId{3}).has_value());
    EXPECT_EQ(reader->refresh().error().code, ErrorCode::kNotFound);
    std::filesystem::rename(path + ".away", path);
    ASSERT_TRUE(reader->refresh().has_value());
    EXPECT_TRUE(serves(*reader, 3));
}

TEST_F(NodeReaderTest, RefusesAResidencyTableOfAnotherSize) {
    const auto path = folder_.path() + "/residency." + domain::to_string(node_.revision());
    std::filesystem::resize_file(path, 100);
    const auto opened =
        NodeReader::open({.directory = folder_.path(), .revision = node_.revision()});
    EXPECT_EQ(opened.error().code, ErrorCode::kCorruption);
}

TEST_F(NodeReaderTest, RefusesAMissingOrMisnamedManifest) {
    const domain::RevisionId other{42};
    const NodeReaderOptions options{.directory = folder_.path(), .revision = other};
    EXPECT_EQ(NodeReader::open(options).error().code, ErrorCode::kNotFound);
    std::filesystem::copy_file(
        folder_.path() + "/manifest." + domain::to_string(node_.revision()),
        folder_.path() + "/manifest." + domain::to_string(other));
    EXPECT_EQ(NodeReader::open(options).error().code, ErrorCode::kCorruption);
}

class SegmentMapTest : public testing::Test {
protected:
    SegmentMapTest()
        : node_(folder_.path(), {{"a/1", 100, "e1"}, {"a/2", 5000, "e2"}}),
          segments_(::open((folder_.path() + "/segments").c_str(), O_RDONLY | O_DIRECTORY)) {}

    auto open(SegmentSeq seq) { return SegmentMap::open(segments_.get(), seq, node_.revision()); }

    test::TempFolder folder_;
    test::NodeDirectory node_;
    UniqueFd segments_;
};

std::vector<std::byte> sevens(std::size_t size) {
    return std::vector<std::byte>(size, std::byte{7});
}

TEST_F(SegmentMapTest, ReadsARecordAppendedAfterMapping) {
    const auto seq = node_.start_segment(1 << 20);
    node_.put(SampleId{0}, sevens(100));
    const auto map = open(seq).value();
    const auto where = node_.put(SampleId{1}, sevens(5000));
    const auto record = map->slice(segments_.get(), where.record_offset, 5064);
    ASSERT_TRUE(record.has_value());
    EXPECT_EQ(record->back(), std::byte{7});
}

TEST_F(SegmentMapTest, RefusesBytesBeyondTheEndOfTheFile) {
    const auto seq = node_.start_segment(1 << 20);
    const auto map = open(seq).value();
    EXPECT_FALSE(map->slice(segments_.get(), 64, 100).has_value());
    EXPECT_FALSE(map->slice(segments_.get(), 1 << 20, 1).has_value());
    EXPECT_FALSE(map->slice(segments_.get(), UINT64_MAX - 10, 100).has_value());
}

TEST_F(SegmentMapTest, AnUnlinkedSegmentIsNotFoundButItsMapStaysReadable) {
    const auto seq = node_.start_segment(1 << 20);
    const auto where = node_.put(SampleId{0}, sevens(100));
    const auto map = open(seq).value();
    EXPECT_TRUE(map->is_linked(segments_.get()));
    node_.unlink_segment(seq);
    EXPECT_FALSE(map->is_linked(segments_.get()));
    EXPECT_EQ(open(seq).error().code, ErrorCode::kNotFound);
    EXPECT_TRUE(map->slice(segments_.get(), where.record_offset, 164).has_value());
}

TEST_F(SegmentMapTest, RefusesAFileOfAnotherRevisionOrNumber) {
    const auto seq = node_.start_segment(1 << 20);
    EXPECT_EQ(
        SegmentMap::open(segments_.get(), seq, domain::RevisionId{1}).error().code,
        ErrorCode::kCorruption);
    std::filesystem::rename(node_.segment_path(seq), node_.segment_path(SegmentSeq{9}));
    EXPECT_EQ(open(SegmentSeq{9}).error().code, ErrorCode::kCorruption);
}

TEST_F(SegmentMapTest, RefusesAFileThatIsNotASegment) {
    std::ofstream{node_.segment_path(SegmentSeq{5})} << "short";
    EXPECT_EQ(open(SegmentSeq{5}).error().code, ErrorCode::kCorruption);
    std::ofstream{node_.segment_path(SegmentSeq{6})} << std::string(200, 'x');
    EXPECT_EQ(open(SegmentSeq{6}).error().code, ErrorCode::kCorruption);
}

}  // namespace
}  // namespace stoker::client
