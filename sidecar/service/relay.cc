#include "sidecar/service/relay.h"

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <utility>
#include <variant>

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include "common/domain/ids.h"
#include "sidecar/service/sealed_plan.h"
#include "sidecar/service/sealed_state.h"
#include "sidecar/service/unix_listener.h"

namespace stoker::sidecar {

namespace {

constexpr std::uint64_t kHelloRequestId = 1;

// Of our own questions, beside those of the client, which counts from 1.
constexpr std::uint64_t kCountRequestId = std::numeric_limits<std::uint64_t>::max();

UniqueFd duplicate(const UniqueFd& fd) {
    return UniqueFd{fd.valid() ? ::fcntl(fd.get(), F_DUPFD_CLOEXEC, 0) : -1};
}

constexpr std::size_t kIdsPerRead = std::size_t{64} << 10U;
constexpr std::size_t kIdsPerFrame = 100'000;  // a frame below the sessions' limit

// Moves the plan's start behind what was read without a gap; gives what was read beyond it. A memfd
// that does not hold what the plan says is the leader's to refuse.
std::vector<std::uint64_t> skip_read(
    local::Plan& plan, const UniqueFd& memfd, const std::vector<std::uint64_t>& consumed) {
    std::unordered_map<std::uint64_t, std::uint32_t> counts;
    for (const std::uint64_t sample : consumed) {
        ++counts[sample];
    }
    std::vector<std::uint64_t> ids(kIdsPerRead);
    for (bool gap = false; !gap && plan.start < plan.sample_count;) {
        // What lies behind the epoch was not read in it.
        const auto wanted = std::min<std::uint64_t>(ids.size(), plan.sample_count - plan.start);
        const ssize_t bytes = ::pread(
            memfd.get(),
            ids.data(),
            wanted * sizeof(std::uint64_t),
            static_cast<off_t>(plan.start * sizeof(std::uint64_t)));
        if (bytes < static_cast<ssize_t>(sizeof(std::uint64_t))) {
            break;
        }
        const auto count = static_cast<std::size_t>(bytes) / sizeof(std::uint64_t);
        for (std::size_t i = 0; i < count && !gap; ++i) {
            const auto found = counts.find(ids[i]);
            gap = found == counts.end() || found->second == 0;
            if (!gap) {
                --found->second;
                ++plan.start;
            }
        }
    }
    std::vector<std::uint64_t> beyond;
    for (const std::uint64_t sample : consumed) {
        const auto found = counts.find(sample);
        if (found->second > 0) {
            --found->second;
            beyond.push_back(sample);
        }
    }
    return beyond;
}

}  // namespace

void ReplayLog::on_request(const Frame& frame) {
    const auto message = local::decode_payload(frame.header.type, frame.payload);
    if (!message) {
        return;
    }
    if (const auto* plan = std::get_if<local::Plan>(&*message)) {
        plan_ = RecordedPlan{*plan, frame.header.request_id, duplicate(frame.fd)};
        begin_.reset();
        consumed_.clear();
    } else if (const auto* begin = std::get_if<local::Begin>(&*message)) {
        begin_ = RecordedBegin{*begin, frame.header.request_id, duplicate(frame.fd)};
        plan_.reset();
        consumed_.clear();
    } else if (const auto* consumed = std::get_if<local::Consumed>(&*message)) {
        if (plan_ && consumed->epoch == plan_->plan.epoch) {
            consumed_.insert(consumed_.end(), consumed->samples.begin(), consumed->samples.end());
        }
    } else if (
        std::holds_alternative<local::Fetch>(*message) ||
        std::holds_alternative<local::Draw>(*message) ||
        std::holds_alternative<local::AskEpoch>(*message) ||
        std::holds_alternative<local::AskSnapshot>(*message)) {
        pending_[frame.header.request_id] = join_frame(frame.header, frame.payload);
    }
}

void ReplayLog::on_answer(const Frame& frame) {
    const std::uint64_t request_id = frame.header.request_id;
    pending_.erase(request_id);
    if (plan_ && request_id == plan_->request_id) {
        plan_->answered = true;
    }
    if (begin_ && request_id == begin_->request_id) {
        begin_->answered = true;
    }
    if (begin_ && frame.header.type == local::FrameType::kDrawn) {
        const auto message = local::decode_payload(frame.header.type, frame.payload);
        if (message) {
            note_drawn(std::get<local::Drawn>(*message));
        }
    }
}

void ReplayLog::note_drawn(const local::Drawn& drawn) {
    if (drawn.epoch != begin_->begin.epoch) {
        return;
    }
    begin_->draws += drawn.served.size();
    begin_->drawn.resize(sample_count_ / 8 + 1);
    for (const std::uint64_t sample : drawn.served) {
        if (sample < sample_count_) {
            begin_->drawn[sample / 8] |= std::byte{1} << (sample % 8);
        }
    }
}

// The begin with what was drawn since counted as served. One whose memfd cannot be read is the
// leader's to refuse.
ReplayLog::Recorded ReplayLog::begin_again() const {
    local::Begin begin = begin_->begin;
    auto state = read_begin_state(begin_->memfd, begin, sample_count_);
    if (!state) {
        return {local::encode_frame(begin, begin_->request_id), duplicate(begin_->memfd)};
    }
    begin.skip += begin_->draws;
    state->served.resize(std::max(state->served.size(), begin_->drawn.size()));
    for (std::size_t i = 0; i < begin_->drawn.size(); ++i) {
        state->served[i] |= begin_->drawn[i];
    }
    begin.served_bytes = state->served.size();
    auto memfd = seal_begin_state(*state);
    if (!memfd) {
        begin.served_bytes = begin.snapshot_bytes = 0;
        return {local::encode_frame(begin, begin_->request_id), {}};
    }
    return {local::encode_frame(begin, begin_->request_id), *std::move(memfd)};
}

std::vector<ReplayLog::Recorded> ReplayLog::frames(bool ahead) const {
    std::vector<Recorded> frames;
    if (plan_) {
        local::Plan plan = plan_->plan;
        const std::vector<std::uint64_t> beyond = skip_read(plan, plan_->memfd, consumed_);
        UniqueFd memfd = duplicate(plan_->memfd);
        frames.push_back(
            {local::encode_frame(plan, plan_->request_id),
             ahead ? std::move(memfd) : without_ahead(std::move(memfd), plan)});
        for (std::size_t at = 0; at < beyond.size(); at += kIdsPerFrame) {
            const auto begin = beyond.begin() + static_cast<std::ptrdiff_t>(at);
            const auto count = std::min(kIdsPerFrame, beyond.size() - at);
            frames.push_back(
                {local::encode_frame(
                     local::Consumed{
                         plan.epoch, {begin, begin + static_cast<std::ptrdiff_t>(count)}},
                     0),
                 {}});
        }
    }
    if (begin_) {
        frames.push_back(begin_again());
    }
    for (const auto& [id, bytes] : pending_) {
        frames.push_back({bytes, {}});
    }
    return frames;
}

bool ReplayLog::is_repeated(std::uint64_t request_id) const {
    return (plan_ && plan_->answered && request_id == plan_->request_id) ||
           (begin_ && begin_->answered && request_id == begin_->request_id);
}

Relay::Relay(
    EventLoop& loop,
    Session& session,
    std::string client_directory,
    ReadingListener& listener,
    std::function<void()> on_lost)
    : loop_(loop),
      session_(session),
      client_directory_(std::move(client_directory)),
      listener_(listener),
      on_lost_(std::move(on_lost)) {}

Status Relay::connect(const std::string& leader_socket) {
    STOKER_TRY(auto socket, connect_unix(leader_socket));
    ready_ = false;
    upstream_ = std::make_unique<FrameSocket>(
        loop_,
        std::move(socket),
        [this](const Frame& frame) { on_answer(frame); },
        [this](const std::string&) {
            ready_ = false;
            uncounted_ = 0;
            if (on_parted_) {
                end_parting();
            } else {
                on_lost_();
            }
        });
    upstream_->set_limits({.payload_bytes_max = local::kFramePayloadBytesMax});
    local::Hello hello = session_.hello();
    hello.relay = true;
    upstream_->send(hello, kHelloRequestId);
    return {};
}

void Relay::on_request(Frame frame) {
    log_.on_request(frame);
    if (ready_) {
        if (counts_ && frame.header.type == local::FrameType::kConsumed) {
            ++uncounted_;
            frame.header.request_id = kCountRequestId;
        }
        if (!ahead_ && frame.header.type == local::FrameType::kPlan) {
            trim_plan(frame);
        }
        upstream_->send_raw(join_frame(frame.header, frame.payload), std::move(frame.fd));
    }
}

// For a leader that is older than we are: the client has our word that it may say more.
void Relay::trim_plan(Frame& frame) {
    const auto message = local::decode_payload(frame.header.type, frame.payload);
    if (message) {
        frame.fd = without_ahead(std::move(frame.fd), std::get<local::Plan>(*message));
    }
}

void Relay::part(std::function<void()> on_parted) {
    on_parted_ = std::move(on_parted);
    if (uncounted_ == 0) {
        end_parting();
    }
}

void Relay::end_parting() {
    std::exchange(on_parted_, [] {})();
}

void Relay::on_answer(const Frame& frame) {
    if (ready_ && frame.header.request_id == kCountRequestId) {
        on_counted(frame);
        return;
    }
    if (on_parted_) {
        return;
    }
    if (!ready_) {
        on_welcome(frame);
        return;
    }
    const bool repeated = log_.is_repeated(frame.header.request_id);
    log_.on_answer(frame);
    if (!repeated) {
        if (frame.header.type == local::FrameType::kDrawn) {
            on_drawn(frame);
        }
        session_.send_raw(join_frame(frame.header, frame.payload));
    }
}

void Relay::on_drawn(const Frame& frame) {
    if (const auto message = local::decode_payload(frame.header.type, frame.payload)) {
        listener_.on_drawn(session_, std::get<local::Drawn>(*message));
    }
}

// Or an error: ids that the dataset does not have.
void Relay::on_counted(const Frame& frame) {
    const auto message = local::decode_payload(frame.header.type, frame.payload);
    if (message && std::holds_alternative<local::Counted>(*message)) {
        listener_.on_counted(std::get<local::Counted>(*message));
    }
    uncounted_ -= uncounted_ > 0 ? 1 : 0;
    if (on_parted_ && uncounted_ == 0) {
        end_parting();
    }
}

void Relay::on_welcome(const Frame& frame) {
    auto message = local::decode_payload(frame.header.type, frame.payload);
    if (!message) {
        upstream_->close_when_sent();
        return;
    }
    if (const auto* listing = std::get_if<local::Listing>(&*message)) {
        if (!is_welcomed()) {
            session_.send_listing(listing->objects_listed);
        }
        return;
    }
    if (const auto* error = std::get_if<local::ErrorReply>(&*message)) {
        session_.refuse({static_cast<ErrorCode>(error->code), error->message});
        return;
    }
    auto* welcome = std::get_if<local::Welcome>(&*message);
    if (welcome == nullptr) {
        upstream_->close_when_sent();
        return;
    }
    if (is_welcomed() && *revision_ != welcome->revision) {
        session_.refuse(
            {ErrorCode::kConflict,
             fmt::format(
                 "the node now serves revision {}",
                 domain::to_string(domain::RevisionId{welcome->revision}))});
        return;
    }
    ready_ = true;
    counts_ = (welcome->features & local::kFeatureCounts) != 0;
    ahead_ = (welcome->features & local::kFeatureAhead) != 0;
    log_.set_sample_count(welcome->sample_count);
    if (!is_welcomed()) {
        revision_ = welcome->revision;
        welcome->directory = client_directory_;
        session_.send_welcome(*welcome);
    }
    say_again();
}

void Relay::say_again() {
    for (auto& recorded : log_.frames(ahead_)) {
        upstream_->send_raw(std::move(recorded.bytes), std::move(recorded.fd));
    }
}

}  // namespace stoker::sidecar
