#include "wire/control/codec/control_codec.h"

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <google/protobuf/message.h>
#include <google/protobuf/unknown_field_set.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include "proto/control/v1/control.pb.h"

namespace stoker::control {
namespace {

using google::protobuf::FieldDescriptor;
using ::testing::ElementsAre;

// Sets every field of a message and of nested ones to a distinct value. A text is a valid revision;
// a list has two items, and a list of positions in another one is 0, 1.
class Filler {
public:
    void fill(google::protobuf::Message& message) {
        const auto& descriptor = *message.GetDescriptor();
        for (int i = 0; i < descriptor.field_count(); ++i) {
            const FieldDescriptor& field = *descriptor.field(i);
            if (field.is_repeated()) {
                add(message, field);
                add(message, field);
            } else {
                set(message, field);
            }
        }
    }

private:
    std::string text() { return domain::to_string(domain::RevisionId{++last_}); }

    void set(google::protobuf::Message& message, const FieldDescriptor& field) {
        const auto& reflection = *message.GetReflection();
        switch (field.cpp_type()) {
            case FieldDescriptor::CPPTYPE_MESSAGE:
                return fill(*reflection.MutableMessage(&message, &field));
            case FieldDescriptor::CPPTYPE_STRING:
                return reflection.SetString(&message, &field, text());
            case FieldDescriptor::CPPTYPE_BOOL:
                return reflection.SetBool(&message, &field, true);
            case FieldDescriptor::CPPTYPE_ENUM:
                return reflection.SetEnumValue(&message, &field, 2);
            case FieldDescriptor::CPPTYPE_INT32:
                return reflection.SetInt32(&message, &field, static_cast<std::int32_t>(++last_));
            case FieldDescriptor::CPPTYPE_UINT32:
                return reflection.SetUInt32(&message, &field, static_cast<std::uint32_t>(++last_));
            case FieldDescriptor::CPPTYPE_UINT64:
                return reflection.SetUInt64(&message, &field, ++last_);
            case FieldDescriptor::CPPTYPE_DOUBLE:
                return reflection.SetDouble(&message, &field, static_cast<double>(++last_));
            default:
                FAIL() << field.full_name() << " has a type that this test does not know";
        }
    }

    void add(google::protobuf::Message& message, const FieldDescriptor& field) {
        const auto& reflection = *message.GetReflection();
        switch (field.cpp_type()) {
            case FieldDescriptor::CPPTYPE_MESSAGE:
                return fill(*reflection.AddMessage(&message, &field));
            case FieldDescriptor::CPPTYPE_UINT32:
                return reflection.AddUInt32(
                    &message,
                    &field,
                    static_cast<std::uint32_t>(reflection.FieldSize(message, &field)));
            case FieldDescriptor::CPPTYPE_UINT64:
                return reflection.AddUInt64(&message, &field, ++last_);
            case FieldDescriptor::CPPTYPE_FLOAT:
                return reflection.AddFloat(&message, &field, static_cast<float>(++last_));
            default:
                FAIL() << field.full_name() << " has a type that this test does not know";
        }
    }

    std::uint64_t last_ = 0;
};

template <class Message>
Message filled() {
    Message message;
    Filler{}.fill(message);
    return message;
}

// Names of the fields that differ; empty: the messages are equal.
std::string difference(
    const google::protobuf::Message& before, const google::protobuf::Message& after) {
    std::string found;
    google::protobuf::util::MessageDifferencer differencer;
    differencer.ReportDifferencesToString(&found);
    return differencer.Compare(before, after) ? "" : found;
}

TEST(ControlCodec, KeepsEveryFieldOfAHello) {
    const auto hello = filled<v1::Hello>();
    EXPECT_EQ(difference(hello, encode(decode(hello)).hello()), "");
}

TEST(ControlCodec, KeepsEveryFieldOfAReport) {
    const auto report = filled<v1::Report>();
    EXPECT_EQ(difference(report, encode(decode(report)).report()), "");
}

TEST(ControlCodec, KeepsEveryFieldOfOrders) {
    const auto orders = filled<v1::OperatorMessage>();
    EXPECT_EQ(difference(orders, encode(decode(orders))), "");
}

TEST(ControlCodec, KeepsUnsetFieldsUnset) {
    Report report;
    report.datasets.emplace_back();
    const v1::SidecarMessage message = encode(report);
    EXPECT_FALSE(message.report().datasets(0).has_disk_limit());
    EXPECT_FALSE(message.report().datasets(0).has_marks());
    EXPECT_FALSE(message.report().datasets(0).has_origin_change());
    EXPECT_FALSE(message.report().job().has_probe());
    EXPECT_EQ(decode(message.report()), report);
}

TEST(ControlCodec, DoesNotSendTheNodeOfAGrant) {
    const Orders orders{{{"node-1", "uid-1", Bytes{5}, 60, 0, "Granted", {}}}, {}, {}};
    EXPECT_EQ(decode(encode(orders)).grants.at(0).node, "");
}

TEST(ControlCodec, ManifestStateThatOnlyANewerSidecarKnowsIsDecodedAsUnknown) {
    v1::Report report;
    for (const int state : {-1, 4, std::numeric_limits<int>::max()}) {
        report.add_datasets()->set_manifest_state(static_cast<v1::ManifestState>(state));
    }
    for (const DatasetReport& dataset : decode(report).datasets) {
        EXPECT_EQ(dataset.manifest_state, ManifestState::kUnknown);
    }
}

TEST(ControlCodec, DecodesTheReportOfAnOlderSidecar) {
    v1::Report report;
    report.set_sequence(7);
    report.GetReflection()->MutableUnknownFields(&report)->AddLengthDelimited(4, "conditions");
    v1::JobReport& job = *report.mutable_job();
    job.set_epoch(2);
    job.GetReflection()->MutableUnknownFields(&job)->AddVarint(11, 90);  // epochs
    v1::Report received;
    ASSERT_TRUE(received.ParseFromString(report.SerializeAsString()));
    EXPECT_EQ(decode(received).sequence, 7U);
    EXPECT_EQ(decode(received).trainer.epoch, 2U);
}

TEST(ControlCodec, DecodesATimeOutOfRangeAsNegative) {
    v1::Report report;
    report.mutable_job()->set_wait_ns(std::numeric_limits<std::uint64_t>::max());
    EXPECT_LT(decode(report).trainer.wait, Duration{});
}

TEST(ControlCodec, DropsInvalidWeights) {
    v1::OperatorMessage message;
    v1::Grant& grant = *message.add_grants();
    for (const double weight : {0.25, std::nan(""), -1.0, HUGE_VAL}) {
        grant.add_weights()->set_weight(weight);
    }
    EXPECT_THAT(decode(message).grants.at(0).weights, ElementsAre(JobWeight{"", 0.25}));
}

TEST(ControlCodec, DropsPinsWithInvalidRevisions) {
    v1::OperatorMessage message;
    for (const char* revision : {"aa", "", "00000000000000ag", "00000000000000AA"}) {
        message.add_pins()->set_revision(revision);
    }
    EXPECT_EQ(decode(message), Orders{});
}

TEST(ControlCodec, DropsManifestMarksBeyondTheLimit) {
    v1::OperatorMessage message;
    v1::RevisionPin& pin = *message.add_pins();
    pin.set_revision("00000000000000bb");
    for (std::size_t i = 0; i <= domain::kManifestMarksMax; ++i) {
        pin.mutable_marks()->add_digests(i);
    }
    EXPECT_EQ(decode(message).pins.at(0), (RevisionPin{"", domain::RevisionId{0xBB}, {}}));
}

// A group of two whose reads are complete until `spoil` changes them.
std::optional<KnownReads> decoded_reads(const std::function<void(v1::KnownReads&)>& spoil) {
    v1::OperatorMessage message;
    v1::PeerGroup& group = *message.add_peer_groups();
    group.add_members();
    group.add_members();
    v1::KnownReads& reads = *group.mutable_reads();
    reads.set_order(v1::READ_ORDER_STOKER);
    reads.set_epochs(3);
    reads.add_rank_members(1);
    spoil(reads);
    return decode(message).peers.at(0).reads;
}

TEST(ControlCodec, DropsKnownReadsThatThisVersionCannotPlace) {
    EXPECT_TRUE(decoded_reads([](v1::KnownReads&) {}));
    EXPECT_FALSE(decoded_reads([](auto& reads) { reads.set_order(v1::READ_ORDER_UNSPECIFIED); }));
    EXPECT_FALSE(
        decoded_reads([](auto& reads) { reads.set_order(static_cast<v1::ReadOrder>(3)); }));
    EXPECT_FALSE(decoded_reads([](auto& reads) { reads.set_epochs(0); }));
    EXPECT_FALSE(decoded_reads([](auto& reads) { reads.clear_rank_members(); }));
    EXPECT_FALSE(decoded_reads([](auto& reads) { reads.add_rank_members(2); }));
}

TEST(ControlCodec, KeepsEveryFieldOfAPeerRequest) {
    const auto request = filled<v1::PeerRequest>();
    EXPECT_EQ(difference(request, encode(decode(request)).peer_request()), "");
}

}  // namespace
}  // namespace stoker::control
