#include "sidecar/origin/s3_origin.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <new>
#include <thread>
#include <utility>

#include <pthread.h>

#include "common/base/guarded.h"
#include "common/http/http_client.h"
#include "sidecar/origin/fetch_scheduler.h"
#include "sidecar/origin/s3_listing.h"
#include "sidecar/origin/s3_part.h"

namespace stoker::sidecar {

namespace {

using ObjectPtr = std::shared_ptr<ObjectFetch>;
using PartPtr = std::shared_ptr<PartFetch>;

constexpr Duration kWaitMax = std::chrono::hours{1};

struct Inbox {
    std::vector<ObjectPtr> fetches;
    std::vector<PartPtr> ended;
    bool stopping = false;

    [[nodiscard]] bool empty() const { return fetches.empty() && ended.empty() && !stopping; }
};

class S3Origin final : public Origin {
public:
    S3Origin(
        S3Location location,
        const OriginOptions& options,
        std::unique_ptr<CredentialSource> credentials,
        std::unique_ptr<http::HttpClient> client,
        const Clock& clock,
        std::uint64_t seed)
        : location_(std::move(location)),
          options_(options),
          credentials_(std::move(credentials)),
          client_(std::move(client)),
          clock_(&clock),
          next_list_seed_(seed),
          scheduler_({options.max_in_flight, options.bytes_in_flight_max}),
          random_(seed),
          thread_([this] { run(); }) {}

    ~S3Origin() override {
        post([](Inbox& inbox) { inbox.stopping = true; });
        thread_.join();
    }

    S3Origin(const S3Origin&) = delete;
    S3Origin& operator=(const S3Origin&) = delete;

    [[nodiscard]] std::string describe() const override { return location_.describe(); }

    [[nodiscard]] bool has_key() const override { return !credentials_->is_missing(); }

    Result<std::vector<domain::ListedObject>> list(
        const std::function<void(std::uint64_t)>& progress, std::stop_token stop) override {
        return list_s3(
            {location_, options_, *credentials_, *client_, *clock_, Prng{++next_list_seed_}},
            progress,
            std::move(stop));
    }

    void fetch(OriginFetch request, std::function<void(Result<OriginBytes>)> done) override {
        auto object = std::make_shared<ObjectFetch>();
        object->request = std::move(request);
        object->done = std::move(done);
        post([&](Inbox& inbox) { inbox.fetches.push_back(std::move(object)); });
    }

private:
    template <class Change>
    void post(Change change) {
        {
            const std::lock_guard lock{mutex_};
            change(inbox_);
        }
        wake_.notify_one();
    }

    void run();
    Inbox wait_for_work();
    void admit(const ObjectPtr& object);
    void start_due_retries();
    void start_what_fits();
    void send(const PartPtr& part);
    void on_ended(const PartPtr& part);
    void on_failed(const PartPtr& part, S3Failure failure);
    void give_up_siblings(const ObjectFetch& object);
    void on_arrived(const PartPtr& part);
    void release(const PartPtr& part);
    void finish(ObjectFetch& object, Result<OriginBytes> result);
    void shut_down();

    const S3Location location_;
    const OriginOptions options_;
    const std::unique_ptr<CredentialSource> credentials_;
    std::unique_ptr<http::HttpClient> client_;
    const Clock* clock_;
    std::atomic<std::uint64_t> next_list_seed_;

    std::mutex mutex_;
    std::condition_variable wake_;
    Inbox inbox_;  // under mutex_

    // Only the origin's thread touches these.
    FetchScheduler scheduler_;
    Prng random_;
    std::uint64_t next_id_ = 0;
    std::unordered_map<FetchId, ObjectPtr> objects_;
    std::unordered_map<http::CallId, PartPtr> running_;
    std::multimap<TimePoint, PartPtr> retries_;
    std::thread thread_;
};

void S3Origin::run() {
    pthread_setname_np(pthread_self(), "s3-origin");
    while (true) {
        Inbox work = wait_for_work();
        for (const ObjectPtr& object : work.fetches) {
            admit(object);
        }
        for (const PartPtr& part : work.ended) {
            on_ended(part);
        }
        if (work.stopping) {
            break;
        }
        start_due_retries();
        start_what_fits();
    }
    shut_down();
}

Inbox S3Origin::wait_for_work() {
    Duration wait = kWaitMax;
    if (!retries_.empty()) {
        wait = std::clamp(retries_.begin()->first - clock_->now(), Duration::zero(), kWaitMax);
    }
    std::unique_lock lock{mutex_};
    wake_.wait_for(lock, wait, [this] { return !inbox_.empty(); });
    return std::exchange(inbox_, Inbox{});
}

void S3Origin::admit(const ObjectPtr& object) {
    const std::uint64_t size_bytes = object->request.size_bytes;
    if (Bytes{size_bytes} > options_.object_bytes_max) {
        finish(
            *object, fail(fetch_error(*this, object->request, too_large(size_bytes, options_), 1)));
        return;
    }
    object->id = FetchId{next_id_++};
    object->parts_left = scheduler_.part_count(size_bytes);
    objects_.emplace(object->id, object);
    scheduler_.add(object->id, size_bytes);
}

void S3Origin::start_due_retries() {
    const TimePoint now = clock_->now();
    while (!retries_.empty() && retries_.begin()->first <= now) {
        const PartPtr part = retries_.begin()->second;
        retries_.erase(retries_.begin());
        send(part);
    }
}

void S3Origin::start_what_fits() {
    while (const auto next = scheduler_.next()) {
        const ObjectPtr object = objects_.at(next->fetch);
        const auto part = std::make_shared<PartFetch>(object, next->range);
        if (next->first) {
            try {
                object->payload.resize(object->request.size_bytes);
            } catch (const std::bad_alloc&) {
                on_failed(part, {{ErrorCode::kResourceExhausted, "no memory for it"}});
                continue;
            }
        }
        send(part);
    }
}

void S3Origin::send(const PartPtr& part) {
    auto credentials = credentials_->get();
    if (!credentials) {
        on_failed(part, failure_of_transport(credentials.error()));
        return;
    }
    const OriginFetch& wanted = part->object().request;
    http::HttpRequest request = get_request(
        location_, wanted.key, wanted.etag, part->range(), *credentials, clock_->wall_now());
    request.connect_timeout = options_.connect_timeout;
    request.total_timeout = Duration::zero();
    request.idle_timeout = options_.stall_timeout;
    request.response_bytes_max = Bytes::unlimited();  // PartFetch limits it
    ++part->object().requests;
    auto ended = [this](PartPtr over) {
        post([&](Inbox& inbox) { inbox.ended.push_back(std::move(over)); });
    };
    http::HttpSink sink = part->begin_attempt(*clock_, std::move(ended));
    part->call = client_->start(std::move(request), std::move(sink));
    running_.emplace(part->call, part);
}

void S3Origin::on_ended(const PartPtr& part) {
    running_.erase(part->call);
    if (options_.metrics != nullptr) {
        options_.metrics->requests.with({"get", part->outcome()})->add();
        options_.metrics->received_bytes.add(static_cast<double>(part->received_bytes()));
    }
    if (part->object().over) {
        release(part);
    } else if (auto failure = part->failure(clock_->wall_now())) {
        on_failed(part, *std::move(failure));
    } else {
        on_arrived(part);
    }
}

void S3Origin::on_failed(const PartPtr& part, S3Failure failure) {
    const FailedAttempt attempt{part->attempt(), failure.may_pass, failure.retry_after};
    if (const auto delay = next_delay(options_.retry, attempt, random_)) {
        if (options_.metrics != nullptr) {
            options_.metrics->retries.add();
        }
        retries_.emplace(clock_->now() + *delay, part);
        return;
    }
    ObjectFetch& object = part->object();
    finish(object, fail(fetch_error(*this, object.request, failure.error, part->attempt())));
    release(part);
    give_up_siblings(object);
}

// Cancels the running parts of a failed object; releases them when they end.
void S3Origin::give_up_siblings(const ObjectFetch& object) {
    for (const auto& [call, running] : running_) {
        if (&running->object() == &object) {
            client_->cancel(call);
        }
    }
    for (auto retry = retries_.begin(); retry != retries_.end();) {
        if (&retry->second->object() == &object) {
            release(retry->second);
            retry = retries_.erase(retry);
        } else {
            ++retry;
        }
    }
}

void S3Origin::on_arrived(const PartPtr& part) {
    ObjectFetch& object = part->object();
    if (!object.first_byte) {
        object.first_byte = part->first_byte();
    }
    if (options_.metrics != nullptr && part->first_byte()) {
        options_.metrics->first_byte_seconds.observe(
            std::chrono::duration<double>(*part->first_byte()).count());
    }
    if (--object.parts_left == 0) {
        finish(
            object,
            OriginBytes{
                std::move(object.payload),
                object.first_byte.value_or(Duration::zero()),
                object.requests,
                part->range() ? Duration::zero() : part->duration()});
    }
    release(part);
}

void S3Origin::release(const PartPtr& part) {
    scheduler_.part_ended(part->object().request.size_bytes);
}

void S3Origin::finish(ObjectFetch& object, Result<OriginBytes> result) {
    object.over = true;
    scheduler_.remove(object.id);
    if (options_.metrics != nullptr && !result) {
        options_.metrics->failed_objects.with({std::string{to_string(result.error().code)}})->add();
    }
    const auto done = std::exchange(object.done, nullptr);
    objects_.erase(object.id);
    done(std::move(result));
}

// Destroying the client cancels running requests; fetches that arrive meanwhile are finished here,
// too.
void S3Origin::shut_down() {
    client_.reset();
    const Error closing{ErrorCode::kCancelled, "the origin is closing"};
    const auto cancel = [&](ObjectFetch& object) {
        if (!object.over) {
            object.over = true;
            std::exchange(
                object.done, nullptr)(fail(fetch_error(*this, object.request, closing, 1)));
        }
    };
    for (const auto& [id, object] : std::exchange(objects_, {})) {
        cancel(*object);
    }
    std::vector<ObjectPtr> late;
    {
        const std::lock_guard lock{mutex_};
        late = std::exchange(inbox_.fetches, {});
    }
    for (const ObjectPtr& object : late) {
        cancel(*object);
    }
}

}  // namespace

Result<std::unique_ptr<Origin>> make_s3_origin(
    S3Location location,
    const OriginOptions& options,
    std::unique_ptr<CredentialSource> credentials,
    const Clock& clock,
    std::uint64_t seed) {
    http::ClientOptions asked_by = client_options(options, location.scheme + ":");
    asked_by.idle_connections = options.max_in_flight + 1;
    STOKER_TRY(auto client, http::make_curl_client(std::move(asked_by), clock));
    return std::unique_ptr<Origin>{std::make_unique<S3Origin>(
        std::move(location), options, std::move(credentials), std::move(client), clock, seed)};
}

}  // namespace stoker::sidecar
