#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/codegen/proto_utils.h>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "operator/sidecars/authenticator.h"

// Private to operator/sidecars: gRPC calls by sidecars and node programs. Messages are read as
// bytes, so that the caller's token and the size are checked before parsing.
namespace stoker::control {

template <class Message>
using MessageBytes = grpc::SerializationTraits<Message>;

grpc::Status to_grpc(const Error& error);

// Objects that all calls share; outlives them.
struct CallContext {
    Authenticator& authenticator;
    const Clock& clock;
    // Called when the caller at that address has presented a valid token.
    std::function<void(const std::string& peer)> admit{};
};

// One call that reads nothing before its bearer token is verified. It owns itself from begin()
// until gRPC has finished with it. Never blocks.
//
// Thread rule: gRPC's callbacks, the authenticator's and step() come on any thread. `mutex_` is
// never held during a call of a registry or of the authenticator.
class CheckedCall : public grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>,
                    public std::enable_shared_from_this<CheckedCall> {
public:
    CheckedCall(const CallContext& context, grpc::CallbackServerContext& call)
        : context_(&context),
          call_(&call) {}

    // Called once, before gRPC gets the call. `refusal` ends it at once with that status.
    void begin(std::function<void()> on_end, const std::optional<grpc::Status>& refusal);

    // Ends the call; repeated calls have no effect. Never blocks: a write in progress goes first.
    void finish(const grpc::Status& status);

    // Called once a second.
    virtual void step(TimePoint /*now*/) {}

    void OnCancel() override;
    void OnDone() override;

protected:
    // Checks whether this pod may make the call at all. An error ends it.
    virtual Status check_caller(const PodIdentity& /*identity*/) { return {}; }

    void finish_locked(const grpc::Status& status);

    const CallContext* context_;
    grpc::CallbackServerContext* call_;
    grpc::ByteBuffer in_;   // used by gRPC during a read
    grpc::ByteBuffer out_;  // used by gRPC during a write
    PodIdentity identity_;  // set before the first read

    std::mutex mutex_;  // guards the members below
    std::optional<grpc::Status> end_;
    std::optional<TimePoint> end_asked_;  // set if the end had to wait for a write
    bool writing_ = false;

private:
    void on_authenticated(const Result<PodIdentity>& identity);

    std::shared_ptr<CheckedCall> self_;
    std::function<void()> on_end_;
};

// The live calls of one kind. Thread-safe.
class LiveCalls {
public:
    // `too_many`: the error message for a caller beyond `count_max`.
    LiveCalls(std::size_t count_max, std::string too_many)
        : count_max_(count_max),
          too_many_(std::move(too_many)) {}

    // Begins the call, or ends it at once. Returns it for gRPC.
    CheckedCall* begin(
        const std::shared_ptr<CheckedCall>& call, std::optional<grpc::Status> refusal = {});

    void step(TimePoint now);
    // Ends every call with UNAVAILABLE, and all later ones.
    void close();
    [[nodiscard]] std::size_t count();

private:
    std::vector<std::shared_ptr<CheckedCall>> living();

    std::size_t count_max_;
    std::string too_many_;
    std::mutex mutex_;  // guards the members below
    std::map<std::uint64_t, std::weak_ptr<CheckedCall>> calls_;
    std::uint64_t next_id_ = 0;
    bool closing_ = false;
};

}  // namespace stoker::control
