#include "operator/runtime/leader_elector.h"

#include <algorithm>
#include <utility>

#include "common/log/log.h"
#include "operator/kube/pause.h"
#include "operator/kube/request.h"
#include "operator/kube/resource_kind.h"
#include "operator/kube/status_error.h"

namespace stoker::control {

namespace {

constexpr Duration kWatchdogGrace = std::chrono::seconds{20};
constexpr Duration kReleaseRetry = std::chrono::milliseconds{100};

// True if a retry could succeed. A retry cannot succeed once our rights or the Lease are gone, for
// example during an uninstallation.
bool is_worth_retrying(const Result<ApiResponse>& outcome) {
    if (!outcome) {
        return true;
    }
    const ErrorCode code = read_failure(outcome->status, outcome->body).error().code;
    return is_retryable(code) || code == ErrorCode::kConflict;
}

}  // namespace

LeaderElector::LeaderElector(
    ApiTransport& transport, LeaderElectorOptions options, const Clock& clock, std::uint64_t seed)
    : transport_(&transport),
      options_(std::move(options)),
      clock_(&clock),
      machine_(options_.identity, options_.timing, seed) {}

LeaderElector::End LeaderElector::run(
    const std::stop_token& stop, const std::function<void()>& on_lead) {
    bool led = false;
    while (!stop.stop_requested()) {
        const LeaseStep step = machine_.lock()->step(clock_->now(), clock_->wall_now());
        if (const auto* lost = std::get_if<LeaseLost>(&step)) {
            log::error("leadership lost", {{"reason", lost->reason}});
            return End::kLost;
        }
        if (const auto* wait = std::get_if<LeaseWait>(&step)) {
            pause_until(*clock_, wait->until, stop);
        } else if (const auto* create = std::get_if<LeaseCreate>(&step)) {
            write(create->record, true, stop);
        } else if (const auto* update = std::get_if<LeaseUpdate>(&step)) {
            write(update->record, false, stop);
        } else {
            read(stop);
        }
        if (!led && leads()) {
            led = true;
            log::info("leading", {{"identity", options_.identity}});
            on_lead();
        }
    }
    return End::kStopped;
}

Duration LeaderElector::call_limit() const {
    return std::max<Duration>(std::chrono::seconds{1}, options_.timing.renew_deadline / 2);
}

Result<ApiResponse> LeaderElector::send(const ApiRequest& request, const std::stop_token& stop) {
    return transport_->call(request, call_limit(), stop);
}

void LeaderElector::read(const std::stop_token& stop) {
    const auto response = send(get_request(kinds::kLeases, options_.lease), stop);
    const TimePoint now = clock_->now();
    auto machine = machine_.lock();
    if (response && response->status == 404) {
        machine->on_absent();
        return;
    }
    auto lease =
        response && response->status == 200
            ? Json::parse(response->body)
            : Result<Json>(fail(ErrorCode::kUnavailable, "the API server returned no Lease"));
    if (!lease) {
        machine->on_failed(now);
        return;
    }
    seen_ = *std::move(lease);
    machine->on_read(read_lease(*seen_), now);
}

void LeaderElector::write(const LeaseRecord& record, bool create, const std::stop_token& stop) {
    const Json* base = create || !seen_ ? nullptr : &*seen_;
    const Json body = write_lease(options_.lease, record, base);
    const ApiRequest request = create ? create_request(kinds::kLeases, options_.lease.ns, body)
                                      : replace_request(kinds::kLeases, options_.lease, body);
    const TimePoint began = clock_->now();
    const auto response = send(request, stop);
    const TimePoint now = clock_->now();
    auto lease = response && (response->status == 200 || response->status == 201)
                     ? Json::parse(response->body)
                     : Result<Json>(fail(ErrorCode::kConflict, "not written"));
    auto machine = machine_.lock();
    if (!lease) {
        const std::string why = response
                                    ? read_failure(response->status, response->body).error().message
                                    : response.error().message;
        log::debug("lease not written", {{"error", why}});
        machine->on_failed(now);
        return;
    }
    seen_ = *std::move(lease);
    machine->on_written(read_lease(*seen_), began, now);
}

void LeaderElector::release(TimePoint until) {
    if (!leads()) {
        return;
    }
    const TimePoint runs_out = machine_.lock()->renewed_at() + options_.timing.lease;
    const TimePoint end = std::min(until, runs_out);
    std::optional<Release> release;
    while (!release && clock_->now() < end) {
        release = try_release(end);
        if (!release) {
            pause_until(*clock_, std::min(end, clock_->now() + kReleaseRetry), {});
        }
    }
    log::info(
        "lease released",
        {{"done", release == Release::kDone}, {"refused", release == Release::kRefused}});
}

std::optional<LeaderElector::Release> LeaderElector::try_release(TimePoint until) {
    const auto left = [&] {
        return std::clamp(
            until - clock_->now(), Duration{std::chrono::milliseconds{1}}, call_limit());
    };
    const auto response = transport_->call(get_request(kinds::kLeases, options_.lease), left(), {});
    if (!response || response->status != 200) {
        return read_refusal(response);
    }
    const auto lease = Json::parse(response->body);
    if (!lease) {
        return std::nullopt;
    }
    const LeaseRecord record = read_lease(*lease);
    if (record.holder != options_.identity) {
        return Release::kDone;
    }
    const Json body =
        write_lease(options_.lease, LeaseMachine::released(record, clock_->wall_now()), &*lease);
    const auto written =
        transport_->call(replace_request(kinds::kLeases, options_.lease, body), left(), {});
    return written && written->status == 200 ? Release::kDone : read_refusal(written);
}

std::optional<LeaderElector::Release> LeaderElector::read_refusal(
    const Result<ApiResponse>& outcome) {
    if (is_worth_retrying(outcome)) {
        return std::nullopt;
    }
    return outcome->status == 404 ? Release::kDone : Release::kRefused;
}

bool LeaderElector::may_write() const {
    return machine_.lock()->may_write(clock_->now());
}

bool LeaderElector::leads() const {
    return machine_.lock()->leads();
}

std::string LeaderElector::holder() const {
    return machine_.lock()->holder();
}

bool LeaderElector::is_healthy() const {
    auto machine = machine_.lock();
    return !machine->leads() ||
           clock_->now() - machine->renewed_at() <= options_.timing.lease + kWatchdogGrace;
}

}  // namespace stoker::control
