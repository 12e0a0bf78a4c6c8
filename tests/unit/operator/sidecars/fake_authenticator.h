#pragma once

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "operator/sidecars/authenticator.h"

namespace stoker::control {

// Accepts a fixed set of tokens. With `hold` it delays all answers until release().
class FakeAuthenticator final : public Authenticator {
public:
    void know(const std::string& token, PodIdentity identity) {
        tokens_[token] = std::move(identity);
    }

    void authenticate(std::string token, Done done) override {
        {
            const std::lock_guard lock(mutex_);
            if (hold) {
                held_.push_back(std::move(done));
                changed_.notify_all();
                return;
            }
        }
        const auto found = tokens_.find(token);
        if (token == "later") {
            done(fail(ErrorCode::kUnavailable, "the API server is away"));
        } else if (found == tokens_.end()) {
            done(fail(ErrorCode::kForbidden, "unknown token"));
        } else {
            done(found->second);
        }
    }

    std::vector<Done> take_held() {
        std::unique_lock lock(mutex_);
        changed_.wait_for(lock, std::chrono::seconds{30}, [&] { return !held_.empty(); });
        return std::move(held_);
    }

    bool hold = false;

private:
    std::map<std::string, PodIdentity> tokens_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<Done> held_;
};

}  // namespace stoker::control
