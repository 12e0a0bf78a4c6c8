#include "operator/sidecars/wire.h"

#include <iterator>
#include <string_view>

namespace stoker::control {

namespace {

constexpr std::string_view kBearer = "Bearer ";
constexpr std::size_t kTokenBytesMax = 16 * 1024;

}  // namespace

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

grpc::Status refuse_token(const Error& error) {
    return error.code == ErrorCode::kForbidden
               ? grpc::Status{grpc::StatusCode::UNAUTHENTICATED, error.message}
               : to_grpc(error);
}

}  // namespace stoker::control
