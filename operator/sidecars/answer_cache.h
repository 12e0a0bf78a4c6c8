#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/base/guarded.h"
#include "common/base/result.h"

namespace stoker::control {

struct AnswerCacheOptions {
    Duration keep_accepted = std::chrono::minutes{1};
    Duration keep_refused = std::chrono::seconds{10};
    std::size_t answer_count_max = 16'384;  // more than nodes and sidecars that call in a minute
    // Limit of callers that wait for an answer; further ones get kResourceExhausted.
    std::size_t waiting_max = 256;
};

// SHA-256 of a secret, so that the secret itself need not be stored.
std::string secret_digest(std::string_view secret);

// Caches answers to questions that contain a secret and cost a remote call, such as token reviews.
// A success is kept for a minute, kForbidden for ten seconds, any other error not at all. Equal
// concurrent questions are one call. Only digests of questions are stored. Thread-safe.
template <class T>
class AnswerCache {
public:
    // Asks the remote side; blocks.
    using Ask = std::function<Result<T>(const std::string& question)>;
    // Runs a blocking task soon, on another thread.
    using Post = std::function<void(std::function<void()> task)>;
    // Called on any thread, possibly before ask() returns.
    using Done = std::function<void(Result<T>)>;

    // Stop the executor behind `post` before this is destroyed.
    AnswerCache(Ask ask, Post post, const Clock& clock, AnswerCacheOptions options)
        : ask_(std::move(ask)),
          post_(std::move(post)),
          clock_(clock),
          options_(options) {}

    // Calls `done` exactly once.
    void ask(std::string question, Done done) {
        const std::string digest = secret_digest(question);
        std::optional<Result<T>> known;
        bool first = false;
        {
            auto state = state_.lock();
            const auto answer = state->answers.find(digest);
            if (answer != state->answers.end() && clock_.now() < answer->second.until) {
                known = answer->second.result;
            } else if (state->waiting_count >= options_.waiting_max) {
                known = fail(ErrorCode::kResourceExhausted, "too many tokens are being checked");
            } else {
                std::vector<Done>& waiting = state->waiting[digest];
                first = waiting.empty();
                waiting.push_back(std::move(done));
                ++state->waiting_count;
            }
        }
        if (known) {
            done(*std::move(known));
        } else if (first) {
            post_([this, question = std::move(question), digest] { settle(question, digest); });
        }
    }

private:
    struct Answer {
        Result<T> result;
        TimePoint until{};
    };

    struct State {
        std::map<std::string, Answer> answers;             // by digest
        std::map<std::string, std::vector<Done>> waiting;  // by digest
        std::size_t waiting_count = 0;
    };

    void settle(const std::string& question, const std::string& digest) {
        const Result<T> result = ask_(question);
        // A timeout says nothing about the token.
        const bool answered = result || result.error().code == ErrorCode::kForbidden;
        std::vector<Done> waiting;
        {
            auto state = state_.lock();
            const auto entry = state->waiting.find(digest);
            waiting = std::move(entry->second);
            state->waiting.erase(entry);
            state->waiting_count -= waiting.size();
            if (answered) {
                remember(*state, digest, result);
            }
        }
        for (const Done& done : waiting) {
            done(result);
        }
    }

    void remember(State& state, const std::string& digest, const Result<T>& result) const {
        const TimePoint now = clock_.now();
        if (state.answers.size() >= options_.answer_count_max) {
            std::erase_if(
                state.answers, [&](const auto& entry) { return entry.second.until <= now; });
        }
        if (state.answers.size() >= options_.answer_count_max) {
            state.answers
                .clear();  // all are fresh: a storm of requests; to ask again is correct, but slow
        }
        const Duration keep = result ? options_.keep_accepted : options_.keep_refused;
        state.answers.insert_or_assign(digest, Answer{result, now + keep});
    }

    Ask ask_;
    Post post_;
    const Clock& clock_;
    AnswerCacheOptions options_;
    Guarded<State> state_;
};

}  // namespace stoker::control
