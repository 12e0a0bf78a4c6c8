#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <utility>

#include "sidecar/attached/fetch_pool.h"
#include "sidecar/attached/object_parts.h"

namespace stoker::s3 {

// The parts of a response: which one is sent now, and which of the following ones were requested or
// have arrived. Each part is requested once. For one thread.
class PartWindow {
public:
    struct Wanted {
        std::size_t index;
        attached::ObjectParts::Part part;
    };

    PartWindow() = default;

    // `ahead`: number of parts after the current one that are requested with it.
    PartWindow(const attached::ObjectParts& parts, std::size_t ahead)
        : parts_(parts),
          ahead_(ahead) {}

    // Number of the current part.
    [[nodiscard]] std::size_t index() const { return index_; }

    [[nodiscard]] attached::ObjectParts::Part part() const { return parts_[index_]; }

    [[nodiscard]] const attached::ObjectParts& parts() const { return parts_; }

    [[nodiscard]] bool has_next() const { return index_ + 1 < parts_.size(); }

    // Makes the next part the current one. Requires has_next().
    void advance() {
        ++index_;
        if (!answers_.empty()) {
            answers_.pop_front();
        }
    }

    // The next part to request; nullopt: none remains, or enough are requested already.
    std::optional<Wanted> take_wanted() {
        const std::size_t next = index_ + answers_.size();
        if (next >= parts_.size() || next > index_ + ahead_) {
            return std::nullopt;
        }
        answers_.emplace_back();
        return Wanted{next, parts_[next]};
    }

    // Stores the answer for a requested part.
    void put(std::size_t index, attached::FetchPool::Answer answer) {
        if (index >= index_ && index < index_ + answers_.size()) {
            answers_[index - index_] = std::move(answer);
        }
    }

    // Returns the answer for the current part, once; nullopt: it has not arrived yet.
    std::optional<attached::FetchPool::Answer> take() {
        return answers_.empty() ? std::nullopt : std::exchange(answers_.front(), std::nullopt);
    }

private:
    attached::ObjectParts parts_;
    std::size_t ahead_ = 0;
    std::size_t index_ = 0;
    std::deque<std::optional<attached::FetchPool::Answer>> answers_;  // of the parts from index_ on
};

}  // namespace stoker::s3
