// Messages between sidecar and operator, as protobuf, in both directions.
#include <google/protobuf/stubs/logging.h>

#include "operator/sidecars/report_rules.h"
#include "proto/control/v1/control.pb.h"
#include "tests/fuzz/targets/fuzz_target.h"
#include "wire/control/codec/control_codec.h"

namespace stoker::fuzz {

namespace {

using control::v1::OperatorMessage;
using control::v1::SidecarMessage;

control::Hello hello() {
    control::Hello result;
    result.namespace_name = "ns";
    result.pod = "job-0";
    result.node = "n1";
    result.training_job = "job";
    result.training_job_uid = "uid";
    result.mounts = {{"train", "uid-1"}};
    return result;
}

void report(const SidecarMessage& message) {
    control::Report value = control::decode(message.report());
    control::trim_texts(value);
    if (!control::validate_report(hello(), nullptr, value)) {
        return;
    }
    control::complete_sketches(nullptr, value);
    expect(
        control::decode(control::encode(value).report()) == value,
        "an accepted report decodes to what was encoded");
    expect(!control::validate_report(hello(), &value, value), "a repeated report is rejected");
}

}  // namespace

void run(std::span<const std::byte> input) {
    // It logs each text that is no UTF-8: gigabytes in ten minutes.
    static const auto logged_before = google::protobuf::SetLogHandler(nullptr);
    static_cast<void>(logged_before);
    SidecarMessage said;
    if (said.ParseFromArray(input.data(), static_cast<int>(input.size()))) {
        if (said.has_report()) {
            report(said);
        } else if (said.has_hello()) {
            (void)control::validate_hello(control::decode(said.hello()));
        }
    }
    OperatorMessage told;
    if (told.ParseFromArray(input.data(), static_cast<int>(input.size()))) {
        const control::Orders orders = control::decode(told);
        expect(
            control::decode(control::encode(orders)) == orders,
            "orders decode to what was encoded");
    }
}

std::vector<std::string> seeds() {
    control::Report report;
    report.datasets.emplace_back();
    report.datasets[0].name = "train";
    report.sequence = 1;
    report.datasets[0].dataset_uid = "uid-1";
    report.datasets[0].leader = true;
    report.datasets[0].revision = "0123456789abcdef";
    report.datasets[0].resident_bytes = Bytes{100};
    report.datasets[0].sketches = {{"job", 1, {1.0F, 0.5F}, 1.0}};
    control::Orders orders;
    orders.grants.emplace_back();
    orders.grants[0].dataset_uid = "uid-1";
    orders.grants[0].weights = {{"job", 2.0}};
    orders.probe = control::Probe{7, 16};
    return {
        control::encode(hello()).SerializeAsString(),
        control::encode(report).SerializeAsString(),
        control::encode(orders).SerializeAsString()};
}

}  // namespace stoker::fuzz
