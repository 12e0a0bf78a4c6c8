#include "sidecar/core/sampling/replicate_order.h"

#include <algorithm>
#include <numeric>
#include <queue>
#include <utility>

namespace stoker::sidecar {

namespace {

// Number of draws that a rank can still take. Order: ranks with more room first, then lower ranks.
struct Room {
    std::size_t left = 0;
    std::uint32_t rank = 0;

    bool operator<(const Room& other) const {
        return left != other.left ? left < other.left : rank > other.rank;
    }
};

// The drawn samples, the most drawn first.
std::vector<SampleIndex> by_times(const std::vector<std::uint32_t>& times) {
    std::vector<SampleIndex> samples;
    for (SampleIndex sample = 0; sample < times.size(); ++sample) {
        if (times[sample] > 0) {
            samples.push_back(sample);
        }
    }
    std::ranges::sort(samples, [&times](SampleIndex a, SampleIndex b) {
        return times[a] != times[b] ? times[a] > times[b] : a < b;
    });
    return samples;
}

}  // namespace

std::vector<SampleIndex> gather_copies(
    std::vector<SampleIndex> draws, std::uint32_t sample_count, std::uint32_t ranks) {
    std::vector<std::uint32_t> times(sample_count);
    for (const SampleIndex sample : draws) {
        ++times[sample];
    }
    const std::size_t count = draws.size();
    std::priority_queue<Room> rooms;
    for (std::uint32_t rank = 0; rank < ranks && rank < count; ++rank) {
        rooms.push({(count - rank + ranks - 1) / ranks, rank});
    }
    for (const SampleIndex sample : by_times(times)) {
        for (std::size_t copies = times[sample]; copies > 0;) {
            Room room = rooms.top();
            rooms.pop();
            for (; copies > 0 && room.left > 0; --copies) {
                draws[--room.left * ranks + room.rank] = sample;
            }
            if (room.left > 0) {
                rooms.push(room);
            }
        }
    }
    return draws;
}

// In place: swaps each draw into its block, then continues with the draw that was there.
void gather_repeats(std::span<SampleIndex> draws, std::uint32_t blocks, const Prng& prng) {
    const auto block_of = [&prng, blocks](SampleIndex sample) {
        return prng.after(sample).below(blocks);
    };
    std::vector<std::size_t> ends(blocks);
    for (const SampleIndex sample : draws) {
        ++ends[block_of(sample)];
    }
    std::partial_sum(ends.begin(), ends.end(), ends.begin());
    std::vector<std::size_t> next(blocks);
    std::copy(ends.begin(), ends.end() - 1, next.begin() + 1);
    for (std::uint32_t block = 0; block < blocks; ++block) {
        while (next[block] < ends[block]) {
            SampleIndex& here = draws[next[block]];
            std::swap(here, draws[next[block_of(here)]++]);
        }
    }
}

}  // namespace stoker::sidecar
