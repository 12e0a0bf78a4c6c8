#include "sidecar/peers/channel_queues.h"

#include <gtest/gtest.h>

#include "tests/unit/sidecar/peers/frames.h"

namespace stoker::sidecar {
namespace {

using test::frame_of;

constexpr std::size_t kWaitingMax = 10'000;

TEST(ChannelQueues, WakesEachThreadOnceUntilItHasEmptiedItsQueue) {
    ChannelQueues queues{kWaitingMax};
    EXPECT_TRUE(queues.send(frame_of(1, 0, 1)));
    EXPECT_FALSE(queues.send(frame_of(1, 0, 1)));
    FrameWriter writer;
    queues.take_frames(writer);
    EXPECT_TRUE(queues.send(frame_of(1, 0, 1)));

    EXPECT_TRUE(queues.deliver(PeerIdentity{}));
    EXPECT_FALSE(queues.deliver(frame_of(1, 0, 1)));
    EXPECT_TRUE(queues.take_event().event);
    EXPECT_TRUE(queues.take_event().event);
    EXPECT_FALSE(queues.deliver(frame_of(1, 0, 1))) << "it has not seen that the queue is empty";
    EXPECT_TRUE(queues.take_event().event);
    EXPECT_FALSE(queues.take_event().event);
    EXPECT_TRUE(queues.deliver(frame_of(1, 0, 1)));
}

TEST(ChannelQueues, ReadingStopsAtTheBoundAndGoesOnAtHalfOfIt) {
    ChannelQueues queues{kWaitingMax};
    int waiting = 0;
    for (; !queues.must_stop_reading(); ++waiting) {
        (void)queues.deliver(frame_of(10, 990, 1));
    }
    EXPECT_GT(waiting, 5);
    EXPECT_LE(waiting, 10);
    int taken = 0;
    while (!queues.take_event().resume) {
        EXPECT_TRUE(queues.must_stop_reading());
        ++taken;
    }
    EXPECT_NEAR(taken, waiting / 2, 1);
    EXPECT_FALSE(queues.must_stop_reading());
}

TEST(ChannelQueues, EmptyFramesCountForTheBound) {
    ChannelQueues queues{kWaitingMax};
    for (int i = 0; i < 100; ++i) {
        (void)queues.deliver(frame_of(1, 0, 1));
    }
    EXPECT_TRUE(queues.must_stop_reading());
}

TEST(ChannelQueues, ReportsDrainedOnceAfterTheBacklogWasHigh) {
    ChannelQueues queues{kWaitingMax};
    const PeerFrame frame = frame_of(8, PeerChannel::kUnsentLow, 1);
    (void)queues.send(frame);
    EXPECT_EQ(queues.unsent_bytes(), wire_bytes(frame));
    EXPECT_FALSE(queues.note_written(1, {})) << "still high";
    EXPECT_TRUE(queues.note_written(wire_bytes(frame) - 1, {}));
    EXPECT_EQ(queues.unsent_bytes(), 0U);
    const auto taken = queues.take_event();
    ASSERT_TRUE(taken.event);
    EXPECT_TRUE(std::holds_alternative<ChannelDrained>(*taken.event));
    EXPECT_FALSE(queues.take_event().event);

    const PeerFrame small = frame_of(8, 0, 1);
    (void)queues.send(small);
    EXPECT_FALSE(queues.note_written(wire_bytes(small), {}));
}

TEST(ChannelQueues, ReturnsTheHoldersOfSentPayloads) {
    ChannelQueues queues{kWaitingMax};
    EXPECT_TRUE(queues.note_written(0, {std::make_shared<int>(1), std::make_shared<int>(2)}));
    EXPECT_EQ(queues.take_event().spent.size(), 2U);
}

TEST(ChannelQueues, CloseDropsFrames) {
    ChannelQueues queues{kWaitingMax};
    PeerFrame frame = frame_of(1, 10, 1);
    const std::weak_ptr<const void> holder = frame.payload.holder;
    (void)queues.send(std::exchange(frame, {}));
    queues.close();
    EXPECT_TRUE(holder.expired());
    EXPECT_FALSE(queues.send(frame_of(1, 10, 1)));
    FrameWriter writer;
    queues.take_frames(writer);
    EXPECT_TRUE(writer.record().empty());
}

}  // namespace
}  // namespace stoker::sidecar
