#include "tests/world/control_operator.h"

#include <algorithm>
#include <utility>

namespace stoker::world {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// The operator program takes 10 reports of one stream per step. In the world a stalled stream
// delivers up to six at once, so a lower limit makes some of them wait.
constexpr std::size_t kReportsPerStep = 3;

control::RestClientOptions client_options() {
    control::RestClientOptions options;
    options.field_manager = "stoker-operator";
    options.retry.tries = 1;  // a wait inside of a call would stop the world
    options.requests_per_second = 1e9;
    options.request_burst = 1e9;
    return options;
}

control::ManagerSettings manager_settings() {
    control::ManagerSettings settings;
    settings.job.sidecar_image = "stoker-sidecar:world";
    settings.job.control_address = "stoker-control:9443";
    settings.control_ca = [] { return std::string{"CA"}; };
    settings.issue_peer = [](const std::string&, const std::vector<std::string>& uris) {
        std::string all;
        for (const std::string& uri : uris) {
            all += uri + "\n";
        }
        return control::PeerCertificate{all, "CA", 3600};
    };
    settings.grant_seconds = ControlOperator::kGrantSeconds;
    return settings;
}

}  // namespace

ControlOperator::ControlOperator(
    Schedule& schedule, ControlApi& api, const Clock& clock, std::string name, std::uint64_t seed)
    : schedule_(schedule),
      api_(api),
      clock_(clock),
      name_(std::move(name)),
      transport_(api, name_),
      cache_(
          [this](const std::string&) { return std::make_unique<ControlTransport>(api_, name_); },
          "stoker-system",
          {},
          clock,
          seed),
      client_(transport_, client_options(), clock, {}, [this] { return !is_fenced_; }),
      events_(transport_, {}, clock, seed + 1),
      manager_(std::make_unique<control::Manager>(
          control::Manager::Parts{cache_, client_, events_, clock}, manager_settings())),
      settings_(std::make_unique<control::SessionSettings>(control::SessionSettings{
          manager_->registry(), clock, seconds{10}, kReportsPerStep, true})),
      self_(std::make_shared<ControlOperator*>(this)) {
    manager_->for_each([this](control::Reconciler& reconciler) {
        queues_.push_back({&reconciler, {}});
    });
    for (const control::ClusterCache::Watch& watch : cache_.watches()) {
        for (control::WatchLoop* loop : watch.loops) {
            watches_.push_back(std::make_shared<ControlWatch>(schedule, api, *loop, name_));
            watches_.back()->go_on();
        }
    }
    wait_for_caches();
}

ControlOperator::~ControlOperator() {
    watches_.clear();
    for (Session& it : sessions_) {
        it.stream->drop_operator(schedule_.draw_scale(milliseconds{1}, seconds{10}));
    }
    sessions_.clear();
}

void ControlOperator::in(Duration delay, std::function<void()> task) {
    schedule_.run_in(delay, [weak = std::weak_ptr{self_}, task = std::move(task)] {
        if (const auto self = weak.lock()) {
            (*self)->schedule_.set_speaker((*self)->name_);
            task();
        }
    });
}

void ControlOperator::wait_for_caches() {
    if (!cache_.has_synced()) {
        in(milliseconds{100}, [this] { wait_for_caches(); });
        return;
    }
    schedule_.say(name_ + " leads");
    listens_ = true;
    manager_->nodes().listen(clock_.now());
    step_sessions();
}

void ControlOperator::step_sessions() {
    std::erase_if(sessions_, [](const Session& it) { return it.stream->is_over(); });
    for (const Session& it : std::vector<Session>{sessions_}) {
        it.session->step(clock_.now());
    }
    in(seconds{1}, [this] { step_sessions(); });
}

std::shared_ptr<ControlStream> ControlOperator::accept(
    const control::PodIdentity& caller, StreamUser& user) {
    const auto stream = std::make_shared<ControlStream>(schedule_);
    const auto session = std::make_shared<control::AttachSession>(*settings_, *stream);
    session->begin(caller, session);
    stream->connect(session, user);
    sessions_.push_back({stream, session});
    return stream;
}

std::vector<std::shared_ptr<ControlStream>> ControlOperator::streams() const {
    std::vector<std::shared_ptr<ControlStream>> all;
    for (const Session& it : sessions_) {
        all.push_back(it.stream);
    }
    return all;
}

void ControlOperator::poke() {
    if (!listens_) {
        return;  // a replica that does not lead runs no workers
    }
    for (Queue& queue : queues_) {
        const auto due = queue.reconciler->next_due();
        if (due && (!queue.due || *due < *queue.due - milliseconds{20})) {
            queue.due =
                std::max(*due, schedule_.now()) + schedule_.draw(Duration{1}, milliseconds{20});
            in(*queue.due - schedule_.now(), [this, &queue, at = *queue.due] {
                if (queue.due == at) {
                    run(queue);
                }
            });
        }
    }
}

void ControlOperator::run(Queue& queue) {
    queue.due.reset();
    queue.reconciler->step();
}

}  // namespace stoker::world
