// All ranks of an attempt read one revision: a sidecar's handling of the operator's pin.
#include <future>

#include "common/domain/manifest_marks.h"
#include "common/domain/manifest_writer.h"
#include "tests/integration/sidecar_pair_fixture.h"

namespace stoker::test {
namespace {

constexpr std::uint64_t kChanged = 41;  // sample that differs between the two revisions

class SidecarRevision : public SidecarPairTest {
protected:
    SidecarRevision() {
        config.job.training_job_uid = second_config.job.training_job_uid = "job-1";
        config.job.attempt_uid = second_config.job.attempt_uid = "uid-a1";
        config.control.endpoint = second_config.control.endpoint = "localhost:1";  // never dialled
        config.datasets[0].pinned = second_config.datasets[0].pinned = true;
    }

    [[nodiscard]] std::vector<domain::ListedObject> objects_of_data() const {
        std::vector<domain::ListedObject> objects;
        for (const std::uint64_t id : all()) {
            const auto info = data.manifest().sample(domain::SampleId{id});
            objects.push_back({std::string{info.key}, info.size_bytes, std::string{info.etag}});
        }
        return objects;
    }

    // The origin's listing after one object was overwritten.
    [[nodiscard]] std::vector<domain::ListedObject> overwritten() const {
        auto objects = objects_of_data();
        objects[kChanged].etag = "new";
        return objects;
    }

    [[nodiscard]] std::string changed_key() const {
        return std::string{data.manifest().sample(domain::SampleId{kChanged}).key};
    }

    // A pin to the revision of these objects, as another rank has listed them.
    [[nodiscard]] control::RevisionPin pin_of(std::vector<domain::ListedObject> objects) const {
        const auto bytes = domain::encode_manifest(objects).value();
        const auto view = domain::ManifestView::open(bytes).value();
        return {"train", view.revision(), domain::mark_manifest(view)};
    }

    [[nodiscard]] control::RevisionPin pin_of_data() const {
        return {"train", data.manifest().revision(), domain::mark_manifest(data.manifest())};
    }

    static void pin(RunningSidecar& on, const control::RevisionPin& pin) {
        on.ask([&pin](sidecar::Sidecar& sidecar) {
            sidecar.set_pin(pin);
            return true;
        });
    }

    static std::optional<domain::RevisionId> read_revision(RunningSidecar& on) {
        return on.ask(
            [](sidecar::Sidecar& sidecar) { return sidecar.nodes()[0]->read_revision(); });
    }

    static std::optional<domain::ManifestMarks> followed_marks(RunningSidecar& on) {
        return on.ask([](sidecar::Sidecar& sidecar) {
            const auto* marks = sidecar.nodes()[0]->followed_marks();
            return marks == nullptr ? std::nullopt : std::optional{*marks};
        });
    }

    static std::optional<control::OriginChange> change(RunningSidecar& on) {
        return on.ask(
            [](sidecar::Sidecar& sidecar) { return sidecar.nodes()[0]->origin_change(); });
    }

    // A trainer sends Hello; returns the revision of its Welcome.
    [[nodiscard]] std::future<std::uint64_t> begin(
        const std::string& socket, std::uint64_t stream) const {
        return std::async(std::launch::async, [socket, stream] {
            SampleClient client{socket};
            const auto welcome = client.hello("train", stream);
            return welcome ? welcome->revision : 0;
        });
    }

    static bool waits(const std::future<std::uint64_t>& trainer) {
        return trainer.wait_for(std::chrono::milliseconds{300}) == std::future_status::timeout;
    }
};

TEST_F(SidecarRevision, TrainersWaitForThePin) {
    start();
    auto trainer = begin(config.socket_path, 1);
    ASSERT_TRUE(eventually([&] { return read_revision(*running).has_value(); }));
    EXPECT_TRUE(waits(trainer));
    pin(*running, pin_of_data());
    EXPECT_EQ(trainer.get(), data.manifest().revision().value());
    EXPECT_EQ(origin->listings(), 1U);
    SampleClient client = connect(2);
    read_all(client, {1, 2, 3}, 0);
}

TEST_F(SidecarRevision, ListsAgainIfThePinDiffers) {
    listed = overwritten();
    start();
    ASSERT_TRUE(eventually([&] { return read_revision(*running).has_value(); }));
    origin->list_instead(objects_of_data());
    auto trainer = begin(config.socket_path, 1);
    pin(*running, pin_of_data());
    EXPECT_EQ(trainer.get(), data.manifest().revision().value());
    EXPECT_EQ(origin->listings(), 2U);
    EXPECT_EQ(change(*running), std::nullopt);
}

TEST_F(SidecarRevision, ReportsTheKeyOfAChangedOriginAndServesNothing) {
    listed = overwritten();
    start();
    ASSERT_TRUE(eventually([&] { return read_revision(*running).has_value(); }));
    auto trainer = begin(config.socket_path, 1);
    pin(*running, pin_of_data());
    ASSERT_TRUE(eventually([&] { return change(*running).has_value(); }));
    EXPECT_EQ(change(*running), (control::OriginChange{changed_key(), 1}));
    EXPECT_EQ(origin->listings(), 2U);
    EXPECT_TRUE(waits(trainer));
    pin(*running, pin_of(overwritten()));
    EXPECT_NE(trainer.get(), data.manifest().revision().value());
    EXPECT_EQ(change(*running), std::nullopt);
}

TEST_F(SidecarRevision, ADeadOperatorStopsNoTrainerAndALatePinCounts) {
    start();
    SampleClient client = connect(1);  // returns after RevisionGate::kPatience
    read_all(client, {1, 2, 3}, 0);
    pin(*running, pin_of(overwritten()));
    ASSERT_TRUE(change(*running).has_value());
    EXPECT_EQ(change(*running)->key, changed_key());
    EXPECT_EQ(origin->listings(), 1U) << "trainers are at work on it";
    read_all(client, {4, 5, 6}, 0);
}

// The leader's revision stays while its trainers use it.
TEST_F(SidecarRevision, ALeaderOfAnotherJobKeepsItsRevision) {
    config.datasets[0].pinned = false;
    second_config.job.training_job_uid = "job-2";
    start_both();
    SampleClient own = connect(1);
    auto trainer = begin(second_config.socket_path, 9);
    ASSERT_TRUE(eventually([&] { return read_revision(*second).has_value(); }));
    EXPECT_TRUE(waits(trainer));
    ASSERT_TRUE(eventually([&] { return followed_marks(*second).has_value(); }));
    EXPECT_EQ(followed_marks(*second), pin_of_data().marks);
    pin(*second, pin_of(overwritten()));
    ASSERT_TRUE(eventually([&] { return change(*second).has_value(); }));
    EXPECT_EQ(change(*second)->key, changed_key());
    EXPECT_TRUE(waits(trainer));
    read_all(own, {1, 2, 3}, 0);
    pin(*second, pin_of_data());
    EXPECT_EQ(trainer.get(), data.manifest().revision().value());
}

TEST_F(SidecarRevision, AnotherPodsTrainersDoNotWaitForOurPin) {
    second_config.datasets[0].pinned = false;
    listed = overwritten();
    start();
    pin(*running, pin_of_data());
    ASSERT_TRUE(eventually([&] { return change(*running).has_value(); }));
    second = run(second_config, second_origin);
    EXPECT_EQ(begin(second_config.socket_path, 9).get(), pin_of(overwritten()).revision.value());
}

TEST_F(SidecarRevision, ReportsAnObjectThatChangedDuringTheRun) {
    start();
    pin(*running, pin_of_data());
    SampleClient client = connect(1);
    origin->fail_key(changed_key(), {ErrorCode::kConflict, "412 Precondition Failed"});
    EXPECT_EQ(status().changed_key, "");
    EXPECT_FALSE(client.get(kChanged).has_value());
    EXPECT_EQ(status().changed_key, changed_key());
    read_all(client, {1, 2, 3}, 0);
}

}  // namespace
}  // namespace stoker::test
