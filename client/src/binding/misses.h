#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include <pybind11/pybind11.h>

#include "client/src/binding/bindings.h"
#include "client/src/binding/core_error.h"
#include "proto/local/protocol.h"

namespace stoker::client {

// The samples of a batch that are not read yet, each with its position in the batch. Used by one
// thread.
class Misses {
public:
    struct Item {
        std::uint64_t id = 0;
        std::size_t position = 0;
        bool is_ready = false;  // the sidecar has reported the sample, which is not read yet
    };

    explicit Misses(std::vector<Item> items)
        : items_(std::move(items)) {}

    // Starts with all samples of a batch.
    Misses(pybind11::handle ids, std::uint64_t count) {
        for (const std::uint64_t id : sample_ids(ids, count)) {
            items_.push_back({id, items_.size()});
        }
    }

    // Splits the misses into groups of at most `size` samples. Throws ValueError if `size` is 0.
    [[nodiscard]] std::vector<Misses> split(std::size_t size) const {
        if (size == 0) {
            throw pybind11::value_error("the size of a part must be at least 1");
        }
        std::vector<Misses> parts;
        for (std::size_t at = 0; at < items_.size(); at += size) {
            const auto part = std::span{items_}.subspan(at, std::min(size, items_.size() - at));
            parts.emplace_back(std::vector<Item>(part.begin(), part.end()));
        }
        return parts;
    }

    void note(local::Fetched fetched) {
        for (std::size_t at = 0; at < items_.size(); ++at) {
            items_[at].is_ready = fetched.statuses.at(at) == local::FetchStatus::kReady;
        }
        if (std::ranges::count(fetched.statuses, local::FetchStatus::kOriginError) > 0) {
            refusal_ = fetched.message.empty() ? "the origin failed" : std::move(fetched.message);
        }
    }

    template <class Part>
    [[nodiscard]] auto all(Part Item::*part) const {
        std::vector<Part> out;
        std::ranges::transform(items_, std::back_inserter(out), part);
        return out;
    }

    // The message of the sidecar's last origin error; empty: none.
    [[nodiscard]] pybind11::str refusal() const { return to_words(refusal_); }

    [[nodiscard]] std::vector<Item>& items() { return items_; }

    [[nodiscard]] std::size_t size() const { return items_.size(); }

private:
    std::vector<Item> items_;
    std::string refusal_;
};

}  // namespace stoker::client
