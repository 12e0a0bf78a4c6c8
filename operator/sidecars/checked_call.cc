#include "operator/sidecars/checked_call.h"

#include <iterator>
#include <string_view>
#include <utility>

namespace stoker::control {

namespace {

constexpr std::string_view kBearer = "Bearer ";
constexpr std::size_t kTokenBytesMax = 16 * 1024;

// The caller's bearer token. kForbidden: none, several, or too long.
Result<std::string> bearer_token(const grpc::CallbackServerContext& call) {
    const auto& metadata = call.client_metadata();
    const auto [first, last] = metadata.equal_range("authorization");
    if (first == last || std::next(first) != last) {
        return fail(ErrorCode::kForbidden, "exactly one authorization header is needed");
    }
    const std::string_view value(first->second.data(), first->second.size());
    if (!value.starts_with(kBearer) || value.size() == kBearer.size() ||
        value.size() > kTokenBytesMax) {
        return fail(ErrorCode::kForbidden, "a bearer token is needed");
    }
    return std::string(value.substr(kBearer.size()));
}

grpc::Status stopping() {
    return {grpc::StatusCode::UNAVAILABLE, "the operator is stopping; try again"};
}

}  // namespace

grpc::Status to_grpc(const Error& error) {
    const auto code = [&] {
        switch (error.code) {
            case ErrorCode::kInvalidArgument:
                return grpc::StatusCode::INVALID_ARGUMENT;
            case ErrorCode::kNotFound:
                return grpc::StatusCode::NOT_FOUND;
            case ErrorCode::kAlreadyExists:
                return grpc::StatusCode::ALREADY_EXISTS;
            case ErrorCode::kConflict:
            case ErrorCode::kGone:
                return grpc::StatusCode::ABORTED;
            case ErrorCode::kForbidden:
                return grpc::StatusCode::PERMISSION_DENIED;
            case ErrorCode::kUnavailable:
                return grpc::StatusCode::UNAVAILABLE;
            case ErrorCode::kDeadlineExceeded:
                return grpc::StatusCode::DEADLINE_EXCEEDED;
            case ErrorCode::kResourceExhausted:
                return grpc::StatusCode::RESOURCE_EXHAUSTED;
            case ErrorCode::kCorruption:
                return grpc::StatusCode::DATA_LOSS;
            case ErrorCode::kCancelled:
                return grpc::StatusCode::CANCELLED;
            case ErrorCode::kInternal:
                break;
        }
        return grpc::StatusCode::INTERNAL;
    }();
    return {code, error.message};
}

void CheckedCall::begin(std::function<void()> on_end, const std::optional<grpc::Status>& refusal) {
    self_ = shared_from_this();
    on_end_ = std::move(on_end);
    if (refusal) {
        finish(*refusal);
        return;
    }
    Result<std::string> token = bearer_token(*call_);
    if (!token) {
        finish({grpc::StatusCode::UNAUTHENTICATED, token.error().message});
        return;
    }
    context_->authenticator.authenticate(
        *std::move(token), [weak = weak_from_this()](const Result<PodIdentity>& identity) {
            if (const auto call = weak.lock()) {
                call->on_authenticated(identity);
            }
        });
}

void CheckedCall::on_authenticated(const Result<PodIdentity>& identity) {
    if (!identity) {
        const bool forbidden = identity.error().code == ErrorCode::kForbidden;
        finish(
            forbidden ? grpc::Status{grpc::StatusCode::UNAUTHENTICATED, identity.error().message}
                      : to_grpc(identity.error()));
        return;
    }
    if (const Status may_call = check_caller(*identity); !may_call) {
        finish(to_grpc(may_call.error()));
        return;
    }
    const std::lock_guard lock(mutex_);
    if (!end_) {
        identity_ = *identity;
        context_->admit(call_->peer());
        StartRead(&in_);
    }
}

void CheckedCall::finish(const grpc::Status& status) {
    const std::lock_guard lock(mutex_);
    finish_locked(status);
}

void CheckedCall::finish_locked(const grpc::Status& status) {
    if (end_) {
        return;
    }
    end_ = status;
    if (writing_) {
        end_asked_ = context_->clock.now();
    } else {
        Finish(status);
    }
}

void CheckedCall::OnCancel() {
    finish({grpc::StatusCode::CANCELLED, "the caller ended the call"});
}

void CheckedCall::OnDone() {
    {
        // step() may still hold a reference to this, but `call_` ends now.
        const std::lock_guard lock(mutex_);
        end_asked_.reset();
    }
    on_end_();
    const auto last = std::move(self_);
}

CheckedCall* LiveCalls::begin(
    const std::shared_ptr<CheckedCall>& call, std::optional<grpc::Status> refusal) {
    std::uint64_t id = 0;
    {
        const std::lock_guard lock(mutex_);
        if (!refusal && closing_) {
            refusal = stopping();
        } else if (!refusal && calls_.size() >= count_max_) {
            refusal = grpc::Status{grpc::StatusCode::RESOURCE_EXHAUSTED, too_many_};
        }
        id = next_id_++;
        calls_[id] = call;
    }
    const auto forget = [this, id] {
        const std::lock_guard lock(mutex_);
        calls_.erase(id);
    };
    call->begin(forget, refusal);
    return call.get();
}

std::vector<std::shared_ptr<CheckedCall>> LiveCalls::living() {
    std::vector<std::shared_ptr<CheckedCall>> result;
    const std::lock_guard lock(mutex_);
    for (const auto& [id, weak] : calls_) {
        if (auto call = weak.lock()) {
            result.push_back(std::move(call));
        }
    }
    return result;
}

void LiveCalls::step(TimePoint now) {
    for (const auto& call : living()) {
        call->step(now);
    }
}

void LiveCalls::close() {
    {
        const std::lock_guard lock(mutex_);
        closing_ = true;
    }
    for (const auto& call : living()) {
        call->finish(stopping());
    }
}

std::size_t LiveCalls::count() {
    const std::lock_guard lock(mutex_);
    return calls_.size();
}

}  // namespace stoker::control
