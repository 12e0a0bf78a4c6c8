// Kills a writing process repeatedly, while another process keeps reading through maps. Invariants
// (docs/design/node-directory.md): the reader never sees a wrong byte, a residency word without its
// file, or a SIGBUS; and samples published before a kill survive it.
#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstring>
#include <map>
#include <thread>

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/check.h"
#include "common/base/crc32c.h"
#include "common/base/prng.h"
#include "common/base/unique_fd.h"
#include "common/domain/node_directory.h"
#include "common/domain/residency_table.h"
#include "common/domain/segment_format.h"
#include "sidecar/device/posix_device.h"
#include "sidecar/store/directory_lock.h"
#include "sidecar/store/node_store.h"
#include "tests/support/dataset.h"
#include "tests/support/temp_folder.h"
#include "tests/support/test_seed.h"

namespace stoker::sidecar {
namespace {

using domain::SampleId;
using domain::SegmentClass;

constexpr std::uint64_t kSamples = 600;
constexpr std::uint64_t kSampleBytesMax = 24 * 1024;
constexpr int kKills = 200;
constexpr int kWriterThreads = 3;

// Counters in memory that all processes of the test share.
struct Scoreboard {
    std::atomic<std::uint64_t> operations{0};  // finished by all writers so far
    std::atomic<std::uint64_t> reads{0};       // verified by the reader
    std::atomic<bool> stop_reader{false};
    std::atomic<bool> failed{false};
    std::array<char, 256> complaint{};

    void fail(std::string_view text) {
        if (!failed.exchange(true)) {
            std::ranges::copy(text.substr(0, complaint.size() - 1), complaint.begin());
        }
    }
};

class SharedScoreboard {
public:
    SharedScoreboard() {
        void* memory = ::mmap(
            nullptr, sizeof(Scoreboard), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        STOKER_CHECK(memory != MAP_FAILED, "cannot share memory");
        board_ = new (memory) Scoreboard;
    }

    SharedScoreboard(const SharedScoreboard&) = delete;
    SharedScoreboard& operator=(const SharedScoreboard&) = delete;

    ~SharedScoreboard() { ::munmap(board_, sizeof(Scoreboard)); }

    Scoreboard* operator->() const { return board_; }

    Scoreboard& operator*() const { return *board_; }

private:
    Scoreboard* board_;
};

// A child process that is killed and reaped, at the latest by the destructor.
class Child {
public:
    template <class Body>
    explicit Child(Body body)
        : pid_(::fork()) {
        STOKER_CHECK(pid_ >= 0, "cannot fork");
        if (pid_ == 0) {
            body();
            ::_exit(0);
        }
    }

    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;

    ~Child() {
        if (pid_ > 0) {
            ::kill(pid_, SIGKILL);
            wait();
        }
    }

    void kill() const { ::kill(pid_, SIGKILL); }

    int wait() {
        int status = 0;
        STOKER_CHECK(::waitpid(pid_, &status, 0) == pid_, "cannot collect a child");
        pid_ = -1;
        return status;
    }

    // The child's exit status; nullopt while it runs.
    std::optional<int> try_wait() {
        int status = 0;
        if (::waitpid(pid_, &status, WNOHANG) != pid_) {
            return std::nullopt;
        }
        pid_ = -1;
        return status;
    }

private:
    pid_t pid_;
};

StoreOptions options_for(const std::string& directory) {
    StoreOptions out;
    out.directory = domain::data_folder(directory);
    out.control_directory = domain::control_folder(directory);
    out.segment_bytes = kib(512);
    out.window_segment_bytes = kib(96);
    out.reserved_free = 0;
    out.boot_id = "boot";
    return out;
}

// Reads like the client library: words through the shared table, payloads through maps of whole
// segments.
class MappingReader {
public:
    MappingReader(std::string directory, const test::Dataset& dataset, Scoreboard& board)
        : directory_(std::move(directory)),
          dataset_(dataset),
          board_(board) {
        const auto path = domain::data_folder(directory_) + "/" +
                          domain::residency_file(dataset.manifest().revision());
        const UniqueFd fd{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
        table_ = map(fd.get(), domain::residency_file_bytes(kSamples));
    }

    void run(std::uint64_t seed) {
        Prng luck{seed};
        while (!board_.stop_reader && !board_.failed) {
            read(SampleId{luck.below(kSamples)});
            if (maps_.size() > 64) {
                forget(std::next(maps_.begin(), static_cast<long>(luck.below(maps_.size()))));
            }
        }
    }

private:
    struct Map {
        const std::byte* data = nullptr;
        std::size_t size = 0;
    };

    static Map map(int fd, std::size_t size) {
        void* data = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, fd, 0);
        return data == MAP_FAILED ? Map{} : Map{static_cast<const std::byte*>(data), size};
    }

    void forget(std::map<std::uint32_t, Map>::iterator at) {
        ::munmap(const_cast<std::byte*>(at->second.data), at->second.size);
        maps_.erase(at);
    }

    [[nodiscard]] std::uint64_t word(SampleId sample) const {
        const auto* words =
            reinterpret_cast<const std::uint64_t*>(table_.data + domain::kResidencyHeaderBytes);
        return __atomic_load_n(words + sample.value(), __ATOMIC_ACQUIRE);
    }

    void read(SampleId sample) {
        const std::uint64_t seen = word(sample);
        const auto where = domain::unpack_residency(seen);
        if (!where.has_value()) {
            return;
        }
        const Map* segment = find_segment(where->segment);
        if (segment == nullptr) {
            if (word(sample) == seen) {
                board_.fail(fmt::format("sample {} points to a missing file", sample.value()));
            }
            return;
        }
        check(sample, *where, *segment);
    }

    const Map* find_segment(domain::SegmentSeq seq) {
        const auto known = maps_.find(seq.value());
        if (known != maps_.end()) {
            return &known->second;
        }
        const auto path = domain::data_folder(directory_) + "/" + domain::segment_file(seq);
        const UniqueFd fd{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
        std::array<std::byte, domain::kSegmentHeaderBytes> head{};
        if (!fd.valid() || ::pread(fd.get(), head.data(), head.size(), 0) != ssize_t{head.size()}) {
            return nullptr;
        }
        const auto header = domain::decode_segment_header(head);
        if (!header.has_value() || header->seq != seq) {
            board_.fail(fmt::format("{} has a wrong header", path));
            return nullptr;
        }
        return &maps_.emplace(seq.value(), map(fd.get(), header->capacity_bytes)).first->second;
    }

    void check(SampleId sample, const domain::Residency& where, const Map& segment) {
        const std::span<const std::byte> bytes{segment.data, segment.size};
        const auto record = bytes.subspan(where.record_offset);
        const auto header = domain::decode_record_header(record, where.segment);
        const std::uint64_t size = dataset_.manifest().size_bytes(sample);
        if (!header.has_value() || header->sample != sample || header->payload_bytes != size) {
            board_.fail(fmt::format("sample {} has a wrong record header", sample.value()));
            return;
        }
        const auto payload = record.subspan(domain::kRecordHeaderBytes, size);
        if (crc32c(payload) != header->payload_crc32c ||
            !std::ranges::equal(payload, dataset_.payload(sample))) {
            board_.fail(fmt::format("sample {} has wrong bytes", sample.value()));
            return;
        }
        ++board_.reads;
    }

    std::string directory_;
    const test::Dataset& dataset_;
    Scoreboard& board_;
    Map table_;
    std::map<std::uint32_t, Map> maps_;
};

// Appends, drops, verifies and compacts at random until it is killed.
class RestlessWriter {
public:
    RestlessWriter(std::string directory, const test::Dataset& dataset, Scoreboard& board)
        : directory_(std::move(directory)),
          dataset_(dataset),
          board_(board) {}

    void run(std::uint64_t seed) {
        const auto device = make_posix_device();
        const auto lock = DirectoryLock::try_acquire(*device, directory_);
        if (!lock.has_value() || !lock->has_value()) {
            board_.fail("the lock of a dead writer is still held");
            return;
        }
        auto store = NodeStore::open(*device, dataset_.manifest(), options_for(directory_)).value();
        std::vector<std::jthread> threads;
        for (int i = 0; i < kWriterThreads; ++i) {
            threads.emplace_back([&, i] { write(*store, seed + static_cast<std::uint64_t>(i)); });
        }
    }

private:
    [[noreturn]] void write(NodeStore& store, std::uint64_t seed) {
        Prng luck{seed};
        while (true) {
            step(store, luck);
            ++board_.operations;
        }
    }

    void step(NodeStore& store, Prng& luck) {
        const SampleId sample{luck.below(kSamples)};
        const std::uint64_t dice = luck.below(100);
        if (dice < 60) {
            const auto as =
                sample.value() % 3 == 0 ? SegmentClass::kWindow : SegmentClass::kResident;
            const auto stored = store.append(sample, dataset_.payload(sample), as);
            if (!stored.has_value()) {
                board_.fail(stored.error().message);
            }
        } else if (dice < 97) {
            store.drop(sample);
        } else if (dice < 98) {
            if (store.find(sample).has_value() && !store.verify(sample) &&
                store.find(sample).has_value()) {
                board_.fail("a stored sample does not verify");
            }
        } else if (const auto done = store.compact(kib(256)); !done.has_value()) {
            board_.fail(done.error().message);
        }
    }

    std::string directory_;
    const test::Dataset& dataset_;
    Scoreboard& board_;
};

class StoreKillTest : public ::testing::Test {
protected:
    StoreKillTest() {
        EXPECT_TRUE(device_->make_folder(domain::data_folder(folder_.path())).has_value());
        EXPECT_TRUE(device_->make_folder(domain::control_folder(folder_.path()), Access::kOwner)
                        .has_value());
    }

    std::vector<std::optional<domain::Residency>> places(const NodeStore& store) {
        std::vector<std::optional<domain::Residency>> out;
        for (std::uint64_t id = 0; id < kSamples; ++id) {
            out.push_back(store.find(SampleId{id}));
        }
        return out;
    }

    // The residency table's words when the last writer died.
    std::vector<std::optional<domain::Residency>> published() {
        const auto path = domain::data_folder(folder_.path()) + "/" +
                          domain::residency_file(dataset_.manifest().revision());
        const auto file = read_file(*device_, path, 1 << 20U);
        if (!file.has_value()) {
            return std::vector<std::optional<domain::Residency>>(kSamples);
        }
        const auto& bytes = *file;
        std::vector<std::optional<domain::Residency>> out;
        for (std::uint64_t id = 0; id < kSamples; ++id) {
            std::uint64_t word = 0;
            std::memcpy(
                &word,
                bytes.data() + domain::kResidencyHeaderBytes + id * sizeof word,
                sizeof word);
            out.push_back(domain::unpack_residency(word));
        }
        return out;
    }

    // Takes over as the next leader, checks every sample, and dies without close().
    void expect_all_survived() {
        const auto before = published();
        const auto store =
            NodeStore::open(*device_, dataset_.manifest(), options_for(folder_.path())).value();
        if (board_->operations > 0) {
            EXPECT_FALSE(store->recovery().verified_checksums);
        }
        EXPECT_EQ(places(*store), before);
        for (std::uint64_t id = 0; id < kSamples; ++id) {
            EXPECT_EQ(store->verify(SampleId{id}), before.at(id).has_value()) << "sample " << id;
        }
    }

    // Waits until `writer` has finished `operations` more operations.
    void wait_for(Child& writer, std::uint64_t operations) {
        const std::uint64_t goal = board_->operations + operations;
        while (board_->operations < goal && !board_->failed) {
            ASSERT_EQ(writer.try_wait(), std::nullopt) << "the writer ended by itself";
            std::this_thread::yield();
        }
    }

    test::TempFolder folder_;
    test::Dataset dataset_ = test::Dataset::random(kSamples, kSampleBytesMax, 7);
    SharedScoreboard board_;
    std::unique_ptr<Device> device_ = make_posix_device();
};

TEST_F(StoreKillTest, LosesNoPublishedSampleAndServesNoWrongByte) {
    const std::uint64_t seed = test::seed();
    Prng luck{seed};
    expect_all_survived();  // makes the empty table that the reader maps
    Child reader{[&] { MappingReader{folder_.path(), dataset_, *board_}.run(seed); }};
    for (int kill = 0; kill < kKills && !board_->failed && !HasFailure(); ++kill) {
        SCOPED_TRACE(fmt::format("kill {}", kill));
        Child writer{[&] { RestlessWriter{folder_.path(), dataset_, *board_}.run(seed + luck()); }};
        wait_for(writer, 1 + luck.below(400));
        writer.kill();
        writer.wait();
        expect_all_survived();
        ASSERT_EQ(reader.try_wait(), std::nullopt) << "the reader died";
    }
    board_->stop_reader = true;
    EXPECT_EQ(reader.wait(), 0);
    EXPECT_FALSE(board_->failed) << board_->complaint.data();
    EXPECT_GT(board_->reads, 1000U);
    RecordProperty("reads", std::to_string(board_->reads));
    std::printf(
        "%d kills, %llu operations, %llu reads\n",
        kKills,
        static_cast<unsigned long long>(board_->operations),
        static_cast<unsigned long long>(board_->reads));
}

}  // namespace
}  // namespace stoker::sidecar
