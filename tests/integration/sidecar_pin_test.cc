// The real program between an operator that pins revisions and an S3 server.
#include "tests/integration/operated_sidecar_fixture.h"

namespace stoker::test {
namespace {

namespace wire = stoker::control::v1;

class SidecarPin : public OperatedSidecarTest {
protected:
    static constexpr const char* kPinned = "  pinned: true\n";

    // The sidecar's report once it has listed.
    wire::DatasetReport listed() {
        wire::DatasetReport found;
        EXPECT_TRUE(reports([&found](const wire::DatasetReport& report) {
            found = report;
            return !report.read_revision().empty();
        }));
        return found;
    }

    void pin(const std::string& revision, const wire::ManifestMarks& marks) {
        wire::OperatorMessage message;
        wire::RevisionPin& pin = *message.add_pins();
        pin.set_dataset_uid("train");
        pin.set_revision(revision);
        *pin.mutable_marks() = marks;
        control.tell(message);
    }
};

TEST_F(SidecarPin, TrainersReadThePinnedRevision) {
    run("", kPinned);
    const wire::DatasetReport told = listed();
    EXPECT_EQ(told.marks().samples(), kObjects);
    EXPECT_EQ(told.marks().digests_size(), 256);
    pin(told.read_revision(), told.marks());
    SampleClient client = connect(1);
    expect_sample(client, 7);
}

}  // namespace
}  // namespace stoker::test
