// What a guest that lies and floods costs the dataset's owner, compared with an honest one.
#include <atomic>
#include <chrono>
#include <thread>

#include "common/base/prng.h"
#include "tests/integration/sidecar_guest_fixture.h"
#include "tests/support/test_seed.h"

namespace stoker::test {
namespace {

struct Epoch {
    std::uint64_t hits = 0;    // as the leader counts them
    std::uint64_t direct = 0;  // samples that the trainer was sent to the origin for
    double seconds = 0;
};

class SidecarFlood : public SidecarGuestTest {
protected:
    static constexpr std::uint64_t kSamples = 2000;

    // Half of the dataset may stay. The window has a hundredth of it, so that what an honest guest
    // fetches is of little use to the owner.
    SidecarFlood() {
        data = Dataset{std::vector<std::uint64_t>(kSamples, 4000)};
        auto& train = config.datasets[0];
        train.grant_bytes = Bytes{kSamples / 2 * 4096};
        train.window_bytes = Bytes{kSamples / 100 * 4096};
        train.max_in_flight = 8;
        train.step_aside_window = Duration{};
    }

    [[nodiscard]] std::vector<std::uint64_t> shuffled(std::uint64_t seed) const {
        auto order = all();
        Prng prng{seed};
        std::shuffle(order.begin(), order.end(), prng);
        return order;
    }

    [[nodiscard]] std::uint64_t counted_hits() {
        return running->ask([](sidecar::Sidecar& sidecar) {
            return sidecar.nodes()[0]->job().counted.hit_samples;
        });
    }

    // One epoch of a job that trains for a little while on each sample.
    Epoch read_epoch(SampleClient& client, std::uint64_t epoch, std::uint64_t seed) {
        const auto order = shuffled(seed);
        const std::uint64_t before = counted_hits();
        const auto began = std::chrono::steady_clock::now();
        Epoch result;
        EXPECT_TRUE(client.plan(epoch, order).has_value());
        for (const std::uint64_t id : order) {
            result.direct += client.get(id).has_value() ? 0 : 1;
            client.consumed(epoch, {id});
        }
        EXPECT_TRUE(client.fetch({}).has_value());  // all of it was counted
        const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - began;
        result.seconds = passed.count();
        result.hits = counted_hits() - before;
        return result;
    }

    // A job like the owner's.
    void be_honest(const Guest& guest, const std::atomic<bool>& stop) {
        SampleClient client = connect_to(guest, 99);
        for (std::uint64_t epoch = 1; !stop; ++epoch) {
            const auto order = shuffled(1000 + epoch);
            ASSERT_TRUE(client.plan(epoch, order).has_value());
            for (std::size_t i = 0; i < order.size() && !stop; ++i) {
                [[maybe_unused]] const auto bytes = client.get(order[i]);
                client.consumed(epoch, {order[i]});
            }
        }
    }

    // Fetches of random samples, plans, garbage for losses, without end, on many connections.
    void flood(std::uint64_t seed, const std::atomic<bool>& stop) {
        Prng prng{seed};
        const auto some = [&prng](std::size_t count) {
            std::vector<std::uint64_t> ids(count);
            std::ranges::generate(ids, [&prng] { return prng() % kSamples; });
            return ids;
        };
        std::vector<SampleClient> clients;
        for (std::uint64_t i = 0; i < 24; ++i) {
            clients.push_back(at_the_door("team-a", 1000 * seed + i));
        }
        while (!stop) {
            for (SampleClient& client : clients) {
                local::Begin begin;
                begin.contract = "importance";
                begin.job = "job-" + std::to_string(prng() % 1000);
                begin.batch = 16;
                client.send(begin);
                const std::vector<float> garbage(500, 1e30F);
                client.send_bytes(local::encode_frame(local::Losses{0, some(500), garbage}, 0));
                client.consumed(1, some(500));
                client.send(local::Fetch{some(64)});
                std::size_t answers = 2;
                if (prng() % 8 == 0) {
                    const auto order = some(kSamples);
                    const UniqueFd memfd = sealed_ids(order);
                    client.send(local::Plan{1, kSamples, 0}, memfd.get());
                    ++answers;
                }
                for (; answers > 0 && !stop; --answers) {
                    [[maybe_unused]] const auto answer = client.receive();
                }
            }
        }
    }
};

TEST_F(SidecarFlood, CostsTheOwnerNoMoreThanAnHonestGuest) {
    const std::uint64_t first_seed = seed();
    show_to("team-a");
    start_serving();
    origin->set_delay(std::chrono::microseconds{300});
    SampleClient owner = connect(1);
    read_epoch(owner, 0, first_seed);  // fills what may stay
    Guest& guest = invite("team-a");
    Epoch honest;
    Epoch flooded;
    std::uint64_t epoch = 0;
    const auto show = [](const char* beside, const Epoch& read) {
        std::printf(
            "%s: %lu hits, %lu direct, %.2f s\n",
            beside,
            static_cast<unsigned long>(read.hits),
            static_cast<unsigned long>(read.direct),
            read.seconds);
    };
    const Epoch alone = read_epoch(owner, ++epoch, first_seed);
    show("alone ", alone);
    for (const bool floods : {false, true, true, false}) {
        std::atomic<bool> stop{false};
        std::vector<std::thread> threads;
        for (std::uint64_t i = 1; i <= (floods ? 4U : 1U); ++i) {
            threads.emplace_back(
                [&, i] { floods ? flood(first_seed % 1000 + i, stop) : be_honest(guest, stop); });
        }
        ++epoch;
        const Epoch read = read_epoch(owner, epoch, first_seed + epoch);
        stop = true;
        std::ranges::for_each(threads, &std::thread::join);
        Epoch& sum = floods ? flooded : honest;
        sum = {sum.hits + read.hits, sum.direct + read.direct, sum.seconds + read.seconds};
        show(floods ? "flood " : "honest", read);
    }
    constexpr std::uint64_t kPoint = 2 * kSamples / 100;
    EXPECT_GE(flooded.hits + kPoint, honest.hits);
    EXPECT_GE(flooded.hits + kPoint / 4, 2 * alone.hits);
    EXPECT_LE(flooded.direct, honest.direct + kPoint);
    RecordProperty("seconds_ratio", std::to_string(flooded.seconds / honest.seconds));
}

}  // namespace
}  // namespace stoker::test
