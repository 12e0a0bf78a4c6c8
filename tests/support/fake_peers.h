#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "operator/certificates/x509.h"
#include "proto/control/v1/control.pb.h"

namespace stoker::testing {

// What the operator does so that nodes share samples, for FakeOperator: signs the certificates of
// sidecars for the datasets they mount, makes each dataset's group from the reports of its leaders,
// and pins the first revision that a sidecar reports. Not thread-safe.
class FakePeers {
public:
    // A group begins when leaders on `nodes` nodes have reported addresses.
    explicit FakePeers(std::size_t nodes);

    [[nodiscard]] control::v1::PeerCertificate sign(
        const control::v1::Hello& hello, const control::v1::PeerRequest& request) const;

    // True: orders() have changed.
    bool hear(const std::string& node, const control::v1::Report& report);

    // The node's sidecar has gone. True: orders() have changed.
    bool forget(const std::string& node);

    // The newest group and the pin of each dataset, for every sidecar.
    [[nodiscard]] const control::v1::OperatorMessage& orders() const { return orders_; }

private:
    struct Dataset {
        std::map<std::string, control::v1::PeerMember> members;  // by node
        std::uint64_t version = 0;
        std::string pinned;
        control::v1::ManifestMarks marks;
    };

    bool hear_dataset(const std::string& node, const control::v1::DatasetReport& report);
    void write_orders();

    std::size_t nodes_;
    control::KeyPair authority_;
    std::map<std::string, Dataset> datasets_;  // by uid
    control::v1::OperatorMessage orders_;
};

}  // namespace stoker::testing
