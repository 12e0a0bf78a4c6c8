#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "common/base/prng.h"
#include "sidecar/advise/trace_reader.h"

namespace stoker::advise {

inline Trace trace_of(const std::string& text) {
    TraceReader reader;
    EXPECT_TRUE(reader.feed(text).has_value());
    auto trace = std::move(reader).finish();
    EXPECT_TRUE(trace.has_value()) << trace.error().message;
    return trace ? *std::move(trace) : Trace{};
}

inline std::string complaint(const std::string& text) {
    TraceReader reader;
    const Status fed = reader.feed(text);
    if (!fed) {
        return fed.error().message;
    }
    const auto trace = std::move(reader).finish();
    return trace ? "" : trace.error().message;
}

inline std::vector<std::uint32_t> shuffled(std::uint32_t count, Prng& prng) {
    std::vector<std::uint32_t> order(count);
    for (std::uint32_t i = 0; i < count; ++i) {
        order[i] = i;
        std::swap(order[i], order[prng.below(i + 1)]);
    }
    return order;
}

// Plain lines: 1,000 reads per second, samples of 1,000 bytes.
class TraceText {
public:
    void read(std::uint32_t sample, std::uint32_t rank = 0) {
        text_ +=
            fmt::format("{}.{:03} k{} 1000 - {}\n", count_ / 1000, count_ % 1000, sample, rank);
        ++count_;
    }

    // Each of `ranks` readers gets every ranks-th sample of each epoch's order.
    void shuffle(std::uint32_t samples, std::uint32_t epochs, Prng& prng, std::uint32_t ranks = 1) {
        for (std::uint32_t epoch = 0; epoch < epochs; ++epoch) {
            std::uint32_t place = 0;
            for (const std::uint32_t sample : shuffled(samples, prng)) {
                read(sample, place++ % ranks);
            }
        }
    }

    [[nodiscard]] const std::string& text() const { return text_; }

    [[nodiscard]] Trace trace() const { return trace_of(text_); }

private:
    std::string text_;
    std::uint32_t count_ = 0;
};

}  // namespace stoker::advise
