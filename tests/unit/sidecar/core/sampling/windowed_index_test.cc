#include "sidecar/core/sampling/windowed_index.h"

#include <algorithm>
#include <map>

#include <gtest/gtest.h>

#include "common/base/prng.h"
#include "tests/support/test_seed.h"

namespace stoker::sidecar {
namespace {

TEST(NeedIndex, StartsWithAllSamplesAbsentAndUnneeded) {
    const NeedIndex index{3};
    for (SampleIndex sample = 0; sample < 3; ++sample) {
        EXPECT_EQ(index.state(sample), ScanState::kAbsent);
        EXPECT_EQ(index.readers(sample), 0U);
    }
    EXPECT_EQ(index.count(ScanState::kAbsent), 3U);
}

// Reference model: a map of every sample's readers and state.
class Model {
public:
    explicit Model(std::uint64_t seed)
        : prng_(seed) {}

    void step() {
        const auto sample = static_cast<SampleIndex>(prng_.below(kSamples));
        const auto reader = static_cast<std::uint32_t>(prng_.below(kReaders));
        const NeedIndex::Readers bit = NeedIndex::Readers{1} << reader;
        switch (prng_.below(8)) {
            case 0:
                index_.unneed_all(reader);
                for (auto& [readers, state] : samples_) {
                    readers &= ~bit;
                }
                break;
            case 1:
                if (index_.count(reader) == 0) {
                    index_.need_all(reader);
                    for (auto& [readers, state] : samples_) {
                        readers |= bit;
                    }
                }
                break;
            case 2:
            case 3:
                index_.need(sample, reader);
                samples_[sample].first |= bit;
                break;
            case 4:
            case 5:
                index_.unneed(sample, reader);
                samples_[sample].first &= ~bit;
                break;
            default:
                samples_[sample].second = static_cast<ScanState>(prng_.below(kScanStates));
                index_.move(sample, samples_[sample].second);
        }
    }

    void check() const {
        std::map<std::pair<NeedIndex::Readers, ScanState>, std::uint32_t> sizes;
        for (SampleIndex sample = 0; sample < kSamples; ++sample) {
            ASSERT_EQ(index_.readers(sample), samples_[sample].first);
            ASSERT_EQ(index_.state(sample), samples_[sample].second);
            ++sizes[samples_[sample]];
        }
        for (const NeedIndex::Bucket& bucket : index_.buckets()) {
            for (std::size_t i = 0; i < bucket.samples.size(); ++i) {
                const SampleIndex sample = bucket.samples[i];
                ASSERT_EQ(samples_[sample], std::pair(bucket.readers, bucket.state));
                --sizes[samples_[sample]];
            }
        }
        for (const auto& [key, left] : sizes) {
            ASSERT_EQ(left, 0U) << "a sample is in no bucket, or in two";
        }
        for (std::uint32_t reader = 0; reader < kReaders; ++reader) {
            for (std::size_t state = 0; state < kScanStates; ++state) {
                const auto want = std::ranges::count_if(samples_, [&](const auto& sample) {
                    return ((sample.first >> reader) & 1U) != 0 &&
                           sample.second == static_cast<ScanState>(state);
                });
                ASSERT_EQ(index_.count(reader, static_cast<ScanState>(state)), want);
            }
        }
    }

private:
    static constexpr std::uint32_t kSamples = 40;
    static constexpr std::uint32_t kReaders = 4;

    Prng prng_;
    NeedIndex index_{kSamples};
    std::vector<std::pair<NeedIndex::Readers, ScanState>> samples_{kSamples};
};

TEST(NeedIndex, AgreesWithAPlainTableUnderRandomCalls) {
    Prng seeds{test::seed()};
    for (int life = 0; life < 50 && !testing::Test::HasFailure(); ++life) {
        Model model{seeds()};
        for (int step = 0; step < 300 && !testing::Test::HasFailure(); ++step) {
            model.step();
            model.check();
        }
    }
}

}  // namespace
}  // namespace stoker::sidecar
