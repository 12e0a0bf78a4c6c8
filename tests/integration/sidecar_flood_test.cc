// The cost of a guest for a job in the dataset's own namespace ("owner"): a guest that reads as the
// owner does, one that floods the sidecar, and one that sends false reports. Each guest runs with
// the owner in sidecars of their own (a "world"); worlds without a guest are the comparison.
#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <ostream>
#include <thread>

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/base/prng.h"
#include "tests/integration/sidecar_guest_fixture.h"
#include "tests/support/test_seed.h"

namespace stoker::test {
namespace {

using Seconds = std::chrono::duration<double>;

constexpr std::uint64_t kSamples = 1000;
constexpr Bytes kGrant{kSamples / 2 * 4096};  // residents for half of the dataset
constexpr std::uint64_t kWorlds = 2;          // worlds per kind of guest
constexpr std::uint64_t kWorldsMax = 5;       // per kind, if other load disturbs the times
constexpr std::uint64_t kEpochs = 2;          // measured epochs per world, after the first epoch
constexpr float kLie = 1e30F;

struct Load {
    std::string contract;
    std::uint64_t window_share;  // the window is 1/window_share of the dataset
};

void PrintTo(const Load& load, std::ostream* out) {
    *out << load.contract << " 1/" << load.window_share;
}

enum class Beside : std::uint8_t { kNobody, kIdle, kHonest, kFlood, kLiar };

constexpr std::array kAll{
    std::pair{Beside::kNobody, "alone"},
    std::pair{Beside::kIdle, "idle"},
    std::pair{Beside::kHonest, "honest"},
    std::pair{Beside::kFlood, "flood"},
    std::pair{Beside::kLiar, "false"}};

constexpr std::array kHarmful{Beside::kFlood, Beside::kLiar};

// The owner's results with one kind of guest (Beside), over all epochs of all worlds.
struct Harvest {
    std::uint64_t reads = 0;
    std::uint64_t hits = 0;                   // as counted by the leader
    std::uint64_t fetched = 0;                // by the owner's requests
    std::uint64_t direct = 0;                 // samples that the trainer read at the origin itself
    std::map<std::uint64_t, double> seconds;  // per epoch, the minimum over all worlds

    [[nodiscard]] double share(std::uint64_t some) const {
        return static_cast<double>(some) / static_cast<double>(reads);
    }

    // Keeps the minimum, because other load only adds to a time.
    void note_time(std::uint64_t epoch, double time) {
        const auto [noted, is_first] = seconds.emplace(epoch, time);
        noted->second = std::min(noted->second, time);
    }

    [[nodiscard]] double time() const {
        double sum = 0;
        std::ranges::for_each(seconds, [&sum](const auto& epoch) { sum += epoch.second; });
        return sum;
    }
};

class SidecarFlood : public SidecarGuestTest, public testing::WithParamInterface<Load> {
protected:
    using Stop = std::atomic<bool>;

    SidecarFlood() {
        data = Dataset{std::vector<std::uint64_t>(kSamples, 4000)};
        auto& train = config.datasets[0];
        train.grant_bytes = kGrant;
        train.window_bytes = Bytes{kSamples / GetParam().window_share * 4096};
        train.max_in_flight = 8;
        train.step_aside_window = Duration{};
    }

    // A job that reads by the contract. `is_over`: ends it in the middle of its epoch.
    class Reader {
    public:
        Reader(SampleClient client, std::string contract, std::string job, std::uint64_t seed)
            : client_(std::move(client)),
              contract_(std::move(contract)),
              job_(std::move(job)),
              seed_(seed) {}

        void read_epoch(std::uint64_t epoch, const std::function<bool()>& is_over, Harvest& got) {
            epoch_ = epoch;
            contract_ == "exact" ? read_exact(is_over, got) : read_drawn(is_over, got);
        }

        // Waits until the leader has counted all reads.
        void settle() { EXPECT_TRUE(client_.fetch({}).has_value()); }

    private:
        void read(std::uint64_t sample, Harvest& got) {
            got.direct += client_.get(sample).has_value() ? 0 : 1;
            client_.consumed(epoch_, {sample});
            ++got.reads;
        }

        void read_exact(const std::function<bool()>& is_over, Harvest& got) {
            std::vector<std::uint64_t> order(kSamples);
            std::iota(order.begin(), order.end(), 0U);
            Prng prng{seed_ + epoch_};
            std::shuffle(order.begin(), order.end(), prng);
            ASSERT_TRUE(client_.plan(epoch_, order).has_value());
            for (auto next = order.begin(); next != order.end() && !is_over(); ++next) {
                read(*next, got);
            }
        }

        void read_drawn(const std::function<bool()>& is_over, Harvest& got) {
            local::Begin begin;
            begin.epoch = epoch_;
            begin.seed = seed_;
            begin.batch = 16;
            begin.contract = contract_;
            begin.job = job_;
            if (contract_ == "importance") {
                begin.parameters = {{"warmupEpochs", 1}};
            }
            client_.send(begin);
            auto answer = client_.receive();
            ASSERT_TRUE(answer && std::holds_alternative<local::Begun>(answer->message));
            for (bool ended = false; !ended && !is_over();) {
                client_.send(local::Draw{epoch_, 16});
                answer = client_.receive();
                ASSERT_TRUE(answer && std::holds_alternative<local::Drawn>(answer->message));
                const auto& drawn = std::get<local::Drawn>(answer->message);
                ended = drawn.ended;
                std::ranges::for_each(drawn.served, [&](std::uint64_t id) { read(id, got); });
                report_losses(drawn.served);
            }
        }

        // A few samples are much harder than the rest, the same ones for every job.
        void report_losses(const std::vector<std::uint64_t>& samples) {
            std::vector<float> losses;
            for (const std::uint64_t id : samples) {
                losses.push_back(1.0F / static_cast<float>(1 + Prng{id}() % 100));
            }
            client_.send(local::Losses{epoch_, samples, losses});
        }

        SampleClient client_;
        std::string contract_;
        std::string job_;
        std::uint64_t seed_;
        std::uint64_t epoch_ = 0;
    };

    static std::vector<std::uint64_t> some(Prng& prng, std::size_t count) {
        std::vector<std::uint64_t> ids(count);
        std::ranges::generate(ids, [&prng] { return prng() % kSamples; });
        return ids;
    }

    // Yields, because a guest's pod has its own processors.
    static void yield_to_others() {
        EXPECT_EQ(::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), 10), 0);
    }

    // Reports 500 invalid losses and reads.
    static void lie(SampleClient& client, Prng& prng) {
        const std::vector<float> garbage(500, kLie);
        client.send_bytes(
            local::encode_frame(local::Losses{1, some(prng, garbage.size()), garbage}, 0));
        client.consumed(1, some(prng, garbage.size()));
    }

    // A Begin frame of a random job of the guest, with the owner's contract; a random one, if that
    // is `exact`, for which the sidecar draws no samples.
    static local::Begin begin_any(Prng& prng, std::uint64_t jobs) {
        static constexpr std::array kContracts{"importance", "windowed", "replicate"};
        local::Begin begin;
        begin.epoch = 1;
        const std::string& owners = GetParam().contract;
        begin.contract = owners == "exact" ? kContracts[prng() % kContracts.size()] : owners;
        begin.job = fmt::format("guests-job/{}-{}", begin.contract, prng() % jobs);
        begin.batch = 16;
        return begin;
    }

    // Sends random fetches, plans, jobs and false reports without end, on many connections.
    void flood(std::uint64_t seed, const Stop& stop) const {
        yield_to_others();
        Prng prng{seed};
        std::vector<SampleClient> clients;
        for (std::uint64_t i = 0; i < 24; ++i) {
            clients.push_back(at_the_door("team-a", 1000 * seed + i));
        }
        while (!stop) {
            for (SampleClient& client : clients) {
                client.send(begin_any(prng, 1000));
                lie(client, prng);
                client.send(local::Fetch{some(prng, 64)});
                std::size_t answers = 2;
                if (prng() % 8 == 0) {
                    const UniqueFd memfd = sealed_ids(some(prng, kSamples));
                    client.send(local::Plan{1, kSamples, 0}, memfd.get());
                    ++answers;
                }
                for (; answers > 0 && !stop; --answers) {
                    [[maybe_unused]] const auto answer = client.receive();
                }
            }
        }
    }

    // Jobs that draw and never read, plans that are never followed, samples that are requested,
    // held and reported damaged; slowly, so that no limit on time or queues stops it.
    void deceive(std::uint64_t seed, const Stop& stop) const {
        yield_to_others();
        Prng prng{seed};
        std::vector<SampleClient> clients;
        for (std::uint64_t i = 0; i < 24; ++i) {
            clients.push_back(at_the_door("team-a", 1000 * seed + i));
            if (i % 2 == 0) {
                clients.back().send(begin_any(prng, 16));
                [[maybe_unused]] const auto begun = clients.back().receive();
            } else {
                EXPECT_TRUE(clients.back().plan(1, some(prng, kSamples)).has_value());
            }
        }
        while (!stop) {
            for (std::size_t i = 0; i < clients.size() && !stop; ++i) {
                lie(clients[i], prng);
                clients[i].send(local::Fetch{some(prng, 2)});
                [[maybe_unused]] auto answer = clients[i].receive();
                if (i % 2 == 0) {
                    clients[i].send(local::Draw{1, 1});
                    answer = clients[i].receive();
                }
                std::this_thread::sleep_for(std::chrono::milliseconds{1});
            }
        }
    }

    // Starts the guests, which run until `stop`.
    std::vector<std::thread> guests_of(Beside beside, std::uint64_t seed, const Stop& stop) {
        std::vector<std::thread> threads;
        if (beside == Beside::kIdle || beside == Beside::kHonest) {
            threads.emplace_back([this, beside, seed, &stop] {
                Reader guest{
                    at_the_door("team-a", 99), GetParam().contract, "guests-job/job", seed + 500};
                Harvest ignored;
                for (std::uint64_t epoch = 0; !stop; ++epoch) {
                    if (beside == Beside::kIdle) {
                        std::this_thread::sleep_for(std::chrono::milliseconds{5});
                    } else {
                        guest.read_epoch(
                            epoch, [&stop] { return stop.load(); }, ignored);
                    }
                }
            });
        }
        for (std::uint64_t i = 1; i <= 4 && beside == Beside::kFlood; ++i) {
            threads.emplace_back([this, i, seed, &stop] { flood(seed % 1000 + i, stop); });
        }
        if (beside == Beside::kLiar) {
            threads.emplace_back([this, seed, &stop] { deceive(seed % 1000, stop); });
        }
        return threads;
    }

    [[nodiscard]] local::Counted counted() {
        return running->ask(
            [](sidecar::Sidecar& sidecar) { return sidecar.nodes()[0]->job().counted; });
    }

    void measure(Reader& owner, std::uint64_t epoch, Harvest& got) {
        const local::Counted before = counted();
        const auto began = std::chrono::steady_clock::now();
        owner.read_epoch(
            epoch, [] { return false; }, got);
        owner.settle();
        got.note_time(epoch, Seconds{std::chrono::steady_clock::now() - began}.count());
        const local::Counted after = counted();
        got.hits += after.hit_samples - before.hit_samples;
        got.fetched += after.fetched_samples - before.fetched_samples;
    }

    // Runs a world: an empty node directory, an epoch that fills it, and the measured epochs.
    void live(Beside beside, std::uint64_t seed, Harvest& got) {
        stop();
        std::filesystem::remove_all(node());
        std::filesystem::remove_all(view("team-a"));
        show_to("team-a");
        start_serving();
        ASSERT_TRUE(is_open("team-a"));
        running->ask([](sidecar::Sidecar& sidecar) {
            sidecar.set_grant(
                "train", {kGrant, std::nullopt}, {{"owners-job", 1.0}, {"team-a/guests-job", 1.0}});
            return true;
        });
        Reader owner{connect(1), GetParam().contract, "owners-job/job", seed};
        Harvest first;
        measure(owner, 0, first);
        origin->set_latency(std::chrono::milliseconds{12});
        Stop stop{false};
        auto threads = guests_of(beside, seed, stop);
        for (std::uint64_t epoch = 1; epoch <= kEpochs; ++epoch) {
            measure(owner, epoch, got);
        }
        stop = true;
        std::ranges::for_each(threads, &std::thread::join);
    }

    static void print(const std::map<Beside, Harvest>& harvests) {
        for (const auto& [beside, name] : kAll) {
            const Harvest& got = harvests.at(beside);
            fmt::print(
                "{:10} 1/{:<4} {:7} reads {} hits {:.3f} fetched {:.3f} direct {:.3f} "
                "time {:.3f} ratio {:.2f}\n",
                GetParam().contract,
                GetParam().window_share,
                name,
                got.reads,
                got.share(got.hits),
                got.share(got.fetched),
                got.share(got.direct),
                got.time(),
                got.time() / harvests.at(Beside::kNobody).time());
        }
    }
};

TEST_P(SidecarFlood, CostsTheOwnerAtMostAPointOfHitsAndATenthOfItsTime) {
    const std::uint64_t first = seed();
    std::map<Beside, Harvest> harvests;
    const Harvest& alone = harvests[Beside::kNobody];
    const auto is_slower = [&](Beside beside) {
        return harvests[beside].time() > 1.1 * alone.time();
    };
    for (std::uint64_t world = 0;
         world < kWorlds || (world < kWorldsMax && std::ranges::any_of(kHarmful, is_slower));
         ++world) {
        for (const auto& [beside, name] : kAll) {
            live(beside, first % 1000000, harvests[beside]);
        }
    }
    print(harvests);
    for (const Beside beside : kHarmful) {
        const Harvest& got = harvests[beside];
        EXPECT_GE(got.share(got.hits), alone.share(alone.hits) - 0.01);
        EXPECT_LE(
            got.share(got.fetched + got.direct), alone.share(alone.fetched + alone.direct) + 0.01);
        EXPECT_FALSE(is_slower(beside));
    }
}

INSTANTIATE_TEST_SUITE_P(
    Contracts,
    SidecarFlood,
    testing::Values(
        Load{"exact", 25},
        Load{"exact", 10},
        Load{"importance", 25},
        Load{"importance", 10},
        Load{"windowed", 25},
        Load{"windowed", 10}),
    [](const testing::TestParamInfo<Load>& load) {
        return fmt::format("{}{}", load.param.contract, load.param.window_share);
    });

}  // namespace
}  // namespace stoker::test
