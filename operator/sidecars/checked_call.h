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

#include "common/base/clock.h"
#include "operator/sidecars/authenticator.h"

// Private to operator/sidecars: the calls of sidecars and of node programs.
namespace stoker::control {

// What every call needs; outlives them all.
struct CallContext {
    Authenticator& authenticator;
    const Clock& clock;
    // The caller at that address has shown a good token.
    std::function<void(const std::string& peer)> admit{};
};

// One call, of which nothing is read before its bearer token is known to be good. It owns itself
// from begin() until gRPC is done with it. Never blocks.
//
// Thread rule: gRPC's callbacks, the authenticator's and step() come on any thread. `mutex_` is
// never held while a registry or the authenticator is called.
class CheckedCall : public grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>,
                    public std::enable_shared_from_this<CheckedCall> {
public:
    CheckedCall(const CallContext& context, grpc::CallbackServerContext& call)
        : context_(&context),
          call_(&call) {}

    // Called once, before gRPC gets the call. `refusal`: it ends with that at once.
    void begin(std::function<void()> on_end, const std::optional<grpc::Status>& refusal);

    // The first status counts. It waits for a write that is under way.
    void finish(const grpc::Status& status);

    // Once a second.
    virtual void step(TimePoint /*now*/) {}

    void OnCancel() override;
    void OnDone() override;

protected:
    // Whether this pod may make the call at all. An error ends it.
    virtual Status check_caller(const PodIdentity& /*identity*/) { return {}; }

    void finish_locked(const grpc::Status& status);

    const CallContext* context_;
    grpc::CallbackServerContext* call_;
    grpc::ByteBuffer in_;   // gRPC's while a read is under way
    grpc::ByteBuffer out_;  // gRPC's while a write is under way
    PodIdentity identity_;  // set before the first read

    std::mutex mutex_;  // guards what stands below
    std::optional<grpc::Status> end_;
    std::optional<TimePoint> end_asked_;  // when the end had to wait for a write
    bool writing_ = false;

private:
    void on_authenticated(const Result<PodIdentity>& identity);

    std::shared_ptr<CheckedCall> self_;
    std::function<void()> on_end_;
};

// The calls of one kind while they live. Thread-safe.
class LiveCalls {
public:
    // `too_many`: what a caller beyond `count_max` is told.
    LiveCalls(std::size_t count_max, std::string too_many)
        : count_max_(count_max),
          too_many_(std::move(too_many)) {}

    // Begins the call, or ends it at once. Returns it, for gRPC.
    CheckedCall* begin(
        const std::shared_ptr<CheckedCall>& call, std::optional<grpc::Status> refusal = {});

    void step(TimePoint now);
    // Ends every call with UNAVAILABLE, and those that come later.
    void close();
    [[nodiscard]] std::size_t count();

private:
    std::vector<std::shared_ptr<CheckedCall>> living();

    std::size_t count_max_;
    std::string too_many_;
    std::mutex mutex_;  // guards what stands below
    std::map<std::uint64_t, std::weak_ptr<CheckedCall>> calls_;
    std::uint64_t next_id_ = 0;
    bool closing_ = false;
};

}  // namespace stoker::control
