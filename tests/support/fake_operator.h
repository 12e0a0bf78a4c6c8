#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "proto/control/v1/control.grpc.pb.h"
#include "tests/support/certificates.h"
#include "tests/support/fake_peers.h"

namespace grpc {
class Server;
}  // namespace grpc

namespace stoker::testing {

// An operator as sidecars see it: a real gRPC server on loopback, with TLS, that sends preset
// messages to every sidecar and records what it receives. It decides nothing. Thread-safe.
class FakeOperator final : public control::v1::Control::Service {
public:
    FakeOperator();
    ~FakeOperator() override;

    // "localhost:1234", and the CA to trust there (PEM).
    [[nodiscard]] std::string endpoint() const;

    [[nodiscard]] const std::string& ca() const { return certificates_.ca; }

    // Sends this message to all attached sidecars and to later ones, in place of the previous one.
    // Repeats it to a sidecar that begins to lead, because it ignored earlier grants.
    void tell(const control::v1::OperatorMessage& message);

    // Grants bytes of one dataset, valid for ten minutes.
    void grant(
        const std::string& dataset_uid,
        std::uint64_t resident_bytes,
        std::uint64_t origin_bytes_per_second);

    // From now on sidecars that mount a dataset on `nodes` nodes fetch from each other.
    void gather_peers(std::size_t nodes);

    // Called with each message received from now on, one at a time, on other threads.
    void on_message(std::function<void(const control::v1::SidecarMessage&)> listener);

    // False: no report met `condition`, neither before nor within a minute.
    template <class Condition>
    [[nodiscard]] bool wait_report(Condition condition) {
        std::unique_lock lock{mutex_};
        std::size_t seen = 0;
        return changed_.wait_for(lock, std::chrono::minutes{1}, [&] {
            for (; seen < heard_.size(); ++seen) {
                if (heard_[seen].has_report() && condition(heard_[seen].report())) {
                    return true;
                }
            }
            return false;
        });
    }

    grpc::Status Attach(
        grpc::ServerContext* context,
        grpc::ServerReaderWriter<control::v1::OperatorMessage, control::v1::SidecarMessage>* stream)
        override;

private:
    using Stream =
        grpc::ServerReaderWriter<control::v1::OperatorMessage, control::v1::SidecarMessage>;

    // A sidecar, from its stream's begin to its end.
    struct Caller {
        Stream& stream;
        control::v1::Hello hello{};
        bool leads = false;
    };

    void answer(Caller& caller, const control::v1::SidecarMessage& message);
    void answer_report(Caller& caller, const control::v1::Report& report);
    void send_orders(Stream& stream) const;
    void send_groups();

    const TestCertificates certificates_ = make_certificates();
    int port_ = 0;
    std::mutex mutex_;
    std::condition_variable changed_;
    control::v1::OperatorMessage told_;
    std::optional<FakePeers> peers_;  // nullopt: nodes do not share samples
    std::set<Stream*> streams_;       // streams whose Hello has arrived
    std::vector<control::v1::SidecarMessage> heard_;
    std::function<void(const control::v1::SidecarMessage&)> listener_;
    std::unique_ptr<grpc::Server> server_;  // last: its threads use the other members
};

}  // namespace stoker::testing
