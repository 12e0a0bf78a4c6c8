#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "proto/control/v1/control.grpc.pb.h"

namespace stoker::testing {

// A sidecar as the operator sees it: a real gRPC client on loopback with one Attach stream. Not
// thread-safe.
class SidecarClient {
public:
    // Connects at once; an empty token sends no authorization. The stream always ends after a minute.
    SidecarClient(const std::string& address, const std::string& ca_pem, const std::string& token);
    ~SidecarClient();

    // False: the stream has ended.
    bool send(const control::v1::SidecarMessage& message);
    bool hello(const control::v1::Hello& hello);
    bool report(const control::v1::Report& report);

    // The next message; blocks. False: the stream has ended.
    bool receive(control::v1::OperatorMessage& message);

    // Half-closes, reads the remaining messages, and returns the stream's status.
    grpc::Status finish();

    // Drops the connection, as a pod that vanishes does.
    void cancel();

private:
    std::shared_ptr<grpc::Channel> channel_;
    std::unique_ptr<control::v1::Control::Stub> stub_;
    grpc::ClientContext context_;
    std::unique_ptr<
        grpc::ClientReaderWriter<control::v1::SidecarMessage, control::v1::OperatorMessage>>
        stream_;
    bool finished_ = false;
};

// The Hello of pod `pod` in namespace `ns` on node-1, rank 0 of job "mnist", with dataset "train" of
// uid "d1".
control::v1::Hello make_hello(const std::string& ns, const std::string& pod);

// Report `sequence` of that pod as leader: 100 samples of 1000 bytes, `resident_bytes` of them on the
// node.
control::v1::Report make_report(std::uint64_t sequence, std::uint64_t resident_bytes);

}  // namespace stoker::testing
