#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "proto/control/v1/control.grpc.pb.h"

namespace stoker::testing {

// A sidecar as the operator sees one: a real gRPC client on loopback, one Attach stream. Not
// thread-safe.
class SidecarClient {
public:
    // Dials at once; an empty token sends no authorization at all. The stream dies after a minute
    // whatever happens.
    SidecarClient(const std::string& address, const std::string& ca_pem, const std::string& token);
    ~SidecarClient();

    // False when the stream is over.
    bool send(const control::v1::SidecarMessage& message);
    bool hello(const control::v1::Hello& hello);
    bool report(const control::v1::Report& report);

    // The next message; false when the stream is over. Blocks.
    bool receive(control::v1::OperatorMessage& message);

    // Half-closes, reads what is left, and gives the end of the stream.
    grpc::Status finish();

    // As a pod that vanishes.
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

// A hello of pod `pod` in namespace `ns` on node-1, rank 0 of job "mnist", mounting dataset "train"
// with uid "d1".
control::v1::Hello make_hello(const std::string& ns, const std::string& pod);

// Report `sequence` of that pod: it leads, 100 samples of 1000 bytes, `resident_bytes` of them on
// the node.
control::v1::Report make_report(std::uint64_t sequence, std::uint64_t resident_bytes);

}  // namespace stoker::testing
